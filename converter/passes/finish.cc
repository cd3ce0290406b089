// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "converter/passes/pass.h"
#include "host/tflite/tflite.h"

namespace fusebox::converter {
namespace {

// What the written form leaves out: options at their schema default. Afterwards what is read back equals what was written.
void DropDefaults(Node& node) {
  const std::string_view table = Info(node.op).options;
  if (table.empty()) return;
  std::vector<std::string> defaults;
  for (const auto& [name, value] : node.attrs)
    if (value == tflite::OptionDefault(table, name)) defaults.push_back(name);
  for (const auto& name : defaults) node.attrs.Erase(name);
}

}  // namespace

// Entries first, in the order of the signatures; what nothing reaches goes; fused ops are recorded for the host.
Status Finish(Context& context) {
  Module& module = context.module;
  for (const auto& f : module.functions) {
    RemoveDead(*f);
    for (auto& node : f->nodes) DropDefaults(*node);
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
  return Verify(module, Strictness::kWritable);
}

}  // namespace fusebox::converter
