/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as a plugin sees them: element type, shape, quantization, data. */
#ifndef FUSEBOX_ABI_TENSOR_H_
#define FUSEBOX_ABI_TENSOR_H_

#include "base.h"

FBX_EXTERN_C_BEGIN

/* Element types. 4-bit and 2-bit types are packed, first element in the low bits. STRING data is an int32
 * count n, n + 1 int32 offsets from the start of the data, then the bytes. RESOURCE and VARIANT have no data
 * that plugins can read. */
typedef int32_t fbx_dtype;
enum {
  FBX_DTYPE_NONE = 0,
  FBX_F32 = 1,
  FBX_F16 = 2,
  FBX_BF16 = 3,
  FBX_F64 = 4,
  FBX_I8 = 5,
  FBX_I16 = 6,
  FBX_I32 = 7,
  FBX_I64 = 8,
  FBX_U8 = 9,
  FBX_U16 = 10,
  FBX_U32 = 11,
  FBX_U64 = 12,
  FBX_BOOL = 13, /* one byte, 0 or 1 */
  FBX_STRING = 14,
  FBX_COMPLEX64 = 15,
  FBX_COMPLEX128 = 16,
  FBX_I4 = 17,
  FBX_U4 = 18,
  FBX_I2 = 19,
  FBX_F8E4M3FN = 20,
  FBX_F8E5M2 = 21,
  FBX_RESOURCE = 22,
  FBX_VARIANT = 23
};

typedef int32_t fbx_quant_kind;
enum { FBX_QUANT_NONE = 0, FBX_QUANT_PER_TENSOR = 1, FBX_QUANT_PER_AXIS = 2, FBX_QUANT_BLOCKWISE = 3 };

/* real = scale * (stored - zero_point). PER_AXIS: one scale per index of dimension `axis`. BLOCKWISE: one
 * scale per block of block_size elements along the last dimension. Where a plugin passes one, zero_points may
 * be NULL: all 0. */
typedef struct fbx_quant {
  fbx_head head;
  fbx_quant_kind kind;
  int32_t axis;
  int32_t block_size;
  uint32_t count; /* of scales and of zero_points */
  const float* scales;
  const int64_t* zero_points;
} fbx_quant;

enum {
  FBX_TENSOR_CONST = 1,    /* the value never changes, and data holds it */
  FBX_TENSOR_VARIABLE = 2, /* state: the op updates it in place */
  FBX_TENSOR_ABSENT = 4,   /* an omitted optional operand; dtype NONE, data NULL */
  FBX_TENSOR_KNOWN = 8     /* not constant, but known for this plan; data holds it (shape arithmetic) */
};

/* A file, mapped as long as constants in it live; metadata from the time of opening. */
typedef struct fbx_file {
  fbx_head head;
  fbx_str path; /* absolute */
  uint64_t device, inode, size;
  int64_t modified_ns, changed_ns; /* mtime and ctime, since 1970 */
  const void* data;                /* the mapping: `size` bytes */
} fbx_file;

/* Dense, row-major. Operand and result arrays hold pointers to these; an absent operand is a tensor with the
 * ABSENT flag, never NULL. */
typedef struct fbx_tensor {
  fbx_head head;
  fbx_dtype dtype;
  int32_t rank; /* -1: unknown */
  const int64_t*
      dims; /* rank entries (a scalar has none); -1: unknown. In [prepare] and [invoke] all are known. */
  uint32_t flags;
  uint32_t uses; /* [convert] results of a composite: number of readers, function results included */
  void* data;    /* NULL: unknown value. Read-only except for results and VARIABLE operands in [invoke].
                    Activations are 64-byte aligned, constants at least to the element. 16 readable bytes
                    follow. */
  size_t bytes;  /* of the payload at data */
  const fbx_quant* quant; /* NULL: not quantized */
  fbx_str name;
  const fbx_file* file; /* graphs of a delegate, operands of a kernel in init: the file that holds data, at
                           offset data - file->data. NULL: memory */
} fbx_tensor;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_TENSOR_H_ */
