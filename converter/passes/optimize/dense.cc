// SPDX-License-Identifier: Apache-2.0
// Products with constant matrices as FULLY_CONNECTED, without the reshapes around it that it does not need.
#include <algorithm>

#include "converter/passes/optimize/edit.h"

namespace fusebox::converter::optimize {
namespace {

int UnknownDims(const Shape& shape) {
  return static_cast<int>(std::ranges::count_if(shape.dims(), [](int64_t d) { return d < 0; }));
}

Attrs KeepDims() { return MakeAttrs("keep_num_dims", true); }

// x [.., k] times a constant [k, n], or [1, .., k, n]: the same for every matrix of x.
bool FromBatchMatmul(Edit& e, Node& node) {
  const ValueId x = node.operands[0];
  const ValueId w = node.operands[1];
  if (!e.is_f32(x) || !e.is_const(w) || !e.is_f32(w) || e.is_const(x) || node.attrs.b("adj_x", false))
    return false;
  const Shape shape = e.shape(w);
  if (shape.rank() < 2 || e.rank(x) < shape.rank() || e.rank(x) < 2) return false;
  const size_t rank = shape.dims().size();
  for (size_t d = 0; d + 2 < rank; ++d)
    if (shape[d] != 1) return false;
  ValueId matrix = w;
  if (rank > 2) matrix = e.Reshape(w, {shape[rank - 2], shape[rank - 1]});
  if (!node.attrs.b("adj_y", false)) matrix = e.Transpose(matrix, {1, 0});
  e.Replace(node, e.Value(Op::kFullyConnected, {x, matrix, kNoValue}, KeepDims()));
  return true;
}

// x [.., k] (-> [rows, k]) -> FULLY_CONNECTED -> [.., n], where the dims before the last are x's own.
bool DropPair(Edit& e, Node& node) {
  Node* const dense = e.producer(node.operands[0], Op::kFullyConnected);
  if (!dense || !e.read_once(node.operands[0]) || dense->attrs.b("keep_num_dims", false)) return false;
  Node* const flat = e.producer(dense->operands[0], Op::kReshape);
  const ValueId x = flat ? flat->operands[0] : dense->operands[0];
  const Shape& in = e.shape(x);
  const Shape& out = e.shape(node.results[0]);
  const Shape& w = e.shape(dense->operands[1]);
  if (in.rank() < 2 || in.rank() != out.rank() || w.rank() != 2 || UnknownDims(in) > 1) return false;
  if (in.dims().back() != w[1] || out.dims().back() != w[0] || w[0] < 1 || w[1] < 1) return false;
  if (!std::equal(in.dims().begin(), in.dims().end() - 1, out.dims().begin())) return false;
  Attrs attrs = dense->attrs;
  attrs.Set("keep_num_dims", true);
  ValueIds operands = dense->operands;
  operands[0] = x;
  e.Replace(node, e.Value(Op::kFullyConnected, std::move(operands), std::move(attrs)));
  return true;
}

// Drops a reshape to rows before FULLY_CONNECTED, which reads the elements of its input row by row anyway.
bool DropFlatten(Edit& e, Node& node) {
  Node* const flat = e.producer(node.operands[0], Op::kReshape);
  if (!flat || node.attrs.b("keep_num_dims", false) || !e.is_f32(node.operands[0])) return false;
  const ValueId x = flat->operands[0];
  const Shape& from = e.shape(x);
  const Shape& to = e.shape(node.operands[0]);
  const Shape& w = e.shape(node.operands[1]);
  if (!from.is_static() || to.rank() != 2 || w.rank() != 2 || to[1] != w[1] || from.rank() < 1) return false;
  e.SetOperand(node, 0, x);
  return true;
}

}  // namespace

std::span<const Rule> DenseRules() {
  static constexpr Rule kRules[] = {
      {Op::kBatchMatmul, FromBatchMatmul},
      {Op::kReshape, DropPair},
      {Op::kFullyConnected, DropFlatten},
  };
  return kRules;
}

}  // namespace fusebox::converter::optimize
