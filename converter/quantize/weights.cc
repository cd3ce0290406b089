// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "host/graph/half.h"

#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {

std::optional<QuantizedConstant> SymmetricBytes(const Value& weights, int axis,
                                                std::span<const double> at_least) {
  const auto values = weights.data.As<float>();
  const Shape& shape = weights.type.shape;
  size_t channels = 1;
  size_t inner = 1;
  if (axis >= 0) {
    channels = static_cast<size_t>(shape[static_cast<size_t>(axis)]);
    for (size_t d = static_cast<size_t>(axis) + 1; d < shape.dims().size(); ++d)
      inner *= static_cast<size_t>(shape[d]);
  }
  const auto channel = [&](size_t i) { return i / inner % channels; };
  std::vector<double> scales(channels, 0.0);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) return std::nullopt;
    const size_t c = axis < 0 ? 0 : channel(i);
    scales[c] = std::max(scales[c], std::abs(static_cast<double>(values[i])) / 127);
  }
  std::vector<float> rounded(channels);
  for (size_t c = 0; c < channels; ++c) {
    if (!at_least.empty()) scales[c] = std::max(scales[c], at_least[c]);
    // A channel of zeros may have any scale; tiny scales must not become denormal.
    scales[c] = std::max<double>(scales[c], std::numeric_limits<float>::min());
    rounded[c] = static_cast<float>(scales[c]);
  }
  std::vector<int8_t> bytes(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double scale = rounded[axis < 0 ? 0 : channel(i)];
    bytes[i] = static_cast<int8_t>(std::clamp(std::round(values[i] / scale), -127.0, 127.0));
  }
  const Quant quant{
      .scales = rounded, .zero_points = std::vector<int64_t>(channels), .axis = std::max(axis, 0)};
  return QuantizedConstant{Buffer::Of<int8_t>(bytes), std::make_shared<const Quant>(quant)};
}

std::optional<Buffer> Float16Of(const Value& constant, bool each_counts) {
  constexpr float kLargest = 65504;
  constexpr float kOff = 0.01F;
  std::vector<Half> f16;
  for (const float value : constant.data.As<float>()) {
    if (!(std::abs(value) <= kLargest)) return std::nullopt;
    f16.push_back(static_cast<Half>(value));
    const float error = std::abs(static_cast<float>(f16.back()) - value);
    if (each_counts && error > kOff * std::abs(value)) return std::nullopt;
  }
  return Buffer::Copy(std::as_bytes(std::span(f16)));
}

bool HasWeights(const Node& node) { return Info(node.op).operands.weights != 0; }

std::string Refusal(Context& context, Function& f, const Node& node) {
  if (const auto kernel = ChooseKernel(context.registry, f, node); !kernel) return kernel.error().message;
  if (!node.is(Op::kCustom)) return "";
  // A kernel without `supports` accepts all types, but not with all results.
  const Status inferred = InferNode(context.registry, context.module, f, node);
  return inferred ? "" : inferred.error().message;
}

std::string Place(const Node& node) {
  const std::string op = node.is(Op::kCustom) ? node.name : std::string(Name(node.op));
  return node.location.name.empty() ? op : node.location.name + " (" + op + ")";
}

}  // namespace fusebox::converter::quantize
