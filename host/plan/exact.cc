// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "fusebox/abi/plugin.h"
#include "host/plan/variables.h"

// The cpu plugin, where it is linked in.
extern "C" [[gnu::weak]] const fbx_entry fusebox_cpu_entry_v1;

namespace fusebox::plan {
namespace {

// Its conformance tests end the memory with the operands.
const fbx_plugin* CpuPlugin() {
  static const fbx_plugin* const cpu = [] {
    const fbx_plugin* plugin = nullptr;
    const bool loads =
        &fusebox_cpu_entry_v1 != nullptr && fusebox_cpu_entry_v1.load(nullptr, &plugin) == FBX_OK;
    return loads ? plugin : nullptr;
  }();
  return cpu;
}

bool ReadsExactly(const Code& code, size_t node) {
  const Unit& unit = code.units[node];
  const bool runs_kernel = unit.kernel && !unit.only_infers && unit.part < 0 && unit.callees.empty();
  return runs_kernel && unit.kernel.plugin->abi() == CpuPlugin() && code.states[node].empty();
}

}  // namespace

bool IsReadExactly(const Code& code, ValueId id) {
  std::vector<ValueId> values = {id};  // that may be in the memory
  const auto add = [&](const std::vector<ValueId>& more) {
    for (const ValueId v : more)
      if (v != kNoValue && std::ranges::find(values, v) == values.end()) values.push_back(v);
  };
  for (size_t next = 0; next < values.size(); ++next) {
    for (size_t i = 0; i < code.units.size(); ++i) {
      const Node& node = *code.function->nodes[i];
      if (std::ranges::find(node.operands, values[next]) == node.operands.end() &&
          std::ranges::find(node.results, values[next]) == node.results.end())
        continue;
      if (!ReadsExactly(code, i)) return false;
      if (!IsInPlace(code, i)) continue;
      add(node.operands);
      add(node.results);
    }
  }
  return true;
}

}  // namespace fusebox::plan
