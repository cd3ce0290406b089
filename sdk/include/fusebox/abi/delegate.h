/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A delegate: runs whole partitions of a graph instead of single nodes.
 *
 * Lifecycle, per Model: create -> claim (per function) -> destroy
 *      per session:     open_session -> compile (per partition) -> finish
 *                       -> reshape or recompile (for other static dims) -> prepare (per shapes) -> invoke ...
 *                       -> destroy_partition (each) -> close_session
 * A delegate claims the nodes that it can run. The host forms convex partitions of them. If a callback
 * declines or fails, the partition falls back to kernels and the reason is recorded. A delegate never makes a
 * model fail.
 *
 * Every callback receives `user` of its fbx_delegate, so one set of functions can serve several delegates.
 *
 * Threads: all sessions of a Model share `self`. Functions with a session or partition argument may run for
 * several sessions at once (create, claim and destroy never do). A session and its partitions are used by one
 * thread at a time.
 */
#ifndef FUSEBOX_ABI_DELEGATE_H_
#define FUSEBOX_ABI_DELEGATE_H_

#include "rule.h"

FBX_EXTERN_C_BEGIN

/* Receives the claims for the nodes of one function, by index. Every offered node must be accepted or
 * rejected. If a node is both accepted and rejected, it is rejected. */
typedef struct fbx_claim {
  fbx_head head;
  void (*accept)(const struct fbx_claim*, uint32_t node) FBX_NOEXCEPT;
  void (*reject)(const struct fbx_claim*, uint32_t node, fbx_str code, fbx_str why) FBX_NOEXCEPT;
  /* Like accept, for a node that is not worth a separate partition (it only moves data): kernels run a
     partition that holds only such nodes. */
  void (*accept_join)(const struct fbx_claim*, uint32_t node) FBX_NOEXCEPT;
  /* 0: the host keeps the node (control flow, state, shape arithmetic), or an earlier delegate claimed it.
     Calls for it are ignored. */
  int32_t (*offered)(const struct fbx_claim*, uint32_t node) FBX_NOEXCEPT;
} fbx_claim;

/* The tensors of a partition in [prepare] and [invoke], in the order of the compiled graph's inputs and
 * outputs. All dims are known and greater than 0. Unless `reshape` has accepted others, they match the static
 * dims of the compiled graph, and so does every value inside. In [prepare], only KNOWN inputs have data. */
typedef struct fbx_call {
  fbx_head head;
  uint32_t input_count, output_count;
  const fbx_tensor* const* inputs;
  const fbx_tensor* const* outputs;
  void* const* scratch; /* [invoke] by slot, as requested in prepare */
} fbx_call;

typedef struct fbx_delegate {
  fbx_head head;
  fbx_str name; /* "xnnpack" */
  void* user;   /* passed to every callback; the host does not read it */
  /* options: the user's values over the defaults of the manifest's options_schema, validated. They live as
     long as self. [load] */
  fbx_status (*create)(const fbx_host*, void* user, const fbx_attrs* options, void** self) FBX_NOEXCEPT;
  void (*destroy)(void* user, void* self) FBX_NOEXCEPT; /* [load] after the last session */
  /* The function as in the model. Dims may be unknown; constants have data. [load] */
  fbx_status (*claim)(const fbx_host*, void* user, void* self, const fbx_graph*,
                      const fbx_claim*) FBX_NOEXCEPT;
  /* `graph` holds only the nodes of the partition; dims may be unknown (see recompile). Constants have data,
     which lives as long as self. `session`: from open_session, else NULL. [prepare] */
  fbx_status (*compile)(const fbx_host*, void* user, void* self, void* session, const fbx_graph* graph,
                        void** partition) FBX_NOEXCEPT;
  /* `call` has all shapes; the host gets the output shapes from the kernels. A delegate that computes
     output shapes itself reports them through infer; the host declines the partition if they differ. Memory
     comes from plan. Called again before invoke whenever the shapes change; for shapes seen before, plan
     grants the same as before. [prepare] */
  fbx_status (*prepare)(const fbx_host*, void* user, void* partition, const fbx_call*, const fbx_infer*,
                        const fbx_plan*) FBX_NOEXCEPT;
  /* On failure, kernels run the nodes of the partition, in this invoke and all later ones. [invoke] */
  fbx_status (*invoke)(const fbx_host*, void* user, void* partition, const fbx_call*) FBX_NOEXCEPT;
  void (*destroy_partition)(void* user, void* partition) FBX_NOEXCEPT; /* [prepare] */
  /* State that the partitions of one session share (a workspace). All three may be NULL. [prepare] */
  fbx_status (*open_session)(const fbx_host*, void* user, void* self, void** session) FBX_NOEXCEPT;
  /* Called when all partitions that the session needs so far are compiled. Called again if another signature
     needs more, and after recompile. On failure, the partitions compiled since the last call are dropped.
     [prepare] */
  fbx_status (*finish)(const fbx_host*, void* user, void* self, void* session) FBX_NOEXCEPT;
  void (*close_session)(void* user, void* session) FBX_NOEXCEPT; /* [prepare] after its partitions */
  /* Before prepare, if a dim of an input, or of a value inside, differs from a static dim of the compiled
     graph. `call` has the new shapes of inputs and outputs. OK: the partition supports them, and prepare
     follows with the same call. NOT_APPLICABLE: it does not; then recompile is called, or without it kernels
     run it, in this invoke and all later ones. A partition that was resized is also prepared for the compiled
     shapes again, without this call. NULL: never supported. [prepare] */
  fbx_status (*reshape)(const fbx_host*, void* user, void* partition, const fbx_call*) FBX_NOEXCEPT;
  /* Like compile, for values with other dims than in the compiled graph: first with the dims that differ
     unknown, then, if that is NOT_APPLICABLE, with the new dims; or, if compile has declined unknown dims,
     with all dims known. claim has seen neither. The first partition stays. NULL: never supported.
     [prepare] */
  fbx_status (*recompile)(const fbx_host*, void* user, void* self, void* session, const fbx_graph* graph,
                          void** partition) FBX_NOEXCEPT;
} fbx_delegate;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_DELEGATE_H_ */
