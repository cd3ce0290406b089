// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "converter/passes/pass.h"
#include "host/tflite/tflite.h"

namespace fusebox::converter {
namespace {

// What the written form leaves out, options at their schema default, and what it rounds, reals to f32. Afterwards what is read back
// equals what was written.
void SettleOptions(Node& node) {
  const std::string_view table = Info(node.op).options;
  if (table.empty()) return;
  std::vector<std::string> defaults;
  Attrs rounded;
  for (const auto& [name, value] : node.attrs) {
    const AttrValue usual = tflite::OptionDefault(table, name);
    if (value == usual) defaults.push_back(name);
    else if (const auto* real = std::get_if<double>(&value); real && std::holds_alternative<double>(usual))
      rounded.Set(name, static_cast<double>(static_cast<float>(*real)));
  }
  for (const auto& name : defaults) node.attrs.Erase(name);
  for (const auto& [name, value] : rounded) node.attrs.Set(name, value);
}

// A file tells a scalar from a tensor of unknown rank by what it says of others.
Status RequireRanks(const Module& module) {
  const Signature* open = nullptr;
  std::string name;
  for (const Signature& s : module.signatures) {
    const Function& f = *module.Find(s.function);
    for (int i = 0; i < f.value_count(); ++i)
      if (f.value(i).type.shape.ranked()) return {};
    for (size_t i = 0; i < f.inputs.size() && !open; ++i) {
      if (f.value(f.inputs[i]).type.shape.ranked()) continue;
      open = &s;
      name = s.input_names[i];
    }
  }
  if (!open) return {};
  return Unsupported("signature " + open->key + ": input " + name +
                     " has no known rank, nor has anything else: give --shape " + name + "=...");
}

}  // namespace

// Entries first, in the order of the signatures; what nothing reaches goes; fused ops are recorded for the host.
Status Finish(Context& context) {
  Module& module = context.module;
  for (const auto& f : module.functions) {
    RemoveDead(*f);
    for (auto& node : f->nodes) SettleOptions(*node);
    f->Compact();
  }
  auto order = [&](const std::unique_ptr<Function>& f) {
    const auto at = std::find_if(module.signatures.begin(), module.signatures.end(),
                                 [&](const Signature& s) { return s.function == f->name; });
    return at - module.signatures.begin();
  };
  std::stable_sort(module.functions.begin(), module.functions.end(),
                   [&](const auto& a, const auto& b) { return order(a) < order(b); });
  RemoveUnreachable(module);
  if (module.description.empty())
    module.description =
        "converted by fusebox from " + module.source.substr(module.source.find_last_of('/') + 1);
  RecordFused(module);
  FUSEBOX_TRY(RequireRanks(module));
  return Verify(module, Strictness::kWritable);
}

}  // namespace fusebox::converter
