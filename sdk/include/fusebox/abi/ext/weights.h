/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.weights/1": packed constants, found again by what they were packed from. A plugin
 * provides it (fusebox.xnnpack: in files, for the next start and for other processes); kernels keep there
 * what their init packs.
 *
 *   fbx_packed packed = {FBX_HEAD(fbx_packed), NULL, NULL, NULL};
 *   if (weights->acquire(host, &recipe, &packed) != FBX_OK) -> pack to the heap, the same bytes
 *   if (packed.memory) { pack into packed.memory; weights->commit(&packed); }
 *   ... packed.data ...
 *   weights->release(packed.handle);
 *
 * Nobody has to have it: without the extension, or without a place to keep weights in for this model, a
 * kernel packs to the heap. So every status but OK means that, and none is worth an error.
 * <fusebox/weights.hpp> does all of it.
 */
#ifndef FUSEBOX_ABI_EXT_WEIGHTS_H_
#define FUSEBOX_ABI_EXT_WEIGHTS_H_

#include "../host.h"
#include "../tensor.h"

FBX_EXTERN_C_BEGIN

#define FBX_EXT_WEIGHTS "fusebox.weights/1"

/*
 * What decides the packed bytes. The provider makes the key of it, together with what nobody should have to
 * think of: the id of the plugin that asks, its version and the build of its library, and of each source the
 * contents, type, dims and quantization. What the caller says is what else its packing code looks at.
 */
typedef struct fbx_weights_recipe {
  fbx_head head;
  fbx_str what;   /* "lstm gates": which packing code of the plugin this is; people read it in listings */
  fbx_str layout; /* what of this machine the bytes depend on: "avx2", "16 lanes". Empty: nothing */
  const int64_t* numbers; /* options and sizes that packing reads, in a fixed order */
  uint32_t number_count;
  uint32_t source_count;
  /* the constants that packing reads; an optional one that is ABSENT counts as such */
  const fbx_tensor* const* sources;
  size_t size; /* of the packed bytes, more than 0 */
} fbx_weights_recipe;

/* Filled in by the provider. The caller sets head, and the rest to NULL. */
typedef struct fbx_packed {
  fbx_head head;
  /* `size` bytes, aligned to 128, never to be written again, until release. NULL: not packed yet */
  const void* data;
  void* memory; /* not packed yet: where to pack, aligned to 128, not cleared; every byte is to be written.
                   Else NULL */
  void* handle; /* for release */
} fbx_packed;

typedef struct fbx_weights {
  fbx_head head;
  /* In a kernel's init, from the thread that entered it. NOT_APPLICABLE: nothing is kept for this model, or
     here. INVALID: the recipe cannot be one (no size, a source without data). Whatever else is wrong with a
     store is the provider's to live with. Leaves *packed alone unless OK. [load] */
  fbx_status (*acquire)(const fbx_host*, const fbx_weights_recipe*, fbx_packed* packed) FBX_NOEXCEPT;
  /* memory holds the bytes. Sets data, which may lie elsewhere, where somebody else packed the same, and
     memory to NULL, which must not be touched any more. Other kernels find the bytes from now on. data stays
     NULL where memory ran out: pack to the heap. [any] */
  void (*commit)(fbx_packed*) FBX_NOEXCEPT;
  /* Once per acquire that went well, committed or not. May come after the Model, its sessions and every
     delegate are gone, but before the plugin that asked is unloaded. NULL is nothing. [any] */
  void (*release)(void* handle) FBX_NOEXCEPT;
} fbx_weights;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_EXT_WEIGHTS_H_ */
