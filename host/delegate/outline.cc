// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "host/delegate/delegate.h"

namespace fusebox::delegate {
namespace {

// Copies values and nodes of one function into another and renumbers them.
class Copier {
 public:
  Copier(const Function& from, Function& to)
      : from_(from), to_(to), numbers_(static_cast<size_t>(from.value_count()), kNoValue) {}

  bool has(ValueId id) const { return numbers_[static_cast<size_t>(id)] != kNoValue; }
  ValueId operator()(ValueId id) {
    if (id == kNoValue) return kNoValue;
    ValueId& number = numbers_[static_cast<size_t>(id)];
    if (number == kNoValue) {
      number = to_.AddValue({});
      to_.value(number) = from_.value(id);
    }
    return number;
  }
  void Add(const Node& node) {
    Node& copy = *to_.nodes.emplace_back(std::make_unique<Node>(node));
    for (auto* ids : {&copy.operands, &copy.results, &copy.intermediates}) {
      for (ValueId& id : *ids) id = (*this)(id);
    }
  }

 private:
  const Function& from_;
  Function& to_;
  std::vector<ValueId> numbers_;  // by value of `from`
};

class Outliner {
 public:
  explicit Outliner(const Function& function)
      : function_(function), readers_left_(static_cast<size_t>(function.value_count())) {
    for (const auto& node : function.nodes) Read(*node, 1);
    for (const ValueId id : function.outputs) ++readers_left_[static_cast<size_t>(id)];
  }

  // Moves the nodes into a separate function; `inputs` and `outputs` receive the values that cross.
  std::unique_ptr<Function> Take(const std::vector<size_t>& nodes, std::string name, ValueIds& inputs,
                                 ValueIds& outputs) {
    auto part = std::make_unique<Function>(std::move(name));
    Copier copy(function_, *part);
    for (const size_t i : nodes) {
      for (const ValueId id : function_.nodes[i]->operands) {
        if (id == kNoValue || copy.has(id) || function_.value(id).is_const()) continue;
        inputs.push_back(id);
        part->inputs.push_back(copy(id));
      }
      copy.Add(*function_.nodes[i]);
      Read(*function_.nodes[i], -1);
    }
    for (const size_t i : nodes) {
      for (const ValueId id : function_.nodes[i]->results) {
        if (id == kNoValue || readers_left_[static_cast<size_t>(id)] <= 0) continue;
        outputs.push_back(id);
        part->outputs.push_back(copy(id));
      }
    }
    for (const size_t i : nodes) Read(*function_.nodes[i], 1);
    return part;
  }

 private:
  void Read(const Node& node, int by) {
    for (const ValueId id : node.operands) {
      if (id != kNoValue) readers_left_[static_cast<size_t>(id)] += by;
    }
  }

  const Function& function_;
  std::vector<int> readers_left_;  // by value; without readers in the current partition
};

}  // namespace

Outlined Outline(const Function& function, const Schedule& schedule, Instances delegates,
                 std::vector<std::unique_ptr<Part>>& parts) {
  Outlined out{std::make_unique<Function>(function.name), {function.name, {}}, {}};
  Function& to = *out.function;
  to.input_names = function.input_names;
  to.output_names = function.output_names;
  to.attrs = function.attrs;
  Copier copy(function, to);
  Outliner outliner(function);
  for (const ValueId id : function.inputs) to.inputs.push_back(copy(id));
  for (const Schedule::Run& run : schedule.runs) {
    if (run.delegate < 0) {
      for (const size_t i : run.nodes) {
        copy.Add(*function.nodes[i]);
        out.origin.nodes.push_back(i);
        out.part.push_back(-1);
      }
      continue;
    }
    const Instance& delegate = *delegates[static_cast<size_t>(run.delegate)];
    auto part = std::make_unique<Part>(Part{&delegate, parts.size(), nullptr, {function.name, run.nodes}});
    Node call;
    call.op = Op::kPartition;
    call.name = ToString(*part);
    call.location = function.nodes[run.nodes.front()]->location;
    part->function = outliner.Take(run.nodes, fmt::format("{}, {}", function.name, call.name), call.operands,
                                   call.results);
    copy.Add(call);
    out.origin.nodes.push_back(kNoNode);
    out.part.push_back(static_cast<int>(part->number));
    parts.push_back(std::move(part));
  }
  for (const ValueId id : function.outputs) to.outputs.push_back(copy(id));
  return out;
}

}  // namespace fusebox::delegate
