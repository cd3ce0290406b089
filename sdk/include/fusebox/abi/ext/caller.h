/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.caller/1": for services that plugins provide for each other. A service that a callback
 * calls with its fbx_host can look up the calling plugin and the model's options, and keep an object across
 * many callbacks.
 *
 * Present in two phases: while a Model is opened (init of all its kernels; kernels of a partition that a
 * delegate declined are initialized later, in a separate phase), and while a session is planned (compile
 * and finish of delegates, or prepare of the kernels and partitions for one set of shapes). Elsewhere, and in
 * invoke above all, it is absent.
 *
 * Call all functions on the thread that entered the callback, or on threads that it waits for, several at
 * once. [load] [prepare]
 */
#ifndef FUSEBOX_ABI_EXT_CALLER_H_
#define FUSEBOX_ABI_EXT_CALLER_H_

#include "../plugin.h"

FBX_EXTERN_C_BEGIN

#define FBX_EXT_CALLER "fusebox.caller/1"

typedef struct fbx_caller {
  fbx_head head;
  /* The plugin whose callback runs: the owner of the fbx_host. Never NULL. */
  const fbx_plugin* (*plugin)(const fbx_host*)FBX_NOEXCEPT;
  /* The options of a delegate for this model, over the defaults of its manifest. If the delegate is off: the
     options that were given anyway. NULL: none. Read them with host->attrs, until the callback returns. */
  const fbx_attrs* (*delegate_options)(const fbx_host*, fbx_str delegate)FBX_NOEXCEPT;
  /* The object kept under this key in this phase; NULL: none. The address is the key. */
  void* (*find)(const fbx_host*, const void* key)FBX_NOEXCEPT;
  /* Keeps an object until the phase ends, also if it fails. Then calls done(user, object) once, which may
     free it. Unless the status is FBX_OK, done is never called. INVALID: the key is taken. */
  fbx_status (*keep)(const fbx_host*, const void* key, void* object,
                     void (*done)(void* user, void* object) FBX_NOEXCEPT, void* user) FBX_NOEXCEPT;
} fbx_caller;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_EXT_CALLER_H_ */
