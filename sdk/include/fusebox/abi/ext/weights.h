/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.weights/1": stores packed constants, keyed by what they were packed from. A plugin
 * provides it (fusebox.xnnpack: in files, for later starts and other processes). Kernels store there what
 * their init packs.
 *
 *   fbx_packed packed = {FBX_HEAD(fbx_packed), NULL, NULL, NULL};
 *   if (weights->acquire(host, &recipe, &packed) != FBX_OK) -> pack to the heap, the same bytes
 *   if (packed.memory) { pack into packed.memory; weights->commit(&packed); }
 *   ... packed.data ...
 *   weights->release(packed.handle);
 *
 * The extension is optional. Without it, or without a store for this model, a kernel packs to the heap. Any
 * status other than FBX_OK means this; it is not an error. <fusebox/weights.hpp> implements the protocol.
 */
#ifndef FUSEBOX_ABI_EXT_WEIGHTS_H_
#define FUSEBOX_ABI_EXT_WEIGHTS_H_

#include "../host.h"
#include "../tensor.h"

FBX_EXTERN_C_BEGIN

#define FBX_EXT_WEIGHTS "fusebox.weights/1"

/*
 * Determines the packed bytes. The provider hashes it into the key and adds the calling plugin's id, version
 * and library build, and the contents, type, dims and quantization of each source. The caller adds everything
 * else that its packing code reads.
 */
typedef struct fbx_weights_recipe {
  fbx_head head;
  fbx_str what;           /* which packing code of the plugin: "lstm gates"; shown in listings */
  fbx_str layout;         /* what the bytes depend on in this machine: "avx2", "16 lanes". Empty: nothing */
  const int64_t* numbers; /* options and sizes that packing reads, in a fixed order */
  uint32_t number_count;
  uint32_t source_count;
  /* the constants that packing reads; an ABSENT optional one is part of the key */
  const fbx_tensor* const* sources;
  size_t size; /* of the packed bytes, more than 0 */
} fbx_weights_recipe;

/* Filled in by the provider. The caller sets head and sets the rest to NULL. */
typedef struct fbx_packed {
  fbx_head head;
  /* `size` bytes, aligned to 128, read-only until release. NULL: not packed yet */
  const void* data;
  void* memory; /* not packed yet: pack here. Aligned to 128, not cleared; write every byte. Else NULL */
  void* handle; /* for release */
} fbx_packed;

typedef struct fbx_weights {
  fbx_head head;
  /* In a kernel's init, on the thread that entered it. NOT_APPLICABLE: no store for this model, or a call
     outside an opening. INVALID: an invalid recipe (no size, a source without data). Other problems of a
     store are handled by the provider. Changes *packed only on OK. [load] */
  fbx_status (*acquire)(const fbx_host*, const fbx_weights_recipe*, fbx_packed* packed) FBX_NOEXCEPT;
  /* `memory` holds the bytes. Sets `data`, which may be elsewhere if another process packed the same, and
     sets `memory` to NULL; do not use it any more. From now on other kernels get a hit. If `data` stays
     NULL, allocation failed: pack to the heap. [any] */
  void (*commit)(fbx_packed*) FBX_NOEXCEPT;
  /* Once per successful acquire, committed or not. May be called after the Model, its sessions and all
     delegates are destroyed, but before the calling plugin is unloaded. NULL is ignored. [any] */
  void (*release)(void* handle) FBX_NOEXCEPT;
} fbx_weights;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_EXT_WEIGHTS_H_ */
