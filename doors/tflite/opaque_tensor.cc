// SPDX-License-Identifier: Apache-2.0
// Opaque tensors: the accessors of the real ones.
#include <new>
#include <string_view>
#include <vector>

#include "doors/tflite/strings.h"
#include "doors/tflite/tensor_builder.h"

using fusebox::tflite::SetStrings;
using fusebox::tflite::StringsOf;

namespace {

const TfLiteTensor* Real(const TfLiteOpaqueTensor* tensor) {
  return reinterpret_cast<const TfLiteTensor*>(tensor);
}
TfLiteTensor* Real(TfLiteOpaqueTensor* tensor) { return reinterpret_cast<TfLiteTensor*>(tensor); }

}  // namespace

TfLiteType TfLiteOpaqueTensorType(const TfLiteOpaqueTensor* t) { return Real(t)->type; }
int32_t TfLiteOpaqueTensorNumDims(const TfLiteOpaqueTensor* t) { return TfLiteTensorNumDims(Real(t)); }
int32_t TfLiteOpaqueTensorDim(const TfLiteOpaqueTensor* t, int32_t i) { return TfLiteTensorDim(Real(t), i); }

TfLiteStatus TfLiteOpaqueTensorGetNumDimsSignature(const TfLiteOpaqueTensor* t, int32_t* num_dims) {
  const TfLiteIntArray* signature = Real(t)->dims_signature;
  *num_dims = signature != nullptr ? signature->size : -1;
  return kTfLiteOk;
}

TfLiteStatus TfLiteOpaqueTensorGetDimSignature(const TfLiteOpaqueTensor* t, int32_t dim_index,
                                               int32_t* dim_length) {
  const TfLiteIntArray* signature = Real(t)->dims_signature;
  const bool has = signature != nullptr && dim_index >= 0 && dim_index < signature->size;
  *dim_length = has ? signature->data[dim_index] : -1;
  return kTfLiteOk;
}

int TfLiteOpaqueTensorIsVariable(const TfLiteOpaqueTensor* t) { return Real(t)->is_variable ? 1 : 0; }
size_t TfLiteOpaqueTensorByteSize(const TfLiteOpaqueTensor* t) { return Real(t)->bytes; }
void* TfLiteOpaqueTensorData(const TfLiteOpaqueTensor* t) { return t ? Real(t)->data.data : nullptr; }

TfLiteAllocationType TfLiteOpaqueTensorGetAllocationType(const TfLiteOpaqueTensor* t) {
  return Real(t)->allocation_type;
}
TfLiteAllocationStrategy TfLiteOpaqueTensorGetAllocationStrategy(const TfLiteOpaqueTensor* t) {
  return TfLiteTensorGetAllocationStrategy(Real(t));
}
TfLiteRunStability TfLiteOpaqueTensorGetBufferAddressStability(const TfLiteOpaqueTensor* t) {
  return TfLiteTensorGetBufferAddressStability(Real(t));
}
TfLiteRunStability TfLiteOpaqueTensorGetDataStability(const TfLiteOpaqueTensor* t) {
  return TfLiteTensorGetDataStability(Real(t));
}
TfLiteRunStep TfLiteOpaqueTensorGetDataKnownStep(const TfLiteOpaqueTensor* t) {
  return TfLiteTensorGetDataKnownStep(Real(t));
}
TfLiteRunStep TfLiteOpaqueTensorGetShapeKnownStep(const TfLiteOpaqueTensor* t) {
  return TfLiteTensorGetShapeKnownStep(Real(t));
}
const char* TfLiteOpaqueTensorName(const TfLiteOpaqueTensor* t) { return Real(t)->name; }
TfLiteQuantization TfLiteOpaqueTensorGetQuantization(const TfLiteOpaqueTensor* t) {
  return Real(t)->quantization;
}
TfLiteQuantizationParams TfLiteOpaqueTensorGetQuantizationParams(const TfLiteOpaqueTensor* t) {
  return Real(t)->params;
}
TfLiteStatus TfLiteOpaqueTensorCopyFromBuffer(TfLiteOpaqueTensor* t, const void* data, size_t size) {
  return TfLiteTensorCopyFromBuffer(Real(t), data, size);
}
TfLiteStatus TfLiteOpaqueTensorCopyToBuffer(const TfLiteOpaqueTensor* t, void* data, size_t size) {
  return TfLiteTensorCopyToBuffer(Real(t), data, size);
}

int TfLiteOpaqueTensorGetStringCount(const TfLiteOpaqueTensor* t) {
  try {
    const auto strings = StringsOf(*Real(t));
    return Real(t)->type == kTfLiteString && strings ? static_cast<int>(strings->size()) : -1;
  } catch (const std::bad_alloc&) {
    return -1;
  }
}

TfLiteStatus TfLiteOpaqueTensorGetString(const TfLiteOpaqueTensor* t, int index, const char** str, int* len) {
  try {
    const auto strings = StringsOf(*Real(t));
    if (Real(t)->type != kTfLiteString || !strings || index < 0 ||
        static_cast<size_t>(index) >= strings->size())
      return kTfLiteError;
    *str = (*strings)[static_cast<size_t>(index)].data();
    *len = static_cast<int>((*strings)[static_cast<size_t>(index)].size());
    return kTfLiteOk;
  } catch (const std::bad_alloc&) {
    return kTfLiteError;
  }
}

TfLiteStatus TfLiteOpaqueTensorWriteStrings(TfLiteOpaqueTensor* t, const char* const* str_array,
                                            int str_array_len, const int* str_n_len) {
  if (Real(t)->type != kTfLiteString || str_array_len < 0) return kTfLiteError;
  try {
    std::vector<std::string_view> strings;
    for (int i = 0; i < str_array_len; ++i) {
      if (str_n_len[i] < 0) return kTfLiteError;
      strings.emplace_back(str_array[i], static_cast<size_t>(str_n_len[i]));
    }
    SetStrings(*Real(t), strings);
    return kTfLiteOk;
  } catch (const std::bad_alloc&) {
    return kTfLiteError;
  }
}

TfLiteStatus TfLiteOpaqueTensorWriteString(TfLiteOpaqueTensor* t, const char* str, int len) {
  return TfLiteOpaqueTensorWriteStrings(t, &str, 1, &len);
}

void TfLiteOpaqueTensorSetAllocationTypeToDynamic(TfLiteOpaqueTensor* t) {
  TfLiteTensor* tensor = Real(t);
  if (tensor->allocation_type == kTfLiteDynamic) return;
  tensor->allocation_type = kTfLiteDynamic;
  tensor->data.raw = nullptr;
}

TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderCreate(void) {
  return new (std::nothrow) TfLiteOpaqueTensorBuilder();
}
void TfLiteOpaqueTensorBuilderDelete(TfLiteOpaqueTensorBuilder* builder) { delete builder; }
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetType(TfLiteOpaqueTensorBuilder* builder,
                                                            TfLiteType type) {
  builder->type = type;
  return builder;
}
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetData(TfLiteOpaqueTensorBuilder* builder, void* data) {
  builder->data = data;
  return builder;
}
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetAllocationType(TfLiteOpaqueTensorBuilder* builder,
                                                                      TfLiteAllocationType allocation_type) {
  builder->allocation_type = allocation_type;
  return builder;
}
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetQuantizationParams(TfLiteOpaqueTensorBuilder* builder,
                                                                          TfLiteQuantizationParams params) {
  builder->params = params;
  return builder;
}
TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetQuantization(TfLiteOpaqueTensorBuilder* builder,
                                                                    TfLiteQuantization quantization) {
  builder->quantization = quantization;
  return builder;
}
