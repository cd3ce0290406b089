// SPDX-License-Identifier: Apache-2.0
#include "host/verify/cases.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "host/graph/values.h"

namespace fusebox::verify {

std::string_view Name(ValueClass c) {
  switch (c) {
    case ValueClass::kNormal: return "normal";
    case ValueClass::kTiny: return "tiny";
    case ValueClass::kLarge: return "large";
    case ValueClass::kZero: return "zero";
    case ValueClass::kOneHot: return "one-hot";
    case ValueClass::kExtreme: return "extreme";
  }
  return "?";
}

std::vector<ValueClass> ValueClasses(bool all) {
  using enum ValueClass;
  if (!all) return {kNormal, kZero};
  return {kNormal, kTiny, kLarge, kZero, kOneHot, kExtreme};
}

namespace {

double Draw(ValueClass c, std::mt19937_64& random, size_t index, size_t hot) {
  std::normal_distribution<double> normal(0, 1);
  switch (c) {
    case ValueClass::kNormal: return normal(random);
    case ValueClass::kTiny: return 1e-4 * normal(random);
    case ValueClass::kLarge: return 1e3 * normal(random);
    case ValueClass::kZero: return 0;
    case ValueClass::kOneHot: return index == hot ? 1 : 0;
    case ValueClass::kExtreme: {
      constexpr double kValues[] = {0, -0.0, 1e30, -1e30, 1e-38, -1e-42, 88, -88, 1, -1};
      return kValues[random() % std::size(kValues)];
    }
  }
  return 0;
}

// A stored integer of `bits` bits; `zero` stands for the real 0.
int64_t DrawStored(ValueClass c, std::mt19937_64& random, bool is_hot, int bits, bool is_signed,
                   int64_t zero) {
  const int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  const int64_t high = low + (int64_t{1} << bits) - 1;
  const auto from = [&](int64_t a, int64_t b) {
    return a + static_cast<int64_t>(random() % static_cast<uint64_t>(b - a + 1));
  };
  switch (c) {
    case ValueClass::kNormal:
    case ValueClass::kLarge: return from(low, high);
    case ValueClass::kTiny: return from(std::max(low, zero - 2), std::min(high, zero + 2));
    case ValueClass::kZero: return zero;
    case ValueClass::kOneHot: return is_hot ? high : zero;
    case ValueClass::kExtreme: return random() % 2 ? high : low;
  }
  return zero;
}

}  // namespace

Tensor MakeOperand(const Type& type, ValueClass c, uint64_t seed, size_t operand, const Quant* quant) {
  const auto bytes = ByteSize(type);
  if (!bytes || !IsNumeric(type.dtype)) return {type, {}};
  std::mt19937_64 random(seed * 1000003 + operand * 31 + static_cast<uint64_t>(c));
  const auto count = static_cast<size_t>(type.shape.element_count().value_or(0));
  const size_t hot = count ? random() % count : 0;
  const int64_t zero = quant && !quant->zero_points.empty() ? quant->zero_points[0] : 0;
  const auto real = [&](size_t i) { return Draw(c, random, i, hot); };
  const auto integer = [&](size_t i) -> int64_t {
    if (type.dtype == DType::kBool) return c != ValueClass::kZero && random() % 2;
    if (quant == nullptr) return c == ValueClass::kZero ? 0 : static_cast<int64_t>(random() % 4);
    return DrawStored(c, random, i == hot, static_cast<int>(BitsOf(type.dtype)), type.dtype != DType::kU8,
                      zero);
  };
  return {type, Buffer::Make(
                    *bytes, [&](std::span<std::byte> memory) { FillElements(type, memory, real, integer); })};
}

Tensor ToF64(const Tensor& t) {
  if (t.type.dtype != DType::kF32 || !t.data) return t;
  return {{DType::kF64, t.type.shape}, Buffer::Of<double>(ToDoubles(t))};
}

namespace {

// DEQUANTIZE has f32 results only: a CAST makes them f64.
void CastDequantized(Function& f) {
  for (size_t i = 0; i < f.nodes.size(); ++i) {
    if (!f.nodes[i]->is(Op::kDequantize)) continue;
    const ValueId real = f.nodes[i]->results[0];
    const ValueId single = f.AddValue({DType::kF32, f.value(real).type.shape});
    Attrs attrs;
    attrs.Set("in_data_type", DType::kF32);
    attrs.Set("out_data_type", DType::kF64);
    f.InsertNode(i + 1, Op::kCast, {single}, {}, attrs).results = {real};
    f.nodes[i]->results[0] = single;
  }
}

}  // namespace

void RetypeToF64(Module& module) {
  for (const auto& f : module.functions) {
    for (ValueId v = 0; v < f->value_count(); ++v) {
      Value& value = f->value(v);
      if (value.type.dtype != DType::kF32) continue;
      if (value.data) value.data = ToF64({value.type, value.data}).data;
      value.type.dtype = DType::kF64;
    }
    for (const auto& node : f->nodes)
      for (auto& [name, value] : node->attrs)
        if (auto* dtype = std::get_if<DType>(&value); dtype && *dtype == DType::kF32) *dtype = DType::kF64;
    CastDequantized(*f);
  }
}

namespace {

// Returns nothing for values that are not quantized by tensor or channel.
std::optional<Tensor> Dequantized(const Value& value) {
  if (!value.is_const() || !value.quant || value.quant->scales.empty() || value.quant->block_size != 0)
    return std::nullopt;
  const Quant& quant = *value.quant;
  std::vector<double> values = ToDoubles({value.type, value.data});
  const auto& dims = value.type.shape.dims();
  size_t inner = 1;  // elements of one channel that are neighbors
  for (size_t d = static_cast<size_t>(quant.axis) + 1; d < dims.size(); ++d)
    inner *= static_cast<size_t>(dims[d]);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t channel = i / inner % quant.scales.size();
    const size_t zeros = quant.zero_points.size();
    const int64_t zero = zeros == 0 ? 0 : quant.zero_points[channel % zeros];
    values[i] = (values[i] - static_cast<double>(zero)) * static_cast<double>(quant.scales[channel]);
  }
  return Tensor{{DType::kF64, value.type.shape}, Buffer::Of<double>(values)};
}

}  // namespace

void RetypeWeightsToF64(Module& module) {
  for (const auto& f : module.functions) {
    std::map<ValueId, ValueId> reals;
    for (const auto& node : f->nodes) {
      if (node->operands.empty() || node->operands[0] == kNoValue) continue;
      if (f->value(node->operands[0]).type.dtype != DType::kF64) continue;
      for (ValueId& operand : node->operands) {
        if (operand == kNoValue) continue;
        if (const auto known = reals.find(operand); known != reals.end()) operand = known->second;
        else if (const auto real = Dequantized(f->value(operand)))
          operand = reals[operand] = f->AddConst(*real, f->value(operand).name);
      }
    }
  }
}

}  // namespace fusebox::verify
