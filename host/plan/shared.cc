// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "host/plan/plan.h"
#include "host/plan/variables.h"

namespace fusebox::plan {

Status CheckShared(const Code& code, ValueId input, ValueId first) {
  const ValueUse& use = code.use(input);
  const int written = first == kNoValue ? static_cast<int>(code.units.size()) : code.use(first).defined;
  if (use.last_use < written) return {};
  const auto node = static_cast<size_t>(written);
  if (use.last_use == written && IsInPlace(code, node)) {
    const Value& from = code.function->value(input);
    if (first == code.function->nodes[node]->results[0] &&
        from.type.dtype == code.function->value(first).type.dtype)
      return {};
  }
  if (use.last_use == ValueUse::kAlways) return Invalid("the input is an output itself");
  return Invalid(fmt::format("{} reads the input when the output is written, or later",
                             code.Describe(static_cast<size_t>(use.last_use))));
}

}  // namespace fusebox::plan
