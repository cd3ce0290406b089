// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "converter/passes/pass.h"

namespace fusebox::converter {

// Entries first, in the order of the signatures; what nothing reaches goes; fused ops are recorded for the host.
Status Finish(Context& context) {
  Module& module = context.module;
  for (const auto& f : module.functions) {
    RemoveDead(*f);
    f->Compact();
  }
  auto order = [&](const std::unique_ptr<Function>& f) {
    const auto at = std::find_if(module.signatures.begin(), module.signatures.end(), [&](const Signature& s) { return s.function == f->name; });
    return at - module.signatures.begin();
  };
  std::stable_sort(module.functions.begin(), module.functions.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  RemoveUnreachable(module);
  module.description = "converted by fusebox from " + module.source.substr(module.source.find_last_of('/') + 1);
  RecordFused(module);
  return Verify(module, Strictness::kWritable);
}

}  // namespace fusebox::converter
