// SPDX-License-Identifier: Apache-2.0
#include "host/eval/moved.h"

#include <algorithm>

#include "host/eval/infer_hook.h"

namespace fusebox {
namespace {

struct Step {
  float scale;
  int64_t zero_point;
  bool operator==(const Step&) const = default;
};

std::vector<size_t> DataOperands(const Node& node) {
  const OperandList& list = Info(node.op).operands;
  std::vector<size_t> out;
  if (list.max >= 0) return {static_cast<size_t>(list.data)};
  for (size_t i = 0; i < node.operands.size(); ++i) out.push_back(i);
  return out;
}

const Quant* QuantOf(const Function& f, ValueId v) {
  const auto& quant = v == kNoValue ? nullptr : f.value(v).quant;
  return quant && !quant->scales.empty() ? quant.get() : nullptr;
}

std::vector<Step> StepsOf(const Quant& quant) {
  std::vector<Step> out;
  for (size_t i = 0; i < quant.scales.size(); ++i) {
    const size_t zero = quant.zero_points.size() == 1 ? 0 : i;
    out.push_back({quant.scales[i], zero < quant.zero_points.size() ? quant.zero_points[zero] : 0});
  }
  return out;
}

// i4 holds two elements to a byte, the low half first.
Tensor Widened(const Tensor& packed) {
  std::vector<int8_t> out(static_cast<size_t>(packed.type.shape.element_count().value_or(0)));
  const auto bytes = packed.data.As<uint8_t>();
  for (size_t i = 0; i < out.size(); ++i) {
    const int nibble = bytes[i / 2] >> (i % 2 * 4) & 15;
    out[i] = static_cast<int8_t>(nibble < 8 ? nibble : nibble - 16);
  }
  return {{DType::kI8, packed.type.shape}, Buffer::Of<int8_t>(out)};
}

Tensor Packed(const Tensor& wide) {
  const auto elements = wide.data.As<int8_t>();
  std::vector<uint8_t> out((elements.size() + 1) / 2);
  for (size_t i = 0; i < elements.size(); ++i)
    out[i / 2] = static_cast<uint8_t>(out[i / 2] | (elements[i] & 15) << (i % 2 * 4));
  return {{DType::kI4, wide.type.shape}, Buffer::Of<uint8_t>(out)};
}

// A separate function with the node on elements of another type and without scales.
struct Retyped {
  // Operands without data stay unknown.
  Retyped(const Function& f, const Node& node, DType dtype, std::span<const Tensor> operands) {
    ValueIds ids;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (node.operands[i] == kNoValue) ids.push_back(kNoValue);
      else if (operands[i].data) ids.push_back(function.AddConst(operands[i]));
      else ids.push_back(function.AddInput(operands[i].type));
    }
    std::vector<Type> types;
    for (const ValueId v : node.results)
      types.push_back({dtype, v == kNoValue ? Shape() : f.value(v).type.shape});
    function.AddNode(node.op, std::move(ids), std::move(types), node.attrs).version = node.version;
  }

  const Node& node() const { return *function.nodes[0]; }
  Result<std::vector<Tensor>> Run(Registry& registry, HostCalls& calls,
                                  std::span<const Tensor> operands) const {
    for (size_t i = 0; i < operands.size(); ++i)
      if (node().operands[i] != kNoValue && !operands[i].data)
        return Unsupported("operand " + std::to_string(i) + " is not constant");
    FUSEBOX_ASSIGN(const KernelRef kernel, ChooseKernel(registry, function, node()));
    return Evaluate(kernel, calls, function, node(), operands);
  }

  Function function{"moved"};
};

// Each element's number among all scales, from 1; 0 is left to elements that the op itself adds.
Result<Tensor> Labels(const Value& value, const Quant& quant, int32_t base) {
  const Shape& shape = value.type.shape;
  const auto count = shape.element_count();
  if (!count) return Unsupported("dimensions of what is moved are not known");
  std::vector<int32_t> out(static_cast<size_t>(*count), base);
  int64_t inner = 1;
  if (quant.block_size > 0) inner = quant.block_size;
  else if (quant.scales.size() > 1)
    for (int i = shape.rank() - 1; i > quant.axis; --i) inner *= shape[static_cast<size_t>(i)];
  const auto scales = static_cast<int64_t>(quant.scales.size());
  if (scales > 1)
    for (int64_t i = 0; i < *count; ++i)
      out[static_cast<size_t>(i)] = base + static_cast<int32_t>(i / inner % scales);
  return Tensor{{DType::kI32, shape}, Buffer::Of<int32_t>(out)};
}

Quant PerTensor(const Step& step) {
  Quant out;
  out.scales = std::vector<float>{step.scale};
  out.zero_points = std::vector<int64_t>{step.zero_point};
  return out;
}

// The label of each of `slots` parts, where element i is in part i / inner % slots; nothing if a part is
// mixed.
std::optional<std::vector<int32_t>> PartLabels(std::span<const int32_t> labels, int64_t slots,
                                               int64_t inner) {
  std::vector<int32_t> out(static_cast<size_t>(slots));
  for (size_t i = 0; i < labels.size(); ++i) {
    int32_t& part = out[i / static_cast<size_t>(inner) % out.size()];
    if (part == 0) part = labels[i];
    if (labels[i] != 0 && part != labels[i]) return std::nullopt;
  }
  return out;
}

Quant WithScales(const std::vector<int32_t>& labels, const std::vector<Step>& steps) {
  std::vector<float> scales;
  std::vector<int64_t> zero_points;
  for (const int32_t label : labels) {
    const Step& step = steps[static_cast<size_t>(std::max(label, 1)) - 1];
    scales.push_back(step.scale);
    zero_points.push_back(step.zero_point);
  }
  Quant out;
  out.scales = std::move(scales);
  out.zero_points = std::move(zero_points);
  return out;
}

std::optional<Quant> ReadLabels(std::span<const int32_t> labels, const Shape& shape,
                                const std::vector<Step>& steps, int32_t block_size) {
  if (const auto one = PartLabels(labels, 1, 1)) return WithScales(*one, steps);
  if (block_size > 0) {
    if (shape.dims().back() % block_size != 0) return std::nullopt;
    const auto parts = PartLabels(labels, static_cast<int64_t>(labels.size()) / block_size, block_size);
    if (!parts) return std::nullopt;
    Quant out = WithScales(*parts, steps);
    out.block_size = block_size;
    return out;
  }
  int64_t inner = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    const int64_t size = shape[static_cast<size_t>(axis)];
    if (const auto parts = PartLabels(labels, size, inner)) {
      Quant out = WithScales(*parts, steps);
      out.axis = axis;
      return out;
    }
    inner *= size;
  }
  return std::nullopt;
}

// Channels keep their own scales even where these are equal: an op computes differently with one scale. Parts
// of several operands may only fit together by their values.
std::optional<Quant> ReadQuant(const Tensor& moved, const std::vector<Step>& steps, int32_t block_size) {
  const auto labels = moved.data.As<int32_t>();
  if (auto exact = ReadLabels(labels, moved.type.shape, steps, block_size)) return exact;
  std::vector<int32_t> by_value(labels.begin(), labels.end());
  for (int32_t& label : by_value)
    if (label > 0)
      label = static_cast<int32_t>(std::ranges::find(steps, steps[static_cast<size_t>(label) - 1]) -
                                   steps.begin()) +
              1;
  return ReadLabels(by_value, moved.type.shape, steps, block_size);
}

// Returns the operands with labels in place of data. Another operand of the data's type (a value that pads)
// has no separate scale.
Result<std::vector<Tensor>> LabeledOperands(const Function& f, const Node& node,
                                            const std::vector<size_t>& data, std::vector<Step>& steps) {
  std::vector<Tensor> out(node.operands.size());
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const ValueId v = node.operands[i];
    if (v == kNoValue) continue;
    const Value& value = f.value(v);
    out[i] = {value.type, value.data};
    if (std::ranges::find(data, i) != data.end()) {
      const Quant* const quant = QuantOf(f, v);
      if (!quant) return Unsupported("operand " + std::to_string(i) + " has no scale, another one has");
      FUSEBOX_ASSIGN(out[i], Labels(value, *quant, static_cast<int32_t>(steps.size()) + 1));
      std::ranges::copy(StepsOf(*quant), std::back_inserter(steps));
    } else if (value.type.dtype == f.value(node.operands[data[0]]).type.dtype) {
      const auto count = value.type.shape.element_count().value_or(1);
      const std::vector<int32_t> added(static_cast<size_t>(count));
      out[i] = {{DType::kI32, value.type.shape}, Buffer::Of<int32_t>(added)};
    }
  }
  return out;
}

// The one quantization of all of them, if it is per tensor.
std::optional<Quant> Common(const Function& f, const Node& node, const std::vector<size_t>& data) {
  const Quant* const first = QuantOf(f, node.operands[data[0]]);
  if (!first || first->scales.size() != 1 || first->block_size > 0) return std::nullopt;
  for (const size_t i : data) {
    const Quant* const quant = QuantOf(f, node.operands[i]);
    if (!quant || quant->block_size > 0 || StepsOf(*quant) != StepsOf(*first)) return std::nullopt;
  }
  return PerTensor(StepsOf(*first)[0]);
}

std::vector<Tensor> Operands(const Function& f, const Node& node) {
  std::vector<Tensor> out;
  for (const ValueId v : node.operands)
    out.push_back(v == kNoValue ? Tensor{} : Tensor{f.value(v).type, f.value(v).data});
  return out;
}

std::vector<Tensor> AsI8(std::span<const Tensor> operands) {
  std::vector<Tensor> wide(operands.begin(), operands.end());
  for (Tensor& tensor : wide) {
    if (tensor.type.dtype != DType::kI4) continue;
    if (tensor.data) tensor = Widened(tensor);
    else tensor.type.dtype = DType::kI8;
  }
  return wide;
}

}  // namespace

bool MovesElements(Op op) {
  return Has(op, kMovesData) || op == Op::kPad || op == Op::kPadV2 || op == Op::kMirrorPad;
}

Status MoveQuant(Registry& registry, Function& f, const Node& node) {
  if (!MovesElements(node.op) || node.operands.empty()) return {};
  const std::vector<size_t> data = DataOperands(node);
  if (data[0] >= node.operands.size()) return {};
  int32_t block_size = 0;
  bool any = false;
  for (const size_t i : data) {
    const Quant* const quant = QuantOf(f, node.operands[i]);
    any = any || quant;
    if (quant) block_size = std::max(block_size, quant->block_size);
  }
  const auto needs = [&](ValueId v) { return v != kNoValue && !f.value(v).quant; };
  if (!any || std::ranges::none_of(node.results, needs)) return {};
  std::optional<Quant> quant = Common(f, node, data);
  std::vector<Tensor> moved;
  std::vector<Step> steps;
  if (!quant) {
    FUSEBOX_ASSIGN(const std::vector<Tensor> operands, LabeledOperands(f, node, data, steps));
    HostCalls calls(SerialServices());
    FUSEBOX_ASSIGN(moved, Retyped(f, node, DType::kI32, operands).Run(registry, calls, operands));
  }
  for (size_t i = 0; i < node.results.size(); ++i) {
    if (!needs(node.results[i])) continue;
    if (!moved.empty()) quant = ReadQuant(moved[i], steps, block_size);
    if (!quant) return Unsupported("the scales of the elements it moves do not stay along one axis");
    f.value(node.results[i]).quant = std::make_shared<const Quant>(*quant);
  }
  return {};
}

bool MovesUnscaled(const Function& f, const Node& node) {
  if (!MovesElements(node.op)) return false;
  const auto unusual = [&](size_t i) {
    const ValueId v = i < node.operands.size() ? node.operands[i] : kNoValue;
    if (v == kNoValue) return false;
    const Quant* const quant = QuantOf(f, v);
    return f.value(v).type.dtype == DType::kI4 ||
           (quant && (quant->scales.size() > 1 || quant->block_size > 0));
  };
  const auto present = [&](size_t i) { return i < node.operands.size() && node.operands[i] != kNoValue; };
  const std::vector<size_t> data = DataOperands(node);
  return std::ranges::all_of(data, present) && std::ranges::any_of(data, unusual);
}

Result<std::vector<Type>> InferUnscaled(Registry& registry, const Function& f, const Node& node) {
  const std::vector<Tensor> operands = AsI8(Operands(f, node));
  const DType dtype = f.value(node.operands[DataOperands(node)[0]]).type.dtype;
  Retyped plain(f, node, dtype == DType::kI4 ? DType::kI8 : dtype, operands);
  FUSEBOX_TRY(TryInferNode(registry, Module(), plain.function, plain.node()));
  std::vector<Type> types;
  for (const ValueId v : plain.node().results) types.push_back({dtype, plain.function.value(v).type.shape});
  return types;
}

Result<std::vector<Tensor>> EvaluateUnscaled(Registry& registry, HostCalls& calls, const Function& f,
                                             const Node& node, std::span<const Tensor> operands) {
  for (const size_t i : DataOperands(node)) {
    const Quant* const quant = QuantOf(f, node.operands[i]);
    const bool shifted =
        quant && std::ranges::any_of(quant->zero_points, [](int64_t zero) { return zero != 0; });
    if (shifted && !Has(node.op, kMovesData)) return Unsupported("zero points that are not 0 are not padded");
  }
  const std::vector<Tensor> wide = AsI8(operands);
  const DType dtype = operands[DataOperands(node)[0]].type.dtype;
  const Retyped plain(f, node, dtype == DType::kI4 ? DType::kI8 : dtype, wide);
  FUSEBOX_ASSIGN(std::vector<Tensor> results, plain.Run(registry, calls, wide));
  if (dtype == DType::kI4)
    for (Tensor& tensor : results) tensor = Packed(tensor);
  return results;
}

}  // namespace fusebox
