// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_set>

#include "converter/import/tables/composites.h"
#include "converter/passes/lists.h"
#include "converter/passes/pass.h"
#include "converter/passes/rewrite.h"
#include "host/eval/open_sizes.h"

namespace fusebox::converter {
namespace {

// Opaque nodes without readers are left-overs of training and bookkeeping.
int DropUnreadOpaque(Function& f) {
  int dropped = 0;
  for (bool again = true; again;) {
    again = false;
    std::unordered_set<ValueId> read(f.outputs.begin(), f.outputs.end());
    for (const auto& node : f.nodes) read.insert(node->operands.begin(), node->operands.end());
    for (auto& node : f.nodes) {
      if (!node->is(Op::kOpaque) || node->results.empty()) continue;
      const bool used = std::any_of(node->results.begin(), node->results.end(),
                                    [&](ValueId v) { return read.contains(v); });
      if (used) continue;
      node.reset();
      again = true;
      ++dropped;
    }
    f.Sweep();
  }
  return dropped;
}

// Bodies of fused ops have no callers, so type inference does not reach them from a signature.
std::vector<std::string> KeptBodies(const Module& module) {
  std::vector<std::string> out;
  for (const auto& f : module.functions)
    for (const auto& node : f->nodes)
      if (!node->is(Op::kStablehloComposite) && !node->body.empty()) out.push_back(node->body);
  return out;
}

// Types flow from the inputs of signatures, and through the bodies of fused ops.
Result<bool> InferAllTypes(Context& context) {
  bool changed = false;
  FUSEBOX_TRY(ForEachSignature(context, [&](const Signature& s) {
    bool better = false;
    const Status status =
        InferTypes(context.registry, context.module, *context.module.Find(s.function), &better);
    changed |= better;
    return status;
  }));
  for (const std::string& body : KeptBodies(context.module)) {
    bool better = false;
    // A body that contradicts itself is dropped by the pass "legal"; it is not the model's fault.
    changed |= InferTypes(context.registry, context.module, *context.module.Find(body), &better) && better;
  }
  return changed;
}

// Puts what runs in the place of an IF whose condition is known. Returns whether there was one.
bool TakeKnownBranches(const Module& module, Function& f) {
  bool taken = false;
  for (size_t i = 0; i < f.nodes.size(); ++i) {
    Node& node = *f.nodes[i];
    if (!node.is(Op::kIf)) continue;
    const Value& condition = f.value(node.operands[0]);
    if (!condition.is_const() || condition.type.dtype != DType::kBool || condition.data.size() != 1) continue;
    const Function& branch = Callee(module, node, kBranches[condition.data.As<uint8_t>()[0] != 0 ? 0 : 1]);
    node.operands.erase(node.operands.begin());
    const size_t count = branch.nodes.size();
    InlineAt(f, i, branch);
    i += count - 1;
    taken = true;
  }
  return taken;
}

// Infers types, translates source ops whose operands are known by now, folds constants; true if anything
// changed.
Result<bool> FoldOnce(Context& context) {
  FUSEBOX_ASSIGN(bool changed, InferAllTypes(context));
  for (size_t i = 0; i < context.module.functions.size(); ++i) {
    Function& f = *context.module.functions[i];
    FUSEBOX_ASSIGN(const int translated, TranslateFunction(context.module, f, context.registry));
    const int dropped = DropUnreadOpaque(f);
    changed |= TakeKnownBranches(context.module, f);
    const int lowered = LowerComposites(context.module, f, Lowered::kFoldable);
    FUSEBOX_ASSIGN(
        const int folded,
        Fold(context.registry, context.module, f, {.services = context.services}).At("function " + f.name));
    const int dead = RemoveDead(f);
    changed |= translated + dropped + lowered + folded + dead > 0;
  }
  return changed;
}

bool FoldAllShapes(Context& context) {
  int folded = 0;
  for (const auto& f : context.module.functions) folded += FoldShapes(context.registry, context.module, *f);
  return folded > 0;
}

}  // namespace

Status TranslateOps(Context& context) {
  for (size_t i = 0; i < context.module.functions.size(); ++i) {
    FUSEBOX_TRY(TranslateFunction(context.module, *context.module.functions[i], context.registry));
    DropUnreadOpaque(*context.module.functions[i]);
  }
  // Declared types are trusted until here. A contradiction is an error in the file, not in a pass.
  if (Status sound = Verify(context.module); !sound)
    return Invalid("invalid model: " + sound.error().message);
  return {};
}

Status FoldToFixpoint(Context& context) {
  // A value that depends on a chain of calls or loops is known one round after the one before it in the
  // chain, so the rounds are as many as the deepest chain. The bound only ends a run that would not converge;
  // the graph is valid after every round.
  constexpr int kMaxRounds = 12;
  for (int round = 0; round < kMaxRounds; ++round) {
    FUSEBOX_ASSIGN(const bool changed, FoldOnce(context));
    if (!changed && !FoldAllShapes(context)) break;
  }
  return {};
}

}  // namespace fusebox::converter
