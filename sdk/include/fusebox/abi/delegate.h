/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A delegate: runs whole partitions of a graph instead of single nodes.
 *
 * create -> claim (per graph) -> compile (per partition, may decline) -> prepare -> invoke ... -> destroy
 * A delegate says which nodes it could run; the host forms convex partitions from them, so that a claim can never
 * break the graph. A partition that compile declines goes back to the kernels: a model never fails because of it.
 */
#ifndef FUSEBOX_ABI_DELEGATE_H_
#define FUSEBOX_ABI_DELEGATE_H_

#include "rule.h"

FBX_EXTERN_C_BEGIN

/* Every node must be accepted or rejected. [prepare] */
typedef struct fbx_claim {
  fbx_head head;
  void (*accept)(const struct fbx_claim*, uint32_t node) FBX_NOEXCEPT;
  void (*reject)(const struct fbx_claim*, uint32_t node, fbx_str code, fbx_str why) FBX_NOEXCEPT;
} fbx_claim;

/* The tensors of a partition in [prepare] and [invoke], in the order of the compiled graph's inputs and outputs. */
typedef struct fbx_call {
  fbx_head head;
  uint32_t input_count, output_count;
  const fbx_tensor* const* inputs;
  const fbx_tensor* const* outputs;
  void* const* scratch;
} fbx_call;

typedef struct fbx_delegate {
  fbx_head head;
  fbx_str name;                                                                              /* "xnnpack" */
  fbx_status (*create)(const fbx_host*, const fbx_attrs* options, void** self) FBX_NOEXCEPT; /* [prepare] */
  void (*destroy)(void* self) FBX_NOEXCEPT;
  fbx_status (*claim)(const fbx_host*, void* self, const fbx_graph*,
                      const fbx_claim*) FBX_NOEXCEPT; /* [prepare] */
  /* `graph` holds the partition's nodes only; constants carry their data. [prepare] */
  fbx_status (*compile)(const fbx_host*, void* self, const fbx_graph* graph, void** partition) FBX_NOEXCEPT;
  /* Output shapes through infer, memory through plan. [prepare] */
  fbx_status (*prepare)(const fbx_host*, void* partition, const fbx_call*, const fbx_infer*,
                        const fbx_plan*) FBX_NOEXCEPT;
  fbx_status (*invoke)(const fbx_host*, void* partition, const fbx_call*) FBX_NOEXCEPT; /* [invoke] */
  void (*destroy_partition)(void* partition) FBX_NOEXCEPT;
} fbx_delegate;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_DELEGATE_H_ */
