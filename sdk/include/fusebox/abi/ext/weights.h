/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.weights/1": stores packed constants and compiled partitions, keyed by what they were
 * made from. A plugin provides it (fusebox.xnnpack: in files, for later starts and other processes).
 *
 * A kernel, in init or prepare:
 *   fbx_packed packed = {FBX_HEAD(fbx_packed), NULL, NULL, NULL, 0};
 *   if (weights->acquire(host, &recipe, &packed) != FBX_OK) -> pack to the heap, the same bytes
 *   if (packed.memory) { pack into packed.memory; weights->commit(&packed); }
 *   ... packed.data ...
 *   weights->release(packed.handle);
 *
 * A delegate, in compile, with recipe.graph = graph and recipe.size = 0, since the size is not known before:
 *   if (weights->acquire(host, &recipe, &packed) == FBX_OK && packed.data) -> load packed.data, packed.size
 *   otherwise compile; then, with a handle, weights->put(&packed, bytes, size)
 *
 * The extension is optional. Without it, or without a store for this model, a plugin packs to the heap. Any
 * status other than FBX_OK means this; it is not an error. <fusebox/weights.hpp> and <fusebox/compiled.hpp>
 * implement the protocol.
 *
 * Threads: `acquire` is called on the thread that entered the callback, or on threads that it waits for,
 * several at once. Once acquired, an fbx_packed belongs to one thread at a time, which may be any and may
 * outlive the callback: memory can be filled, committed and released in the background. What is committed
 * after the phase of the callback (ext/caller.h) is stored too, with the rest of its phase. Constants live as
 * long as the model, so a thread that packs them ends before free, free_state or destroy_partition returns.
 */
#ifndef FUSEBOX_ABI_EXT_WEIGHTS_H_
#define FUSEBOX_ABI_EXT_WEIGHTS_H_

#include "../rule.h"

FBX_EXTERN_C_BEGIN

#define FBX_EXT_WEIGHTS "fusebox.weights/1"

/*
 * Determines the packed bytes. The provider hashes it into the key and adds the calling plugin's id, version
 * and library build, and the contents, type, dims and quantization of each source. The caller adds everything
 * else that its packing code reads. Read only during acquire.
 */
typedef struct fbx_weights_recipe {
  fbx_head head;
  fbx_str what;           /* which packing code of the plugin: "lstm gates"; shown in listings */
  fbx_str layout;         /* what the bytes depend on in this machine: "avx2", "16 lanes". Empty: nothing */
  const int64_t* numbers; /* options, versions and sizes that packing reads, in a fixed order */
  uint32_t number_count;
  uint32_t source_count;
  /* the constants that packing reads; an ABSENT optional one is part of the key */
  const fbx_tensor* const* sources;
  size_t size; /* of the packed bytes. 0: not known before they are packed; then `put` stores them */
  /* The graph that a delegate compiles, NULL: none. All of it is part of the key: ops with versions and
     attributes, their order, and type, dims, quantization and contents of values, but no names. */
  const fbx_graph* graph;
} fbx_weights_recipe;

/* Filled in by the provider. The caller sets head and sets the rest to NULL. */
typedef struct fbx_packed {
  fbx_head head;
  /* `size` bytes, aligned to 128, read-only until release. NULL: not packed yet */
  const void* data;
  void* memory; /* not packed yet: pack here. Aligned to 128, not cleared; write every byte. Else NULL */
  void* handle; /* for release */
  size_t size;  /* of data */
} fbx_packed;

typedef struct fbx_weights {
  fbx_head head;
  /* In init and prepare of a kernel, and in compile of a delegate. NOT_APPLICABLE: no store for this model, a
     call elsewhere, or a graph that cannot be a key. INVALID: an invalid recipe (a source without data).
     Other problems of a store are handled by the provider. Changes *packed only on OK. [load] [prepare] */
  fbx_status (*acquire)(const fbx_host*, const fbx_weights_recipe*, fbx_packed* packed) FBX_NOEXCEPT;
  /* `memory` holds the bytes. Sets `data`, which may be elsewhere if another process packed the same, and
     sets `memory` to NULL; do not use it any more. From now on other kernels get a hit. If `data` stays
     NULL, allocation failed: pack to the heap. [any] */
  void (*commit)(fbx_packed*) FBX_NOEXCEPT;
  /* Once per successful acquire, committed or not. May be called after the Model, its sessions and all
     delegates are destroyed, but before the calling plugin is unloaded. NULL is ignored. [any] */
  void (*release)(void* handle) FBX_NOEXCEPT;
  /* After a miss of a recipe without size: stores a copy of `size` bytes, more than 0, and sets `data` as
     commit does. OUT_OF_MEMORY: nothing is stored. INVALID: no such miss. [any] */
  fbx_status (*put)(fbx_packed*, const void* bytes, size_t size) FBX_NOEXCEPT;
  /* Returns whether acquire would find a store for this model now, 0 if not. Cheap. [load] [prepare] */
  int (*keeps)(const fbx_host*) FBX_NOEXCEPT;
} fbx_weights;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_EXT_WEIGHTS_H_ */
