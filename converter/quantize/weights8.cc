// SPDX-License-Identifier: Apache-2.0
// Constant weights as i8, and biases as i32 in the scale of the sums.
#include <algorithm>
#include <cmath>

#include "converter/quantize/ops8.h"

namespace fusebox::converter::quantize {
namespace {

int AxisOf(const OpQuantization& roles, size_t weights) {
  return std::ranges::find(roles.weights, weights, &OpQuantization::Weights::operand)->axis;
}

std::string WhyNoBias(const Function& f, const Node& node, const OpQuantization& roles,
                      const OpQuantization::Bias& bias, const OperandScales& scale_of) {
  const ValueId b = OperandOf(node, bias.operand);
  const ValueId w = OperandOf(node, bias.weights);
  if (b == kNoValue) return "";
  if (!f.value(b).is_const() || f.value(b).type.dtype != DType::kF32) return "its bias is not constant";
  if (w == kNoValue || !(scale_of(bias.input) > 0)) return "its bias has no scale";
  const int axis = AxisOf(roles, bias.weights);
  const size_t channels =
      axis < 0 ? 1 : static_cast<size_t>(f.value(w).type.shape[static_cast<size_t>(axis)]);
  const auto values = f.value(b).data.As<float>();
  if (channels > 1 && values.size() != channels) return "its bias does not have one element per channel";
  if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) return "its bias is not finite";
  return "";
}

// Returns the smallest scales of these weights for which their biases fit 32 bits, or an empty list if any
// scales do.
std::vector<double> Smallest(const Function& f, const Node& node, const OpQuantization& roles, size_t weights,
                             const OperandScales& scale_of) {
  std::vector<double> out;
  for (const auto& bias : roles.biases) {
    const ValueId b = OperandOf(node, bias.operand);
    if (bias.weights != weights || b == kNoValue) continue;
    const double scale = scale_of(bias.input);
    const auto values = f.value(b).data.As<float>();
    out.resize(AxisOf(roles, weights) < 0 ? 1 : values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      double& least = out[std::min(i, out.size() - 1)];
      least = std::max(least, std::abs(static_cast<double>(values[i])) / (kLargestBias * scale));
    }
  }
  return out;
}

// T: int32_t or int64_t.
template <class T>
ValueId QuantizeBias(Function& f, ValueId v, double input_scale, const Quant& weights) {
  // The largest f64 below the bound of T.
  constexpr double kMost = sizeof(T) == 4 ? 2147483647.0 : 9223372036854774784.0;
  std::vector<float> steps;
  std::vector<T> values;
  const auto floats = f.value(v).data.As<float>();
  for (const float scale : weights.scales) steps.push_back(static_cast<float>(input_scale * scale));
  for (size_t i = 0; i < floats.size(); ++i) {
    const double step = input_scale * weights.scales[weights.scales.size() > 1 ? i : 0];
    values.push_back(static_cast<T>(std::clamp(std::round(floats[i] / step), -kMost, kMost)));
  }
  const DType dtype = sizeof(T) == 4 ? DType::kI32 : DType::kI64;
  const ValueId out = f.AddConst(Type{dtype, f.value(v).type.shape}, Buffer::Of<T>(values), f.value(v).name);
  f.value(out).quant = std::make_shared<const Quant>(
      Quant{.scales = steps, .zero_points = std::vector<int64_t>(steps.size())});
  return out;
}

}  // namespace

std::string WhyNoWeights(const Function& f, const Node& node, const OpQuantization& roles,
                         const OperandScales& scale_of) {
  for (const auto& [operand, axis] : roles.weights) {
    const ValueId w = OperandOf(node, operand);
    if (w == kNoValue) continue;
    if (!f.value(w).is_const()) return "its weights are not constant";
    if (f.value(w).type.dtype != DType::kF32)
      return "its weights are " + ToString(f.value(w).type.dtype) + " already";
    if (const std::string why = WhyNoAxis(f.value(w), axis); !why.empty()) return "its weights: " + why;
  }
  for (const auto& bias : roles.biases)
    if (const std::string why = WhyNoBias(f, node, roles, bias, scale_of); !why.empty()) return why;
  return "";
}

std::string QuantizeProductWeights(Function& f, Node& node, const OpQuantization& roles,
                                   const OperandScales& scale_of, DType activations) {
  const bool words = activations == DType::kI16;
  for (const auto& [operand, axis] : roles.weights) {
    const ValueId w = OperandOf(node, operand);
    if (w == kNoValue) continue;
    const auto bytes = SymmetricBytes(
        f.value(w), axis, words ? std::vector<double>() : Smallest(f, node, roles, operand, scale_of));
    if (!bytes) return "its weights are not finite";
    const ValueId weights = f.AddConst(Type{DType::kI8, f.value(w).type.shape}, bytes->data, f.value(w).name);
    f.value(weights).quant = bytes->quant;
    node.operands[operand] = weights;
  }
  for (const auto& bias : roles.biases) {
    const ValueId b = OperandOf(node, bias.operand);
    if (b == kNoValue) continue;
    const Quant& weights = *f.value(node.operands[bias.weights]).quant;
    node.operands[bias.operand] = words ? QuantizeBias<int64_t>(f, b, scale_of(bias.input), weights)
                                        : QuantizeBias<int32_t>(f, b, scale_of(bias.input), weights);
  }
  return "";
}

}  // namespace fusebox::converter::quantize
