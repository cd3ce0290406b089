// SPDX-License-Identifier: Apache-2.0
#include "plugins/tflite_delegate/tensors.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "doors/builtin_data/layouts.h"

namespace fusebox::tflite_delegate {
namespace {

constexpr int32_t kCustomCode = 32;
constexpr size_t kLaterMembers = 64;  // bytes of zeros behind a struct

// By fbx_dtype.
constexpr int kTypes[] = {0, 1, 10, 19, 11, 9, 7, 2, 4, 3, 17, 16, 13, 6, 5, 8, 12, 18, 21, 20, 0, 0, 14, 15};

int TypeOf(fbx_dtype dtype) {
  return dtype >= 0 && static_cast<size_t>(dtype) < std::size(kTypes) ? kTypes[dtype] : 0;
}

// By TfLiteType; 0: the type is not supported.
constexpr size_t kElementBytes[] = {0, 4, 4, 1, 8, 0, 1, 2, 8, 1, 2, 8, 16, 8, 0, 0, 4, 2, 0, 2, 0, 0};

template <class T>
T* NewArray(uint32_t count) {
  auto* out = static_cast<T*>(std::calloc(1, sizeof(T) + count * sizeof(int)));
  if (out == nullptr) throw std::bad_alloc();
  out->size = static_cast<int>(count);
  return out;
}

void SetQuantization(TfLiteTensor& out, const fbx_quant* quant) {
  if (quant == nullptr || quant->kind == FBX_QUANT_NONE) return;
  if (quant->kind == FBX_QUANT_BLOCKWISE) throw Reject{"QUANT", "blockwise quantization is not supported"};
  auto* affine = static_cast<TfLiteAffineQuantization*>(std::calloc(1, sizeof(TfLiteAffineQuantization)));
  if (affine == nullptr) throw std::bad_alloc();
  out.quantization = {kTfLiteAffineQuantization, affine};
  affine->scale = NewArray<TfLiteFloatArray>(quant->count);
  affine->zero_point = NewArray<TfLiteIntArray>(quant->count);
  affine->quantized_dimension = quant->kind == FBX_QUANT_PER_AXIS ? quant->axis : 0;
  for (uint32_t i = 0; i < quant->count; ++i) {
    affine->scale->data[i] = quant->scales[i];
    affine->zero_point->data[i] = quant->zero_points == nullptr ? 0 : static_cast<int>(quant->zero_points[i]);
  }
  if (quant->count == 1) out.params = {affine->scale->data[0], affine->zero_point->data[0]};
}

// The names of each enumeration, in the order of their numbers.
constexpr std::string_view kEnumerations[] = {"NONE RELU RELU_N1_TO_1 RELU6 TANH SIGN_BIT",
                                              "SAME VALID",
                                              "REFLECT SYMMETRIC",
                                              "DEFAULT SHUFFLED4x16INT8",
                                              "FULL BASIC",
                                              "SUM MEAN SQRTN",
                                              "UNKNOWN SPARSE DENSE"};

// No name belongs to two enumerations.
int64_t EnumNumber(std::string_view name) {
  for (std::string_view rest : kEnumerations) {
    for (int64_t number = 0; !rest.empty(); ++number) {
      const size_t end = std::min(rest.find(' '), rest.size());
      if (rest.substr(0, end) == name) return number;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  throw Reject{"ATTR", std::string(name) + " is not known"};
}

int64_t IntegerOf(const Attrs& attrs, const builtin_data::Member& member) {
  switch (attrs.kind(member.option)) {
    case FBX_ATTR_NONE: return member.standard;
    case FBX_ATTR_STR: return EnumNumber(attrs.s(member.option));
    default: return attrs.i64(member.option);
  }
}

template <class T>
void Put(std::vector<std::byte>& out, size_t offset, T value) {
  std::memcpy(out.data() + offset, &value, sizeof value);
}

void PutMember(std::vector<std::byte>& out, const builtin_data::Member& member, const Attrs& attrs) {
  using builtin_data::Kind;
  const std::string_view option = member.option;
  const size_t at = member.offset;
  switch (member.kind) {
    case Kind::kBool: return Put(out, at, attrs.b(option, member.standard != 0));
    case Kind::kFloat: return Put(out, at, static_cast<float>(attrs.f64(option, 0)));
    case Kind::kLong: return Put(out, at, attrs.i64(option, 0));
    case Kind::kType: {
      const auto dtype = attrs.find_dtype(option);
      return Put(out, at, dtype ? TypeOf(*dtype) : static_cast<int>(member.standard));
    }
    case Kind::kPadding:
      return Put(out, at, static_cast<int>(IntegerOf(attrs, member) + builtin_data::kPaddingShift));
    case Kind::kDims: {
      const auto dims = attrs.i64s(option);
      if (dims.size() > builtin_data::kMaxDims) throw Reject{"RANK", "more than 8 dims"};
      for (size_t i = 0; i < dims.size(); ++i) Put(out, at + i * sizeof(int), static_cast<int>(dims[i]));
      return Put(out, at + builtin_data::kMaxDims * sizeof(int), static_cast<int>(dims.size()));
    }
    default: return Put(out, at, static_cast<int>(IntegerOf(attrs, member)));
  }
}

}  // namespace

TfLiteTensor NewTensor(const Tensor& tensor) {
  TfLiteTensor out = {};
  out.type = static_cast<TfLiteType>(TypeOf(tensor.dtype()));
  out.buffer_handle = kTfLiteNullBufferHandle;
  out.allocation_type = tensor.is_const() ? kTfLiteMmapRo : kTfLiteArenaRw;
  if (kElementBytes[out.type] == 0)
    throw Reject{"DTYPE", std::string(tensor.name()) + ": its type is not supported"};
  std::vector<int> dims;
  for (const int64_t dim : tensor.dims()) {
    if (dim > std::numeric_limits<int>::max()) throw Reject{"SHAPE", "a dim is too large"};
    dims.push_back(dim < 0 ? 1 : static_cast<int>(dim));
  }
  out.name = strndup(tensor.name().data(), tensor.name().size());
  try {
    SetQuantization(out, tensor.quant());
    SetDims(out, NewIntArray(dims));
  } catch (...) {
    FreeTensor(out);
    throw;
  }
  if (tensor.is_const()) out.data.raw = tensor.data<char>();
  return out;
}

void SetDims(TfLiteTensor& tensor, TfLiteIntArray* dims) {
  std::free(tensor.dims);
  tensor.dims = dims;
  tensor.bytes = kElementBytes[tensor.type];
  for (int i = 0; i < dims->size; ++i) tensor.bytes *= static_cast<size_t>(dims->data[i]);
}

void FreeTensor(TfLiteTensor& tensor) {
  if (auto* affine = static_cast<TfLiteAffineQuantization*>(tensor.quantization.params)) {
    std::free(affine->scale);
    std::free(affine->zero_point);
    std::free(affine);
  }
  std::free(tensor.dims);
  std::free(const_cast<char*>(tensor.name));
  tensor = {};
}

int32_t CodeOf(const GraphNode& node) {
  const builtin_data::Layout* layout = builtin_data::Find(node.op());
  return layout == nullptr ? kCustomCode : layout->code;
}

std::vector<std::byte> BuiltinData(const GraphNode& node) {
  const builtin_data::Layout* layout = builtin_data::Find(node.op());
  if (layout == nullptr)
    throw Reject{"OP", "TensorFlow Lite's options of " + std::string(node.op()) + " are not known"};
  std::vector<std::byte> out(layout->size + kLaterMembers);
  for (const auto& member : layout->members) PutMember(out, member, node.attrs());
  return out;
}

}  // namespace fusebox::tflite_delegate
