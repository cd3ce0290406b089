// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "host/graph/graph.h"

namespace fusebox {

ValueId Function::AddValue(Type type, std::string name) {
  Value& value = values_.emplace_back();
  value.type = std::move(type);
  value.name = std::move(name);
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId Function::AddInput(Type type, std::string name) {
  return inputs.emplace_back(AddValue(std::move(type), std::move(name)));
}

ValueId Function::AddConst(Type type, Buffer data, std::string name) {
  const ValueId id = AddValue(std::move(type), std::move(name));
  value(id).data = std::move(data);
  return id;
}

ValueId Function::AddConst(const Tensor& tensor, std::string name) {
  return AddConst(tensor.type, tensor.data, std::move(name));
}

Node& Function::AddNode(Op op, ValueIds operands, std::vector<Type> result_types, Attrs attrs) {
  return InsertNode(nodes.size(), op, std::move(operands), std::move(result_types), std::move(attrs));
}

Node& Function::InsertNode(size_t index, Op op, ValueIds operands, std::vector<Type> result_types,
                           Attrs attrs) {
  FUSEBOX_CHECK(index <= nodes.size());
  auto node = std::make_unique<Node>();
  node->op = op;
  node->attrs = std::move(attrs);
  node->operands = std::move(operands);
  for (Type& type : result_types) node->results.push_back(AddValue(std::move(type)));
  return **nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(index), std::move(node));
}

void Function::ReplaceUses(ValueId from, ValueId to) {
  for (const auto& node : nodes) {
    if (node != nullptr) std::replace(node->operands.begin(), node->operands.end(), from, to);
  }
  std::replace(outputs.begin(), outputs.end(), from, to);
}

void Function::Sweep() {
  std::erase_if(nodes, [](const auto& node) { return node == nullptr; });
}

void Function::Compact() {
  Sweep();
  std::vector<ValueId> renumbered(values_.size(), kNoValue);
  std::vector<Value> kept;
  const auto renumber = [&](auto& ids) {
    for (ValueId& id : ids) {
      if (id == kNoValue) continue;
      ValueId& target = renumbered[static_cast<size_t>(id)];
      if (target == kNoValue) {
        target = static_cast<ValueId>(kept.size());
        kept.push_back(std::move(value(id)));
      }
      id = target;
    }
  };
  renumber(inputs);
  for (const auto& node : nodes) {
    renumber(node->operands);
    renumber(node->results);
    renumber(node->intermediates);
  }
  renumber(outputs);
  values_ = std::move(kept);
}

Uses::Uses(const Function& function)
    : producers_(static_cast<size_t>(function.value_count()), nullptr),
      result_index_(producers_.size(), -1),
      first_reader_(producers_.size() + 1) {
  const auto each_use = [&](const auto& visit) {
    for (const auto& node : function.nodes) {
      if (node == nullptr) continue;
      for (size_t i = 0; i < node->operands.size(); ++i) {
        if (node->operands[i] != kNoValue) visit(node->operands[i], Reader{node.get(), static_cast<int>(i)});
      }
    }
    for (size_t i = 0; i < function.outputs.size(); ++i)
      visit(function.outputs[i], Reader{nullptr, static_cast<int>(i)});
  };
  // Counts into the next slot, then sums up: the start of each value's readers.
  each_use([&](ValueId id, const Reader&) { ++first_reader_[static_cast<size_t>(id) + 1]; });
  std::partial_sum(first_reader_.begin(), first_reader_.end(), first_reader_.begin());
  readers_.resize(first_reader_.back());
  std::vector<size_t> next = first_reader_;
  each_use([&](ValueId id, const Reader& reader) { readers_[next[static_cast<size_t>(id)]++] = reader; });
  for (const auto& node : function.nodes) {
    if (node == nullptr) continue;
    for (size_t i = 0; i < node->results.size(); ++i) {
      if (node->results[i] == kNoValue) continue;
      producers_[static_cast<size_t>(node->results[i])] = node.get();
      result_index_[static_cast<size_t>(node->results[i])] = static_cast<int>(i);
    }
  }
}

size_t StateResultCount(const Node& node) {
  const auto states = StateOperands(node.op);
  return static_cast<size_t>(
      std::ranges::count_if(states, [&](int i) { return static_cast<size_t>(i) < node.operands.size(); }));
}

size_t ProperResultCount(const Node& node) {
  const size_t states = StateResultCount(node);
  return node.results.size() < states ? 0 : node.results.size() - states;
}

}  // namespace fusebox
