/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes: a read-only map from name to value. The host parses option tables, FlexBuffers, TensorFlow
 * attributes or JSON. Names come from the format: the field names of TFLite's option tables ("stride_w",
 * "fused_activation_function"), the keys of a custom op's map, the attribute names of a composite.
 *
 * Enumerated options are strings ("SAME", "RELU"). A missing field means its schema default. An int is also
 * readable as f64, and as bool if it is 0 or 1. All getters return FBX_OK and set *out, FBX_NOT_APPLICABLE if
 * the key is missing, or FBX_INVALID if the value has another kind. Returned memory lives as long as the
 * attrs. [any]
 */
#ifndef FUSEBOX_ABI_ATTRS_H_
#define FUSEBOX_ABI_ATTRS_H_

#include "tensor.h"

FBX_EXTERN_C_BEGIN

typedef int32_t fbx_attr_kind;
enum {
  FBX_ATTR_NONE = 0,
  FBX_ATTR_BOOL = 1,
  FBX_ATTR_I64 = 2,
  FBX_ATTR_F64 = 3,
  FBX_ATTR_STR = 4,
  FBX_ATTR_DTYPE = 5,
  FBX_ATTR_SHAPE = 6,
  FBX_ATTR_TENSOR = 7,
  FBX_ATTR_I64S = 8,
  FBX_ATTR_F64S = 9,
  FBX_ATTR_STRS = 10,
  FBX_ATTR_FUNC = 11, /* a function of the module; plugins read its name with get_str */
  FBX_ATTR_MAP = 12
};

typedef struct fbx_attrs fbx_attrs; /* opaque, owned by the host */

/* The attribute functions of the host. */
typedef struct fbx_attr_api {
  fbx_head head;
  size_t (*count)(const fbx_attrs*) FBX_NOEXCEPT;
  fbx_str (*key_at)(const fbx_attrs*, size_t index) FBX_NOEXCEPT; /* sorted by name */
  fbx_attr_kind (*kind)(const fbx_attrs*, fbx_str key) FBX_NOEXCEPT;
  fbx_status (*get_bool)(const fbx_attrs*, fbx_str key, int32_t* out) FBX_NOEXCEPT;
  fbx_status (*get_i64)(const fbx_attrs*, fbx_str key, int64_t* out) FBX_NOEXCEPT;
  fbx_status (*get_f64)(const fbx_attrs*, fbx_str key, double* out) FBX_NOEXCEPT;
  fbx_status (*get_str)(const fbx_attrs*, fbx_str key, fbx_str* out) FBX_NOEXCEPT;
  fbx_status (*get_dtype)(const fbx_attrs*, fbx_str key, fbx_dtype* out) FBX_NOEXCEPT;
  /* SHAPE and I64S. Unknown rank: *count == SIZE_MAX. */
  fbx_status (*get_i64s)(const fbx_attrs*, fbx_str key, const int64_t** out, size_t* count) FBX_NOEXCEPT;
  fbx_status (*get_f64s)(const fbx_attrs*, fbx_str key, const double** out, size_t* count) FBX_NOEXCEPT;
  fbx_status (*get_strs)(const fbx_attrs*, fbx_str key, const fbx_str** out, size_t* count) FBX_NOEXCEPT;
  fbx_status (*get_tensor)(const fbx_attrs*, fbx_str key, const fbx_tensor** out) FBX_NOEXCEPT;
  fbx_status (*get_map)(const fbx_attrs*, fbx_str key, const fbx_attrs** out) FBX_NOEXCEPT;
} fbx_attr_api;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_ATTRS_H_ */
