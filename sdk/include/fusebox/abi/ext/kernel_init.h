/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.kernel_init/1": the initialization of a Model's kernels. It exists during a kernel's
 * init, and in calls of other plugins from there with the same fbx_host. It tells the provider of a service
 * which plugin calls it and for which model, and lets it do the work for all kernels of the model at once.
 * The kernels of a partition that a delegate declined are initialized later, separately.
 *
 * All functions are called from the thread that entered init. [load]
 */
#ifndef FUSEBOX_ABI_EXT_KERNEL_INIT_H_
#define FUSEBOX_ABI_EXT_KERNEL_INIT_H_

#include "../plugin.h"

FBX_EXTERN_C_BEGIN

#define FBX_EXT_KERNEL_INIT "fusebox.kernel_init/1"

typedef struct fbx_kernel_init {
  fbx_head head;
  /* The plugin whose kernel is made: the one that the fbx_host was given to. As long as the plugin. Never
   * NULL. */
  const fbx_plugin* (*plugin)(const fbx_host*)FBX_NOEXCEPT;
  /* The options that this model has for a delegate, over the defaults of its manifest: those it runs with,
     or, where it is turned off, those that were given all the same. NULL: none. Read with host->attrs, until
     init returns. */
  const fbx_attrs* (*delegate_options)(const fbx_host*, fbx_str delegate)FBX_NOEXCEPT;
  /* What was kept under this key during this initialization; NULL: nothing. The address is the key. */
  void* (*find)(const fbx_host*, const void* key)FBX_NOEXCEPT;
  /* Keeps an object until all kernels are initialized, or one has failed; then done(object) is called,
     once, and may free it. With any other status than OK it never is. */
  fbx_status (*keep)(const fbx_host*, const void* key, void* object,
                     void (*done)(void* object) FBX_NOEXCEPT) FBX_NOEXCEPT;
} fbx_kernel_init;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_EXT_KERNEL_INIT_H_ */
