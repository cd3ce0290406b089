/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.progress/1": for somebody who waits while a session is made ready.
 *
 * Before long work whose size is known (packing weights) a plugin says its bytes, then what it has done of
 * them. What several partitions announce adds up. A call costs next to nothing, so that one per op is fine:
 * the host decides how often it shows something. The extension is absent when nobody looks; then nothing
 * needs to be counted. From the thread that entered the callback only. [prepare]
 */
#ifndef FUSEBOX_ABI_EXT_PROGRESS_H_
#define FUSEBOX_ABI_EXT_PROGRESS_H_

#include "../host.h"

FBX_EXTERN_C_BEGIN

#define FBX_EXT_PROGRESS "fusebox.progress/1"

typedef struct fbx_progress {
  fbx_head head;
  void (*begin)(const fbx_host*, fbx_str what, uint64_t bytes) FBX_NOEXCEPT; /* "packing weights" */
  void (*advance)(const fbx_host*, uint64_t bytes) FBX_NOEXCEPT;
  void (*end)(const fbx_host*) FBX_NOEXCEPT; /* of what began last, whether or not all of it was done */
} fbx_progress;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_EXT_PROGRESS_H_ */
