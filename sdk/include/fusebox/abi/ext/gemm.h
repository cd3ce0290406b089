/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "fusebox.gemm/1": matrix products for kernels and delegates, C = epilogue(A * B). A is [M][K]. B
 * is constant, [N][K] (TFLite's FULLY_CONNECTED) or [K][N], and packed once. C is [M][N]. Every host that
 * knows the extension provides it.
 *
 *   A     B              bias   C
 *   f32   f32            f32    f32
 *   f32   f16            f32    f32   B is packed as f32
 *   f32   i8             f32    f32   hybrid: each row of A is quantized to [-127, 127] by its largest
 *                                     magnitude; sums are exact integers
 *   i8    i8             i32    i8    TFLite's rounding; A and C have one scale and zero point
 *
 * i8 weights have one scale, or one for each of the N outputs, and no zero points.
 *
 * A kernel: create in init; plan scratch(product, m) bytes in prepare; run in invoke; destroy in free.
 * <fusebox/gemm.hpp> does this in C++. A product is const after create: any thread, several at once.
 *
 * Packed weights are in the store of fusebox.weights/1, which sessions, processes and starts share, if the
 * manifest of the calling plugin requires it ("fusebox.weights/1?") and the user has a store. Otherwise the
 * first run packs them to the heap, and all sessions of the model share them.
 *
 * Results do not depend on the number of threads, nor do the results of a row depend on M. A NaN in a row of
 * A makes the row of C NaN; in a hybrid product an infinity does, too.
 */
#ifndef FUSEBOX_ABI_EXT_GEMM_H_
#define FUSEBOX_ABI_EXT_GEMM_H_

#include "../host.h"

FBX_EXTERN_C_BEGIN

#define FBX_EXT_GEMM "fusebox.gemm/1"

/* Dims of the weights. */
typedef int32_t fbx_gemm_order;
enum { FBX_GEMM_NK = 0, FBX_GEMM_KN = 1 };

/* Applied to sums with bias. i8 results: NONE, RELU, RELU6 and CLAMP only. */
typedef int32_t fbx_gemm_activation;
enum {
  FBX_GEMM_NONE = 0,
  FBX_GEMM_RELU = 1,
  FBX_GEMM_RELU6 = 2,
  FBX_GEMM_CLAMP = 3, /* to [lowest, highest] */
  FBX_GEMM_TANH = 4,
  FBX_GEMM_SIGMOID = 5,
  FBX_GEMM_SILU = 6,     /* x * sigmoid(x) */
  FBX_GEMM_GELU_TANH = 7 /* x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) */
};

typedef struct fbx_gemm_spec {
  fbx_head head;
  const fbx_tensor* weights; /* constant. Of more than two dims, all but the last are N (NK) or K (KN). Its
                                data lives as long as the product */
  const fbx_tensor* bias;    /* constant, N values, lives as long. NULL or ABSENT: none */
  fbx_gemm_order order;
  fbx_gemm_activation activation;
  float lowest, highest;   /* of CLAMP, as real numbers */
  const fbx_quant* input;  /* of A if it is i8, copied. NULL: A is f32 */
  const fbx_quant* output; /* of C if it is i8, copied; NULL otherwise */
} fbx_gemm_spec;

typedef struct fbx_gemm_call {
  fbx_head head;
  int64_t m;
  const void* a;
  int64_t a_stride;     /* elements from a row to the next, at least K. 0: K */
  void* c;              /* does not overlap A */
  int64_t c_stride;     /* 0: N */
  const float* times;   /* f32 [M][N]: multiplies activated f32 results. NULL: none */
  int64_t times_stride; /* 0: N */
  void* scratch;        /* scratch(product, m) bytes, aligned to 64; NULL if 0 */
} fbx_gemm_call;

typedef struct fbx_gemm_product fbx_gemm_product;

typedef struct fbx_gemm {
  fbx_head head;
  /* NOT_APPLICABLE: unsupported types, weights that are not constant, other shapes, invalid scales or an
     unknown activation; the reason is emitted. product NULL: only checks, for supports.
     [load] [prepare] [convert] */
  fbx_status (*create)(const fbx_host*, const fbx_gemm_spec*, fbx_gemm_product** product) FBX_NOEXCEPT;
  /* NULL is ignored. [any] */
  void (*destroy)(fbx_gemm_product*) FBX_NOEXCEPT;
  /* Bytes of scratch memory of a call with m rows; SIZE_MAX if m is negative or too large. [any] */
  size_t (*scratch)(const fbx_gemm_product*, int64_t m) FBX_NOEXCEPT;
  /* Uses the threads of the session; serial inside of a task. Allocates nothing after the first run.
     INVALID: a negative m, or `times` for i8. OUT_OF_MEMORY. CANCELLED. [invoke] */
  fbx_status (*run)(const fbx_host*, const fbx_gemm_product*, const fbx_gemm_call*) FBX_NOEXCEPT;
} fbx_gemm;

FBX_EXTERN_C_END

#endif /* FUSEBOX_ABI_EXT_GEMM_H_ */
