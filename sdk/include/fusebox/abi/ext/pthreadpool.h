/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.pthreadpool/1": the host's thread pool as a pthreadpool_t, for libraries such as
 * XNNPACK.
 *
 * Two copies of the pthreadpool code must never share a pool. A plugin compares `parallelize_1d` with the
 * address of the plugin's pthreadpool_parallelize_1d and must not use the pool if they differ. Use the pool
 * only on the thread that entered the callback, never from inside a task. pool is NULL if the host runs on
 * one thread. [invoke]
 */
#ifndef FUSEBOX_ABI_EXT_PTHREADPOOL_H_
#define FUSEBOX_ABI_EXT_PTHREADPOOL_H_

#include "../host.h"

FBX_EXTERN_C_BEGIN

#define FBX_EXT_PTHREADPOOL "fusebox.pthreadpool/1"

typedef struct fbx_pthreadpool {
  fbx_head head;
  void* (*pool)(const fbx_host*)FBX_NOEXCEPT;
  void (*parallelize_1d)(void);
} fbx_pthreadpool;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_EXT_PTHREADPOOL_H_ */
