/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.kernel_init/1": the Model::Open call in which a kernel's init runs. A service that init
 * calls with the same fbx_host can look up the calling plugin and the model's options, and keep an object
 * across many kernels. Outside of init the extension is absent. Kernels of a partition that a delegate
 * declined are initialized later, separately.
 *
 * Call all functions on the thread that entered init. [load]
 */
#ifndef FUSEBOX_ABI_EXT_KERNEL_INIT_H_
#define FUSEBOX_ABI_EXT_KERNEL_INIT_H_

#include "../plugin.h"

FBX_EXTERN_C_BEGIN

#define FBX_EXT_KERNEL_INIT "fusebox.kernel_init/1"

typedef struct fbx_kernel_init {
  fbx_head head;
  /* The plugin whose kernel is created: the owner of the fbx_host. Never NULL. */
  const fbx_plugin* (*plugin)(const fbx_host*)FBX_NOEXCEPT;
  /* The options of a delegate for this model, over the defaults of its manifest. If the delegate is off: the
     options that were given anyway. NULL: none. Read them with host->attrs, until init returns. */
  const fbx_attrs* (*delegate_options)(const fbx_host*, fbx_str delegate)FBX_NOEXCEPT;
  /* The object kept under this key in this initialization; NULL: none. The address is the key. */
  void* (*find)(const fbx_host*, const void* key)FBX_NOEXCEPT;
  /* Keeps an object until all kernels are initialized, or one has failed. Then calls done(object) once,
     which may free it. Unless the status is FBX_OK, done is never called. */
  fbx_status (*keep)(const fbx_host*, const void* key, void* object,
                     void (*done)(void* object) FBX_NOEXCEPT) FBX_NOEXCEPT;
} fbx_kernel_init;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_EXT_KERNEL_INIT_H_ */
