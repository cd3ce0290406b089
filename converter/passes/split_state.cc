// SPDX-License-Identifier: Apache-2.0
// The operand that an RNN op updates in place must be a variable tensor with its own producer. If the initial
// state is a constant, an input, or has other readers, a producer is inserted.
#include <algorithm>
#include <cstring>
#include <set>

#include "converter/passes/pass.h"

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
  Splitter(Context& context, Function& f) : context_(context), f_(f) {}

  Status Run() {
    for (size_t i = 0; i < f_.nodes.size(); ++i) {
      Node* node = f_.nodes[i].get();
      for (int index : StateOperands(node->op)) {
        if (index >= static_cast<int>(node->operands.size())) continue;
        const ValueId state = node->operands[static_cast<size_t>(index)];
        if (state == kNoValue) continue;
        const Uses uses(f_);
        const bool own = !uses.producer(state) && f_.value(state).is_variable && !f_.value(state).is_const();
        if (own || (kept_.contains(state) && uses.readers(state).size() == 1)) {
          NoteKept(*node);
          kept_.insert(FinalState(*node, index));
          continue;
        }
        const Node* producer = uses.producer(state);
        // The final state of another op shares that op's tensor.
        const bool shared =
            producer && static_cast<size_t>(uses.result_index(state)) >= ProperResultCount(*producer);
        const bool owned = producer && !shared && uses.readers(state).size() == 1;
        if (!owned) {
          const size_t before = f_.nodes.size();
          FUSEBOX_ASSIGN(const ValueId fresh, Produce(i, state));
          i += f_.nodes.size() - before;
          node->operands[static_cast<size_t>(index)] = fresh;
        }
        Value& variable = f_.value(node->operands[static_cast<size_t>(index)]);
        variable.is_variable = true;
        // Both are one tensor in the file, so the final state's type also holds for the initial one.
        const ValueId final_state = FinalState(*node, index);
        if (final_state != kNoValue && Compatible(f_.value(final_state).type, variable.type))
          variable.type = f_.value(final_state).type;
      }
    }
    return {};
  }

 private:
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
  // times one, which is exact.
  Result<ValueId> Produce(size_t at, ValueId state) {
    const Value& v = f_.value(state);
    const Type type = v.type;
    if (v.is_const() && type.shape.is_static() && IsUniform(v)) {
      std::vector<int32_t> dims(type.shape.dims().begin(), type.shape.dims().end());
      const Buffer first = v.data.Slice(0, BitsOf(type.dtype) / 8);
      const Shape rank{static_cast<int64_t>(dims.size())};
      const ValueId shape = f_.AddConst(DType::kI32, rank, std::move(dims));
      const ValueId value = f_.AddConst({type.dtype, Shape::Scalar()}, first);
      return f_.InsertNode(at, Op::kFill, {shape, value}, {type}).results[0];
    }
    const Uses uses(f_);
    if (const Node* fill = uses.producer(state); fill && fill->is(Op::kFill))
      return f_.InsertNode(at, Op::kFill, fill->operands, {type}).results[0];
    if (type.dtype != DType::kF32)
      return Unsupported("an initial state of " + ToString(type) + " cannot be copied");
    const ValueId one = f_.AddConst(DType::kF32, Shape::Scalar(), std::vector<float>{1.0f});
    return f_.InsertNode(at, Op::kMul, {state, one}, {type}).results[0];
  }

  Context& context_;
  Function& f_;
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
