// SPDX-License-Identifier: Apache-2.0
#include "doors/tflite/tensors.h"

#include <cstring>
#include <new>

namespace fusebox::tflite {
namespace {

struct TypeRow {
  TfLiteType type;
  fbx_dtype dtype;
  size_t bits;
};

constexpr TypeRow kTypes[] = {
    {kTfLiteFloat32, FBX_F32, 32},    {kTfLiteInt32, FBX_I32, 32},
    {kTfLiteUInt8, FBX_U8, 8},        {kTfLiteInt64, FBX_I64, 64},
    {kTfLiteString, FBX_STRING, 0},   {kTfLiteBool, FBX_BOOL, 8},
    {kTfLiteInt16, FBX_I16, 16},      {kTfLiteComplex64, FBX_COMPLEX64, 64},
    {kTfLiteInt8, FBX_I8, 8},         {kTfLiteFloat16, FBX_F16, 16},
    {kTfLiteFloat64, FBX_F64, 64},    {kTfLiteComplex128, FBX_COMPLEX128, 128},
    {kTfLiteUInt64, FBX_U64, 64},     {kTfLiteResource, FBX_RESOURCE, 0},
    {kTfLiteVariant, FBX_VARIANT, 0}, {kTfLiteUInt32, FBX_U32, 32},
    {kTfLiteUInt16, FBX_U16, 16},     {kTfLiteInt4, FBX_I4, 4},
    {kTfLiteBFloat16, FBX_BF16, 16},  {kTfLiteInt2, FBX_I2, 2},
    {kTfLiteUInt4, FBX_U4, 4},
};

TfLiteIntArray* NewArray(size_t size) {
  TfLiteIntArray* array = TfLiteIntArrayCreate(static_cast<int>(size));
  if (array == nullptr) throw std::bad_alloc();
  return array;
}

}  // namespace

TfLiteType TypeOf(fbx_dtype dtype) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == dtype) return row.type;
  return kTfLiteNoType;
}

fbx_dtype DTypeOf(TfLiteType type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return row.dtype;
  return FBX_DTYPE_NONE;
}

size_t BitsOf(TfLiteType type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return row.bits;
  return 0;
}

size_t BytesOf(TfLiteType type, const TfLiteIntArray& dims) {
  size_t count = 1;
  for (int i = 0; i < dims.size; ++i) {
    if (dims.data[i] < 0 || __builtin_mul_overflow(count, static_cast<size_t>(dims.data[i]), &count))
      return 0;
  }
  size_t bits = 0;
  if (__builtin_mul_overflow(count, BitsOf(type), &bits) || bits > SIZE_MAX - 7) return 0;
  return (bits + 7) / 8;
}

void SetDims(TfLiteTensor& tensor, std::span<const int64_t> dims) {
  TfLiteIntArray* array = NewArray(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) array->data[i] = dims[i] < 0 ? 1 : static_cast<int>(dims[i]);
  TfLiteIntArrayFree(tensor.dims);
  tensor.dims = array;
}

void SetSignature(TfLiteTensor& tensor, std::span<const int64_t> dims) {
  bool any = false;
  for (const int64_t dim : dims) any = any || dim < 0;
  if (!any) return;
  TfLiteIntArray* array = NewArray(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) array->data[i] = static_cast<int>(dims[i]);
  tensor.dims_signature = array;
}

void SetQuantization(TfLiteTensor& tensor, std::span<const float> scales, const int64_t* zero_points,
                     int32_t axis) {
  if (scales.empty()) return;
  auto* affine = static_cast<TfLiteAffineQuantization*>(std::malloc(sizeof(TfLiteAffineQuantization)));
  if (affine == nullptr) throw std::bad_alloc();
  const int count = static_cast<int>(scales.size());
  *affine = {TfLiteFloatArrayCreate(count), TfLiteIntArrayCreate(count), axis};
  tensor.quantization = {kTfLiteAffineQuantization, affine};
  if (affine->scale == nullptr || affine->zero_point == nullptr) throw std::bad_alloc();
  for (size_t i = 0; i < scales.size(); ++i) {
    affine->scale->data[i] = scales[i];
    affine->zero_point->data[i] = zero_points != nullptr ? static_cast<int>(zero_points[i]) : 0;
  }
  if (count == 1) tensor.params = {affine->scale->data[0], affine->zero_point->data[0]};
}

void Declare(TfLiteTensor& tensor, const fusebox_tensor& from) {
  const std::span<const int64_t> dims(from.dims, from.rank > 0 ? static_cast<size_t>(from.rank) : 0);
  tensor.type = TypeOf(from.dtype);
  tensor.name = from.name;
  SetDims(tensor, dims);
  SetSignature(tensor, dims);
  SetQuantization(tensor, {from.scales, from.scale_count}, from.zero_points, from.scale_axis);
  tensor.bytes = BytesOf(tensor.type, *tensor.dims);
}

void AlignedMemory::Reserve(size_t bytes) {
  if (data_ != nullptr && bytes <= capacity_) return;
  constexpr size_t kAlignment = 64;
  if (bytes > SIZE_MAX - 2 * kAlignment) throw std::bad_alloc();
  const size_t size = (bytes + kReadable + kAlignment - 1) / kAlignment * kAlignment;
  data_.reset();
  data_.reset(static_cast<char*>(std::aligned_alloc(kAlignment, size)));
  if (data_ == nullptr) throw std::bad_alloc();
  std::memset(data_.get(), 0, size);
  capacity_ = bytes;
}

}  // namespace fusebox::tflite
