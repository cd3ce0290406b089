/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fusion rule: replaces a composite by other ops, at conversion and when a model is loaded.
 *
 * A composite is a named operation with attributes, operands and a body that defines what it computes. The
 * host calls match (pure, any number of times) and, if it returned FBX_OK, rewrite. The rewrite builds a
 * replacement in a transaction. Nothing changes unless it returns FBX_OK and the host validates the
 * replacement: every result set, the types of the composite, only known ops. The host folds transposes,
 * splits, slices and reshapes of constants at once, so a rule emits them as ops and never edits weights.
 *
 * Both callbacks receive `user` of their fbx_rule, so one pair of functions can serve many rules.
 *
 * On FBX_NOT_APPLICABLE with a reason, the next rule is tried; if all decline, the body stays. Any other
 * status is reported as an error of the rule, and the body stays.
 */
#ifndef FUSEBOX_ABI_RULE_H_
#define FUSEBOX_ABI_RULE_H_

#include "kernel.h"

FBX_EXTERN_C_BEGIN

typedef uint32_t fbx_value; /* a value of the current graph; FBX_NO_VALUE: an absent operand */
#define FBX_NO_VALUE UINT32_MAX

/* A function, read-only: the body of a composite. Values are numbered 0..value_count-1: inputs first, then
 * constants and node results in any order. Nodes are in execution order. A node without a TFLite equivalent
 * has kind INTERNAL or CUSTOM. */
typedef struct fbx_graph fbx_graph;
struct fbx_graph {
  fbx_head head;
  fbx_str name;
  uint32_t value_count;
  uint32_t node_count;
  uint32_t input_count;
  uint32_t output_count;
  const fbx_value* inputs;
  const fbx_value* outputs;
  const fbx_tensor* (*value)(const fbx_graph*, fbx_value)FBX_NOEXCEPT; /* type; data if constant */
  /* The node holds its operand and result tensors; ids holds their value numbers: operands, then results. */
  const fbx_node* (*node)(const fbx_graph*, uint32_t index, const fbx_value** ids)FBX_NOEXCEPT;
  const fbx_graph* (*function)(const fbx_graph*,
                               fbx_str name)FBX_NOEXCEPT; /* of a FUNC attribute; NULL: none */
};

typedef struct fbx_composite {
  fbx_head head;
  fbx_str name; /* as annotated: "lstm_5f0c...", "my_custom_fused_op" */
  int32_t version;
  const fbx_attrs* attrs;
  uint32_t operand_count;
  uint32_t result_count;
  /* CONST with data if frozen; VARIABLE if read from a mutable variable */
  const fbx_tensor* const* operands;
  const fbx_tensor* const* results; /* `uses` is the number of readers */
  const fbx_graph* body;            /* NULL: none, or a placeholder */
  fbx_str location;
} fbx_composite;

/* Builds the replacement. After the first failure, all functions return FBX_NO_VALUE or an error status, and
 * the host keeps the diagnostic. A rule may check once at the end. [convert] */
typedef struct fbx_builder fbx_builder;
struct fbx_builder {
  fbx_head head;
  fbx_value (*operand)(const fbx_builder*, uint32_t index) FBX_NOEXCEPT;
  /* A new zeroed constant, owned by the host. Fill *data before a node reads it. */
  fbx_value (*add_const)(const fbx_builder*, fbx_dtype, const int64_t* dims, int32_t rank,
                         void** data) FBX_NOEXCEPT;
  /* A new node. Its kernel infers the result types at once. *results receives result_count values. version 0:
     the lowest that supports the attributes. */
  fbx_status (*add_node)(const fbx_builder*, fbx_op_kind, fbx_str op, int32_t version,
                         const fbx_value* operands, uint32_t operand_count, fbx_value* results,
                         uint32_t result_count) FBX_NOEXCEPT;
  /* Attributes of the last node. The kernel infers again when they are complete: at the next add_node,
     set_result or type. */
  void (*attr_bool)(const fbx_builder*, fbx_str key, int32_t) FBX_NOEXCEPT;
  void (*attr_i64)(const fbx_builder*, fbx_str key, int64_t) FBX_NOEXCEPT;
  void (*attr_f64)(const fbx_builder*, fbx_str key, double) FBX_NOEXCEPT;
  void (*attr_str)(const fbx_builder*, fbx_str key, fbx_str) FBX_NOEXCEPT;
  void (*attr_i64s)(const fbx_builder*, fbx_str key, const int64_t*, size_t) FBX_NOEXCEPT;
  void (*attr_f64s)(const fbx_builder*, fbx_str key, const double*, size_t) FBX_NOEXCEPT;
  void (*attr_strs)(const fbx_builder*, fbx_str key, const fbx_str*, size_t) FBX_NOEXCEPT;
  void (*attr_copy)(const fbx_builder*, const fbx_attrs* from, fbx_str key) FBX_NOEXCEPT;
  const fbx_tensor* (*type)(const fbx_builder*, fbx_value)FBX_NOEXCEPT; /* valid until the callback returns */
  void (*set_result)(const fbx_builder*, uint32_t index, fbx_value) FBX_NOEXCEPT;
  /* Option bytes of the last custom op, instead of attributes. */
  void (*raw_options)(const fbx_builder*, fbx_bytes) FBX_NOEXCEPT;
  /* Quantization of a constant, a variable, or a result of the last node; copied. A result of the composite
     has the composite's quantization, and values that a node only moves (TRANSPOSE, SLICE, ...) keep theirs.
     All other quantized results need this call. */
  void (*set_quant)(const fbx_builder*, fbx_value, const fbx_quant*) FBX_NOEXCEPT;
  /* More attributes of the last node. A FUNC can only be copied (attr_copy). */
  void (*attr_dtype)(const fbx_builder*, fbx_str key, fbx_dtype) FBX_NOEXCEPT;
  void (*attr_shape)(const fbx_builder*, fbx_str key, const int64_t* dims,
                     int32_t rank) FBX_NOEXCEPT; /* rank -1: unknown */
  /* The tensor has data, which is copied. */
  void (*attr_tensor)(const fbx_builder*, fbx_str key, const fbx_tensor*) FBX_NOEXCEPT;
  /* The attributes that are set until the matching end_map belong to a map. Maps nest. */
  void (*begin_map)(const fbx_builder*, fbx_str key) FBX_NOEXCEPT;
  void (*end_map)(const fbx_builder*) FBX_NOEXCEPT;
  /* A new constant with the type, quantization and data of *value, which are copied. STRING needs it, because
     the size of its data depends on the values. */
  fbx_value (*add_tensor)(const fbx_builder*, const fbx_tensor* value) FBX_NOEXCEPT;
  /* Element type of a result of the last node, before its kernel infers: for ops whose result type is stored
     in the file (QUANTIZE, CAST). Without it, a result with scales has the type of the first quantized
     operand. */
  void (*set_dtype)(const fbx_builder*, fbx_value, fbx_dtype) FBX_NOEXCEPT;
  /* A variable tensor: state of this site, which a session keeps between invokes. An operand of custom ops,
     or of one builtin op with state, which update it in place (VARIABLE). `initial`: the stored value at the
     start and after a reset, of the type's size, copied; NULL: zero. A .tflite file holds no initial value,
     so the converter accepts only NULL or zeros. All dims are known. */
  fbx_value (*add_variable)(const fbx_builder*, fbx_dtype, const int64_t* dims, int32_t rank,
                            const void* initial) FBX_NOEXCEPT;
};

/* Tolerance of the fused op in the verification against its body. 0: the default of the verification. */
typedef struct fbx_tolerance {
  fbx_head head;
  double atol, rtol;
} fbx_tolerance;

typedef struct fbx_rule {
  fbx_head head;
  fbx_str id;         /* "acme.rms_norm.f32" */
  fbx_str implements; /* a composite's name, or a prefix and '*'; the manifest may list aliases */
  int32_t min_version, max_version; /* of the composite; 0, 0: any */
  int32_t benefit;                  /* rules of one plugin with higher benefit are tried first */
  void* user;                       /* passed to both callbacks; the host does not read it */
  fbx_status (*match)(const fbx_host*, void* user, const fbx_composite*) FBX_NOEXCEPT;
  fbx_status (*rewrite)(const fbx_host*, void* user, const fbx_composite*, const fbx_builder*) FBX_NOEXCEPT;
  const fbx_tolerance* tolerance; /* NULL: the default */
} fbx_rule;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_RULE_H_ */
