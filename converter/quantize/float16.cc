// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "host/graph/half.h"

#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {
namespace {

// A DEQUANTIZE and a tensor cost about as much as this many elements save.
constexpr size_t kFewestHalved = 128;

// States keep their dtype.
bool IsState(const Node& node, size_t operand) {
  for (const int i : StateOperands(node.op))
    if (static_cast<size_t>(i) == operand) return true;
  return false;
}

bool IsExactInFloat16(const Value& constant) {
  return std::ranges::all_of(constant.data.As<float>(), [](float x) {
    return static_cast<float>(static_cast<Half>(x)) == x || std::isnan(x);
  });
}

}  // namespace

void ToFloat16(Context& context, Function& f, bool exact) {
  const std::set<ValueId> outputs(f.outputs.begin(), f.outputs.end());
  std::unordered_map<ValueId, ValueId> widened;
  Rewriter r(f);
  (void)r.Walk([&](Node& node) -> Status {
    if (Has(node.op, kHost)) return {};  // types of variables and loop variables must not change
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId v = node.operands[i];
      if (!r.is_const(v) || !r.is_f32(v)) continue;
      if (f.value(v).data.size() < kFewestHalved * sizeof(float) || outputs.contains(v) || IsState(node, i))
        continue;
      if (exact && !IsExactInFloat16(f.value(v))) continue;
      auto known = widened.find(v);
      const bool each_counts = !HasWeights(node) && !node.is(Op::kAdd) && !node.is(Op::kSub);
      const auto f16 =
          known == widened.end() || each_counts ? Float16Of(f.value(v), each_counts) : std::nullopt;
      if (!f16 && (known == widened.end() || each_counts)) {
        context.Note(Place(node) + ": a constant stays f32: f16 cannot represent its values");
        continue;
      }
      if (known == widened.end()) {
        const Type type = f.value(v).type;
        const ValueId half = f.AddConst(Type{DType::kF16, type.shape}, *f16, f.value(v).name);
        const ValueId wide = r.Typed(Op::kDequantize, {half}, type);
        f.value(wide).name = f.value(v).name;
        known = widened.emplace(v, wide).first;
      }
      node.operands[i] = known->second;
      const std::string why = Refusal(context, f, node);
      if (why.empty()) continue;
      context.Note(Place(node) + ": operand " + std::to_string(i) + " stays f32: " + why);
      node.operands[i] = v;
    }
    return {};
  });
  RemoveDead(f);
}

}  // namespace fusebox::converter::quantize
