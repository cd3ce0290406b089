/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.resize/1": allocates results whose size depends on values (WHERE, UNIQUE, strings).
 *
 * If infer leaves the dims of a result unknown, invoke calls resize once for it before it writes the result.
 * Afterwards node->results[index] has the shape and memory. `bytes` is the size of the packed payload for
 * STRING, else 0. No other call in [invoke] may allocate.
 */
#ifndef FUSEBOX_ABI_EXT_RESIZE_H_
#define FUSEBOX_ABI_EXT_RESIZE_H_

#include "../kernel.h"

FBX_EXTERN_C_BEGIN

#define FBX_EXT_RESIZE "fusebox.resize/1"

typedef struct fbx_resize {
  fbx_head head;
  fbx_status (*resize)(const fbx_host*, const fbx_node*, uint32_t result, const int64_t* dims, int32_t rank,
                       size_t bytes) FBX_NOEXCEPT;
} fbx_resize;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_EXT_RESIZE_H_ */
