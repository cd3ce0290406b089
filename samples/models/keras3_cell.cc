// SPDX-License-Identifier: Apache-2.0
#include "samples/models/keras3_cell.h"

namespace fusebox::samples {

using CellLayer = Keras3RnnOptions::Layer;

int64_t Keras3Cell::gates() const {
  switch (options_.layer) {
    case CellLayer::kLstm: return 4;
    case CellLayer::kGru: return 3;
    case CellLayer::kSimpleRnn: return 1;
  }
  return 0;
}

Shape Keras3Cell::bias_shape() const {
  const int64_t columns = gates() * options_.units;
  if (options_.layer == CellLayer::kGru && options_.reset_after) return {2, columns};
  return {columns};
}

Ref Keras3Cell::MatMul(GraphBuilder& g, const Ref& a, const Ref& b) const {
  return g.Op("MatMul", {a, b}, {options_.batch, b.shape[1]});
}

Ref Keras3Cell::Act(GraphBuilder& g, const Ref& value) const {
  return g.Op(options_.relu ? "Relu" : "Tanh", {value}, value.shape);
}

Ref Keras3Cell::Gate(GraphBuilder& g, const Ref& sum) const {
  const Shape& shape = sum.shape;
  const auto op = [&](const char* name, const Ref& value, float by) {
    return g.Op(name, {value, g.Const(Float(by), "hard_sigmoid/constant")}, shape);
  };
  switch (options_.gates) {
    case Keras3RnnOptions::Gates::kSigmoid: return g.Op("Sigmoid", {sum}, shape);
    case Keras3RnnOptions::Gates::kHardSigmoid: {
      const Ref line = op("AddV2", op("Mul", sum, 0.2f), 0.5f);
      return op("Maximum", op("Minimum", line, 1), 0);
    }
    case Keras3RnnOptions::Gates::kHardSigmoidOfKeras3:
      return op("RealDiv", g.Op("Relu6", {op("AddV2", sum, 3)}, shape), 6);
  }
  return sum;
}

std::vector<Ref> Keras3Cell::Split(GraphBuilder& g, const Ref& value, int axis, int64_t count) const {
  Shape part = value.shape;
  part.dims().back() /= count;
  return g.Ops("Split", {g.Const(Int(axis), "split/split_dim"), value},
               std::vector<Shape>(static_cast<size_t>(count), part), {Attr("num_split", count)});
}

Ref Keras3Cell::Columns(GraphBuilder& g, const Ref& value, int64_t from, int64_t count) const {
  const auto at = [](int64_t column) { return Ints({0, static_cast<int32_t>(column)}); };
  return g.Op(
      "StridedSlice",
      {value, g.Const(at(from), "strided_slice/stack"), g.Const(at(from + count), "strided_slice/stack_1"),
       g.Const(Ints({1, 1}), "strided_slice/stack_2")},
      {value.shape[0], count}, {Attr("begin_mask", 1), Attr("end_mask", 1)});
}

// value @ matrix + bias, per gate: one product that is split, or one product per part of the matrix.
std::vector<Ref> Keras3Cell::Products(GraphBuilder& g, const Ref& value, const Ref& matrix, const Ref* bias,
                                      int64_t count) const {
  std::vector<Ref> out;
  if (options_.implementation == 2) {
    Ref all = MatMul(g, value, matrix);
    if (bias) all = g.Op("AddV2", {all, *bias}, all.shape);
    return Split(g, all, 1, count);
  }
  std::vector<Ref> biases;
  if (bias) biases = Split(g, *bias, 0, count);
  for (int64_t i = 0; i < count; ++i) {
    Ref product = MatMul(g, value, Columns(g, matrix, i * options_.units, options_.units));
    if (bias) product = g.Op("BiasAdd", {product, biases[static_cast<size_t>(i)]}, product.shape);
    out.push_back(product);
  }
  return out;
}

std::vector<Ref> Keras3Cell::Lstm(GraphBuilder& g, const Ref& x, const std::vector<Ref>& states,
                                  const std::vector<Ref>& weights) const {
  const Shape shape = state_shape();
  std::vector<Ref> sums;
  if (options_.implementation == 2) {
    Ref all = g.Op("AddV2", {MatMul(g, x, weights[0]), MatMul(g, states[0], weights[1])},
                   {options_.batch, 4 * options_.units});
    if (options_.use_bias) all = g.Op("AddV2", {all, weights[2]}, all.shape);
    sums = Split(g, all, 1, 4);
  } else {
    const auto from_x = Products(g, x, weights[0], options_.use_bias ? &weights[2] : nullptr, 4);
    const auto from_h = Products(g, states[0], weights[1], nullptr, 4);
    for (size_t i = 0; i < 4; ++i) sums.push_back(g.Op("AddV2", {from_x[i], from_h[i]}, shape));
  }
  const auto gate = [&](size_t i) { return Gate(g, sums[i]); };
  Ref kept = g.Op("Mul", {gate(1), states[1]}, shape);
  Ref added = g.Op("Mul", {gate(0), Act(g, sums[2])}, shape);
  Ref c = g.Op("AddV2", {kept, added}, shape);
  if (options_.twist == Keras3RnnOptions::Twist::kClip)
    c = g.Op("Minimum", {c, g.Const(Float(3), "clip")}, shape);
  return {g.Op("Mul", {gate(3), Act(g, c)}, shape), c};
}

Ref Keras3Cell::Gru(GraphBuilder& g, const Ref& x, const Ref& h, const std::vector<Ref>& weights) const {
  const Shape shape = state_shape();
  const int64_t units = options_.units;
  Ref input_bias;
  Ref recurrent_bias;
  if (options_.use_bias) input_bias = weights[2];
  if (options_.use_bias && options_.reset_after) {
    const Shape row = {3 * units};
    auto rows = g.Ops("Unpack", {weights[2]}, {row, row}, {Attr("num", 2), Attr("axis", 0)});
    input_bias = rows[0];
    recurrent_bias = rows[1];
  }
  const auto xs = Products(g, x, weights[0], options_.use_bias ? &input_bias : nullptr, 3);
  std::vector<Ref> hs;
  if (options_.reset_after) hs = Products(g, h, weights[1], options_.use_bias ? &recurrent_bias : nullptr, 3);
  else hs = Products(g, h, Columns(g, weights[1], 0, 2 * units), nullptr, 2);
  const auto gate = [&](size_t i) { return Gate(g, g.Op("AddV2", {xs[i], hs[i]}, shape)); };
  const Ref z = gate(0);
  const Ref r = gate(1);
  const Ref reset = options_.reset_after
                        ? g.Op("Mul", {r, hs[2]}, shape)
                        : MatMul(g, g.Op("Mul", {r, h}, shape), Columns(g, weights[1], 2 * units, units));
  const Ref candidate = Act(g, g.Op("AddV2", {xs[2], reset}, shape));
  const Ref rest = g.Op("Sub", {g.Const(Float(1), "sub/x"), z}, shape);
  return g.Op("AddV2", {g.Op("Mul", {z, h}, shape), g.Op("Mul", {rest, candidate}, shape)}, shape);
}

std::vector<Ref> Keras3Cell::Step(GraphBuilder& g, const Ref& x, const std::vector<Ref>& states,
                                  const std::vector<Ref>& weights) const {
  if (options_.layer == CellLayer::kLstm) return Lstm(g, x, states, weights);
  if (options_.layer == CellLayer::kGru) return {Gru(g, x, states[0], weights)};
  Ref sum = MatMul(g, x, weights[0]);
  if (options_.use_bias) sum = g.Op("BiasAdd", {sum, weights[2]}, sum.shape);
  return {Act(g, g.Op("AddV2", {sum, MatMul(g, states[0], weights[1])}, sum.shape))};
}

}  // namespace fusebox::samples
