// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <unordered_map>

#include "converter/recognize/recognizer.h"
#include "host/base/status.h"
#include "host/eval/eval.h"

namespace fusebox::converter::recognize {
namespace {

template <class Range, class T>
bool Contains(const Range& range, const T& value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

// Nodes that compute `wanted` from what is bound; constants on the way are copied.
Result<std::set<const Node*>> NodesBetween(const View& view, std::vector<ValueId> open, Bindings& bound,
                                           Function& body) {
  std::set<const Node*> needed;
  while (!open.empty()) {
    const ValueId v = open.back();
    open.pop_back();
    if (v == kNoValue || bound.values.contains(v)) continue;
    const Value& value = view.function().value(v);
    const Node* node = view.Producer(v);
    if (value.is_const()) {
      const ValueId copy = body.AddValue({});
      body.value(bound.values[v] = copy) = value;
    } else if (!node) {
      return Unsupported("it depends on " + (value.name.empty() ? "another input" : value.name) +
                         " besides its own operands");
    } else if (needed.insert(node).second) {
      if (Info(node->op).effects != Effects::kPure && !node->is(Op::kWhile))
        return Unsupported("it depends on " + Describe(view.function(), *node));
      for (size_t i = 0; i < node->operands.size(); ++i)
        if (!bound.operands.contains({node, i})) open.push_back(node->operands[i]);
    }
  }
  return needed;
}

void CopyNode(const View& view, const Node& node, Bindings& bound, Function& body) {
  auto copy = std::make_unique<Node>(node);
  for (size_t i = 0; i < copy->operands.size(); ++i) {
    const auto operand = bound.operands.find({&node, i});
    if (operand != bound.operands.end()) copy->operands[i] = operand->second;
    else if (copy->operands[i] != kNoValue) copy->operands[i] = bound.values.at(copy->operands[i]);
  }
  for (ValueId& v : copy->results) {
    const ValueId made = body.AddValue({});
    body.value(made) = view.function().value(v);
    v = bound.values[v] = made;
  }
  body.nodes.push_back(std::move(copy));
}

// Inside of a region: what is read outside would have to be computed twice.
Status CheckPrivate(const View& view, const Region& region, const Bindings& bound) {
  const auto copied = [&](ValueId v) { return bound.values.contains(v); };
  for (const auto& [v, copy] : bound.values) {
    if (!view.Producer(v) || Contains(region.operands, v) || Contains(region.results, v)) continue;
    for (const Uses::Reader& reader : view.readers(v))
      if (!reader.node || !std::ranges::all_of(reader.node->results, copied))
        return Unsupported("other nodes read " + view.Text(v) + " as well");
  }
  return {};
}

// "a/b" of names that all begin with "a/b/"; empty if they have no such prefix.
class Prefix {
 public:
  void Add(const std::string& name) {
    if (first_) prefix_ = name;
    first_ = false;
    while (!prefix_.empty() && name != prefix_ && !name.starts_with(prefix_ + "/")) {
      const size_t slash = prefix_.rfind('/');
      prefix_.resize(slash == std::string::npos ? 0 : slash);
    }
  }
  void Strip(std::string& name) const {
    if (!prefix_.empty()) name.erase(0, std::min(name.size(), prefix_.size() + 1));
  }
  const std::string& name() const { return prefix_; }

 private:
  std::string prefix_;
  bool first_ = true;
};

// Makes the names of the body relative to the composite's name, so that inlining restores them.
std::string MoveNames(Function& body) {
  Prefix prefix;
  std::vector<std::string*> names;
  for (const auto& node : body.nodes) names.push_back(&node->location.name);
  for (ValueId v = 0; v < body.value_count(); ++v)
    if (!Contains(body.inputs, v) && !Contains(body.outputs, v)) names.push_back(&body.value(v).name);
  for (const std::string* name : names) prefix.Add(*name);
  for (std::string* name : names) prefix.Strip(*name);
  return prefix.name();
}

// One composite whose body is what lies between the region's operands and results.
Result<Region> AsComposite(const View& view, Region region) {
  Replacement made(view);
  Function& body = made.AddFunction(region.composite);
  Bindings bound;
  ValueIds operands;
  for (const ValueId v : region.operands) {
    operands.push_back(made.Input(v));
    bound.values[v] = body.AddInput(view.type(v), view.function().value(v).name);
  }
  FUSEBOX_ASSIGN(body.outputs, CopyRegion(view, region.results, bound, body));
  FUSEBOX_TRY(CheckPrivate(view, region, bound));
  std::vector<Type> types;
  for (const ValueId v : region.results) types.push_back(view.type(v));
  Node& node = made.f().AddNode(Op::kStablehloComposite, std::move(operands), types, std::move(region.attrs));
  node.name = region.composite;
  node.version = 1;
  node.body = body.name;
  node.location.name = MoveNames(body);
  for (size_t i = 0; i < region.results.size(); ++i) made.SetResult(region.results[i], node.results[i]);
  return made.Take();
}

// Behind all operands and before all other readers of the results.
Result<size_t> PlaceOf(const View& view, const Region& region) {
  std::unordered_map<const Node*, size_t> index;
  for (const auto& node : view.function().nodes) index.emplace(node.get(), index.size());
  std::set<const Node*> own;
  size_t first = index.size();
  size_t place = 0;
  for (const ValueId v : region.results) {
    own.insert(view.Producer(v));
    first = std::min(first, index.at(view.Producer(v)));
  }
  const auto blocked = [] { return Unsupported("a result is read before all operands are computed"); };
  for (const ValueId v : region.operands) {
    if (Contains(region.results, v)) return blocked();
    if (const Node* producer = view.Producer(v)) place = std::max(place, index.at(producer) + 1);
  }
  for (const ValueId v : region.results)
    for (const Uses::Reader& reader : view.readers(v))
      if (reader.node && !own.contains(reader.node) && index.at(reader.node) < place) return blocked();
  return std::max(first, place);
}

}  // namespace

Result<std::vector<ValueId>> CopyRegion(const View& view, const std::vector<ValueId>& wanted, Bindings& bound,
                                        Function& body) {
  FUSEBOX_ASSIGN(const std::set<const Node*> needed, NodesBetween(view, wanted, bound, body));
  for (const auto& node : view.function().nodes)
    if (needed.contains(node.get())) CopyNode(view, *node, bound, body);
  std::vector<ValueId> out;
  for (const ValueId v : wanted) out.push_back(bound.values.at(v));
  return out;
}

Replacement::Replacement(const View& view) : view_(view) {
  region_.replacement = std::make_unique<Module>();
  AddFunction("replacement");
}

ValueId Replacement::Input(ValueId v) {
  const auto [at, fresh] = inputs_.try_emplace(v, kNoValue);
  if (!fresh) return at->second;
  region_.operands.push_back(v);
  return at->second = f().AddInput(view_.type(v), view_.function().value(v).name);
}

void Replacement::SetResult(ValueId result, ValueId by) {
  region_.results.push_back(result);
  f().outputs.push_back(by);
}

Function& Replacement::AddFunction(const std::string& wish) {
  std::string name = wish;
  std::string free;
  while ((free = view_.module().UniqueName(region_.replacement->UniqueName(name))) != name) name = free;
  return region_.replacement->Add(name);
}

Result<size_t> ReplaceRegion(Module& module, Function& f, const View& view, Region region) {
  if (!region.replacement) {
    FUSEBOX_ASSIGN(region, AsComposite(view, std::move(region)));
  }
  FUSEBOX_ASSIGN(const size_t place, PlaceOf(view, region));
  auto& made = region.replacement->functions;
  const Function& callee = *made[0];
  const Uses inside(callee);
  std::set<const Node*> replaced;
  for (size_t i = 0; i < region.results.size(); ++i) {
    const ValueId v = region.results[i];
    const auto old = std::ranges::find(f.nodes, view.Producer(v), &std::unique_ptr<Node>::get);
    std::ranges::replace((*old)->results, v, f.AddValue(view.type(v)));
    if (Info((*old)->op).effects != Effects::kPure) replaced.insert(old->get());
    const Value& made_of = callee.value(callee.outputs[i]);
    if (!inside.producer(callee.outputs[i])) continue;
    f.value(v).type = made_of.type;
    if (!made_of.name.empty()) f.value(v).name = made_of.name;
  }
  f.InsertNode(place, Op::kCall, region.operands, {}).results = region.results;
  InlineAt(f, place, callee);
  const Node* composite = nullptr;
  for (size_t i = 0; i < callee.nodes.size(); ++i)
    if (f.nodes[place + i]->is(Op::kStablehloComposite)) composite = f.nodes[place + i].get();
  std::erase_if(f.nodes, [&](const auto& node) { return replaced.contains(node.get()); });
  RemoveDead(f);
  for (size_t i = 1; i < made.size(); ++i) module.functions.push_back(std::move(made[i]));
  const auto at = std::ranges::find(f.nodes, composite, &std::unique_ptr<Node>::get);
  return static_cast<size_t>(at - f.nodes.begin());
}

}  // namespace fusebox::converter::recognize
