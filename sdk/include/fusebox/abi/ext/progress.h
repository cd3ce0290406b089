/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.progress/1": reports progress while a session is prepared.
 *
 * Before long work of known size (packing weights), a plugin announces the bytes and then reports the bytes
 * done. Announcements of several partitions add up. A call is cheap, so one call per op is fine: the host
 * limits how often it prints. The extension is absent if there is no listener. Call it only on the thread
 * that entered the callback. [prepare]
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
  void (*end)(const fbx_host*) FBX_NOEXCEPT; /* of the last begin, complete or not */
} fbx_progress;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_EXT_PROGRESS_H_ */
