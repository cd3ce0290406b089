/* SPDX-License-Identifier: Apache-2.0 */
/* TfLiteTensor and what it is made of: arrays, elements, quantization, memory. */
#ifndef FUSEBOX_TFLITE_C_TENSOR_H_
#define FUSEBOX_TFLITE_C_TENSOR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fusebox/tflite/c/c_api_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Arrays. */

/* Dims of a tensor, indices of tensors or nodes. */
typedef struct TfLiteIntArray {
  int size;
  int data[];
} TfLiteIntArray;

TFL_CAPI_EXPORT size_t TfLiteIntArrayGetSizeInBytes(int size);
/* Uninitialized; freed by TfLiteIntArrayFree. NULL: out of memory. */
TFL_CAPI_EXPORT TfLiteIntArray* TfLiteIntArrayCreate(int size);
/* 1: equal, 0: not. */
TFL_CAPI_EXPORT int TfLiteIntArrayEqual(const TfLiteIntArray* a, const TfLiteIntArray* b);
TFL_CAPI_EXPORT int TfLiteIntArrayEqualsArray(const TfLiteIntArray* a, int b_size, const int b_data[]);
/* NULL of NULL. */
TFL_CAPI_EXPORT TfLiteIntArray* TfLiteIntArrayCopy(const TfLiteIntArray* src);
TFL_CAPI_EXPORT void TfLiteIntArrayFree(TfLiteIntArray* a);

typedef struct TfLiteFloatArray {
  int size;
  float data[];
} TfLiteFloatArray;

TFL_CAPI_EXPORT int TfLiteFloatArrayGetSizeInBytes(int size);
TFL_CAPI_EXPORT TfLiteFloatArray* TfLiteFloatArrayCreate(int size);
TFL_CAPI_EXPORT TfLiteFloatArray* TfLiteFloatArrayCopy(const TfLiteFloatArray* src);
TFL_CAPI_EXPORT void TfLiteFloatArrayFree(TfLiteFloatArray* a);

/* ---- Elements and quantization. */

typedef struct TfLiteComplex64 {
  float re, im;
} TfLiteComplex64;
typedef struct TfLiteComplex128 {
  double re, im;
} TfLiteComplex128;
typedef struct TfLiteFloat16 {
  uint16_t data;
} TfLiteFloat16;
typedef struct TfLiteBFloat16 {
  uint16_t data;
} TfLiteBFloat16;

/* "FLOAT32", ...; "Unknown type" of other numbers. Static. */
TFL_CAPI_EXPORT const char* TfLiteTypeGetName(TfLiteType type);

typedef enum TfLiteQuantizationType {
  kTfLiteNoQuantization = 0,
  kTfLiteAffineQuantization = 1,   /* params: TfLiteAffineQuantization */
  kTfLiteBlockwiseQuantization = 2 /* params: TfLiteBlockwiseQuantization */
} TfLiteQuantizationType;

typedef struct TfLiteQuantization {
  TfLiteQuantizationType type;
  void* params;
} TfLiteQuantization;

/* One scale, or one per index of a dimension. */
typedef struct TfLiteAffineQuantization {
  TfLiteFloatArray* scale;
  TfLiteIntArray* zero_point;
  int32_t quantized_dimension;
} TfLiteAffineQuantization;

/* One scale per block; scale and zero_point are indices of tensors. */
typedef struct TfLiteBlockwiseQuantization {
  int32_t scale;
  int32_t zero_point;
  int32_t blocksize;
  int32_t quantized_dimension;
} TfLiteBlockwiseQuantization;

/* ---- Tensors. */

typedef union TfLitePtrUnion {
  int32_t* i32;
  uint32_t* u32;
  int64_t* i64;
  uint64_t* u64;
  float* f;
  TfLiteFloat16* f16;
  TfLiteBFloat16* bf16;
  double* f64;
  char* raw;
  const char* raw_const;
  uint8_t* uint8;
  bool* b;
  int16_t* i16;
  uint16_t* ui16;
  TfLiteComplex64* c64;
  TfLiteComplex128* c128;
  int8_t* int8;
  void* data;
} TfLitePtrUnion;

/* Who owns the memory of a tensor, and for how long it is valid. */
typedef enum TfLiteAllocationType {
  kTfLiteMemNone = 0,
  kTfLiteMmapRo = 1,            /* a constant of the file */
  kTfLiteArenaRw = 2,           /* of the interpreter, until shapes change */
  kTfLiteArenaRwPersistent = 3, /* same, and the value is kept between calls */
  kTfLiteDynamic = 4,           /* malloc; resized while the model runs. Strings are */
  kTfLitePersistentRo = 5,      /* written in prepare, then constant */
  kTfLiteCustom = 6,            /* of the application */
  kTfLiteVariantObject = 7,
  kTfLiteNonCpu = 8
} TfLiteAllocationType;

typedef enum TfLiteAllocationStrategy {
  kTfLiteAllocationStrategyUnknown = 0,
  kTfLiteAllocationStrategyNone = 1,
  kTfLiteAllocationStrategyMMap = 2,
  kTfLiteAllocationStrategyArena = 3,
  kTfLiteAllocationStrategyMalloc = 4,
  kTfLiteAllocationStrategyNew = 5
} TfLiteAllocationStrategy;

typedef enum TfLiteRunStability {
  kTfLiteRunStabilityUnknown = 0,
  kTfLiteRunStabilityUnstable = 1,
  kTfLiteRunStabilitySingleRun = 2,
  kTfLiteRunStabilityAcrossRuns = 3
} TfLiteRunStability;

typedef enum TfLiteRunStep {
  kTfLiteRunStepUnknown = 0,
  kTfLiteRunStepInit = 1,
  kTfLiteRunStepPrepare = 2,
  kTfLiteRunStepEval = 3
} TfLiteRunStep;

/* Memory of a delegate; 0 or more, or kTfLiteNullBufferHandle. */
typedef int TfLiteBufferHandle;
enum { kTfLiteNullBufferHandle = -1 };

typedef struct TfLiteDimensionMetadata {
  TfLiteDimensionType format;
  int dense_size;
  TfLiteIntArray* array_segments;
  TfLiteIntArray* array_indices;
} TfLiteDimensionMetadata;

typedef struct TfLiteSparsity {
  TfLiteIntArray* traversal_order;
  TfLiteIntArray* block_map;
  TfLiteDimensionMetadata* dim_metadata;
  int dim_metadata_size;
} TfLiteSparsity;

/* Memory of the application for a tensor: aligned to 64 bytes. */
typedef struct TfLiteCustomAllocation {
  void* data;
  size_t bytes;
} TfLiteCustomAllocation;

typedef enum TfLiteCustomAllocationFlags {
  kTfLiteCustomAllocationFlagsNone = 0,
  kTfLiteCustomAllocationFlagsSkipAlignCheck = 1
} TfLiteCustomAllocationFlags;

enum { kTfLiteNoBufferIdentifier = SIZE_MAX };

struct TfLiteTensor {
  TfLiteType type;
  TfLitePtrUnion data;
  TfLiteIntArray* dims;
  TfLiteQuantizationParams params; /* of one scale; see quantization */
  TfLiteAllocationType allocation_type;
  size_t bytes;
  const void* allocation;
  const char* name;
  struct TfLiteDelegate* delegate;
  TfLiteBufferHandle buffer_handle;
  bool data_is_stale; /* the value is in buffer_handle, not in data */
  bool is_variable;   /* state: the op updates it in place */
  TfLiteQuantization quantization;
  TfLiteSparsity* sparsity;             /* NULL: dense */
  const TfLiteIntArray* dims_signature; /* -1: any; NULL or empty: as dims */
};

/* The tensor of TensorFlow Lite Micro. */
typedef struct TfLiteEvalTensor {
  TfLitePtrUnion data;
  TfLiteIntArray* dims;
  TfLiteType type;
} TfLiteEvalTensor;

/* Frees the memory of a kTfLiteDynamic tensor. */
TFL_CAPI_EXPORT void TfLiteTensorDataFree(TfLiteTensor* t);
TFL_CAPI_EXPORT void TfLiteQuantizationFree(TfLiteQuantization* quantization);
TFL_CAPI_EXPORT void TfLiteSparsityFree(TfLiteSparsity* sparsity);
/* All of the above, and dims. */
TFL_CAPI_EXPORT void TfLiteTensorFree(TfLiteTensor* t);
/* Frees what `tensor` holds, then sets all members. Takes ownership of dims. */
TFL_CAPI_EXPORT void TfLiteTensorReset(TfLiteType type, const char* name, TfLiteIntArray* dims,
                                       TfLiteQuantizationParams quantization, char* buffer, size_t size,
                                       TfLiteAllocationType allocation_type, const void* allocation,
                                       bool is_variable, TfLiteTensor* tensor);
/* Copies the value and its dims. Error: the tensors differ in bytes. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteTensorCopy(const TfLiteTensor* src, TfLiteTensor* dst);
/* Resizes the memory of a kTfLiteDynamic tensor; does nothing to others. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteTensorResizeMaybeCopy(size_t num_bytes, TfLiteTensor* tensor,
                                                         bool preserve_data);
TFL_CAPI_EXPORT TfLiteStatus TfLiteTensorRealloc(size_t num_bytes, TfLiteTensor* tensor);
/* dims_signature if there is one, else dims. */
TFL_CAPI_EXPORT const TfLiteIntArray* TfLiteTensorGetDimsSignature(const TfLiteTensor* t);
TFL_CAPI_EXPORT TfLiteAllocationStrategy TfLiteTensorGetAllocationStrategy(const TfLiteTensor* t);
TFL_CAPI_EXPORT TfLiteRunStability TfLiteTensorGetBufferAddressStability(const TfLiteTensor* t);
TFL_CAPI_EXPORT TfLiteRunStability TfLiteTensorGetDataStability(const TfLiteTensor* t);
TFL_CAPI_EXPORT TfLiteRunStep TfLiteTensorGetDataKnownStep(const TfLiteTensor* t);
TFL_CAPI_EXPORT TfLiteRunStep TfLiteTensorGetShapeKnownStep(const TfLiteTensor* t);

#ifdef __cplusplus
}
#endif

#endif
