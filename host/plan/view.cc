// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "host/graph/versions.h"
#include "host/plan/plan.h"
#include "host/plan/variables.h"

namespace fusebox::plan {
namespace {

// Pairs the operands that a node updates with their final states.
std::vector<StateUse> StatesOf(const Node& node) {
  std::vector<StateUse> uses;
  const auto operands = StateOperands(node.op);
  const size_t proper = ProperResults(node);
  for (size_t i = 0; i < operands.size() && proper + i < node.results.size(); ++i) {
    const auto operand = static_cast<size_t>(operands[i]);
    const ValueId to = node.results[proper + i];
    if (operand >= node.operands.size() || node.operands[operand] == kNoValue || to == kNoValue) continue;
    uses.push_back({operand, node.operands[operand], to, false});
  }
  return uses;
}

fbx_node AbiNode(const Function& function, const Node& node) {
  fbx_node abi{};
  abi.head = FBX_HEAD(fbx_node);
  const bool custom = node.is(Op::kCustom);
  abi.kind = custom ? FBX_OP_CUSTOM : Info(node.op).code < 0 ? FBX_OP_INTERNAL : FBX_OP_BUILTIN;
  abi.op = AsAbi(custom ? std::string_view(node.name) : Name(node.op));
  abi.version = node.version != 0 ? node.version : LowestVersion(function, node);
  abi.attrs = AsAbi(node.attrs);
  abi.operand_count = static_cast<uint32_t>(node.operands.size());
  abi.result_count = static_cast<uint32_t>(node.results.size());
  return abi;
}

}  // namespace

std::string Code::DescribeValue(ValueId id, const Type& type) const {
  return "'" + function->value(id).name + "', " + ToString(type);
}

std::string Code::Describe(size_t node) const {
  const Node& described = *function->nodes[node];
  if (origin == nullptr) return fusebox::Describe(described, node);
  if (origin->nodes[node] == delegate::kNoNode) return described.name;
  return fusebox::Describe(described, origin->nodes[node]);
}

Code Analyze(const Module& module, const Function& function, const delegate::Origin* origin) {
  Code code;
  code.origin = origin;
  code.module = &module;
  code.function = &function;
  code.units.resize(function.nodes.size());
  code.states.resize(function.nodes.size());
  code.values.resize(static_cast<size_t>(function.value_count()));
  const auto use = [&](ValueId id) -> ValueUse& { return code.values[static_cast<size_t>(id)]; };
  for (const ValueId id : function.inputs) use(id).is_input = true;
  for (size_t i = 0; i < function.nodes.size(); ++i) {
    for (const ValueId id : function.nodes[i]->operands) {
      if (id != kNoValue) use(id).last_use = static_cast<int>(i);
    }
    for (const ValueId id : function.nodes[i]->results) {
      if (id != kNoValue) use(id).defined = static_cast<int>(i);
    }
  }
  for (size_t i = function.outputs.size(); i-- > 0;) {
    ValueUse& output = use(function.outputs[i]);
    output.last_use = ValueUse::kAlways;
    output.output = static_cast<int>(i);
  }
  for (ValueId id = 0; id < function.value_count(); ++id) {
    const Value& value = function.value(id);
    if (value.is_variable && !value.is_const() && use(id).defined < 0 && !use(id).is_input)
      code.variables.push_back(id);
  }
  std::vector<ValueId> kept;  // left in variable tensors by ops
  for (size_t i = 0; i < function.nodes.size(); ++i) {
    const Node& node = *function.nodes[i];
    code.states[i] = StatesOf(node);
    for (StateUse& state : code.states[i]) {
      const ValueUse& from = use(state.from);
      const bool later = from.last_use > static_cast<int>(i);
      const bool variable = std::ranges::find(code.variables, state.from) != code.variables.end();
      state.kept = variable || (!later && std::ranges::find(kept, state.from) != kept.end());
      state.copy = !state.kept && (from.defined < 0 || later);
      if (state.kept) kept.push_back(state.to);
    }
  }
  return code;
}

View::View(const Code& code) : code_(code), tensors_(static_cast<size_t>(code.function->value_count())) {
  const Function& function = *code.function;
  for (ValueId id = 0; id < function.value_count(); ++id)
    tensors_[static_cast<size_t>(id)].Show(function.value(id));
  size_t total = 0;
  for (const auto& node : function.nodes)
    total += node->operands.size() + node->results.size() + node->intermediates.size();
  pointers_.reserve(total);
  nodes_.reserve(function.nodes.size());
  const auto pointer = [&](ValueId id) { return id == kNoValue ? absent_.abi() : &tensor(id); };
  const auto operand = [&](size_t node, ValueId id) {
    return id == kNoValue && code.units[node].runs_body ? unread_.abi() : pointer(id);
  };
  for (size_t i = 0; i < function.nodes.size(); ++i) {
    const Node& node = *function.nodes[i];
    fbx_node abi = AbiNode(function, node);
    const size_t first = pointers_.size();
    for (const ValueId id : node.operands) pointers_.push_back(operand(i, id));
    for (const ValueId id : node.results) pointers_.push_back(pointer(id));
    for (const ValueId id : node.intermediates) pointers_.push_back(pointer(id));
    for (const StateUse& use : code.states[i]) {
      tensor(use.to).flags |= FBX_TENSOR_VARIABLE;
      pointers_[first + use.operand] = &tensor(use.to);
    }
    abi.operands = pointers_.data() + first;
    abi.results = abi.operands + node.operands.size();
    if (!node.intermediates.empty()) {
      abi.intermediates = abi.results + node.results.size();
      abi.intermediate_count = static_cast<uint32_t>(node.intermediates.size());
    }
    abi.location = AsAbi(node.location.name);
    std::string written;
    std::string_view raw_options = OptionBytes(node, written);
    if (!written.empty()) raw_options = written_.emplace_front(std::move(written));
    abi.raw_options = {raw_options.data(), raw_options.size()};
    nodes_.push_back({abi, nullptr, i});
  }
  for (const ValueId id : code.variables) tensor(id).flags |= FBX_TENSOR_VARIABLE;
}

View::~View() = default;

const VariableUses& View::variables() {
  if (variables_ == nullptr) variables_ = std::make_unique<const VariableUses>(code_);
  return *variables_;
}

}  // namespace fusebox::plan
