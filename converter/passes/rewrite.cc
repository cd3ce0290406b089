// SPDX-License-Identifier: Apache-2.0
#include "converter/passes/rewrite.h"

#include <unordered_set>

namespace fusebox::converter {
namespace {

class Replacements {
 public:
  void Add(ValueId from, ValueId to) {
    if (static_cast<size_t>(from) >= to_.size()) to_.resize(static_cast<size_t>(from) + 1, kNoValue);
    to_[static_cast<size_t>(from)] = to;
  }
  ValueId Now(ValueId v) const {
    while (v != kNoValue && static_cast<size_t>(v) < to_.size() && to_[static_cast<size_t>(v)] != kNoValue)
      v = to_[static_cast<size_t>(v)];
    return v;
  }
  template <class Ids>
  void Apply(Ids& values) const {
    for (ValueId& v : values) v = Now(v);
  }

 private:
  std::vector<ValueId> to_;
};

// What the replaced value was declared to be may say more than could be inferred.
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
  std::vector<std::unique_ptr<Node>> before = std::move(f.nodes);
  f.nodes.clear();
  Replacements now;
  int count = 0;
  Status failure;
  for (auto& node : before) {
    now.Apply(node->operands);
    const size_t kept = f.nodes.size();
    const ValueId known = f.value_count();
    Translation translation(module, f, registry, *node);
    Result<bool> replaced = failure ? rewrite(translation) : Result<bool>(false);
    if (!replaced)
      failure =
          std::unexpected(std::move(replaced.error()).At("function " + f.name + ": " + Describe(f, *node)));
    if (!replaced || !*replaced) {
      f.nodes.resize(kept);
      f.nodes.push_back(std::move(node));
      continue;
    }
    for (size_t i = 0; i < node->results.size(); ++i) {
      const ValueId old = node->results[i], made = translation.results()[i];
      if (old == kNoValue || made == kNoValue || old == made) continue;
      Refine(f, made, f.value(old).type);
      if (made >= known && !f.value(old).name.empty()) f.value(made).name = f.value(old).name;
      now.Add(old, made);
    }
    ++count;
  }
  now.Apply(f.outputs);
  FUSEBOX_TRY(failure);
  return count;
}

Result<int> TranslateFunction(Module& module, Function& f, Registry& registry) {
  std::unordered_set<ValueId> read(f.outputs.begin(), f.outputs.end());
  for (const auto& node : f.nodes) read.insert(node->operands.begin(), node->operands.end());
  return RewriteNodes(module, f, registry, [&](Translation& t) -> Result<bool> {
    const Translate translate = t.node().is(Op::kOpaque) ? FindTranslation(t.node().name) : nullptr;
    const size_t before = f.nodes.size();
    if (!translate || !TranslateWidened(translate, t))
      return false;  // what is refused now is asked again, and reported at the end
    for (size_t i = before; i < f.nodes.size(); ++i)
      if (!HasItsOperands(*f.nodes[i])) return false;
    for (size_t i = 0; i < t.node().results.size(); ++i)
      if (t.results()[i] == kNoValue && read.contains(t.node().results[i])) return false;
    return true;
  });
}

}  // namespace fusebox::converter
