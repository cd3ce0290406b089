// SPDX-License-Identifier: Apache-2.0
#include "models/saved_model/tensor_value.h"

#include <cmath>
#include <numeric>

namespace fusebox::models {
namespace {

template <class T>
TensorValue Pack(tf::DataType dtype, const Shape& shape, std::span<const T> values) {
  TensorValue value{dtype, shape, {}, {}};
  value.bytes.assign(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return value;
}

int64_t CountOf(const Shape& shape) {
  int64_t count = 1;
  for (int64_t dim : shape.dims()) count *= dim;
  return count;
}

}  // namespace

tf::TensorShape ShapeProto(const Shape& shape) {
  tf::TensorShape proto;
  if (!shape.ranked()) proto.set_unknown_rank(true);
  for (int64_t dim : shape.dims()) proto.add_dim()->set_size(dim);
  return proto;
}

// Scalars are in the typed lists, tensors are raw content, as in TensorFlow.
tf::Tensor TensorValue::ToProto() const {
  tf::Tensor proto;
  proto.set_dtype(dtype);
  *proto.mutable_tensor_shape() = ShapeProto(shape);
  for (const std::string& text : strings) proto.add_string_val(text);
  if (dtype == tf::DT_FLOAT && shape.rank() == 0) {
    proto.add_float_val(*reinterpret_cast<const float*>(bytes.data()));
  } else if (dtype == tf::DT_INT32 && shape.rank() == 0) {
    proto.add_int_val(*reinterpret_cast<const int32_t*>(bytes.data()));
  } else {
    proto.set_tensor_content(bytes);
  }
  return proto;
}

TensorValue Floats(const Shape& shape, std::span<const float> values) {
  return Pack(tf::DT_FLOAT, shape, values);
}
TensorValue Float(float value) { return Floats(kScalar, std::span(&value, 1)); }
TensorValue Zeros(const Shape& shape) { return Floats(shape, std::vector<float>(CountOf(shape))); }
TensorValue Int(int32_t value) { return Pack(tf::DT_INT32, kScalar, std::span<const int32_t>(&value, 1)); }
TensorValue Long(int64_t value) { return Pack(tf::DT_INT64, kScalar, std::span<const int64_t>(&value, 1)); }

TensorValue Ints(std::span<const int32_t> values) {
  return Pack(tf::DT_INT32, {static_cast<int64_t>(values.size())}, values);
}

TensorValue Ints(std::initializer_list<int32_t> values) {
  return Ints(std::span<const int32_t>(values.begin(), values.size()));
}

TensorValue IntsFrom(int32_t first, const Shape& shape) {
  std::vector<int32_t> values(static_cast<size_t>(CountOf(shape)));
  std::iota(values.begin(), values.end(), first);
  return Pack(tf::DT_INT32, shape, std::span<const int32_t>(values));
}

TensorValue Strings(std::vector<std::string> values) {
  return {tf::DT_STRING, {static_cast<int64_t>(values.size())}, {}, std::move(values)};
}

TensorValue String(std::string value) { return {tf::DT_STRING, kScalar, {}, {std::move(value)}}; }

float Random::Uniform(float low, float high) {
  return low + (high - low) * (static_cast<float>(bits_.Next() >> 40) * 0x1p-24f);
}

TensorValue Random::Uniform(const Shape& shape, float low, float high) {
  std::vector<float> values(CountOf(shape));
  for (float& value : values) value = Uniform(low, high);
  return Floats(shape, values);
}

TensorValue Random::Weights(const Shape& shape) {
  float fan = 0;
  for (int i = 0; i < 2 && i < shape.rank(); ++i) fan += static_cast<float>(shape[shape.rank() - 1 - i]);
  float limit = std::sqrt(6 / fan);
  return Uniform(shape, -limit, limit);
}

}  // namespace fusebox::models
