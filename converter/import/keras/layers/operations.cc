// SPDX-License-Identifier: Apache-2.0
// TensorFlow functions that were called on a layer's result: TFOpLambda and SlicingOpLambda of Keras 2, and the operations of
// Keras 3.
#include <algorithm>
#include <map>
#include <set>

#include "converter/import/keras/layers/operation.h"

namespace fusebox::keras {

using nlohmann::json;

const Given* FindArgument(LayerCall& c, size_t position, Names names) {
  if (position < c.args().size()) return &c.args()[position];
  for (const char* name : names)
    if (const Given* given = c.Keyword(name)) return given;
  return nullptr;
}

namespace {

// Lists of several spellings are plain ones. What is computed is refused: it must not be taken for an argument that is not there.
json Plain(LayerCall& c, const Given& given) {
  if (const auto* plain = std::get_if<json>(&given.value)) return *plain;
  json out = json::array();
  if (const auto* list = std::get_if<std::vector<Given>>(&given.value)) {
    for (const Given& item : *list) out.push_back(Plain(c, item));
  } else {
    c.e().Refuse("an argument that depends on the input");
  }
  return out;
}

}  // namespace

json PlainArgument(LayerCall& c, size_t position, Names names) {
  json out;
  if (const Given* given = FindArgument(c, position, names)) {
    out = Plain(c, *given);
  } else {
    for (const char* name : names)
      if (out.is_null() && c.Has(name)) out = c.config().at(name);
  }
  const bool tuple = out.is_object() && out.value("class_name", json()) == "__tuple__";
  return tuple ? out.value("items", json()) : out;
}

std::optional<std::vector<int64_t>> IntsArgument(LayerCall& c, size_t position, Names names) {
  json plain = PlainArgument(c, position, names);
  if (plain.is_null()) return std::nullopt;
  if (plain.is_number_integer()) plain = json::array({plain});
  const auto is_number = [](const json& item) { return item.is_number_integer(); };
  if (plain.is_array() && std::ranges::all_of(plain, is_number)) return plain.get<std::vector<int64_t>>();
  c.e().Refuse(std::string("its ") + *names.begin() + " " + plain.dump().substr(0, 80));
  return std::nullopt;
}

bool FlagArgument(LayerCall& c, size_t position, Names names) {
  const json plain = PlainArgument(c, position, names);
  return plain.is_boolean() && plain.get<bool>();
}

ValueId TensorArgument(LayerCall& c, size_t position, Names names) {
  const Given* given = FindArgument(c, position, names);
  const auto* flow = given ? std::get_if<Flow>(&given->value) : nullptr;
  if (!flow) c.e().Refuse("what it is called with is no tensor");
  return flow ? flow->value : kNoValue;
}

namespace {

DType DTypeOf(const Given* given, LayerCall& c) {
  const auto* flow = given ? std::get_if<Flow>(&given->value) : nullptr;
  return flow ? c.e().dtype(flow->value) : DType::kNone;
}

bool IsFraction(const Given* given) {
  const auto* plain = given ? std::get_if<json>(&given->value) : nullptr;
  return plain && plain->is_number_float();
}

// The type that both operands are computed in: whole numbers that are divided, or that meet fractions, become floats.
DType Common(LayerCall& c, const Given* a, const Given* b, std::string_view op) {
  const DType x = DTypeOf(a, c), y = DTypeOf(b, c), first = x == DType::kNone ? y : x;
  const bool floats =
      op == "RealDiv" || IsFraction(a) || IsFraction(b) || x == DType::kF32 || y == DType::kF32;
  return floats ? DType::kF32 : first;
}

// A tensor, or a number, in that type.
ValueId Operand(LayerCall& c, const Given* given, DType type) {
  if (given) {
    if (const auto* flow = std::get_if<Flow>(&given->value)) return c.e().Cast(flow->value, type);
    const auto* plain = std::get_if<json>(&given->value);
    if (plain && plain->is_number()) return c.e().Scalar(type, plain->get<double>());
  }
  c.e().Refuse("an operand that is neither a tensor nor a number");
  return kNoValue;
}

void Binary(LayerCall& c, std::string_view op) {
  const Given *a = FindArgument(c, 0, {"x", "x1", "a"}), *b = FindArgument(c, 1, {"y", "x2", "b"});
  const DType type = Common(c, a, b, op);
  const ValueId x = Operand(c, a, type), y = Operand(c, b, type);
  c.Give(c.e().Op(op, {x, y}));
}

void Logical(LayerCall& c, std::string_view op) {
  const ValueId x = TensorArgument(c, 0, {"x", "x1"}), y = TensorArgument(c, 1, {"y", "x2"});
  c.Give(c.e().Op(op, {c.e().Cast(x, DType::kBool), c.e().Cast(y, DType::kBool)}));
}

void Where(LayerCall& c, std::string_view op) {
  const Given *a = FindArgument(c, 1, {"x", "x1"}), *b = FindArgument(c, 2, {"y", "x2"});
  const ValueId condition = c.e().Cast(TensorArgument(c, 0, {"condition"}), DType::kBool);
  const DType type = Common(c, a, b, op);
  const ValueId x = Operand(c, a, type), y = Operand(c, b, type);
  c.Give(c.e().Op(op, {condition, x, y}));
}

void MatMul(LayerCall& c, std::string_view op) {
  const ValueId a = TensorArgument(c, 0, {"a", "x1"}), b = TensorArgument(c, 1, {"b", "x2"});
  const bool adj_x = FlagArgument(c, 2, {"transpose_a"}), adj_y = FlagArgument(c, 3, {"transpose_b"});
  if (c.e().rank(a) < 2 || c.e().rank(b) < 2) return c.e().Refuse("a product of a vector");
  c.Give(c.e().Op(op, {a, b}, MakeAttrs("adj_x", adj_x, "adj_y", adj_y)));
}

void Reduce(LayerCall& c, std::string_view op) {
  ValueId x = c.in();
  // Keras 3 gives the mean of whole numbers as a fraction, TensorFlow as one of them.
  if (op == "Mean" && c.keras() >= 3) x = c.e().Cast(x, DType::kF32);
  if (op == "Any" || op == "All") x = c.e().Cast(x, DType::kBool);
  std::vector<int64_t> axes = IntsArgument(c, 1, {"axis"}).value_or(std::vector<int64_t>{});
  if (axes.empty())
    for (int i = 0; i < c.e().rank(x); ++i) axes.push_back(i);
  const bool keep = FlagArgument(c, 2, {"keepdims", "keep_dims"});
  c.Give(c.e().Op(op, {x, c.e().I32s(axes)}, MakeAttrs("keep_dims", keep)));
}

// Functions of nothing but a tensor: what else they are given would change the result.
bool HasOnlyATensor(LayerCall& c) {
  static const std::set<std::string> known = {"x", "input", "inputs", "features", "logits", "tensor", "name"};
  for (const auto& [name, given] : c.keywords()) {
    const auto* plain = std::get_if<json>(&given.value);
    if (known.contains(name) || (plain && plain->is_null())) continue;
    c.e().Refuse("the argument " + name + " of it");
    return false;
  }
  return true;
}

void Unary(LayerCall& c, std::string_view op) {
  if (HasOnlyATensor(c)) c.Give(c.e().Op(op, {c.in()}));
}
void Named(LayerCall& c, std::string_view activation) {
  if (HasOnlyATensor(c)) c.Give(Activation(c, json(std::string(activation)), c.in()));
}

void Clip(LayerCall& c, std::string_view) {
  const Given* x = FindArgument(c, 0, {"t", "x"});
  const json low = PlainArgument(c, 1, {"clip_value_min", "x_min"}),
             high = PlainArgument(c, 2, {"clip_value_max", "x_max"});
  if (!low.is_number() || !high.is_number()) return c.e().Refuse("bounds that are not numbers");
  const Given least{low}, most{high};
  const DType type = low.is_number_float() || high.is_number_float() ? DType::kF32 : DTypeOf(x, c);
  const ValueId raised = c.e().Op("Maximum", {Operand(c, x, type), Operand(c, &least, type)});
  c.Give(c.e().Op("Minimum", {raised, Operand(c, &most, type)}));
}

// An activation with a number of its own, as the layer of that class.
void AsLayer(LayerCall& c, const char* class_name, Names names) {
  json config = json::object();
  if (const json number = PlainArgument(c, 1, names); !number.is_null()) config[*names.begin()] = number;
  c.Give(Activation(c, json{{"class_name", class_name}, {"config", config}}, c.in()));
}
void Softmax(LayerCall& c, std::string_view) { AsLayer(c, "Softmax", {"axis"}); }
void Elu(LayerCall& c, std::string_view) { AsLayer(c, "ELU", {"alpha"}); }
void LeakyRelu(LayerCall& c, std::string_view) {
  json slope = PlainArgument(c, 1, {"alpha", "negative_slope"});
  if (slope.is_null()) slope = 0.2;
  c.Give(Activation(c, json{{"class_name", "LeakyReLU"}, {"config", {{"alpha", slope}}}}, c.in()));
}

// By the last part of a function's name, and by the class names of Keras 3.
const std::map<std::string_view, OperationRow>& Rows() {
  static const auto* const rows = new std::map<std::string_view, OperationRow>{
      {"add", {"AddV2", Binary}},
      {"Add", {"AddV2", Binary}},
      {"subtract", {"Sub", Binary}},
      {"Subtract", {"Sub", Binary}},
      {"multiply", {"Mul", Binary}},
      {"Multiply", {"Mul", Binary}},
      {"truediv", {"RealDiv", Binary}},
      {"divide", {"RealDiv", Binary}},
      {"TrueDivide", {"RealDiv", Binary}},
      {"Divide", {"RealDiv", Binary}},
      {"maximum", {"Maximum", Binary}},
      {"Maximum", {"Maximum", Binary}},
      {"minimum", {"Minimum", Binary}},
      {"Minimum", {"Minimum", Binary}},
      {"clip_by_value", {"", Clip}},
      {"Clip", {"", Clip}},
      {"pow", {"Pow", Binary}},
      {"Power", {"Pow", Binary}},
      {"not_equal", {"NotEqual", Binary}},
      {"NotEqual", {"NotEqual", Binary}},
      {"equal", {"Equal", Binary}},
      {"Equal", {"Equal", Binary}},
      {"greater", {"Greater", Binary}},
      {"Greater", {"Greater", Binary}},
      {"greater_equal", {"GreaterEqual", Binary}},
      {"GreaterEqual", {"GreaterEqual", Binary}},
      {"less", {"Less", Binary}},
      {"Less", {"Less", Binary}},
      {"less_equal", {"LessEqual", Binary}},
      {"LessEqual", {"LessEqual", Binary}},
      {"logical_and", {"LogicalAnd", Logical}},
      {"LogicalAnd", {"LogicalAnd", Logical}},
      {"logical_or", {"LogicalOr", Logical}},
      {"LogicalOr", {"LogicalOr", Logical}},
      {"logical_not", {"LogicalNot", Unary}},
      {"LogicalNot", {"LogicalNot", Unary}},
      {"Where", {"SelectV2", Where}},
      {"where", {"SelectV2", Where}},
      {"matmul", {"BatchMatMulV2", MatMul}},
      {"Matmul", {"BatchMatMulV2", MatMul}},
      {"exp", {"Exp", Unary}},
      {"Exp", {"Exp", Unary}},
      {"log", {"Log", Unary}},
      {"Log", {"Log", Unary}},
      {"sqrt", {"Sqrt", Unary}},
      {"Sqrt", {"Sqrt", Unary}},
      {"rsqrt", {"Rsqrt", Unary}},
      {"Rsqrt", {"Rsqrt", Unary}},
      {"square", {"Square", Unary}},
      {"Square", {"Square", Unary}},
      {"abs", {"Abs", Unary}},
      {"Absolute", {"Abs", Unary}},
      {"negative", {"Neg", Unary}},
      {"Negative", {"Neg", Unary}},
      {"sin", {"Sin", Unary}},
      {"Sin", {"Sin", Unary}},
      {"cos", {"Cos", Unary}},
      {"Cos", {"Cos", Unary}},
      {"relu", {"relu", Named}},
      {"Relu", {"relu", Named}},
      {"relu6", {"relu6", Named}},
      {"Relu6", {"relu6", Named}},
      {"sigmoid", {"sigmoid", Named}},
      {"Sigmoid", {"sigmoid", Named}},
      {"tanh", {"tanh", Named}},
      {"Tanh", {"tanh", Named}},
      {"softmax", {"", Softmax}},
      {"Softmax", {"", Softmax}},
      {"softplus", {"softplus", Named}},
      {"Softplus", {"softplus", Named}},
      {"silu", {"silu", Named}},
      {"Silu", {"silu", Named}},
      {"elu", {"", Elu}},
      {"Elu", {"", Elu}},
      {"leaky_relu", {"", LeakyRelu}},
      {"LeakyRelu", {"", LeakyRelu}},
      {"reduce_mean", {"Mean", Reduce}},
      {"Mean", {"Mean", Reduce}},
      {"reduce_sum", {"Sum", Reduce}},
      {"Sum", {"Sum", Reduce}},
      {"reduce_max", {"Max", Reduce}},
      {"Max", {"Max", Reduce}},
      {"reduce_min", {"Min", Reduce}},
      {"Min", {"Min", Reduce}},
      {"reduce_any", {"Any", Reduce}},
      {"Any", {"Any", Reduce}},
      {"reduce_all", {"All", Reduce}},
      {"All", {"All", Reduce}},
      {"expand_dims", {"", ExpandDims}},
      {"ExpandDims", {"", ExpandDims}},
      {"squeeze", {"", Squeeze}},
      {"Squeeze", {"", Squeeze}},
      {"reshape", {"", Reshape}},
      {"Reshape", {"", Reshape}},
      {"transpose", {"", TransposeAxes}},
      {"Transpose", {"", TransposeAxes}},
      {"concat", {"", Concat}},
      {"Concatenate", {"", Concat}},
      {"cast", {"", CastTo}},
      {"Cast", {"", CastTo}},
      {"GetItem", {"", GetItem}},
  };
  return *rows;
}

void Apply(LayerCall& c, std::string_view name) {
  const auto it = Rows().find(name);
  if (it == Rows().end()) return c.e().Refuse("the function " + std::string(name) + " is not known");
  it->second.build(c, it->second.op);
}

// "math.add", "__operators__.add", "nn.relu"
void OpLambda(LayerCall& c) {
  const std::string function = c.Str("function", "");
  Apply(c, std::string_view(function).substr(function.rfind('.') + 1));
}

void SlicingOpLambda(LayerCall& c) { GetItem(c, ""); }

}  // namespace

void BuildOperation(LayerCall& call) { Apply(call, call.layer().class_name); }

std::span<const LayerRow> OperationLayers() {
  static constexpr LayerRow kTable[] = {
      {"TFOpLambda", OpLambda, nullptr, MaskRule::kStop},
      {"SlicingOpLambda", SlicingOpLambda, nullptr, MaskRule::kStop},
  };
  return kTable;
}

}  // namespace fusebox::keras
