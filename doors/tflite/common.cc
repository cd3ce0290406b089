// SPDX-License-Identifier: Apache-2.0
// Arrays and tensors of TensorFlow Lite's common.h. Their memory comes from malloc: applications may free it.
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>

#include "fusebox/tflite/c/common.h"

namespace {

template <class Array>
Array* CreateArray(int size) {
  if (size < 0) return nullptr;
  const size_t bytes = sizeof(Array) + sizeof(Array::data[0]) * static_cast<size_t>(size);
  auto* array = static_cast<Array*>(std::malloc(bytes));
  if (array != nullptr) array->size = size;
  return array;
}

template <class Array>
Array* CopyArray(const Array* from) {
  if (from == nullptr) return nullptr;
  Array* copy = CreateArray<Array>(from->size);
  if (copy != nullptr)
    std::memcpy(copy->data, from->data, sizeof(from->data[0]) * static_cast<size_t>(from->size));
  return copy;
}

bool OwnsData(const TfLiteTensor& tensor) {
  return tensor.allocation_type == kTfLiteDynamic || tensor.allocation_type == kTfLitePersistentRo;
}

}  // namespace

size_t TfLiteIntArrayGetSizeInBytes(int size) {
  return sizeof(TfLiteIntArray) + sizeof(int) * static_cast<size_t>(size < 0 ? 0 : size);
}
TfLiteIntArray* TfLiteIntArrayCreate(int size) { return CreateArray<TfLiteIntArray>(size); }
TfLiteIntArray* TfLiteIntArrayCopy(const TfLiteIntArray* src) { return CopyArray(src); }
void TfLiteIntArrayFree(TfLiteIntArray* a) { std::free(a); }

int TfLiteIntArrayEqual(const TfLiteIntArray* a, const TfLiteIntArray* b) {
  if (a == b) return 1;
  if (a == nullptr || b == nullptr) return 0;
  return TfLiteIntArrayEqualsArray(a, b->size, b->data);
}

int TfLiteIntArrayEqualsArray(const TfLiteIntArray* a, int b_size, const int b_data[]) {
  if (a == nullptr) return b_size == 0;
  if (a->size != b_size) return 0;
  for (int i = 0; i < b_size; ++i)
    if (a->data[i] != b_data[i]) return 0;
  return 1;
}

int TfLiteFloatArrayGetSizeInBytes(int size) {
  return static_cast<int>(sizeof(TfLiteFloatArray)) + static_cast<int>(sizeof(float)) * size;
}
TfLiteFloatArray* TfLiteFloatArrayCreate(int size) { return CreateArray<TfLiteFloatArray>(size); }
TfLiteFloatArray* TfLiteFloatArrayCopy(const TfLiteFloatArray* src) { return CopyArray(src); }
void TfLiteFloatArrayFree(TfLiteFloatArray* a) { std::free(a); }

const char* TfLiteTypeGetName(TfLiteType type) {
  static constexpr const char* kNames[] = {
      "NOTYPE",    "FLOAT32", "INT32",   "UINT8",    "INT64",      "STRING", "BOOL",     "INT16",
      "COMPLEX64", "INT8",    "FLOAT16", "FLOAT64",  "COMPLEX128", "UINT64", "RESOURCE", "VARIANT",
      "UINT32",    "UINT16",  "INT4",    "BFLOAT16", "INT2",       "UINT4"};
  const auto index = static_cast<size_t>(type);
  return index < std::size(kNames) ? kNames[index] : "Unknown type";
}

void TfLiteTensorDataFree(TfLiteTensor* t) {
  if (t == nullptr) return;
  if (OwnsData(*t)) std::free(t->data.raw);
  t->data.raw = nullptr;
}

// TensorFlow Lite's library, whose calls come here if ours is linked first, leaves params of no kind undefined.
void TfLiteQuantizationFree(TfLiteQuantization* quantization) {
  if (quantization == nullptr) return;
  if (quantization->type == kTfLiteAffineQuantization && quantization->params != nullptr) {
    auto* affine = static_cast<TfLiteAffineQuantization*>(quantization->params);
    TfLiteFloatArrayFree(affine->scale);
    TfLiteIntArrayFree(affine->zero_point);
  }
  if (quantization->type != kTfLiteNoQuantization) std::free(quantization->params);
  *quantization = {kTfLiteNoQuantization, nullptr};
}

void TfLiteSparsityFree(TfLiteSparsity* sparsity) {
  if (sparsity == nullptr) return;
  TfLiteIntArrayFree(sparsity->traversal_order);
  TfLiteIntArrayFree(sparsity->block_map);
  for (int i = 0; sparsity->dim_metadata != nullptr && i < sparsity->dim_metadata_size; ++i) {
    if (sparsity->dim_metadata[i].format != kTfLiteDimSparseCSR) continue;
    TfLiteIntArrayFree(sparsity->dim_metadata[i].array_segments);
    TfLiteIntArrayFree(sparsity->dim_metadata[i].array_indices);
  }
  std::free(sparsity->dim_metadata);
  std::free(sparsity);
}

void TfLiteTensorFree(TfLiteTensor* t) {
  if (t == nullptr) return;
  TfLiteTensorDataFree(t);
  TfLiteIntArrayFree(t->dims);
  std::free(const_cast<TfLiteIntArray*>(t->dims_signature));
  TfLiteQuantizationFree(&t->quantization);
  TfLiteSparsityFree(t->sparsity);
  t->dims = nullptr;
  t->dims_signature = nullptr;
  t->sparsity = nullptr;
}

void TfLiteTensorReset(TfLiteType type, const char* name, TfLiteIntArray* dims,
                       TfLiteQuantizationParams quantization, char* buffer, size_t size,
                       TfLiteAllocationType allocation_type, const void* allocation, bool is_variable,
                       TfLiteTensor* tensor) {
  TfLiteTensorFree(tensor);
  tensor->type = type;
  tensor->name = name;
  tensor->dims = dims;
  tensor->params = quantization;
  tensor->data.raw = buffer;
  tensor->bytes = size;
  tensor->allocation_type = allocation_type;
  tensor->allocation = allocation;
  tensor->is_variable = is_variable;
}

TfLiteStatus TfLiteTensorCopy(const TfLiteTensor* src, TfLiteTensor* dst) {
  if (src == nullptr || dst == nullptr || src == dst) return kTfLiteOk;
  if (src->bytes != dst->bytes) return kTfLiteError;
  if (src->bytes > 0 && (src->data.raw == nullptr || dst->data.raw == nullptr)) return kTfLiteError;
  TfLiteIntArray* dims = TfLiteIntArrayCopy(src->dims);
  if (dims == nullptr && src->dims != nullptr) return kTfLiteError;
  TfLiteIntArrayFree(dst->dims);
  dst->dims = dims;
  dst->type = src->type;
  if (src->bytes > 0) std::memcpy(dst->data.raw, src->data.raw, src->bytes);
  dst->buffer_handle = src->buffer_handle;
  dst->data_is_stale = src->data_is_stale;
  dst->delegate = src->delegate;
  return kTfLiteOk;
}

TfLiteStatus TfLiteTensorResizeMaybeCopy(size_t num_bytes, TfLiteTensor* tensor, bool preserve_data) {
  if (tensor == nullptr) return kTfLiteError;
  if (!OwnsData(*tensor)) return kTfLiteOk;
  if (num_bytes > tensor->bytes || tensor->data.raw == nullptr) {
    // Kernels of Fusebox may read 16 bytes more.
    if (num_bytes > std::numeric_limits<size_t>::max() - 16) return kTfLiteError;
    void* memory =
        preserve_data ? std::realloc(tensor->data.raw, num_bytes + 16) : std::malloc(num_bytes + 16);
    if (memory == nullptr) return kTfLiteError;
    if (!preserve_data) std::free(tensor->data.raw);
    tensor->data.data = memory;
  }
  tensor->bytes = num_bytes;
  return kTfLiteOk;
}

TfLiteStatus TfLiteTensorRealloc(size_t num_bytes, TfLiteTensor* tensor) {
  return TfLiteTensorResizeMaybeCopy(num_bytes, tensor, true);
}

const TfLiteIntArray* TfLiteTensorGetDimsSignature(const TfLiteTensor* t) {
  return t->dims_signature != nullptr && t->dims_signature->size > 0 ? t->dims_signature : t->dims;
}

TfLiteAllocationStrategy TfLiteTensorGetAllocationStrategy(const TfLiteTensor* t) {
  switch (t->allocation_type) {
    case kTfLiteMemNone: return kTfLiteAllocationStrategyNone;
    case kTfLiteMmapRo: return kTfLiteAllocationStrategyMMap;
    case kTfLiteArenaRw:
    case kTfLiteArenaRwPersistent: return kTfLiteAllocationStrategyArena;
    case kTfLiteDynamic:
    case kTfLitePersistentRo: return kTfLiteAllocationStrategyMalloc;
    case kTfLiteVariantObject: return kTfLiteAllocationStrategyNew;
    default: return kTfLiteAllocationStrategyUnknown;
  }
}

TfLiteRunStability TfLiteTensorGetBufferAddressStability(const TfLiteTensor* t) {
  switch (t->allocation_type) {
    case kTfLiteDynamic: return kTfLiteRunStabilitySingleRun;
    case kTfLiteCustom:
    case kTfLiteNonCpu: return kTfLiteRunStabilityUnknown;
    case kTfLiteMemNone:
    case kTfLiteMmapRo:
    case kTfLiteArenaRwPersistent:
    case kTfLitePersistentRo: return kTfLiteRunStabilityAcrossRuns;
    default: return kTfLiteRunStabilityUnstable;
  }
}

TfLiteRunStability TfLiteTensorGetDataStability(const TfLiteTensor* t) {
  switch (t->allocation_type) {
    case kTfLiteMemNone:
    case kTfLiteMmapRo:
    case kTfLitePersistentRo: return kTfLiteRunStabilityAcrossRuns;
    case kTfLiteCustom:
    case kTfLiteNonCpu: return kTfLiteRunStabilityUnknown;
    default: return kTfLiteRunStabilitySingleRun;
  }
}

TfLiteRunStep TfLiteTensorGetDataKnownStep(const TfLiteTensor* t) {
  switch (t->allocation_type) {
    case kTfLiteMemNone:
    case kTfLiteMmapRo: return kTfLiteRunStepInit;
    case kTfLitePersistentRo: return kTfLiteRunStepPrepare;
    case kTfLiteCustom:
    case kTfLiteNonCpu: return kTfLiteRunStepUnknown;
    default: return kTfLiteRunStepEval;
  }
}

TfLiteRunStep TfLiteTensorGetShapeKnownStep(const TfLiteTensor* t) {
  switch (t->allocation_type) {
    case kTfLiteMemNone:
    case kTfLiteMmapRo: return kTfLiteRunStepInit;
    case kTfLiteDynamic: return kTfLiteRunStepEval;
    case kTfLiteCustom:
    case kTfLiteNonCpu: return kTfLiteRunStepUnknown;
    default: return kTfLiteRunStepPrepare;
  }
}

void* TfLiteKernelInitFailed(void) { return reinterpret_cast<void*>(-1); }

TfLiteDelegate TfLiteDelegateCreate(void) { return {}; }
