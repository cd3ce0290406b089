// SPDX-License-Identifier: Apache-2.0
// TensorFlow functions that were called on a layer's result: TFOpLambda and SlicingOpLambda of Keras 2, and the operations of
// Keras 3.
#include <map>

#include "converter/import/keras/layer_call.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;

// Arguments by position or by any of their names.
const Given* Find(LayerCall& c, size_t position, std::initializer_list<const char*> names) {
  if (position < c.args().size()) return &c.args()[position];
  for (const char* name : names)
    if (const Given* given = c.Keyword(name)) return given;
  return nullptr;
}

// A tensor, or a number of the kind of the tensor beside it.
ValueId Operand(LayerCall& c, const Given* given, DType beside) {
  if (given) {
    if (const auto* flow = std::get_if<Flow>(&given->value)) return flow->value;
    const auto* plain = std::get_if<json>(&given->value);
    if (plain && plain->is_number()) return c.e().Scalar(beside, plain->get<double>());
  }
  c.e().Refuse("an operand that is neither a tensor nor a number");
  return kNoValue;
}

DType DTypeOf(const Given* given, LayerCall& c) {
  const auto* flow = given ? std::get_if<Flow>(&given->value) : nullptr;
  return flow ? c.e().dtype(flow->value) : DType::kNone;
}

void Binary(LayerCall& c, std::string_view op) {
  const Given *a = Find(c, 0, {"x", "x1", "a"}), *b = Find(c, 1, {"y", "x2", "b"});
  const DType dtype = DTypeOf(a, c) == DType::kNone ? DTypeOf(b, c) : DTypeOf(a, c);
  const ValueId x = Operand(c, a, dtype), y = Operand(c, b, dtype);
  c.Give(c.e().Op(op, {x, y}));
}

std::vector<int64_t> Axes(LayerCall& c, int rank) {
  const Given* given = Find(c, 1, {"axis"});
  const auto* plain = given ? std::get_if<json>(&given->value) : nullptr;
  std::vector<int64_t> out;
  if (plain && plain->is_number_integer()) out.push_back(plain->get<int64_t>());
  if (plain && plain->is_array())
    for (const json& axis : *plain)
      if (axis.is_number_integer()) out.push_back(axis.get<int64_t>());
  if (const auto* list = given ? std::get_if<std::vector<Given>>(&given->value) : nullptr)
    for (const Given& item : *list)
      if (const auto* axis = std::get_if<json>(&item.value); axis && axis->is_number_integer())
        out.push_back(axis->get<int64_t>());
  if (out.empty())
    for (int i = 0; i < rank; ++i) out.push_back(i);
  return out;
}

void Reduce(LayerCall& c, std::string_view op) {
  const ValueId x = c.in();
  bool keep = c.Has("keepdims") && c.Bool("keepdims", false);
  std::vector<int64_t> axes = c.Has("axis") ? c.Ints("axis") : Axes(c, c.e().rank(x));
  for (const char* name : {"keepdims", "keep_dims"})
    if (const Given* given = c.Keyword(name))
      if (const auto* flag = std::get_if<json>(&given->value); flag && flag->is_boolean())
        keep = flag->get<bool>();
  c.Give(c.e().Op(op, {x, c.e().I32s(axes)}, MakeAttrs("keep_dims", keep)));
}

struct Row {
  std::string_view op;
  void (*build)(LayerCall&, std::string_view op);
};

void Unary(LayerCall& c, std::string_view op) { c.Give(c.e().Op(op, {c.in()})); }
void Named(LayerCall& c, std::string_view activation) {
  c.Give(Activation(c, json(std::string(activation)), c.in()));
}

// By the last part of a function's name, and by the class names of Keras 3.
const std::map<std::string_view, Row>& Rows() {
  static const auto* const rows = new std::map<std::string_view, Row>{
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
      {"pow", {"Pow", Binary}},
      {"Power", {"Pow", Binary}},
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
      {"softmax", {"softmax", Named}},
      {"Softmax", {"softmax", Named}},
      {"softplus", {"softplus", Named}},
      {"Softplus", {"softplus", Named}},
      {"silu", {"silu", Named}},
      {"Silu", {"silu", Named}},
      {"elu", {"elu", Named}},
      {"Elu", {"elu", Named}},
      {"reduce_mean", {"Mean", Reduce}},
      {"Mean", {"Mean", Reduce}},
      {"reduce_sum", {"Sum", Reduce}},
      {"Sum", {"Sum", Reduce}},
      {"reduce_max", {"Max", Reduce}},
      {"Max", {"Max", Reduce}},
      {"reduce_min", {"Min", Reduce}},
      {"Min", {"Min", Reduce}},
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

// x[begin:end:step, ...], numbers and whole dimensions.
void SlicingOpLambda(LayerCall& c) {
  const ValueId x = c.in();
  const Given* given = Find(c, 1, {"slice_spec"});
  const auto* plain = given ? std::get_if<json>(&given->value) : nullptr;
  if (!plain) return c.e().Refuse("a slice that depends on the input");
  std::vector<int64_t> begin, end, step;
  int64_t begin_mask = 0, end_mask = 0, shrink = 0;
  for (const json& part : plain->is_array() ? *plain : json::array({*plain})) {
    const int64_t bit = int64_t{1} << begin.size();
    const auto number = [&](const char* key) {
      const json value = part.is_object() ? part.value(key, json()) : json();
      return value.is_number_integer() ? std::optional(value.get<int64_t>()) : std::nullopt;
    };
    if (begin.size() >= 8 || (!part.is_object() && !part.is_number_integer()))
      return c.e().Refuse("a slice " + part.dump().substr(0, 80));
    if (part.is_number_integer()) {
      begin.push_back(part.get<int64_t>());
      end.push_back(part.get<int64_t>() + 1);
      step.push_back(1);
      shrink |= bit;
      if (end.back() == 0) end_mask |= bit;
      continue;
    }
    if (!number("start")) begin_mask |= bit;
    if (!number("stop")) end_mask |= bit;
    begin.push_back(number("start").value_or(0));
    end.push_back(number("stop").value_or(0));
    step.push_back(number("step").value_or(1));
  }
  c.Give(c.e().Op("StridedSlice", {x, c.e().I32s(begin), c.e().I32s(end), c.e().I32s(step)},
                  MakeAttrs("begin_mask", begin_mask, "end_mask", end_mask, "shrink_axis_mask", shrink)));
}

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
