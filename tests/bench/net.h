// SPDX-License-Identifier: Apache-2.0
// Builds benchmark models: each layer function adds nodes and returns its result. Activations are f32.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/graph/graph.h"

namespace fusebox::bench {

using Dims = std::vector<int64_t>;

// A constant that functions may share.
struct Weights {
  Type type;
  Buffer data;
  std::shared_ptr<const Quant> quant;
};

// A reproducible sequence, roughly uniform in [-1, 1) / sqrt(fan_in).
class WeightSource {
 public:
  Weights Float(Dims dims, int64_t fan_in);
  // One scale per index of dimension 0.
  Weights Int8(Dims dims, int64_t fan_in);
  Weights Int4(Dims dims, int64_t fan_in);

 private:
  uint64_t Next();
  uint64_t state_ = 0x9e3779b97f4a7c15;
};

class Net {
 public:
  explicit Net(Function& function) : f_(function) {}
  Dims dims(ValueId v) const { return f_.value(v).type.shape.dims(); }

  ValueId Input(DType dtype, Dims dims, std::string name) {
    return f_.AddInput({dtype, dims}, std::move(name));
  }
  ValueId Constant(const Weights& weights);
  ValueId Integers(const std::vector<int32_t>& values);
  ValueId Scalar(float value) { return f_.AddConst<float>(DType::kF32, Shape::Scalar(), {value}); }

  ValueId Node(Op op, std::vector<ValueId> operands, Dims result, Attrs attrs = {});
  ValueId Add(ValueId a, ValueId b) { return Node(Op::kAdd, {a, b}, dims(a)); }
  ValueId Multiply(ValueId a, ValueId b) { return Node(Op::kMul, {a, b}, dims(a)); }
  ValueId Reshape(ValueId x, Dims to);
  ValueId Transpose(ValueId x, const std::vector<int32_t>& order);
  ValueId Concat(std::vector<ValueId> parts, int axis);
  // weights [out, in] on the last dimension of x; no bias.
  ValueId FullyConnected(ValueId x, const Weights& weights, bool relu = false);
  // weights [out, kh, kw, in], bias [out], SAME, RELU.
  ValueId Conv(ValueId x, const Weights& weights, const Weights& bias, int stride = 1);
  ValueId MatMul(ValueId a, ValueId b, bool transpose_b);

 private:
  Function& f_;
};

}  // namespace fusebox::bench
