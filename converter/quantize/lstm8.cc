// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "converter/quantize/ops8.h"
#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {
namespace {

ValueId AddQuantized(Function& f, ValueId from, DType dtype, QuantizedConstant quantized) {
  const ValueId out =
      f.AddConst(Type{dtype, f.value(from).type.shape}, std::move(quantized.data), f.value(from).name);
  f.value(out).quant = std::move(quantized.quant);
  return out;
}

double LargestOf(const Value& value) {
  double largest = 0;
  for (const float v : value.data.As<float>()) largest = std::max(largest, std::abs(static_cast<double>(v)));
  return largest;
}

std::shared_ptr<const Quant> Symmetric(float scale) {
  return std::make_shared<const Quant>(Quant{{scale}, {}, {}, {0}});
}

template <class T>
QuantizedConstant Rounded(const Value& value, float scale) {
  constexpr double kLargest = std::numeric_limits<T>::max();
  std::vector<T> values;
  for (const float v : value.data.As<float>())
    values.push_back(
        static_cast<T>(std::clamp(std::round(v / static_cast<double>(scale)), -kLargest, kLargest)));
  return {Buffer::Of<T>(values), Symmetric(scale)};
}

std::shared_ptr<const Quant> SymmetricWords(const Range& range) {
  const double largest = std::max<double>(-range.min, range.max);
  return Symmetric(static_cast<float>(std::max(largest / 32767, 1e-20)));
}

// Weights of one gate, and its bias in the scale of its sum: over the input, or, with layer normalization, of
// products of coefficients and numbers with 10 fraction bits.
std::string QuantizeGate(Function& f, Node& node, size_t gate, double input_scale) {
  constexpr double kNormal = 1.0 / 1024;
  const ValueId w = node.operands[kInputWeights + gate];
  const ValueId r = node.operands[kRecurrentWeights + gate];
  const ValueId b = node.operands[kBias + gate];
  const ValueId n = OperandOf(node, kLayerNorm + gate);
  if (w == kNoValue) return "";
  if (r == kNoValue || b == kNoValue) return "a gate has no recurrent weights or no bias";
  const double bias = LargestOf(f.value(b)) / kLargestBias;
  const double least = n == kNoValue ? bias / input_scale : 0;
  auto input = SymmetricBytes(f.value(w), -1, std::span(&least, 1));
  auto recurrent = SymmetricBytes(f.value(r), -1);
  if (!input || !recurrent) return "its weights are not finite";
  auto scale = static_cast<float>(input_scale * input->quant->scales[0]);
  if (n != kNoValue) {
    const double step = std::max({LargestOf(f.value(n)) / 32767, bias / kNormal, 1e-20});
    scale = static_cast<float>(step * kNormal);
    node.operands[kLayerNorm + gate] =
        AddQuantized(f, n, DType::kI16, Rounded<int16_t>(f.value(n), static_cast<float>(step)));
  }
  node.operands[kBias + gate] = AddQuantized(f, b, DType::kI32, Rounded<int32_t>(f.value(b), scale));
  node.operands[kInputWeights + gate] = AddQuantized(f, w, DType::kI8, *std::move(input));
  node.operands[kRecurrentWeights + gate] = AddQuantized(f, r, DType::kI8, *std::move(recurrent));
  return "";
}

std::string QuantizeProjection(Function& f, Node& node, double hidden_scale) {
  const ValueId w = node.operands[kProjection];
  const ValueId b = node.operands[kProjectionBias];
  if (w == kNoValue) return "";
  const double least = b == kNoValue ? 0 : LargestOf(f.value(b)) / (kLargestBias * hidden_scale);
  auto weights = SymmetricBytes(f.value(w), -1, std::span(&least, 1));
  if (!weights) return "its weights are not finite";
  const auto scale = static_cast<float>(hidden_scale * weights->quant->scales[0]);
  if (b != kNoValue)
    node.operands[kProjectionBias] = AddQuantized(f, b, DType::kI32, Rounded<int32_t>(f.value(b), scale));
  node.operands[kProjection] = AddQuantized(f, w, DType::kI8, *std::move(weights));
  return "";
}

void QuantizePeepholes(Function& f, Node& node) {
  for (size_t i = kPeephole; i < kBias; ++i) {
    const ValueId v = node.operands[i];
    if (v == kNoValue) continue;
    const double largest = std::max(LargestOf(f.value(v)), 1e-20);
    node.operands[i] =
        AddQuantized(f, v, DType::kI16, Rounded<int16_t>(f.value(v), static_cast<float>(largest / 32767)));
  }
}

std::string WhyNotQuantized(const Function& f, const Node& node) {
  for (size_t i = kInputWeights; i < node.operands.size(); ++i) {
    const ValueId v = node.operands[i];
    if (v == kNoValue || i == kLstmOutputState || i == kLstmCellState) continue;
    if (!f.value(v).is_const()) return "operand " + std::to_string(i) + " is not constant";
    if (f.value(v).type.dtype != DType::kF32)
      return "its weights are " + ToString(f.value(v).type.dtype) + " already";
    if (!std::isfinite(LargestOf(f.value(v)))) return "operand " + std::to_string(i) + " is not finite";
  }
  return "";
}

}  // namespace

std::string QuantizeLstmWeights(Function& f, Node& node, const LstmRanges& ranges, const Quant& input,
                                const std::shared_ptr<const Quant>& output) {
  if (node.operands.size() <= kLstmCellState) return "the basic LSTM form is unsupported";
  std::string why = WhyNotQuantized(f, node);
  if (!why.empty()) return why;
  if (!ranges.cell.seen) return "its cell state was not observed";
  std::vector<std::shared_ptr<const Quant>> within;
  for (const Range& gate : std::span(ranges.within).first(kLstmGates))
    within.push_back(gate.seen ? SymmetricWords(gate) : Symmetric(1.0f / 4096));
  const Range& hidden = ranges.within[kLstmHidden];
  within.push_back(hidden.seen ? SymmetricScale(hidden) : output);
  for (size_t gate = 0; gate < kLstmGates; ++gate) {
    why = QuantizeGate(f, node, gate, input.scales[0]);
    if (!why.empty()) return why;
  }
  why = QuantizeProjection(f, node, within[kLstmHidden]->scales[0]);
  if (!why.empty()) return why;
  QuantizePeepholes(f, node);
  const Shape cells{f.value(node.operands[kBias + 1]).type.shape[0]};
  node.intermediates.clear();
  for (size_t i = 0; i < within.size(); ++i) {
    node.intermediates.push_back(f.AddValue(Type{i == kLstmHidden ? DType::kI8 : DType::kI16, cells}));
    f.value(node.intermediates.back()).quant = within[i];
  }
  return "";
}

std::string LstmWarning(const Function& f, const Node& node) {
  const ValueId projection = OperandOf(node, kProjection);
  const bool peepholes = std::any_of(node.operands.begin() + kPeephole, node.operands.begin() + kBias,
                                     [](ValueId v) { return v != kNoValue; });
  if (projection == kNoValue || !peepholes) return "";
  const int64_t outputs = f.value(projection).type.shape[0];
  const int64_t cells = f.value(projection).type.shape[1];
  if (outputs == cells) return "";
  return fmt::format(
      "TFLite (at least 2.9) computes wrong results: it applies peepholes to {} cells (the number of "
      "outputs) "
      "instead of {}; use `--quantize dynamic` for TFLite",
      outputs, cells);
}

std::shared_ptr<const Quant> CellStateScale(const Range& range) {
  const double largest = std::max<double>(-range.min, range.max);
  int exponent = 0;
  if (largest > 1) exponent = static_cast<int>(std::ceil(std::log2(largest)));
  return Symmetric(std::ldexp(1.0f, exponent - 15));
}

std::shared_ptr<const Quant> SymmetricScale(const Range& range) {
  const float largest = std::max(-range.min, range.max);
  float scale = largest > 0 ? largest / 127 : 1.0f;
  // Otherwise a clip at this value would end one step early.
  if (largest / scale < 127) scale = std::nextafter(scale, 0.0f);
  return Symmetric(scale);
}

// TFLite (at least up to 2.9) subtracts the zero point of an unprojected output instead of adding it, and
// clips projected values as if it were zero.
bool NeedsSymmetricOutput(const Node& lstm) {
  return OperandOf(lstm, kProjection) == kNoValue || lstm.attrs.f64("proj_clip", 0.0) > 0;
}

ValueId QuantizeState(Function& f, ValueId from, DType dtype, const std::shared_ptr<const Quant>& quant) {
  const Type type{dtype, f.value(from).type.shape};
  const ValueId state = f.AddValue(type, f.value(from).name);
  f.value(state).quant = quant;
  f.value(state).is_variable = true;
  const auto maker = std::ranges::find_if(f.nodes, [&](const auto& node) {
    return std::ranges::find(node->results, from) != node->results.end();
  });
  if (maker == f.nodes.end()) return state;  // a state kept by the session
  const Node& made = **maker;
  const Value* value = made.is(Op::kFill) ? &f.value(made.operands[1]) : nullptr;
  if (!value || !value->is_const()) {
    f.AddNode(Op::kQuantize, {from}, {}).results = {state};
    return state;
  }
  const double step =
      std::round(value->data.As<float>()[0] / quant->scales[0]) + static_cast<double>(quant->zero_points[0]);
  const Shape scalar = Shape::Scalar();
  const ValueId dims = made.operands[0];
  const ValueId quantized =
      dtype == DType::kI8
          ? f.AddConst(dtype, scalar, std::vector{static_cast<int8_t>(std::clamp(step, -128.0, 127.0))})
          : f.AddConst(dtype, scalar, std::vector{static_cast<int16_t>(std::clamp(step, -32768.0, 32767.0))});
  f.value(quantized).quant = quant;
  f.AddNode(Op::kFill, {dims, quantized}, {}).results = {state};
  return state;
}

}  // namespace fusebox::converter::quantize
