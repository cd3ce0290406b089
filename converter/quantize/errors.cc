// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {
namespace {

// A value's elements as f32, whatever its dtype.
std::vector<float> Floats(const Tensor& tensor, const Quant* quant) {
  if (tensor.type.dtype == DType::kF32) {
    const auto values = tensor.data.As<float>();
    return {values.begin(), values.end()};
  }
  std::vector<float> out;
  for (const int8_t q : tensor.data.As<int8_t>())
    out.push_back(static_cast<float>(q - quant->zero_points[0]) * quant->scales[0]);
  return out;
}

struct ErrorSums {
  double largest = 0;
  double squares = 0;
  double signal = 0;
  double peak = 0;
  size_t count = 0;

  void Add(const std::vector<float>& was, const std::vector<float>& is) {
    for (size_t i = 0; i < was.size() && i < is.size(); ++i) {
      const double error = std::abs(static_cast<double>(is[i]) - was[i]);
      largest = std::max(largest, error);
      peak = std::max(peak, std::abs(static_cast<double>(was[i])));
      squares += error * error;
      signal += static_cast<double>(was[i]) * was[i];
      ++count;
    }
  }
};

}  // namespace

Status CompareLayers(Context& context, const Module& before, const Module& after, const std::string& function,
                     const QuantizedValues& quantized, const std::vector<Sample>& samples) {
  const Function& was = *before.Find(function);
  const Function& is = *after.Find(function);
  std::vector<bool> made(static_cast<size_t>(is.value_count()));
  for (const auto& node : is.nodes)
    for (ValueId v : node->results)
      if (v != kNoValue) made[static_cast<size_t>(v)] = true;
  std::vector<ValueId> from;
  std::vector<ValueId> to;
  std::vector<const Node*> nodes;
  for (const auto& node : was.nodes) {
    for (size_t i = 0; i < ProperResultCount(*node); ++i) {
      const ValueId v = node->results[i];
      if (v == kNoValue || was.value(v).type.dtype != DType::kF32) continue;
      const auto found = quantized.find(v);
      const ValueId now = found == quantized.end() ? v : found->second;
      if (!made[static_cast<size_t>(now)]) continue;
      from.push_back(v);
      to.push_back(now);
      nodes.push_back(node.get());
    }
  }
  std::vector<ErrorSums> sums(from.size());
  FUSEBOX_ASSIGN(Observer first, Observer::Create(context, before, function, from));
  FUSEBOX_ASSIGN(Observer second, Observer::Create(context, after, function, to));
  for (const Sample& sample : samples) {
    FUSEBOX_ASSIGN(const auto expected, first.Run(sample));
    FUSEBOX_ASSIGN(const auto values, second.Run(sample));
    for (size_t i = 0; i < values.size(); ++i)
      sums[i].Add(Floats(expected[i], nullptr), Floats(values[i], is.value(to[i]).quant.get()));
  }
  for (size_t i = 0; i < from.size(); ++i) {
    const ErrorSums& s = sums[i];
    const double mean = s.count > 0 ? std::sqrt(s.squares / static_cast<double>(s.count)) : 0;
    const double ratio = s.signal > 0 ? std::sqrt(s.squares / s.signal) : 0;
    context.report.layers.push_back({.op = std::string(Name(nodes[i]->op)),
                                     .location = nodes[i]->location.name,
                                     .quantized = quantized.contains(from[i]),
                                     .peak = s.peak,
                                     .largest = s.largest,
                                     .rms = mean,
                                     .ratio = ratio});
  }
  return {};
}

}  // namespace fusebox::converter::quantize
