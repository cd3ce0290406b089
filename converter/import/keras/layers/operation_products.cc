// SPDX-License-Identifier: Apache-2.0
// Products of vectors and tensors, as Einsum, and diagonals of matrices.
#include <algorithm>

#include "converter/import/keras/layers/operation.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;
using Axes = std::vector<int64_t>;

// Sums over pairs of axes; the result has the other axes of `x`, then the other axes of `y`.
ValueId Contract(LayerCall& c, ValueId x, ValueId y, const Axes& of_x, const Axes& of_y) {
  const int x_rank = c.emit().rank(x);
  const int y_rank = c.emit().rank(y);
  const Axes from_x = AxesOf(c, of_x, x_rank);
  const Axes from_y = AxesOf(c, of_y, y_rank);
  if (c.emit().ok() && (from_x.size() != from_y.size() || x_rank + y_rank > 26))
    c.emit().Reject("its axes differ in number");
  if (!c.emit().ok()) return kNoValue;
  std::string left;
  std::string right;
  std::string result;
  char next = 'a';
  for (int i = 0; i < x_rank; ++i) {
    left += next++;
    if (std::ranges::find(from_x, i) == from_x.end()) result += left.back();
  }
  for (int i = 0; i < y_rank; ++i) {
    const auto at = std::ranges::find(from_y, i) - from_y.begin();
    const bool shared = at < std::ssize(from_y);
    right += shared ? left[static_cast<size_t>(from_x[static_cast<size_t>(at)])] : next++;
    if (!shared) result += right.back();
  }
  return c.emit().Op("Einsum", {x, y}, MakeAttrs("equation", left + "," + right + "->" + result));
}

struct Pair {
  ValueId x, y;
};
Pair Floats(LayerCall& c) {
  const ValueId x = FloatArgument(c, 0, {"x1", "a", "x"});
  return {x, FloatArgument(c, 1, {"x2", "b", "y"})};
}

// Both operands as vectors.
void OfVectors(LayerCall& c, std::string_view function) {
  auto [x, y] = Floats(c);
  x = c.emit().Reshape(x, {Extent{}});
  y = c.emit().Reshape(y, {Extent{}});
  const bool outer = function == "outer";
  c.AddOutput(Contract(c, x, y, outer ? Axes{} : Axes{0}, outer ? Axes{} : Axes{0}));
}

// dot and inner: the last axis of `x` with the last but one or the last of `y`.
void OfLast(LayerCall& c, std::string_view function) {
  const auto [x, y] = Floats(c);
  const int y_rank = c.emit().rank(y);
  if (c.emit().rank(x) == 0 || y_rank == 0) return c.AddOutput(c.emit().Op("Mul", {x, y}));
  const int64_t second = function == "inner" || y_rank == 1 ? y_rank - 1 : y_rank - 2;
  c.AddOutput(Contract(c, x, y, {-1}, {second}));
}

// axes: a number of axes, two axes, or two lists of axes
void TensorDot(LayerCall& c, std::string_view) {
  const auto [x, y] = Floats(c);
  json axes = PlainArgument(c, 2, {"axes"});
  if (axes.is_null()) axes = 2;
  Axes of_x;
  Axes of_y;
  if (axes.is_number_integer()) {
    const auto n = axes.get<int64_t>();
    if (n < 0 || n > c.emit().rank(x)) return c.emit().Refuse("its axes " + axes.dump());
    for (int64_t i = 0; i < n; ++i) {
      of_x.push_back(c.emit().rank(x) - n + i);
      of_y.push_back(i);
    }
  } else {
    if (!axes.is_array() || axes.size() != 2) return c.emit().Refuse("its axes " + axes.dump().substr(0, 80));
    for (const auto& [said, list] : {std::pair(axes[0], &of_x), {axes[1], &of_y}}) {
      for (const json& axis : said.is_array() ? said : json::array({said})) {
        if (!axis.is_number_integer()) return c.emit().Refuse("its axes " + axes.dump().substr(0, 80));
        list->push_back(axis.get<int64_t>());
      }
    }
  }
  c.AddOutput(Contract(c, x, y, of_x, of_y));
}

void MatrixVector(LayerCall& c, std::string_view) {
  auto [x, y] = Floats(c);
  for (const char* flag : {"transpose_a", "adjoint_a"})
    if (FlagArgument(c, kKeywordOnly, {flag})) return c.emit().Refuse(flag);
  y = c.emit().Op("BatchMatMulV2", {x, c.emit().Op("ExpandDims", {y, c.emit().I32(-1)})});
  c.AddOutput(c.emit().Op("Squeeze", {y}, MakeAttrs("squeeze_dims", Axes{-1})));
}

// The vectors have three elements along the last axis.
void Cross(LayerCall& c, std::string_view) {
  const auto [x, y] = Floats(c);
  for (const char* key : {"axis", "axisa", "axisb", "axisc"}) {
    const int64_t axis = IntArgument(c, kKeywordOnly, {key}, -1);
    if (axis != -1 && axis != c.emit().rank(x) - 1) return c.emit().Refuse("an axis other than the last");
  }
  for (const ValueId v : {x, y})
    if (c.emit().dim(v, -1) != 3 && c.emit().ok())
      return c.emit().Refuse("vectors " + ToString(c.emit().type(v)) + " of other than three elements");
  const auto turned = [&](ValueId v, const Axes& to) {
    return c.emit().Op("GatherV2", {v, c.emit().I32s(to), c.emit().I32(c.emit().rank(v) - 1)});
  };
  const ValueId plus = c.emit().Op("Mul", {turned(x, {1, 2, 0}), turned(y, {2, 0, 1})});
  const ValueId minus = c.emit().Op("Mul", {turned(x, {2, 0, 1}), turned(y, {1, 2, 0})});
  c.AddOutput(c.emit().Op("Sub", {plus, minus}));
}

// The diagonal over two axes, which becomes the last dimension; `offset` selects one above the main diagonal.
ValueId DiagonalOf(LayerCall& c) {
  ValueId x = TensorArgument(c, 0, {"x", "input"});
  const int rank = c.emit().rank(x);
  const bool three = c.keras() >= 3;
  const int64_t offset = IntArgument(c, kKeywordOnly, {"offset", "k"}, 0);
  const Axes axes = AxesOf(c,
                           {IntArgument(c, kKeywordOnly, {"axis1"}, three ? 0 : -2),
                            IntArgument(c, kKeywordOnly, {"axis2"}, three ? 1 : -1)},
                           rank);
  if (c.emit().ok() && axes[0] == axes[1]) c.emit().Reject("its axes are equal");
  if (!c.emit().ok()) return kNoValue;
  Axes perm;
  for (int i = 0; i < rank; ++i)
    if (std::ranges::find(axes, i) == axes.end()) perm.push_back(i);
  perm.insert(perm.end(), axes.begin(), axes.end());
  x = c.emit().Transpose(x, perm);
  int64_t rows = c.emit().dim(x, -2);
  int64_t columns = c.emit().dim(x, -1);
  if (offset > 0 && columns >= 0) columns -= offset;
  if (offset < 0 && rows >= 0) rows += offset;
  if (offset != 0 && (rows < 1 || columns < 1)) c.emit().Refuse("its offset " + std::to_string(offset));
  if (offset != 0) x = c.emit().Slice(x, offset > 0 ? -1 : -2, std::abs(offset), 0);
  // The largest square part has the diagonal.
  const int64_t least = std::min(rows, columns);
  if (least < 0 && c.emit().ok())
    c.emit().Refuse("a matrix " + ToString(c.emit().type(x)) + " of unknown size");
  if (rows > least) x = c.emit().Slice(x, -2, 0, least - rows);
  if (columns > least) x = c.emit().Slice(x, -1, 0, least - columns);
  return c.emit().Op("MatrixDiagPart", {x});
}

void Diagonal(LayerCall& c, std::string_view) { c.AddOutput(DiagonalOf(c)); }

void Trace(LayerCall& c, std::string_view) {
  c.AddOutput(c.emit().Op("Sum", {DiagonalOf(c), c.emit().I32s({-1})}));
}

// Matrices with these diagonals; in Keras 3, of a matrix its diagonal.
void Diag(LayerCall& c, std::string_view op) {
  const ValueId x = TensorArgument(c, 0, {"diagonal", "x"});
  if (c.keras() >= 3 && c.emit().rank(x) == 2) return Diagonal(c, op);
  if (IntArgument(c, kKeywordOnly, {"k"}, 0) != 0) return c.emit().Refuse("its k");
  c.AddOutput(c.emit().Op(op, {x}));
}

void SetDiag(LayerCall& c, std::string_view op) {
  if (IntArgument(c, kKeywordOnly, {"k"}, 0) != 0) return c.emit().Refuse("its k");
  const ValueId x = TensorArgument(c, 0, {"input"});
  if (!c.emit().ok()) return;
  c.AddOutput(c.emit().Op(op, {x, Operand(c, FindArgument(c, 1, {"diagonal"}), c.emit().dtype(x))}));
}

}  // namespace

void VectorProduct(LayerCall& c, std::string_view op) { OfLast(c, op); }

std::span<const NamedOperation> ProductOperations() {
  static constexpr NamedOperation kTable[] = {
      {"outer", {"outer", OfVectors}},
      {"vdot", {"", OfVectors}},
      {"inner", {"inner", OfLast}},
      {"tensordot", {"", TensorDot}},
      {"matvec", {"", MatrixVector}},
      {"cross", {"", Cross}},
      {"diagonal", {"", Diagonal}},
      {"diagpart", {"", Diagonal}},
      {"trace", {"", Trace}},
      {"diag", {"MatrixDiag", Diag}},
      {"setdiag", {"MatrixSetDiag", SetDiag}},
  };
  return kTable;
}

}  // namespace fusebox::keras
