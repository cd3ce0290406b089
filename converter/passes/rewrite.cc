// SPDX-License-Identifier: Apache-2.0
#include "converter/passes/rewrite.h"

#include <algorithm>
#include <unordered_set>

namespace fusebox::converter {
namespace {

// The declared type of the replaced value may be more precise than the inferred type.
void Refine(Function& f, ValueId value, const Type& declared) {
  Type& type = f.value(value).type;
  if (type.dtype == DType::kNone) type.dtype = declared.dtype;
  if (!type.shape.ranked() && type.dtype == declared.dtype) type.shape = declared.shape;
}

// A file may give an op any number of inputs.
bool HasItsOperands(const Node& node) {
  const OpInfo& info = Info(node.op);
  const auto count = static_cast<int>(node.operands.size());
  return count >= info.operands.min && (info.operands.max < 0 || count <= info.operands.max);
}

}  // namespace

Result<int> RewriteNodes(Module& module, Function& f, Registry& registry, const Rewrite& rewrite) {
  Translation t(module, f, registry);
  int count = 0;
  FUSEBOX_TRY(t.Each([&](Node& node) -> Status {
    const size_t mark = t.mark();
    const ValueId known = f.value_count();
    const Result<bool> replaced = rewrite(t);
    if (!replaced || !*replaced) t.Rollback(mark);
    FUSEBOX_TRY(replaced);
    if (!*replaced) return {};
    for (size_t i = 0; i < node.results.size(); ++i) {
      const ValueId old = node.results[i];
      const ValueId made = t.results()[i];
      if (old == kNoValue || made == kNoValue || old == made) continue;
      Refine(f, made, f.value(old).type);
      if (made >= known && !f.value(old).name.empty()) f.value(made).name = f.value(old).name;
      t.Forward(old, made);
    }
    t.Drop(node);
    ++count;
    return {};
  }));
  return count;
}

Result<int> TranslateFunction(Module& module, Function& f, Registry& registry) {
  std::unordered_set<ValueId> read(f.outputs.begin(), f.outputs.end());
  for (const auto& node : f.nodes) read.insert(node->operands.begin(), node->operands.end());
  return RewriteNodes(module, f, registry, [&](Translation& t) -> Result<bool> {
    if (!t.node().is(Op::kOpaque)) return false;
    // A custom op may have effects and would stay, so one without readers is not made.
    const auto is_read = [&](ValueId v) { return read.contains(v); };
    if (!FindTranslation(t.node().name) && std::ranges::none_of(t.node().results, is_read)) return false;
    const size_t mark = t.mark();
    if (!TranslateSource(t)) return false;  // retried later, and reported at the end
    for (const auto& made : t.EmittedSince(mark))
      if (!HasItsOperands(*made)) return false;
    for (size_t i = 0; i < t.node().results.size(); ++i)
      if (t.results()[i] == kNoValue && read.contains(t.node().results[i])) return false;
    return true;
  });
}

}  // namespace fusebox::converter
