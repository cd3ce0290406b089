// SPDX-License-Identifier: Apache-2.0
// Values for constants and variables of sample models.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "converter/import/saved_model/graph.pb.h"
#include "host/graph/types.h"
#include "host/graph/values.h"

namespace fusebox::models {

inline const Shape kScalar = Shape(std::vector<int64_t>{});  // Shape{} is an unknown rank

struct TensorValue {
  tf::DataType dtype = tf::DT_INVALID;
  Shape shape;                       // every dimension known
  std::string bytes;                 // row-major, little-endian
  std::vector<std::string> strings;  // instead of bytes for DT_STRING

  tf::Tensor ToProto() const;
};

TensorValue Floats(const Shape& shape, std::span<const float> values);
TensorValue Float(float value);  // a scalar
TensorValue Zeros(const Shape& shape);
TensorValue Ints(std::span<const int32_t> values);  // rank 1
TensorValue Ints(std::initializer_list<int32_t> values);
TensorValue IntsFrom(int32_t first, const Shape& shape);  // first, first + 1, ...
TensorValue Int(int32_t value);                           // a scalar
TensorValue Long(int64_t value);                          // a scalar
TensorValue Strings(std::vector<std::string> values);     // rank 1
TensorValue String(std::string value);                    // a scalar

tf::TensorShape ShapeProto(const Shape& shape);

// Equal numbers on all platforms for equal seeds.
class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}
  float Uniform(float low, float high);
  TensorValue Uniform(const Shape& shape, float low, float high);
  // Glorot-like weights: uniform within +-sqrt(6 / (sum of the last two dimensions)).
  TensorValue Weights(const Shape& shape);

 private:
  SplitMix bits_;
};

}  // namespace fusebox::models
