// SPDX-License-Identifier: Apache-2.0
#include "converter/passes/pass.h"

namespace fusebox::converter {

Status ForEachSignature(Context& context, const std::function<Status(const Signature&)>& step) {
  const bool asked = !context.options.signatures.empty();
  std::vector<Signature> kept;
  Status first;
  for (const Signature& s : context.module.signatures) {
    Status status = step(s).At("signature " + s.key);
    if (status) {
      kept.push_back(s);
      continue;
    }
    if (asked) return status;
    context.report.refused.emplace_back(s.key, status.error().message);
    if (first) first = std::move(status);
  }
  if (kept.empty()) return first;
  context.module.signatures = std::move(kept);
  RemoveUnreachable(context.module);
  return {};
}

}  // namespace fusebox::converter
