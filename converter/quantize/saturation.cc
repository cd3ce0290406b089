// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <ranges>

#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {
namespace {

// A quarter of a step for results in [0, 1] with 256 steps: rounded away.
constexpr double kNothing = 1.0 / 1024;
// If no element of a SOFTMAX row exceeds this, the whole row is masked and its result unused.
constexpr float kMasked = -500;

// Distance from zero, or from the row's maximum, at which an operand saturates.
std::optional<double> ReachOf(const Function& f, const Node& reader) {
  switch (reader.op) {
    case Op::kLogistic: return std::log(1 / kNothing - 1);
    case Op::kTanh: return std::log(1 / kNothing - 1) / 2;  // TANH(x) = 2 LOGISTIC(2x) - 1
    case Op::kSoftmax: {
      const Shape& shape = f.value(reader.operands[0]).type.shape;
      const double beta = reader.attrs.f64("beta", 1.0);
      if (shape.rank() < 1 || shape.dims().back() < 1 || !(beta > 0)) return std::nullopt;
      // All other elements of a row, this far below the maximum, have this little weight together.
      return std::log(static_cast<double>(shape.dims().back()) / kNothing) / beta;
    }
    default: return std::nullopt;
  }
}

bool IsReshape(const Node& node) {
  return node.is(Op::kReshape) || node.is(Op::kSqueeze) || node.is(Op::kExpandDims);
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
  for (const auto& node : f.nodes | std::views::reverse) {
    if (!IsReshape(*node) || !limits_.contains(node->results[0])) continue;
    const ValueId v = node->operands[0];
    const Limit limit = limits_.at(node->results[0]);
    const Shape& shape = f.value(v).type.shape;
    const bool same_rows = shape.rank() > 0 && shape.dims().back() == limit.row;
    if (readers.at(v) && (limit.row == 0 || same_rows)) limits_[v] = limit;
  }
}

void Saturation::Widen(ValueId v, const Tensor& seen, Range& range) {
  const auto limit = limits_.find(v);
  if (limit == limits_.end()) return range.Widen(seen);
  const auto [reach, row] = limit->second;
  const auto values = seen.data.As<float>();
  std::vector<float> counts(values.begin(), values.end());
  Range& whole = whole_[v];
  whole.Widen(seen);
  range.largest = whole.largest;
  range.finite = whole.finite;
  if (row == 0) {
    for (float& value : counts) value = std::clamp(value, -reach, reach);
    return range.Widen({seen.type, Buffer::Of<float>(counts)});
  }
  const auto width = static_cast<size_t>(row);
  for (size_t at = 0; at + width <= counts.size(); at += width) {
    const auto part = std::span(counts).subspan(at, width);
    const float most = *std::ranges::max_element(part);
    for (float& value : part) value = most < kMasked ? 0 : std::max(value, most - reach);
  }
  range.Widen({seen.type, Buffer::Of<float>(counts)});
}

void Saturation::Finish(Ranges& ranges) const {
  for (const auto& [v, whole] : whole_) {
    if (limits_.at(v).row == 0) continue;
    Range& range = ranges[v];
    // Values far below are masks, not classes: they add no headroom.
    range.max += std::min(range.min - whole.min, range.max - range.min);
  }
}

}  // namespace fusebox::converter::quantize
