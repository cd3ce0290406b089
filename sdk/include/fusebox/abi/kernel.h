/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel: the code that runs one op.
 *
 * Lifecycle:  supports, infer (any time, stateless)
 *             init      once per node per Model, if both accept it: parse options, pack constants -> instance
 *             prepare   per session and input shapes: request scratch -> state
 *             invoke    any number of times per prepare
 *             free_state, free
 * An instance is const after init. Several sessions may invoke it at once, each with its own state.
 * Every callback receives `user` of its fbx_kernel, so one set of functions can serve many ops.
 * If several plugins have a kernel for an op, the host picks by `prefer`, then priority, then search order;
 * built-in kernels come last. A kernel whose supports declines is skipped.
 */
#ifndef FUSEBOX_ABI_KERNEL_H_
#define FUSEBOX_ABI_KERNEL_H_

#include "host.h"

FBX_EXTERN_C_BEGIN

typedef int32_t fbx_op_kind;
enum { FBX_OP_BUILTIN = 0, FBX_OP_CUSTOM = 1, FBX_OP_INTERNAL = 2 /* the host's own, in bodies only */ };

typedef struct fbx_node {
  fbx_head head;
  fbx_op_kind kind;
  fbx_str op;      /* TFLite's operator name ("FULLY_CONNECTED") or the custom code */
  int32_t version; /* of the op, from the file */
  const fbx_attrs* attrs;
  fbx_bytes raw_options; /* CUSTOM: the option bytes of the file */
  uint32_t operand_count;
  uint32_t result_count;
  const fbx_tensor* const* operands;
  /* the last results of an op with state are its final states, in the memory of the operands */
  const fbx_tensor* const* results;
  /* Name in the model: "lstm/MatMul"; may be empty. The host adds function and index to error messages. */
  fbx_str location;
  void* const* scratch; /* [invoke] by slot, as requested in prepare */
  /* Type and quantization of values inside the op, from the file; never data. NULL: none. */
  const fbx_tensor* const* intermediates;
  uint32_t intermediate_count;
} fbx_node;

/* Receives the result types of infer. dims may hold -1. A result that is not set is an error. [any] */
typedef struct fbx_infer {
  fbx_head head;
  void (*set)(const struct fbx_infer*, uint32_t result, fbx_dtype, const int64_t* dims,
              int32_t rank) FBX_NOEXCEPT;
  /* The shape depends on the unknown value of this operand. infer is called again when it is known. */
  void (*needs_value)(const struct fbx_infer*, uint32_t operand) FBX_NOEXCEPT;
  /* Quantization of a result; copied. A result that the file or a rule has quantized keeps its own. */
  void (*set_quant)(const struct fbx_infer*, uint32_t result, const fbx_quant*) FBX_NOEXCEPT;
} fbx_infer;

/* Memory requests of prepare. */
typedef struct fbx_plan {
  fbx_head head;
  /* Memory for one invoke, 64-byte aligned, uninitialized: node->scratch[slot]. */
  fbx_status (*scratch)(const struct fbx_plan*, size_t bytes, uint32_t* slot) FBX_NOEXCEPT;
  /* Memory that lives as long as the session's plan; zeroed initially and by reset: node->scratch[slot]. */
  fbx_status (*persistent)(const struct fbx_plan*, size_t bytes, uint32_t* slot) FBX_NOEXCEPT;
  uint32_t threads; /* available to invoke */
} fbx_plan;

enum {
  FBX_KERNEL_DETERMINISTIC = 1, /* same bits for any number of threads */
  FBX_KERNEL_INPLACE = 2        /* results[0] may share memory with an operand of equal size and type */
};

typedef struct fbx_kernel {
  fbx_head head;
  fbx_op_kind kind;
  fbx_str op;
  int32_t min_version, max_version; /* of the op; 0, 0: any */
  uint32_t flags;
  void* user; /* passed to every callback; the host does not read it */
  /* Declines a node with NOT_APPLICABLE and a reason. Dims may be unknown; constants have data. NULL:
     supports all. [any] */
  fbx_status (*supports)(const fbx_host*, void* user, const fbx_node*) FBX_NOEXCEPT;
  /* Computes result types from operand types. Of the results, only dtype and quant may be read, for ops whose
     result type is stored in the file (QUANTIZE, CAST). [any] */
  fbx_status (*infer)(const fbx_host*, void* user, const fbx_node*, const fbx_infer*) FBX_NOEXCEPT;
  /* Receives a node that infer accepts, perhaps with shapes of constants only. NULL: no instance. [load] */
  fbx_status (*init)(const fbx_host*, void* user, const fbx_node*, void** instance) FBX_NOEXCEPT;
  /* NULL: *state is NULL. All dims are known. [prepare] */
  fbx_status (*prepare)(const fbx_host*, void* user, const void* instance, const fbx_node*, const fbx_plan*,
                        void** state) FBX_NOEXCEPT;
  fbx_status (*invoke)(const fbx_host*, void* user, const void* instance, void* state,
                       const fbx_node*) FBX_NOEXCEPT; /* [invoke] */
  void (*reset)(void* user, const void* instance,
                void* state) FBX_NOEXCEPT; /* [prepare] clear state of earlier invokes; may be NULL */
  void (*free_state)(void* user, void* state) FBX_NOEXCEPT; /* [prepare] may be NULL */
  void (*free)(void* user, void* instance) FBX_NOEXCEPT;    /* [any] may be NULL */
} fbx_kernel;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_KERNEL_H_ */
