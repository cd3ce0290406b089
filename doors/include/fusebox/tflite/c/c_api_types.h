/* SPDX-License-Identifier: Apache-2.0 */
/* Types that the C API of TensorFlow Lite shares with custom ops and delegates. Names, values and layouts are
 * equal to TensorFlow Lite's; a program that was built with its headers runs with this library. */
#ifndef FUSEBOX_TFLITE_C_C_API_TYPES_H_
#define FUSEBOX_TFLITE_C_C_API_TYPES_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TFL_CAPI_EXPORT __attribute__((visibility("default")))

/* The result of most functions. Other values are errors too. */
typedef enum TfLiteStatus {
  kTfLiteOk = 0,
  kTfLiteError = 1,
  kTfLiteDelegateError = 2,    /* in a delegate */
  kTfLiteApplicationError = 3, /* a delegate does not fit to the interpreter or its state */
  kTfLiteDelegateDataNotFound = 4,
  kTfLiteDelegateDataWriteError = 5,
  kTfLiteDelegateDataReadError = 6,
  kTfLiteUnresolvedOps = 7,
  kTfLiteCancelled = 8,
  kTfLiteOutputShapeNotKnown = 9
} TfLiteStatus;

/* Element types. Types of less than a byte are packed. */
typedef enum {
  kTfLiteNoType = 0,
  kTfLiteFloat32 = 1,
  kTfLiteInt32 = 2,
  kTfLiteUInt8 = 3,
  kTfLiteInt64 = 4,
  kTfLiteString = 5,
  kTfLiteBool = 6,
  kTfLiteInt16 = 7,
  kTfLiteComplex64 = 8,
  kTfLiteInt8 = 9,
  kTfLiteFloat16 = 10,
  kTfLiteFloat64 = 11,
  kTfLiteComplex128 = 12,
  kTfLiteUInt64 = 13,
  kTfLiteResource = 14,
  kTfLiteVariant = 15,
  kTfLiteUInt32 = 16,
  kTfLiteUInt16 = 17,
  kTfLiteInt4 = 18,
  kTfLiteBFloat16 = 19,
  kTfLiteInt2 = 20,
  kTfLiteUInt4 = 21
} TfLiteType;

/* real = scale * (stored - zero_point). Of a tensor with one scale; scale 0: not quantized so. */
typedef struct TfLiteQuantizationParams {
  float scale;
  int32_t zero_point;
} TfLiteQuantizationParams;

/* Storage of a dimension of a sparse tensor. */
typedef enum TfLiteDimensionType { kTfLiteDimDense = 0, kTfLiteDimSparseCSR = 1 } TfLiteDimensionType;

typedef struct TfLiteOpaqueContext TfLiteOpaqueContext;
typedef struct TfLiteOpaqueNode TfLiteOpaqueNode;
typedef struct TfLiteOpaqueTensor TfLiteOpaqueTensor;
typedef struct TfLiteTensor TfLiteTensor;
typedef struct TfLiteDelegate TfLiteDelegate;
typedef struct TfLiteOperator TfLiteOperator;
typedef TfLiteOperator TfLiteRegistrationExternal;
typedef struct TfLiteOpaqueDelegateStruct TfLiteOpaqueDelegateStruct;

#if defined(TFLITE_WITH_STABLE_ABI) || defined(TFLITE_USE_OPAQUE_DELEGATE)
typedef TfLiteOpaqueDelegateStruct TfLiteOpaqueDelegate;
#else
typedef TfLiteDelegate TfLiteOpaqueDelegate;
#endif

#ifdef __cplusplus
}
#endif

#endif
