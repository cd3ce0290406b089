/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.opening/1": the opening of a Model, as a kernel's init sees it, and whatever plugin is
 * called from there with the same fbx_host. It is how a provider of a service learns for whom and for which
 * model it is asked, and how what it does for many kernels becomes one piece of work. Elsewhere the host has
 * no such extension. Kernels that are made later, since a delegate declined, have an opening of their own.
 *
 * All functions are called from the thread that entered init. [load]
 */
#ifndef FUSEBOX_ABI_EXT_OPENING_H_
#define FUSEBOX_ABI_EXT_OPENING_H_

#include "../plugin.h"

FBX_EXTERN_C_BEGIN

#define FBX_EXT_OPENING "fusebox.opening/1"

typedef struct fbx_opening {
  fbx_head head;
  /* The plugin whose kernel is made: the one that the fbx_host was given to. As long as the plugin. Never
   * NULL. */
  const fbx_plugin* (*plugin)(const fbx_host*)FBX_NOEXCEPT;
  /* The options that this model has for a delegate, over the defaults of its manifest: those it runs with,
     or, where it is turned off, those that were given all the same. NULL: none. Read with host->attrs, until
     init returns. */
  const fbx_attrs* (*delegate_options)(const fbx_host*, fbx_str delegate)FBX_NOEXCEPT;
  /* What was kept under this key during this opening; NULL: nothing. The address is the key. */
  void* (*find)(const fbx_host*, const void* key)FBX_NOEXCEPT;
  /* Keeps an object until all kernels of the opening are made, or it has failed; then done(object) is called,
     once, and may free it. With any other status than OK it never is. */
  fbx_status (*keep)(const fbx_host*, const void* key, void* object,
                     void (*done)(void* object) FBX_NOEXCEPT) FBX_NOEXCEPT;
} fbx_opening;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_EXT_OPENING_H_ */
