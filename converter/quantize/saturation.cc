// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {
namespace {

// A quarter of a step of results from 0 to 1 in 256 steps: it rounds away.
constexpr double kNothing = 1.0 / 1024;

// How far from zero, or below the largest of a row, an operand counts.
std::optional<double> ReachOf(const Function& f, const Node& reader) {
  switch (reader.op) {
    case Op::kLogistic: return std::log(1 / kNothing - 1);
    case Op::kTanh:
      return std::log(1 / kNothing - 1) / 2;  // as LOGISTIC of twice the operand, over twice the range
    case Op::kSoftmax: {
      const Shape& shape = f.value(reader.operands[0]).type.shape;
      const double beta = reader.attrs.f64("beta", 1.0);
      if (shape.rank() < 1 || shape.dims().back() < 1 || !(beta > 0)) return std::nullopt;
      // All of a row but its largest, this far below, weigh so little together.
      return std::log(static_cast<double>(shape.dims().back()) / kNothing) / beta;
    }
    default: return std::nullopt;
  }
}

}  // namespace

Saturation::Saturation(const Function& f) {
  std::map<ValueId, const Node*> readers;
  for (const auto& node : f.nodes)
    for (const ValueId v : node->operands) {
      if (v == kNoValue) continue;
      const auto [known, first] = readers.emplace(v, node.get());
      if (!first) known->second = nullptr;
    }
  for (const ValueId v : f.outputs) readers[v] = nullptr;
  for (const auto& [v, reader] : readers) {
    if (!reader || f.value(v).type.dtype != DType::kF32) continue;
    const auto reach = ReachOf(f, *reader);
    if (!reach) continue;
    const bool by_row = reader->is(Op::kSoftmax);
    limits_[v] = {static_cast<float>(*reach), by_row ? f.value(v).type.shape.dims().back() : 0};
  }
}

void Saturation::Widen(ValueId v, const Tensor& seen, Range& range) {
  const auto limit = limits_.find(v);
  if (limit == limits_.end()) return range.Widen(seen);
  const auto [reach, row] = limit->second;
  const auto values = seen.data.As<float>();
  std::vector<float> counts(values.begin(), values.end());
  if (row == 0) {
    for (float& value : counts) value = std::clamp(value, -reach, reach);
    return range.Widen({seen.type, Buffer::Of<float>(counts)});
  }
  whole_[v].Widen(seen);
  const auto width = static_cast<size_t>(row);
  for (size_t at = 0; at + width <= counts.size(); at += width) {
    const auto part = std::span(counts).subspan(at, width);
    const float least = *std::ranges::max_element(part) - reach;
    for (float& value : part) value = std::max(value, least);
  }
  range.Widen({seen.type, Buffer::Of<float>(counts)});
}

void Saturation::Finish(Ranges& ranges) const {
  for (const auto& [v, whole] : whole_) ranges[v].max += ranges[v].min - whole.min;
}

}  // namespace fusebox::converter::quantize
