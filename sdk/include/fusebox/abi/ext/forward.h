/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.forward/1": lets kernels run a partition that a delegate claimed. For delegates that
 * measure or compare, and for devices that run only some calls of a partition.
 *
 *   in prepare:  status = forward->prepare(host, call);
 *   in invoke:   status = forward->run(host, call, NULL);
 *
 * Both functions concern the partition whose callback runs, so there is no object to compile or to free:
 * kernels, plans and memory belong to the session, and end with it. Each partition has its own, in each
 * session. get_extension returns the table in every callback of a delegate, so that claim can depend on it;
 * outside of the callbacks named here, its functions return NOT_APPLICABLE.
 *
 * Kernels: those that run the partition if its delegate declines, with the same results and the same state
 * (Session::ResetState resets it). No node is offered to a delegate again, nor are nodes of functions that
 * the partition calls. Kernels of a partition are initialized by the first prepare or run of any session.
 *
 * Shapes: call prepare each time prepare of the delegate is called. Shapes that differ from the compiled
 * graph are supported: a delegate that forwards accepts them in `reshape`.
 *
 * Tensors: `call` is the callback's, or one that the delegate made with tensors of the same types. Their
 * memory is as fbx_tensor states: aligned to 64 bytes, with 16 readable bytes behind it; outputs overlap
 * nothing. `call` is not kept. Its scratch is not used.
 *
 * Threads: the thread that entered the callback, outside of tasks of parallel_for. Kernels use the threads of
 * the session. run may be called several times in one invoke, one after the other; state advances each time.
 *
 * Errors: INVALID: `call` has other tensors than the partition. OUT_OF_MEMORY. CANCELLED: Session::Cancel was
 * called; outputs and state are undefined. Any other status comes from a kernel, or from the choice of one.
 * The reason is emitted. A delegate returns such a status: kernels then run the nodes as after any failure,
 * and the model reports their error.
 */
#ifndef FUSEBOX_ABI_EXT_FORWARD_H_
#define FUSEBOX_ABI_EXT_FORWARD_H_

#include "../delegate.h"

FBX_EXTERN_C_BEGIN

#define FBX_EXT_FORWARD "fusebox.forward/1"

/* Called by run, on its thread, before and after each node of the partition. `node`: its index in the
 * compiled graph. Nodes whose results are known from planning do not run. If a node fails, or the run is
 * cancelled, `after` may not follow. [invoke] */
typedef struct fbx_forward_watch {
  fbx_head head;
  void* user; /* passed to both; the host does not read it */
  void (*before)(const fbx_host*, void* user, uint32_t node) FBX_NOEXCEPT;
  void (*after)(const fbx_host*, void* user, uint32_t node) FBX_NOEXCEPT;
} fbx_forward_watch;

typedef struct fbx_forward {
  fbx_head head;
  /* In prepare of a partition: initializes its kernels, and plans them for the shapes of `call`. [prepare] */
  fbx_status (*prepare)(const fbx_host*, const fbx_call*) FBX_NOEXCEPT;
  /* In invoke: computes the outputs. Allocates no memory after prepare for these shapes; without it, the
     first run does what prepare does. watch: NULL if not needed. [invoke] */
  fbx_status (*run)(const fbx_host*, const fbx_call*, const fbx_forward_watch* watch) FBX_NOEXCEPT;
} fbx_forward;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_EXT_FORWARD_H_ */
