// SPDX-License-Identifier: Apache-2.0
// Activation functions and activation layers.
#include <unordered_map>

#include "converter/import/keras/layers/operation.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;
using Builder = ValueId (*)(LayerCall&, ValueId);

ValueId ScaledBy(LayerCall& c, ValueId x, double factor) {
  return c.emit().Op("Mul", {x, c.emit().F32(factor)});
}
ValueId Shifted(LayerCall& c, ValueId x, double amount) {
  return c.emit().Op("AddV2", {x, c.emit().F32(amount)});
}

ValueId Clipped(LayerCall& c, ValueId x, double low, double high) {
  return c.emit().Op("Minimum", {c.emit().Op("Maximum", {x, c.emit().F32(low)}), c.emit().F32(high)});
}

ValueId LeakyReluOf(LayerCall& c, ValueId x, double slope) {
  return c.emit().Op("LeakyRelu", {x}, MakeAttrs("alpha", static_cast<float>(slope)));
}

// Applies `op` over any axis; an axis other than the last is moved there and back.
ValueId OverAxis(LayerCall& c, ValueId x, int64_t axis, std::string_view op) {
  const int rank = c.emit().rank(x);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) {
    c.emit().Reject("its axis " + std::to_string(axis) + " does not exist");
    return kNoValue;
  }
  if (axis == rank - 1) return c.emit().Op(op, {x});
  std::vector<int64_t> perm;
  for (int i = 0; i < rank; ++i) perm.push_back(i);
  std::swap(perm[static_cast<size_t>(axis)], perm.back());
  return c.emit().Transpose(c.emit().Op(op, {c.emit().Transpose(x, perm)}), perm);
}

ValueId Softmax(LayerCall& c, ValueId x) { return OverAxis(c, x, -1, "Softmax"); }
ValueId LogSoftmax(LayerCall& c, ValueId x) { return OverAxis(c, x, -1, "LogSoftmax"); }

// Keras 3 defines it differently from Keras 1 and 2.
ValueId HardSigmoid(LayerCall& c, ValueId x) {
  if (c.keras() >= 3) return ScaledBy(c, c.emit().Op("Relu6", {Shifted(c, x, 3)}), 1.0 / 6);
  return Clipped(c, Shifted(c, ScaledBy(c, x, 0.2), 0.5), 0, 1);
}

// Builds an activation for which TensorFlow has no single op.
template <Op op>
ValueId Builtin(LayerCall& c, ValueId x) {
  return c.emit().Node(op, {}, {x}, {c.emit().type(x)}, {})[0];
}

ValueId Swish(LayerCall& c, ValueId x) { return c.emit().Op("Mul", {x, c.emit().Op("Sigmoid", {x})}); }

ValueId Mish(LayerCall& c, ValueId x) {
  return c.emit().Op("Mul", {x, c.emit().Op("Tanh", {c.emit().Op("Softplus", {x})})});
}

ValueId LogSigmoid(LayerCall& c, ValueId x) {
  return c.emit().Op("Neg", {c.emit().Op("Softplus", {c.emit().Op("Neg", {x})})});
}

ValueId TanhShrink(LayerCall& c, ValueId x) { return c.emit().Op("Sub", {x, c.emit().Op("Tanh", {x})}); }

// (x + sqrt(x^2 + 4)) / 2
ValueId SquarePlusOf(LayerCall& c, ValueId x) {
  const ValueId root = c.emit().Op("Sqrt", {Shifted(c, c.emit().Op("Square", {x}), 4)});
  return ScaledBy(c, c.emit().Op("AddV2", {x, root}), 0.5);
}

// Values within 0.5 of zero become zero; the soft variant also shrinks the others by 0.5.
ValueId HardShrink(LayerCall& c, ValueId x) {
  const ValueId far = c.emit().Op("Greater", {c.emit().Op("Abs", {x}), c.emit().F32(0.5)});
  return c.emit().Op("SelectV2", {far, x, c.emit().F32(0)});
}
ValueId SoftShrink(LayerCall& c, ValueId x) { return c.emit().Op("Sub", {x, Clipped(c, x, -0.5, 0.5)}); }

// Linear between -1 and 1, and its integral.
ValueId SparseSigmoid(LayerCall& c, ValueId x) {
  return ScaledBy(c, Shifted(c, Clipped(c, x, -1, 1), 1), 0.5);
}
ValueId SparsePlus(LayerCall& c, ValueId x) {
  const ValueId bent = ScaledBy(c, c.emit().Op("Square", {Shifted(c, x, 1)}), 0.25);
  const ValueId below = c.emit().Op("LessEqual", {x, c.emit().F32(-1)});
  const ValueId above = c.emit().Op("GreaterEqual", {x, c.emit().F32(1)});
  const ValueId from_zero = c.emit().Op("SelectV2", {below, c.emit().F32(0), bent});
  return c.emit().Op("SelectV2", {above, x, from_zero});
}

const std::unordered_map<std::string, Builder>& ByName() {
  static const auto* const table = new std::unordered_map<std::string, Builder>{
      {"linear", [](LayerCall&, ValueId x) { return x; }},
      {"relu", [](LayerCall& c, ValueId x) { return c.emit().Op("Relu", {x}); }},
      {"relu6", [](LayerCall& c, ValueId x) { return c.emit().Op("Relu6", {x}); }},
      {"sigmoid", [](LayerCall& c, ValueId x) { return c.emit().Op("Sigmoid", {x}); }},
      {"tanh", [](LayerCall& c, ValueId x) { return c.emit().Op("Tanh", {x}); }},
      {"elu", [](LayerCall& c, ValueId x) { return c.emit().Op("Elu", {x}); }},
      {"selu", [](LayerCall& c, ValueId x) { return c.emit().Op("Selu", {x}); }},
      {"softplus", [](LayerCall& c, ValueId x) { return c.emit().Op("Softplus", {x}); }},
      {"softsign", [](LayerCall& c, ValueId x) { return c.emit().Op("Softsign", {x}); }},
      {"exponential", [](LayerCall& c, ValueId x) { return c.emit().Op("Exp", {x}); }},
      {"leaky_relu", [](LayerCall& c, ValueId x) { return LeakyReluOf(c, x, 0.2); }},
      {"hard_tanh", [](LayerCall& c, ValueId x) { return Clipped(c, x, -1, 1); }},
      {"softmax", Softmax},
      {"log_softmax", LogSoftmax},
      {"hard_sigmoid", HardSigmoid},
      {"hard_silu", Builtin<Op::kHardSwish>},
      {"hard_swish", Builtin<Op::kHardSwish>},
      {"silu", Swish},
      {"swish", Swish},
      {"gelu", Builtin<Op::kGelu>},
      {"mish", Mish},
      {"log_sigmoid", LogSigmoid},
      {"tanh_shrink", TanhShrink},
      {"celu", [](LayerCall& c, ValueId x) { return c.emit().Op("Elu", {x}); }},
      {"squareplus", SquarePlusOf},
      {"hard_shrink", HardShrink},
      {"soft_shrink", SoftShrink},
      {"sparse_sigmoid", SparseSigmoid},
      {"sparse_plus", SparsePlus},
  };
  return *table;
}

// Keras stores a function of TensorFlow as an activation by its name alone.
ValueId Elementwise(LayerCall& c, const std::string& name, ValueId v) {
  LayerCall call(c.state(), c.emit(), c.layer(), {Given{Flow{v, kNoValue}}});
  BuildFunction(call, name);
  c.state().notes.push_back("layer " + c.layer().path + ": the activation " + name +
                            " is TensorFlow's function of this name; the file does not store its module");
  const std::vector<Flow> results = call.TakeResults();
  return results.empty() ? kNoValue : results[0].value;
}

void ActivationLayer(LayerCall& c) { c.AddOutput(c.Activate(c.in())); }

// f(x) = max_value if x >= max_value, x if x >= threshold, else negative_slope * (x - threshold).
void ReluLayer(LayerCall& c) {
  const double slope = c.Float("negative_slope", 0);
  const double threshold = c.Float("threshold", 0);
  const ValueId x = c.in();
  ValueId y;
  if (threshold != 0) {
    const ValueId below = ScaledBy(c, Shifted(c, x, -threshold), slope);
    y = c.emit().Op("SelectV2", {c.emit().Op("GreaterEqual", {x, c.emit().F32(threshold)}), x, below});
  } else if (slope != 0) {
    y = LeakyReluOf(c, x, slope);
  } else if (c.Has("max_value") && c.Float("max_value") == 6) {
    return c.AddOutput(c.emit().Op("Relu6", {x}));
  } else {
    y = c.emit().Op("Relu", {x});
  }
  if (c.Has("max_value")) y = c.emit().Op("Minimum", {y, c.emit().F32(c.Float("max_value"))});
  c.AddOutput(y);
}

void LeakyReluLayer(LayerCall& c) {
  const double slope = c.Has("alpha") ? c.Float("alpha") : c.Float("negative_slope", 0.3);
  c.AddOutput(LeakyReluOf(c, c.in(), slope));
}

void EluLayer(LayerCall& c) {
  const double alpha = c.Float("alpha", 1);
  const ValueId x = c.in();
  if (alpha == 1) return c.AddOutput(c.emit().Op("Elu", {x}));
  const ValueId below = ScaledBy(c, c.emit().Op("Elu", {x}), alpha);
  c.AddOutput(c.emit().Op("SelectV2", {c.emit().Op("Greater", {x, c.emit().F32(0)}), x, below}));
}

void ThresholdedReluLayer(LayerCall& c) {
  const ValueId x = c.in();
  const ValueId above = c.emit().Op("Greater", {x, c.emit().F32(c.Float("theta", 1))});
  c.AddOutput(c.emit().Op("SelectV2", {above, x, c.emit().F32(0)}));
}

// Over one axis, or several that are normalized together. A mask excludes elements.
void SoftmaxLayer(LayerCall& c) {
  ValueId x = c.in();
  if (const ValueId mask = c.KeywordTensor("mask"); mask != kNoValue) {
    const ValueId kept = c.emit().Cast(mask, DType::kF32);
    x = c.emit().Op("AddV2", {x, ScaledBy(c, c.emit().Op("Sub", {c.emit().F32(1), kept}), -1e9)});
  }
  const std::vector<int64_t> axes = c.Has("axis") ? c.Ints("axis") : std::vector<int64_t>{-1};
  if (axes.size() == 1) return c.AddOutput(OverAxis(c, x, axes[0], "Softmax"));
  const auto attrs = MakeAttrs("keep_dims", true);
  const ValueId top = c.emit().Op("Max", {x, c.emit().I32s(axes)}, attrs);
  const ValueId raised = c.emit().Op("Exp", {c.emit().Op("Sub", {x, top})});
  c.AddOutput(c.emit().Op("RealDiv", {raised, c.emit().Op("Sum", {raised, c.emit().I32s(axes)}, attrs)}));
}

std::vector<WeightSpec> PReluWeights(const Layer&) { return {{"alpha", "vars/0"}}; }

// max(x, 0) + slope * min(x, 0); shared axes have one slope.
void PReluLayer(LayerCall& c) {
  const ValueId x = c.in();
  std::vector<int64_t> shape;
  for (int i = 1; i < c.emit().rank(x); ++i) shape.push_back(c.emit().dim(x, i));
  if (c.Has("shared_axes"))
    for (const int64_t axis : c.Ints("shared_axes"))
      if (axis >= 1 && axis <= static_cast<int64_t>(shape.size())) shape[static_cast<size_t>(axis - 1)] = 1;
  const ValueId slope = c.Weight("alpha", shape);
  const ValueId below = c.emit().Op("Minimum", {x, c.emit().F32(0)});
  c.AddOutput(c.emit().Op("AddV2", {c.emit().Op("Relu", {x}), c.emit().Op("Mul", {slope, below})}));
}

}  // namespace

bool IsActivation(const std::string& name) { return ByName().contains(name); }

ValueId Activation(LayerCall& c, const json& config, ValueId v) {
  if (config.is_null()) return v;
  if (config.is_string()) {
    const auto it = ByName().find(config.get<std::string>());
    if (it != ByName().end()) return it->second(c, v);
    if (IsUnary(config.get<std::string>())) return Elementwise(c, config.get<std::string>(), v);
    c.emit().Refuse("unsupported activation " + config.get<std::string>());
    return kNoValue;
  }
  if (!config.is_object()) {
    c.emit().Reject("its activation is neither a name nor a description");
    return kNoValue;
  }
  const std::string class_name = config.value("class_name", json()).is_string() ? config["class_name"] : "";
  const json inner = config.value("config", json());
  // Keras 3 stores a function's name as its configuration; other versions omit it.
  if (class_name == "function" && inner.is_string()) return Activation(c, inner, v);
  if (ByName().contains(class_name)) return ByName().at(class_name)(c, v);
  const LayerRow* row = FindLayer(class_name);
  if (!row || row->weights || !inner.is_object()) {
    c.emit().Refuse("unsupported activation " +
                    (class_name.empty() ? config.dump().substr(0, 80) : class_name));
    return kNoValue;
  }
  Layer layer;
  layer.class_name = class_name;
  layer.name = class_name;
  layer.path = c.layer().path;
  layer.config = inner;
  const auto results = BuildLayer(c.state(), c.emit(), layer, {Given{Flow{v, kNoValue}}});
  return results.empty() ? kNoValue : results[0].value;
}

std::span<const LayerRow> ActivationLayers() {
  static constexpr LayerRow kTable[] = {
      {"Activation", ActivationLayer},
      {"ReLU", ReluLayer},
      {"LeakyReLU", LeakyReluLayer},
      {"ELU", EluLayer},
      {"ThresholdedReLU", ThresholdedReluLayer},
      {"Softmax", SoftmaxLayer},
      {"PReLU", PReluLayer, PReluWeights},
  };
  return kTable;
}

}  // namespace fusebox::keras
