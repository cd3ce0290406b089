// SPDX-License-Identifier: Apache-2.0
// One step of a recurrent layer as one op of TensorFlow 1.
#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

// [x, h] of f32 and weights for as many features.
Status CheckCell(const Translation& t, size_t x, size_t h, size_t weights) {
  int64_t rows = 0;
  for (const size_t i : {x, h, weights}) {
    const Type& type = t.in_type(i);
    if (type.dtype != DType::kF32 || type.shape.rank() != 2)  // tried again when it is known
      return Unsupported("operand " + std::to_string(i) + " is " + ToString(type) +
                         ", expected a matrix of f32");
    if (i != weights) rows = rows < 0 || type.shape[1] < 0 ? -1 : rows + type.shape[1];
  }
  const int64_t wanted = t.in_type(weights).shape[0];
  if (rows < 0 || wanted < 0 || rows == wanted) return {};
  return Invalid("its weights are for " + std::to_string(wanted) + " features, it has " +
                 std::to_string(rows));
}

ValueId GateSums(Translation& t, ValueId x, ValueId h, ValueId weights, ValueId bias) {
  const ValueId both = t.Value(Op::kConcatenation, {x, h}, MakeAttrs("axis", 1));
  const ValueId product = t.Value(Op::kFullyConnected, {both, t.Transpose(weights, {1, 0}), kNoValue});
  return t.Value(Op::kAdd, {product, bias});
}

ValueIds GateParts(Translation& t, ValueId v, int parts) {
  return t.Emit(Op::kSplit, {t.I32Scalar(1), v}, MakeAttrs("num_splits", parts), static_cast<size_t>(parts))
      .results;
}

// x, c, h, weights, three peepholes, bias -> i, c, f, o, tanh(i's candidate), tanh(c), h.
Status LstmBlockCell(Translation& t) {
  FUSEBOX_TRY(t.Arity(8));
  FUSEBOX_TRY(CheckCell(t, 0, 2, 3));
  if (t.attrs().b("use_peephole", false)) return Unsupported("its peepholes");
  if (t.attrs().f64("cell_clip", 3) > 0)
    return Unsupported("it clips its cell (cell_clip " + std::to_string(t.attrs().f64("cell_clip", 3)) + ")");
  const ValueId c = t.in(1);
  const ValueIds gates = GateParts(t, GateSums(t, t.in(0), t.in(2), t.in(3), t.in(7)), 4);  // i, g, f, o
  const ValueId bias = t.Scalar(DType::kF32, t.attrs().f64("forget_bias", 1));
  const ValueId i = t.Value(Op::kLogistic, {gates[0]});
  const ValueId g = t.Value(Op::kTanh, {gates[1]});
  const ValueId f = t.Value(Op::kLogistic, {t.Value(Op::kAdd, {gates[2], bias})});
  const ValueId o = t.Value(Op::kLogistic, {gates[3]});
  const ValueId next = t.Value(Op::kAdd, {t.Value(Op::kMul, {f, c}), t.Value(Op::kMul, {i, g})});
  const ValueId squashed = t.Value(Op::kTanh, {next});
  const ValueId h = t.Value(Op::kMul, {squashed, o});
  const ValueId results[] = {i, next, f, o, g, squashed, h};
  for (size_t k = 0; k < std::size(results); ++k) t.SetResult(k, results[k]);
  return {};
}

// x, h, weights of r and u, weights of the candidate, their biases -> r, u, c, h.
Status GruBlockCell(Translation& t) {
  FUSEBOX_TRY(t.Arity(6));
  FUSEBOX_TRY(CheckCell(t, 0, 1, 2));
  FUSEBOX_TRY(CheckCell(t, 0, 1, 3));
  const ValueId x = t.in(0);
  const ValueId h = t.in(1);
  const ValueIds gates = GateParts(t, t.Value(Op::kLogistic, {GateSums(t, x, h, t.in(2), t.in(4))}), 2);
  const ValueId r = gates[0];
  const ValueId u = gates[1];
  const ValueId c = t.Value(Op::kTanh, {GateSums(t, x, t.Value(Op::kMul, {r, h}), t.in(3), t.in(5))});
  const ValueId rest = t.Value(Op::kSub, {t.Scalar(DType::kF32, 1), u});
  const ValueId next = t.Value(Op::kAdd, {t.Value(Op::kMul, {u, h}), t.Value(Op::kMul, {rest, c})});
  const ValueId results[] = {r, u, c, next};
  for (size_t k = 0; k < std::size(results); ++k) t.SetResult(k, results[k]);
  return {};
}

}  // namespace

std::span<const TranslateRow> CellTable() {
  static constexpr TranslateRow kTable[] = {
      {"LSTMBlockCell", LstmBlockCell},
      {"GRUBlockCell", GruBlockCell},
  };
  return kTable;
}

}  // namespace fusebox::converter
