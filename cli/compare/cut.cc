// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/cut.h"

#include <algorithm>
#include <set>

namespace fusebox::cli {
namespace {

bool IsHandle(const Value& value) {
  return value.type.dtype == DType::kResource || value.type.dtype == DType::kVariant;
}

std::set<ValueId> ResultsOf(const Function& f, const std::vector<bool>& kept, bool which) {
  std::set<ValueId> out;
  for (size_t n = 0; n < f.nodes.size(); ++n)
    if (kept[n] == which)
      for (const ValueId id : f.nodes[n]->results)
        if (id != kNoValue) out.insert(id);
  return out;
}

// Returns the values that nodes of one side (`which`) read, in the order in which the nodes read them.
std::vector<ValueId> ReadBy(const Function& f, const std::vector<bool>& kept, bool which) {
  std::vector<ValueId> out;
  std::set<ValueId> seen;
  for (size_t n = 0; n < f.nodes.size(); ++n)
    if (kept[n] == which)
      for (const ValueId id : f.nodes[n]->operands)
        if (id != kNoValue && seen.insert(id).second) out.push_back(id);
  return out;
}

void NameValue(Function& f, ValueId id) {
  if (f.value(id).name.empty()) f.value(id).name = "value" + std::to_string(id);
}

}  // namespace

std::optional<Cut> CutOut(const Module& whole, const std::vector<bool>& kept,
                          const std::function<const Tensor*(ValueId)>& found) {
  Cut out{Clone(whole), {}};
  Function& f = *out.module->functions.front();
  const std::set<ValueId> computed = ResultsOf(f, kept, true);
  std::vector<ValueId> outputs = f.outputs;
  std::vector<ValueId> later = ReadBy(f, kept, false);
  outputs.insert(outputs.end(), later.begin(), later.end());
  f.outputs.clear();
  for (const ValueId id : outputs) {
    const bool known = std::ranges::find(f.outputs, id) != f.outputs.end();
    if (known || !computed.contains(id) || IsHandle(f.value(id)) || f.value(id).is_variable) continue;
    f.outputs.push_back(id);
    NameValue(f, id);
  }
  f.inputs.clear();
  for (const ValueId id : ReadBy(f, kept, true)) {
    Value& value = f.value(id);
    if (computed.contains(id) || value.is_const() || value.is_variable) continue;
    if (IsHandle(value)) return std::nullopt;
    if (const Tensor* const tensor = found(id)) value.type = tensor->type;
    f.inputs.push_back(id);
    NameValue(f, id);
  }
  if (f.outputs.empty()) return std::nullopt;
  out.inputs = f.inputs;
  for (size_t n = 0; n < f.nodes.size(); ++n)
    if (!kept[n]) f.nodes[n] = nullptr;
  f.Sweep();
  f.input_names.clear();
  f.output_names.clear();
  out.module->signatures.clear();
  out.module->appended = {};
  f.Compact();
  RemoveUnreachable(*out.module);
  return out;
}

}  // namespace fusebox::cli
