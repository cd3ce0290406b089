// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "converter/import/keras/layers/operation.h"

namespace fusebox::keras {

using nlohmann::json;

namespace {

// Functions that accept integers; Keras 3 converts integers to floats for all others.
bool KeepsIntegers(std::string_view op) {
  static const std::set<std::string_view> ops = {"Abs",       "Neg",      "Square",     "Sign",  "Floor",
                                                 "ZerosLike", "OnesLike", "LogicalNot", "Invert"};
  return ops.contains(op);
}

}  // namespace

void Unary(LayerCall& c, std::string_view op) {
  ValueId x = c.in();
  if (c.emit().ok() && c.keras() >= 3 && !KeepsIntegers(op)) x = c.emit().Cast(x, DType::kF32);
  c.AddOutput(c.emit().Op(op, {op == "LogicalNot" ? c.emit().Cast(x, DType::kBool) : x}));
}

// Rounds to `decimals` places, which may be negative.
void Rounded(LayerCall& c, std::string_view op) {
  const int64_t places = c.keras() >= 3 ? IntArgument(c, 1, {"decimals"}, 0) : 0;
  if (places == 0) return Unary(c, op);
  if (places < -30 || places > 30) return c.emit().Refuse("its decimals " + std::to_string(places));
  const double unit = std::pow(10.0, static_cast<double>(places));
  const ValueId scaled = c.emit().Op("Mul", {c.emit().Cast(c.in(), DType::kF32), c.emit().F32(unit)});
  c.AddOutput(c.emit().Op("RealDiv", {c.emit().Op(op, {scaled}), c.emit().F32(unit)}));
}

void Named(LayerCall& c, std::string_view activation) {
  c.AddOutput(Activation(c, json(std::string(activation)), c.in()));
}

void Binary(LayerCall& c, std::string_view op) {
  const Given* a = FindArgument(c, 0, {"x", "x1", "a", "value"});
  const Given* b = FindArgument(c, 1, {"y", "x2", "b", "bias", "x"});
  const DType type = CommonType(c, a, b, op);
  const ValueId x = Operand(c, a, type);
  const ValueId y = Operand(c, b, type);
  c.AddOutput(c.emit().Op(op, {x, y}));
}

void Logical(LayerCall& c, std::string_view op) {
  const ValueId x = TensorArgument(c, 0, {"x", "x1"});
  const ValueId y = TensorArgument(c, 1, {"y", "x2"});
  c.AddOutput(c.emit().Op(op, {c.emit().Cast(x, DType::kBool), c.emit().Cast(y, DType::kBool)}));
}

void AddAll(LayerCall& c, std::string_view op) {
  ValueId sum = c.in();
  for (size_t i = 1; i < c.inputs().size(); ++i) sum = c.emit().Op(op, {sum, c.in(i)});
  c.AddOutput(sum);
}

void Where(LayerCall& c, std::string_view op) {
  const Given* a = FindArgument(c, 1, {"x", "x1"});
  const Given* b = FindArgument(c, 2, {"y", "x2"});
  const ValueId condition = c.emit().Cast(TensorArgument(c, 0, {"condition"}), DType::kBool);
  const DType type = CommonType(c, a, b, op);
  const ValueId x = Operand(c, a, type);
  const ValueId y = Operand(c, b, type);
  c.AddOutput(c.emit().Op(op, {condition, x, y}));
}

void Clip(LayerCall& c, std::string_view) {
  const Given* x = FindArgument(c, 0, {"t", "x"});
  const json low = PlainArgument(c, 1, {"clip_value_min", "x_min"});
  const json high = PlainArgument(c, 2, {"clip_value_max", "x_max"});
  if (!low.is_number() || !high.is_number()) return c.emit().Refuse("bounds that are not numbers");
  const Given least{low};
  const Given most{high};
  const bool fraction = low.is_number_float() || high.is_number_float();
  const DType type = fraction ? DType::kF32 : CommonType(c, x, nullptr, "");
  const ValueId raised = c.emit().Op("Maximum", {Operand(c, x, type), Operand(c, &least, type)});
  c.AddOutput(c.emit().Op("Minimum", {raised, Operand(c, &most, type)}));
}

std::vector<int64_t> AllAxes(int rank) {
  std::vector<int64_t> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  return axes;
}

Reduction ReductionOf(LayerCall& c, ValueId x) {
  Reduction out;
  out.axes = IntsArgument(c, 1, {"axis"}).value_or(std::vector<int64_t>{});
  if (out.axes.empty()) out.axes = AllAxes(c.emit().rank(x));
  out.keep = FlagArgument(c, 2, {"keepdims", "keep_dims"});
  out.attrs = MakeAttrs("keep_dims", out.keep);
  return out;
}

ValueId Kept(LayerCall& c, std::string_view op, ValueId x, const Reduction& over) {
  return c.emit().Op(op, {x, c.emit().I32s(over.axes)}, MakeAttrs("keep_dims", true));
}
ValueId Reduced(LayerCall& c, std::string_view op, ValueId x, const Reduction& over) {
  return c.emit().Op(op, {x, c.emit().I32s(over.axes)}, over.attrs);
}

void Reduce(LayerCall& c, std::string_view op) {
  ValueId x = c.in();
  // Keras 3 returns the mean of integers as a float, TensorFlow as an integer.
  if (op == "Mean" && c.keras() >= 3) x = c.emit().Cast(x, DType::kF32);
  if (op == "Any" || op == "All") x = c.emit().Cast(x, DType::kBool);
  const bool counts = op == "Sum" && c.emit().ok() && c.emit().dtype(x) == DType::kBool;
  if (counts) x = c.emit().Cast(x, DType::kI32);
  c.AddOutput(Reduced(c, op, x, ReductionOf(c, x)));
}

void Spread(LayerCall& c, std::string_view op) {
  const ValueId x = c.emit().Cast(c.in(), DType::kF32);
  const Reduction over = ReductionOf(c, x);
  const ValueId apart = c.emit().Op("SquaredDifference", {x, Kept(c, "Mean", x, over)});
  const ValueId variance = Reduced(c, "Mean", apart, over);
  c.AddOutput(op.empty() ? variance : c.emit().Op(op, {variance}));
}

// Subtracts the maximum and adds it at the end, so that exponentials stay finite.
void LogSumExp(LayerCall& c, std::string_view) {
  const ValueId x = c.in();
  const Reduction over = ReductionOf(c, x);
  const ValueId top = Kept(c, "Max", x, over);
  const ValueId raised = c.emit().Op("Exp", {c.emit().Op("Sub", {x, top})});
  const ValueId log = c.emit().Op("Log", {Reduced(c, "Sum", raised, over)});
  c.AddOutput(c.emit().Op("AddV2", {log, over.keep ? top : Reduced(c, "Max", x, over)}));
}

void Norm(LayerCall& c, std::string_view) {
  const ValueId x = c.in();
  const json order = PlainArgument(c, 1, {"ord"});
  std::vector<int64_t> axes = IntsArgument(c, 2, {"axis"}).value_or(std::vector<int64_t>{});
  const Attrs attrs = MakeAttrs("keep_dims", FlagArgument(c, 3, {"keepdims"}));
  const bool plain = order.is_null() || order == "euclidean" || order == "fro";
  const bool vectors = axes.size() == 1;  // orders 1 and 2 of a matrix are different norms
  if (axes.empty())
    for (int i = 0; i < c.emit().rank(x); ++i) axes.push_back(i);
  if (vectors && order == 1)
    return c.AddOutput(c.emit().Op("Sum", {c.emit().Op("Abs", {x}), c.emit().I32s(axes)}, attrs));
  if (!plain && !(vectors && order == 2)) return c.emit().Refuse("its ord " + order.dump().substr(0, 80));
  c.AddOutput(
      c.emit().Op("Sqrt", {c.emit().Op("Sum", {c.emit().Op("Square", {x}), c.emit().I32s(axes)}, attrs)}));
}

// TensorFlow bounds the square from below, Keras 3 the length.
void UnitLength(LayerCall& c, std::string_view) {
  const ValueId x = c.in();
  const bool three = c.keras() >= 3;
  const std::vector<int64_t> axes =
      IntsArgument(c, 1, {"axis", "dim"})
          .value_or(three ? std::vector<int64_t>{-1} : AllAxes(c.emit().rank(x)));
  if (three && IntArgument(c, 2, {"order"}, 2) != 2) return c.emit().Refuse("an order other than 2");
  double least = NumberArgument(c, three ? 3 : 2, {"epsilon"}, three ? 1e-7 : 1e-12);
  if (three) least *= least;
  const ValueId squares =
      c.emit().Op("Sum", {c.emit().Op("Square", {x}), c.emit().I32s(axes)}, MakeAttrs("keep_dims", true));
  c.AddOutput(c.emit().Op(
      "Mul", {x, c.emit().Op("Rsqrt", {c.emit().Op("Maximum", {squares, c.emit().F32(least)})})}));
}

void Extreme(LayerCall& c, std::string_view op) {
  ValueId x = c.in();
  const bool three = c.keras() >= 3;
  auto axes = IntsArgument(c, 1, {"axis", "dimension"});
  if (three && !axes) x = c.emit().Reshape(x, {Extent{}});
  const int64_t axis = IntArgument(c, 1, {"axis", "dimension"}, 0);
  const bool narrow = TextArgument(c, 2, {"output_type"}, "int64") == "int32" || three;
  const DType type = narrow ? DType::kI32 : DType::kI64;
  ValueId found = c.emit().Op(op, {x, c.emit().I32(axis)}, MakeAttrs("output_type", type));
  if (three && FlagArgument(c, 2, {"keepdims"})) {
    if (!axes) return c.emit().Refuse("keepdims without an axis");
    found = c.emit().Op("ExpandDims", {found, c.emit().I32(axis)});
  }
  c.AddOutput(found);
}

void Cumulate(LayerCall& c, std::string_view op) {
  ValueId x = c.in();
  const auto axes = IntsArgument(c, 1, {"axis"});
  if (!axes && c.keras() >= 3) x = c.emit().Reshape(x, {Extent{}});
  const int64_t axis = IntArgument(c, 1, {"axis"}, 0);
  c.AddOutput(c.emit().Op(
      op, {x, c.emit().I32(axis)},
      MakeAttrs("exclusive", FlagArgument(c, 2, {"exclusive"}), "reverse", FlagArgument(c, 3, {"reverse"}))));
}

void TopK(LayerCall& c, std::string_view op) {
  const int64_t k = IntArgument(c, 1, {"k"}, 1);
  c.Keyword("sorted");  // they always are
  for (const ValueId v : c.emit().Ops(op, {c.in(), c.emit().I32(k)}, {}, 2)) c.AddOutput(v);
}

void MatMul(LayerCall& c, std::string_view op) {
  const ValueId a = TensorArgument(c, 0, {"a", "x1"});
  const ValueId b = TensorArgument(c, 1, {"b", "x2"});
  const bool adj_x = FlagArgument(c, 2, {"transpose_a"});
  const bool adj_y = FlagArgument(c, 3, {"transpose_b"});
  const bool vector = c.emit().rank(a) < 2 || c.emit().rank(b) < 2;
  if (vector && c.emit().ok() && !adj_x && !adj_y) return VectorProduct(c, "dot");
  if (vector) return c.emit().Refuse("a transposed vector");
  c.AddOutput(c.emit().Op(op, {a, b}, MakeAttrs("adj_x", adj_x, "adj_y", adj_y)));
}

// A product with one matrix, batched over the other dimensions, is a MatMul.
void Dot(LayerCall& c, std::string_view op) {
  const Given* a = FindArgument(c, 0, {"x1"});
  const Given* b = FindArgument(c, 1, {"x2"});
  const auto rank = [&](const Given* given) {
    const auto* flow = given ? std::get_if<Flow>(&given->value) : nullptr;
    return flow ? c.emit().rank(flow->value) : 0;
  };
  if (rank(a) == 0 || rank(b) == 0) return Binary(c, "Mul");
  if (rank(a) < 2 || rank(b) != 2) return VectorProduct(c, "dot");
  MatMul(c, op);
}

void Einsum(LayerCall& c, std::string_view op) {
  c.Keyword("subscripts");
  if (!c.Has("subscripts")) return c.emit().Refuse("no subscripts in its configuration");
  std::vector<ValueId> operands;
  for (size_t i = 0; i < c.args().size(); ++i) operands.push_back(TensorArgument(c, i, {}));
  c.AddOutput(c.emit().Op(op, operands, MakeAttrs("equation", c.Str("subscripts", ""))));
}

namespace {

// An activation with a parameter, built as the layer of that class.
void AsLayer(LayerCall& c, const char* class_name, json config) {
  c.AddOutput(Activation(c, json{{"class_name", class_name}, {"config", std::move(config)}}, c.in()));
}

}  // namespace

void SoftmaxOver(LayerCall& c, std::string_view op) {
  json axis = PlainArgument(c, 1, {"axis"});
  if (axis.is_null()) axis = -1;
  if (op == "Softmax") return AsLayer(c, "Softmax", {{"axis", axis}});
  const bool last = axis == -1 || axis == c.emit().rank(c.in()) - 1;
  if (!last)
    return c.emit().Refuse("its axis " + axis.dump().substr(0, 80) + "; only the last one is supported");
  c.AddOutput(c.emit().Op(op, {c.in()}));
}

void Elu(LayerCall& c, std::string_view) {
  AsLayer(c, "ELU", {{"alpha", NumberArgument(c, 1, {"alpha"}, 1)}});
}

void LeakyRelu(LayerCall& c, std::string_view) {
  AsLayer(c, "LeakyReLU", {{"alpha", NumberArgument(c, 1, {"alpha", "negative_slope"}, 0.2)}});
}

// Keras 3 approximates by default, TensorFlow only on request.
void Gelu(LayerCall& c, std::string_view) {
  const bool said = !PlainArgument(c, 1, {"approximate"}).is_null();
  const bool approximate = said ? FlagArgument(c, 1, {"approximate"}) : c.keras() >= 3;
  const Type type = c.emit().type(c.in());
  c.AddOutput(c.emit().Node(Op::kGelu, {}, {c.in()}, {type}, MakeAttrs("approximate", approximate))[0]);
}

void Silu(LayerCall& c, std::string_view) {
  const double beta = NumberArgument(c, 1, {"beta"}, 1);
  const ValueId x = c.in();
  const ValueId scaled = beta == 1 ? x : c.emit().Op("Mul", {x, c.emit().F32(beta)});
  c.AddOutput(c.emit().Op("Mul", {x, c.emit().Op("Sigmoid", {scaled})}));
}

}  // namespace fusebox::keras
