/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.cost/1": how long nodes take. A plugin provides it for its own kernels and delegates.
 *
 * While a model is opened, the host compares the estimates of a delegate for the nodes that it claimed with
 * the estimates of the kernels that would run them instead, and places each node so that the sum is least. A
 * node without one of the two estimates stays with its delegate.
 *
 * An estimate is the time on one thread, in nanoseconds, or FBX_NO_COST. It depends only on the node and on
 * the instruction set, so that placement is reproducible: take it from a table, and measure nothing. An
 * unknown dim counts as 1. Functions may be called from any thread, several at once. [any]
 */
#ifndef FUSEBOX_ABI_EXT_COST_H_
#define FUSEBOX_ABI_EXT_COST_H_

#include "../delegate.h"

FBX_EXTERN_C_BEGIN

#define FBX_EXT_COST "fusebox.cost/1"
#define FBX_NO_COST (-1.0)

typedef struct fbx_cost {
  fbx_head head;
  /* One invoke of a kernel of this plugin, for a node that it supports. NULL: no estimates. */
  double (*kernel)(const fbx_host*, const fbx_kernel*, const fbx_node*) FBX_NOEXCEPT;
  /* A node that a delegate of this plugin accepts, by its index in the graph, as part of a partition. `self`:
     from create. NULL: no estimates. */
  double (*node)(const fbx_host*, const fbx_delegate*, void* self, const fbx_graph*,
                 uint32_t node) FBX_NOEXCEPT;
  /* Entering or leaving a partition, with this many bytes in the tensors that cross. A partition costs this
     twice. NULL, FBX_NO_COST: nothing. */
  double (*border)(const fbx_host*, const fbx_delegate*, void* self, uint64_t bytes) FBX_NOEXCEPT;
} fbx_cost;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_EXT_COST_H_ */
