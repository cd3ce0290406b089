/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A delegate: runs whole partitions of a graph instead of single nodes.
 *
 * Life, per Model:    create -> claim (per function) -> destroy
 *      per session:   open_session -> compile (per partition) -> finish -> prepare (per shapes) -> invoke ...
 *                     -> destroy_partition (each) -> close_session
 * A delegate says which nodes it could run; the host forms convex partitions from them, so that a claim can
 * never break the graph. Whatever a callback declines or fails at sends its partition back to the kernels,
 * with the reason on record: a model never fails because of a delegate.
 *
 * Threads: `self` is shared by all sessions of a Model, and everything that takes it beside a session or
 * partition may run at the same time for another session (create, claim and destroy never do). A session and
 * its partitions belong to one thread at a time.
 */
#ifndef FUSEBOX_ABI_DELEGATE_H_
#define FUSEBOX_ABI_DELEGATE_H_

#include "rule.h"

FBX_EXTERN_C_BEGIN

/* What a delegate says of the nodes of one function, by their index. Every node that is offered must be
 * accepted or rejected; of two answers that contradict each other the rejection holds. */
typedef struct fbx_claim {
  fbx_head head;
  void (*accept)(const struct fbx_claim*, uint32_t node) FBX_NOEXCEPT;
  void (*reject)(const struct fbx_claim*, uint32_t node, fbx_str code, fbx_str why) FBX_NOEXCEPT;
  /* Like accept, for a node that alone is not worth a partition (it only moves data): where a partition would
     hold nothing else, the kernels run it. */
  void (*accept_join)(const struct fbx_claim*, uint32_t node) FBX_NOEXCEPT;
  /* 0: the host keeps the node (control flow, state, shape arithmetic), or an earlier delegate has it; what
     is said of it is ignored. */
  int32_t (*offered)(const struct fbx_claim*, uint32_t node) FBX_NOEXCEPT;
} fbx_claim;

/* The tensors of a partition in [prepare] and [invoke], in the order of the compiled graph's inputs and
 * outputs. All dims are known, and none is 0; where the graph says a dim, here and of every value within, it
 * is that. In [prepare] data is there for inputs that are KNOWN only. */
typedef struct fbx_call {
  fbx_head head;
  uint32_t input_count, output_count;
  const fbx_tensor* const* inputs;
  const fbx_tensor* const* outputs;
  void* const* scratch; /* [invoke] by slot number, as asked for in prepare */
} fbx_call;

typedef struct fbx_delegate {
  fbx_head head;
  fbx_str name; /* "xnnpack" */
  /* Options: the user's over the defaults of the manifest's options_schema, checked against it; they live as
     long as self. [load] */
  fbx_status (*create)(const fbx_host*, const fbx_attrs* options, void** self) FBX_NOEXCEPT;
  void (*destroy)(void* self) FBX_NOEXCEPT; /* [load] after the last session */
  /* The function as it stands in the model; dims may be unknown, data is there for constants. [load] */
  fbx_status (*claim)(const fbx_host*, void* self, const fbx_graph*, const fbx_claim*) FBX_NOEXCEPT;
  /* `graph` holds the partition's nodes only; constants carry their data, which lives as long as self.
     `session`: what open_session gave, else NULL. [prepare] */
  fbx_status (*compile)(const fbx_host*, void* self, void* session, const fbx_graph* graph,
                        void** partition) FBX_NOEXCEPT;
  /* For the shapes of `call`, those of the outputs included: the host has asked the kernels. A delegate that
     finds out for itself says so through infer, and is declined where the two differ. Memory through plan.
     Called again before invoke whenever other shapes come than the last; then plan grants what it granted for
     these shapes before. [prepare] */
  fbx_status (*prepare)(const fbx_host*, void* partition, const fbx_call*, const fbx_infer*,
                        const fbx_plan*) FBX_NOEXCEPT;
  /* Failing here, the partition's nodes run by their kernels in this invoke already, and from then on.
   * [invoke] */
  fbx_status (*invoke)(const fbx_host*, void* partition, const fbx_call*) FBX_NOEXCEPT;
  void (*destroy_partition)(void* partition) FBX_NOEXCEPT; /* [prepare] */
  /* What the partitions of one session share (a workspace). All three may be NULL. [prepare] */
  fbx_status (*open_session)(const fbx_host*, void* self, void** session) FBX_NOEXCEPT;
  /* All partitions that the session needs by now are compiled, and none is prepared yet. Comes again when
     another signature needs more. Failing here gives up those compiled since the last time. [prepare] */
  fbx_status (*finish)(const fbx_host*, void* self, void* session) FBX_NOEXCEPT;
  void (*close_session)(void* session) FBX_NOEXCEPT; /* [prepare] after its partitions */
} fbx_delegate;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_DELEGATE_H_ */
