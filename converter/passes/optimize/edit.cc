// SPDX-License-Identifier: Apache-2.0
#include "converter/passes/optimize/edit.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace fusebox::converter::optimize {
namespace {

std::vector<std::vector<Rewrite>> ByOp() {
  std::vector<std::vector<Rewrite>> out(AllOps().size());
  for (const auto& table : {NeutralRules(), PatternRules(), PreluRules(), AffineRules(), ActivationRules(),
                            DenseRules(), ConvRules(), ReshapeRules(), NarrowRules(), LayoutRules()})
    for (const Rule& rule : table)
      for (const OpInfo& info : AllOps())
        if (rule.IsFor(info.op)) out[static_cast<size_t>(info.op)].push_back(rule.rewrite);
  return out;
}

bool IsPure(const Node& node) { return Info(node.op).effects == Effects::kPure; }

}  // namespace

bool HasActivation(const Node& node) { return node.attrs.str("fused_activation_function", "NONE") != "NONE"; }

Padding SamePadding(int64_t in, int64_t stride, int64_t filter, int64_t dilation) {
  const int64_t out = (in + stride - 1) / stride, reach = (filter - 1) * dilation + 1;
  const int64_t total = std::max<int64_t>((out - 1) * stride + reach - in, 0);
  return {total / 2, total - total / 2};
}

Edit::Edit(Context& context, Function& function) : context_(context), f_(function) {
  Grow();
  for (const auto& node : f_.nodes) {
    for (ValueId v : node->results)
      if (v != kNoValue) producers_[static_cast<size_t>(v)] = node.get();
    for (ValueId v : node->operands) AddReader(v, node.get());
  }
  for (ValueId v : f_.outputs) ++outputs_[static_cast<size_t>(v)];
}

void Edit::Grow() {
  const auto count = static_cast<size_t>(f_.value_count());
  producers_.resize(count);
  readers_.resize(count);
  outputs_.resize(count);
}

void Edit::AddReader(ValueId v, Node* node) {
  if (v != kNoValue) readers_[static_cast<size_t>(v)].push_back(node);
}

void Edit::DropReader(ValueId v, const Node* node) {
  if (v == kNoValue) return;
  auto& list = readers_[static_cast<size_t>(v)];
  if (const auto it = std::find(list.begin(), list.end(), node); it != list.end()) list.erase(it);
  if (is_const(v) && reads(v) == 0) f_.value(v).data = Buffer();  // its memory goes at once
  Node* const made = producers_[static_cast<size_t>(v)];
  if (!made || reads(v) > 0 || !IsPure(*made)) return;
  const bool unread = std::ranges::all_of(
      made->results, [&](ValueId result) { return result == kNoValue || reads(result) == 0; });
  if (unread) Remove(*made);
}

Node* Edit::producer(ValueId v) const { return v == kNoValue ? nullptr : producers_[static_cast<size_t>(v)]; }
Node* Edit::producer(ValueId v, Op op) const {
  Node* const node = producer(v);
  return node && node->is(op) ? node : nullptr;
}

std::optional<std::vector<double>> Edit::Floats(ValueId v) const {
  if (!is_const(v) || type(v).dtype != DType::kF32) return std::nullopt;
  const auto values = f_.value(v).data.As<float>();
  return std::vector<double>(values.begin(), values.end());
}

std::optional<std::vector<int64_t>> Edit::Ints(ValueId v) const {
  if (!is_const(v)) return std::nullopt;
  const Value& value = f_.value(v);
  std::vector<int64_t> out;
  if (value.type.dtype == DType::kI32)
    out.assign(value.data.As<int32_t>().begin(), value.data.As<int32_t>().end());
  else if (value.type.dtype == DType::kI64)
    out.assign(value.data.As<int64_t>().begin(), value.data.As<int64_t>().end());
  else return std::nullopt;
  return out;
}

std::optional<double> Edit::Scalar(ValueId v) const {
  if (!is_const(v) || type(v).dtype != DType::kF32 || f_.value(v).data.size() != sizeof(float))
    return std::nullopt;
  return f_.value(v).data.As<float>()[0];
}

bool Edit::IsNear(ValueId v, double wanted, double rtol) const {
  const auto value = Scalar(v);
  return value && std::abs(*value - wanted) <= rtol * std::abs(wanted);
}

ValueId Edit::F32(const Shape& shape, const std::vector<double>& values, const std::string& name) {
  std::vector<float> rounded;
  rounded.reserve(values.size());
  for (const double value : values) rounded.push_back(static_cast<float>(value));
  const ValueId v = f_.AddConst(DType::kF32, shape, std::move(rounded), name);
  Grow();
  return v;
}

ValueId Edit::I32(const std::vector<int64_t>& values) {
  const ValueId v = f_.AddConst(DType::kI32, Shape{static_cast<int64_t>(values.size())},
                                std::vector<int32_t>(values.begin(), values.end()));
  Grow();
  return v;
}

ValueId Edit::Emit(const Node& place, Op op, std::vector<ValueId> operands, Attrs attrs) {
  const auto same = [&](const std::unique_ptr<Node>& node) { return node.get() == &place; };
  size_t at = cursor_;
  if (at >= f_.nodes.size() || !same(f_.nodes[at]))
    at = static_cast<size_t>(std::ranges::find_if(f_.nodes, same) - f_.nodes.begin());
  Node& made = f_.InsertNode(at, op, std::move(operands), {Type{}}, std::move(attrs));
  if (at <= cursor_) ++cursor_;
  Grow();
  made.location = place.location;
  f_.value(made.results[0]).name = place.location.name;
  producers_[static_cast<size_t>(made.results[0])] = &made;
  for (ValueId v : made.operands) AddReader(v, &made);
  // What cannot be inferred yet is told by the value that this one replaces.
  (void)InferNode(context_.registry, context_.module, f_, made);
  return made.results[0];
}

void Edit::SetOperand(Node& node, size_t index, ValueId v) {
  if (index >= node.operands.size()) node.operands.resize(index + 1, kNoValue);
  const ValueId before = node.operands[index];
  node.operands[index] = v;
  AddReader(v, &node);
  DropReader(before, &node);
}

void Edit::SetOperands(Node& node, std::vector<ValueId> operands) {
  const std::vector<ValueId> before = std::move(node.operands);
  node.operands = std::move(operands);
  for (ValueId v : node.operands) AddReader(v, &node);
  for (ValueId v : before) DropReader(v, &node);
}

void Edit::Replace(Node& node, ValueId by) {
  const ValueId from = node.results[0];
  if (auto refined = Refine(type(by), type(from)); refined && !is_const(by))
    f_.value(by).type = *std::move(refined);
  else if (type(by).dtype == DType::kNone) f_.value(by).type = type(from);
  auto& list = readers_[static_cast<size_t>(from)];
  for (Node* reader : list) std::ranges::replace(reader->operands, from, by);
  if (is_output(from)) std::ranges::replace(f_.outputs, from, by);
  readers_[static_cast<size_t>(by)].insert(readers_[static_cast<size_t>(by)].end(), list.begin(), list.end());
  list.clear();
  outputs_[static_cast<size_t>(by)] += std::exchange(outputs_[static_cast<size_t>(from)], 0);
  Remove(node);
}

void Edit::Remove(Node& node) {
  if (!removed_.insert(&node).second) return;
  for (ValueId v : node.results)
    if (v != kNoValue) producers_[static_cast<size_t>(v)] = nullptr;
  for (ValueId v : node.operands) DropReader(v, &node);
}

void Edit::Say(const Node& node, const std::string& text) {
  std::string line = "function " + f_.name + ": " +
                     (node.location.name.empty() ? std::string(Name(node.op)) : node.location.name) + ": " +
                     text;
  if (said_.insert(line).second) context_.Note(std::move(line));
}

// What is made here has no scales: the rules keep to float graphs, and to the float parts of others.
bool Edit::IsQuantized(const Node& node) const {
  const auto stored = [&](ValueId v) { return v != kNoValue && !is_const(v) && f_.value(v).quant; };
  return std::ranges::any_of(node.operands, stored) || std::ranges::any_of(node.results, stored);
}

bool Edit::Sweep() {
  static const std::vector<std::vector<Rewrite>> rules = ByOp();
  bool changed = false;
  for (cursor_ = 0; cursor_ < f_.nodes.size(); ++cursor_) {
    Node* const node = f_.nodes[cursor_].get();
    if (IsQuantized(*node)) continue;
    for (const Rewrite rewrite : rules[static_cast<size_t>(node->op)]) {
      if (removed_.contains(node)) break;
      changed |= rewrite(*this, *node);
    }
  }
  std::erase_if(f_.nodes, [&](const auto& node) { return removed_.contains(node.get()); });
  removed_.clear();
  return changed;
}

}  // namespace fusebox::converter::optimize
