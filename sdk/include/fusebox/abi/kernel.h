/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel: the code that runs one op.
 *
 * Life of a kernel:  supports, infer (any time, stateless)
 *                    init      once per node per Model: parse options, pack constants -> instance
 *                    prepare   per session and input shapes: ask for scratch -> state
 *                    invoke    any number of times per prepare
 *                    free_state, free
 * An instance is const after init and may be invoked by several sessions at once, each with its own state.
 * When two kernels serve one op the user's `prefer` list decides, then plugin priority, then the built-in
 * one; a kernel whose supports declines is passed over.
 */
#ifndef FUSEBOX_ABI_KERNEL_H_
#define FUSEBOX_ABI_KERNEL_H_

#include "host.h"

FBX_EXTERN_C_BEGIN

typedef int32_t fbx_op_kind;
enum { FBX_OP_BUILTIN = 0, FBX_OP_CUSTOM = 1, FBX_OP_INTERNAL = 2 /* host's own, seen in bodies only */ };

typedef struct fbx_node {
  fbx_head head;
  fbx_op_kind kind;
  fbx_str op;      /* TFLite's operator name ("FULLY_CONNECTED") or the custom code */
  int32_t version; /* of the op, as the file states it */
  const fbx_attrs* attrs;
  fbx_bytes raw_options; /* CUSTOM: the option bytes as they stand in the file */
  uint32_t operand_count;
  uint32_t result_count;
  const fbx_tensor* const* operands;
  /* an op with state has its final states as last results: same memory as the operands */
  const fbx_tensor* const* results;
  /* What the model calls it: "lstm/MatMul"; may be empty. The host adds the function and the number to what
   * it hears of errors. */
  fbx_str location;
  void* const* scratch; /* [invoke] by slot number, as asked for in prepare */
  /* What the file says of values inside the op: type and quantization, never data. NULL: nothing. */
  const fbx_tensor* const* intermediates;
  uint32_t intermediate_count;
} fbx_node;

/* How infer answers. dims may hold -1. Not answering for a result is an error. [any] */
typedef struct fbx_infer {
  fbx_head head;
  void (*set)(const struct fbx_infer*, uint32_t result, fbx_dtype, const int64_t* dims,
              int32_t rank) FBX_NOEXCEPT;
  /* The shape hangs on the value of this operand, which is not known: asked again when it is. */
  void (*needs_value)(const struct fbx_infer*, uint32_t operand) FBX_NOEXCEPT;
} fbx_infer;

/* What prepare may ask for. */
typedef struct fbx_plan {
  fbx_head head;
  /* Memory for the duration of one invoke, 64-byte aligned, contents undefined: node->scratch[slot]. */
  fbx_status (*scratch)(const struct fbx_plan*, size_t bytes, uint32_t* slot) FBX_NOEXCEPT;
  /* Memory that lives as long as the session's plan, zeroed at first and by reset:
     node->scratch[slot] too. */
  fbx_status (*persistent)(const struct fbx_plan*, size_t bytes, uint32_t* slot) FBX_NOEXCEPT;
  uint32_t threads; /* that invoke may use */
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
  /* Would this kernel run this node? dims may be unknown, data is there for constants. NOT_APPLICABLE with a
     reason if not. NULL: always. [any] */
  fbx_status (*supports)(const fbx_host*, const fbx_node*) FBX_NOEXCEPT;
  /* Result types from operand types. Of the results only dtype and quant may be read, where the op leaves its
     result type to the file (QUANTIZE, CAST). [any] */
  fbx_status (*infer)(const fbx_host*, const fbx_node*, const fbx_infer*) FBX_NOEXCEPT;
  /* NULL: *instance is NULL. [load] */
  fbx_status (*init)(const fbx_host*, const fbx_node*, void** instance) FBX_NOEXCEPT;
  /* NULL: nothing is needed, *state is NULL. All dims are known. [prepare] */
  fbx_status (*prepare)(const fbx_host*, const void* instance, const fbx_node*, const fbx_plan*,
                        void** state) FBX_NOEXCEPT;
  fbx_status (*invoke)(const fbx_host*, const void* instance, void* state,
                       const fbx_node*) FBX_NOEXCEPT; /* [invoke] */
  void (*reset)(const void* instance,
                void* state) FBX_NOEXCEPT;      /* [prepare] forget what earlier invokes left; may be NULL */
  void (*free_state)(void* state) FBX_NOEXCEPT; /* [prepare] may be NULL */
  void (*free)(void* instance) FBX_NOEXCEPT;    /* [any] may be NULL */
} fbx_kernel;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_KERNEL_H_ */
