// SPDX-License-Identifier: Apache-2.0
// The operand that an RNN op updates in place must be a variable tensor with its own producer. If the initial
// state is a constant, an input, or has other readers, a producer is inserted.
#include <algorithm>
#include <cstring>
#include <set>

#include "converter/passes/pass.h"
#include "host/graph/rewriter.h"

namespace fusebox::converter {
namespace {

bool IsUniform(const Value& v) {
  const size_t size = BitsOf(v.type.dtype) / 8;
  if (!size || v.data.size() < size) return false;
  for (size_t at = 0; at + size <= v.data.size(); at += size)
    if (std::memcmp(v.data.data(), v.data.data() + at, size) != 0) return false;
  return true;
}

class Splitter {
 public:
  Splitter(Context& context, Function& f) : context_(context), f_(f), r_(f) {}

  Status Run() {
    return r_.Walk([&](Node& node) -> Status {
      r_.SetLocation({});
      for (const int index : StateOperands(node.op))
        if (index < static_cast<int>(node.operands.size())) FUSEBOX_TRY(Split(node, index));
      return {};
    });
  }

 private:
  Status Split(Node& node, int index) {
    const auto operand = static_cast<size_t>(index);
    const ValueId state = node.operands[operand];
    const ValueId final_state = FinalState(node, index);
    if (state == kNoValue) return {};
    const Node* producer = r_.producer(state);
    const bool own = !producer && f_.value(state).is_variable && !f_.value(state).is_const();
    if (own || (kept_.contains(state) && r_.read_once(state))) {
      NoteKept(node);
      kept_.insert(final_state);
      return {};
    }
    if (!producer || !r_.read_once(state) || IsFinalState(*producer, state)) {
      FUSEBOX_ASSIGN(const ValueId fresh, Produce(state));
      f_.value(fresh).quant = f_.value(state).quant;
      r_.SetOperand(node, operand, fresh);
    }
    Value& variable = f_.value(node.operands[operand]);
    variable.is_variable = true;
    // Both states are one tensor in the file, so the initial state gets the type of the final state.
    if (final_state != kNoValue && Compatible(f_.value(final_state).type, variable.type))
      variable.type = f_.value(final_state).type;
    return {};
  }

  // It shares its op's tensor.
  static bool IsFinalState(const Node& node, ValueId v) {
    const auto proper = node.results.begin() + static_cast<std::ptrdiff_t>(ProperResultCount(node));
    return std::find(proper, node.results.end(), v) != node.results.end();
  }

  // Calls may return different results, because the session keeps the state.
  void NoteKept(const Node& node) {
    if (noted_ == &node) return;
    noted_ = &node;
    context_.Note(
        "function " + f_.name + ": " + Describe(f_, node) +
        " keeps its state between calls; Session::ResetState resets it (ResetVariableTensors in TFLite)");
  }

  // The result that is the final state of operand `index`. State results come last, in operand order.
  static ValueId FinalState(const Node& node, int index) {
    const auto states = StateOperands(node.op);
    size_t after = 0;
    for (int other : states)
      if (other >= index && other < static_cast<int>(node.operands.size())) ++after;
    return after <= node.results.size() ? node.results[node.results.size() - after] : kNoValue;
  }

  // A tensor that is produced anew at every run: FILL for a uniform constant or another FILL, else the value
  // times one, or requantized to its own scale, which are exact.
  Result<ValueId> Produce(ValueId state) {
    const Value v = f_.value(state);
    const Type& type = v.type;
    if (v.is_const() && type.shape.is_static() && IsUniform(v)) {
      const Buffer first = v.data.Slice(0, BitsOf(type.dtype) / 8);
      const ValueId shape = r_.I32(type.shape.dims());
      const ValueId each = f_.AddConst({type.dtype, Shape::Scalar()}, first);
      f_.value(each).quant = v.quant;
      return r_.Typed(Op::kFill, {shape, each}, type);
    }
    if (const Node* fill = r_.producer(state, Op::kFill)) return r_.Typed(Op::kFill, fill->operands, type);
    if (v.quant) return r_.Typed(Op::kQuantize, {state}, type);
    if (type.dtype != DType::kF32)
      return Unsupported("an initial state of " + ToString(type) + " cannot be copied");
    return r_.Copy(state);
  }

  Context& context_;
  Function& f_;
  Rewriter r_;
  const Node* noted_ = nullptr;
  std::set<ValueId> kept_;  // final states in tensors that the session keeps
};

}  // namespace

Status SplitState(Context& context) {
  for (const auto& f : context.module.functions)
    FUSEBOX_TRY(Splitter(context, *f).Run().At("function " + f->name));
  return {};
}

}  // namespace fusebox::converter
