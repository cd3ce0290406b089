// SPDX-License-Identifier: Apache-2.0
#include "host/graph/graph.h"

namespace fusebox {
namespace {

std::string Prefixed(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : name.empty() ? prefix : prefix + "/" + name;
}

// Merges the types of a value, dimension by dimension; the callee's type on contradiction.
Type Merge(const Type& caller, const Type& callee) {
  if (!Compatible(caller, callee)) return callee;
  if (!caller.shape.ranked()) return callee;
  Type merged = caller;
  if (!callee.shape.ranked()) return merged;
  for (size_t i = 0; i < merged.shape.dims().size(); ++i) {
    if (merged.shape[i] < 0) merged.shape.dims()[i] = callee.shape[i];
  }
  return merged;
}

class Inliner {
 public:
  Inliner(Function& caller, const Node& call, const Function& callee)
      : caller_(caller),
        call_(call),
        callee_(callee),
        map_(static_cast<size_t>(callee.value_count()), kNoValue) {}

  // Copies the callee's nodes, over values of the caller.
  std::vector<std::unique_ptr<Node>> Copy() {
    for (size_t i = 0; i < callee_.inputs.size(); ++i)
      map_[static_cast<size_t>(callee_.inputs[i])] = call_.operands[i];
    BindResults();
    std::vector<std::unique_ptr<Node>> copies;
    for (const auto& node : callee_.nodes) {
      if (node == nullptr) continue;
      auto copy = std::make_unique<Node>(*node);
      for (auto* ids : {&copy->operands, &copy->results, &copy->intermediates}) {
        for (ValueId& id : *ids) id = Map(id);
      }
      copy->location.name = Prefixed(call_.location.name, copy->location.name);
      if (copy->location.layer.empty()) copy->location.layer = call_.location.layer;
      copies.push_back(std::move(copy));
    }
    return copies;
  }

  // Replaces results that no copied node defines (passed-through inputs and constants, values returned
  // twice).
  void ForwardRest() {
    for (size_t i = 0; i < call_.results.size(); ++i) {
      const ValueId target = Map(callee_.outputs[i]);
      if (call_.results[i] != kNoValue && target != call_.results[i])
        caller_.ReplaceUses(call_.results[i], target);
    }
  }

 private:
  // Values defined by callee nodes get number and name of the caller's values.
  void BindResults() {
    const Uses uses(callee_);
    for (size_t i = 0; i < call_.results.size(); ++i) {
      const ValueId output = callee_.outputs[i];
      ValueId& target = map_[static_cast<size_t>(output)];
      if (uses.producer(output) == nullptr || target != kNoValue || call_.results[i] == kNoValue) continue;
      target = call_.results[i];
      Value& value = caller_.value(target);
      const Value& source = callee_.value(output);
      value.type = Merge(value.type, source.type);
      if (value.quant == nullptr) value.quant = source.quant;
      if (value.extra.empty()) value.extra = source.extra;
      value.is_variable = value.is_variable || source.is_variable;
    }
  }

  ValueId Map(ValueId id) {
    if (id == kNoValue) return kNoValue;
    ValueId& target = map_[static_cast<size_t>(id)];
    if (target == kNoValue) {
      target = caller_.AddValue({});
      caller_.value(target) = callee_.value(id);
      caller_.value(target).name = Prefixed(call_.location.name, callee_.value(id).name);
    }
    return target;
  }

  Function& caller_;
  const Node& call_;
  const Function& callee_;
  std::vector<ValueId> map_;
};

}  // namespace

void InlineAt(Function& caller, size_t index, const Function& callee) {
  FUSEBOX_CHECK(index < caller.nodes.size() && caller.nodes[index] != nullptr && &caller != &callee);
  const std::unique_ptr<Node> call = std::move(caller.nodes[index]);
  FUSEBOX_CHECK(call->operands.size() == callee.inputs.size() &&
                call->results.size() == callee.outputs.size());
  Inliner inliner(caller, *call, callee);
  auto copies = inliner.Copy();
  inliner.ForwardRest();
  const auto place = caller.nodes.erase(caller.nodes.begin() + static_cast<std::ptrdiff_t>(index));
  caller.nodes.insert(place, std::make_move_iterator(copies.begin()), std::make_move_iterator(copies.end()));
}

}  // namespace fusebox
