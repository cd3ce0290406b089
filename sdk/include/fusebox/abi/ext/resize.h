/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.resize/1": results whose size is known only when their values are (WHERE, UNIQUE,
 * strings).
 *
 * A kernel whose infer left a result's dims unknown calls resize once for it in invoke, before writing it;
 * afterwards node->results[index] has the shape and memory. `bytes` matters for STRING only (size of the
 * packed payload), else 0. The only call in [invoke] that may allocate.
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
