// SPDX-License-Identifier: Apache-2.0
// Ops without a row that a plugin has a kernel for: custom ops of the same name, with the source's attributes
// as options.
#include "converter/import/tables/translate.h"
#include "host/eval/infer_hook.h"

namespace fusebox::converter {

Status Translation::AsCustomOp() {
  const std::string op = node().name;
  if (registry_.KernelsOf(FBX_OP_CUSTOM, op).empty()) {
    const std::vector<std::string> unusable = registry_.WhoProvides(FBX_OP_CUSTOM, op);
    return Unsupported(unusable.empty() ? WhyUntranslatable(op) : "its plugin is not usable: " + unusable[0]);
  }
  if (const std::string why(attrs().str(kUndefined, "")); !why.empty()) return Unsupported(why);
  for (size_t i = 0; i < count(); ++i)
    if (in(i) == kNoValue || in_type(i).dtype == DType::kNone)
      return Unsupported("the type of operand " + std::to_string(i) + " is not known");
  const size_t results = node().results.size();
  fusebox::Node& made = EmitTyped(Op::kCustom, {node().operands.begin(), node().operands.end()},
                                  std::vector<Type>(results), attrs());
  made.name = op;
  made.version = 1;
  registry_.FillOptions(made);
  FUSEBOX_TRY(registry_.CheckOptions(made));
  FUSEBOX_TRY(TryInferNode(registry_, module_, f(), made));
  for (size_t i = 0; i < results; ++i) SetResult(i, made.results[i]);
  return {};
}

Status TranslateSource(Translation& t) {
  if (const Translate translate = FindTranslation(t.node().name)) return TranslateWidened(translate, t);
  return t.AsCustomOp();
}

bool HasTranslation(Registry& registry, std::string_view op) {
  return FindTranslation(op) || !registry.KernelsOf(FBX_OP_CUSTOM, op).empty();
}

}  // namespace fusebox::converter
