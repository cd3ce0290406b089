// SPDX-License-Identifier: Apache-2.0
#include "converter/recognize/recognize.h"

#include <algorithm>
#include <optional>
#include <set>

#include "converter/recognize/recognizer.h"
#include "host/base/cancel.h"
#include "host/eval/eval.h"

namespace fusebox::converter::recognize {
namespace {

using enum Recognizer::When;
using enum Recognizer::Where;

constexpr Recognizer kRecognizers[] = {
#define FUSEBOX_RECOGNIZER(name, root, find, when, where, what) {name, root, find, when, where, what},
#include "converter/recognize/recognizers.def"
#undef FUSEBOX_RECOGNIZER
};

// Returns the functions that signatures reach through calls, loops and branches, without the bodies of
// composites.
std::vector<std::string> FunctionsOutsideBodies(const Module& module) {
  std::vector<std::string> names;
  for (const Signature& s : module.signatures) names.push_back(s.function);
  std::set<std::string> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!seen.insert(names[i]).second) continue;
    for (const auto& node : module.Find(names[i])->nodes)
      if (!node->is(Op::kStablehloComposite))
        for (const std::string& name : References(*node)) names.push_back(name);
  }
  return names;
}

std::vector<std::string> FunctionsOf(const Module& module, Recognizer::Where where) {
  if (where == kOutsideBodies) return FunctionsOutsideBodies(module);
  std::vector<std::string> names;
  for (const auto& f : module.functions) names.push_back(f->name);
  return names;
}

class Runner {
 public:
  Runner(Module& module, Registry& registry, const Recognizer& recognizer, std::vector<std::string>& notes)
      : module_(module), registry_(registry), recognizer_(recognizer), notes_(notes) {}

  Status Visit(Function& f) {
    while (Sweep(f)) {
      FUSEBOX_TRY(CheckCancelled());
      FUSEBOX_TRY(Fold(registry_, module_, f));
    }
    return {};
  }

 private:
  // Returns whether regions were replaced.
  bool Sweep(Function& f) {
    bool changed = false;
    std::optional<View> view;
    for (size_t i = 0; i < f.nodes.size(); ++i) {
      if (!f.nodes[i]->is(recognizer_.root)) continue;
      if (!view) view.emplace(module_, f);
      auto place = ReplaceAt(f, *view, *f.nodes[i]);
      if (!place) Note(f, i, place.error().message);
      if (!place || !*place) continue;
      i = **place;
      view.reset();
      changed = true;
    }
    return changed;
  }

  Result<std::optional<size_t>> ReplaceAt(Function& f, const View& view, const Node& root) {
    FUSEBOX_ASSIGN(std::optional<Region> region, recognizer_.find(view, root));
    if (!region || !IsWanted(*region)) return std::nullopt;
    return ReplaceRegion(module_, f, view, *std::move(region));
  }

  bool IsWanted(const Region& region) {
    if (recognizer_.when != kIfImplemented) return true;
    const auto rules = registry_.RulesFor(region.composite, 1, region.attrs);
    return !rules || !rules->empty();  // rules in conflict are an error of the pass that fuses
  }

  void Note(const Function& f, size_t index, const std::string& why) {
    const Node& node = *f.nodes[index];
    if (!noted_.insert(f.name + "\n" + node.location.name + "\n" + why).second) return;
    notes_.push_back(std::string(recognizer_.name) + ": " + why + " (" + DescribeIn(f, node, index) + ")");
  }

  Module& module_;
  Registry& registry_;
  const Recognizer& recognizer_;
  std::vector<std::string>& notes_;
  std::set<std::string> noted_;  // a node is visited again when others have changed
};

}  // namespace

Status Run(Module& module, Registry& registry, const Options& options, std::vector<std::string>& notes) {
  if (options.fuses)
    for (const std::string& name : FunctionsOutsideBodies(module))
      CompleteMaskedComposites(module, *module.Find(name), notes);
  for (const Recognizer& recognizer : kRecognizers) {
    if (!options.fuses && recognizer.when != kAlways) continue;
    Runner runner(module, registry, recognizer, notes);
    for (const std::string& name : FunctionsOf(module, recognizer.where))
      FUSEBOX_TRY(runner.Visit(*module.Find(name)));
  }
  RemoveUnreachable(module);
  return {};
}

}  // namespace fusebox::converter::recognize
