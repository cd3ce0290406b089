// SPDX-License-Identifier: Apache-2.0
// For(start, limit, delta, carried...) calls its body with start, start + delta, ... before limit. TFLite has
// no such op; For becomes a While with an iteration counter.
#include "converter/import/saved_model/function_import.h"
#include "host/graph/rewriter.h"

namespace fusebox::saved_model {
namespace {

const Type kNumber{DType::kI32, fusebox::Shape::Scalar()};

enum LoopVariable : size_t { kDone, kTimes, kStart, kDelta, kFirstCarried };

// Adds nodes at the end of a function.
struct NumberAdder : Rewriter {
  using Rewriter::Rewriter;
  ValueId Add(Op op, ValueIds operands, Type type = kNumber) {
    return Typed(op, std::move(operands), std::move(type));
  }
};

std::string AddCondition(Module& module, const std::string& body, const std::vector<Type>& types) {
  Function& f = module.Add(body + "_condition");
  for (const Type& type : types) f.AddInput(type);
  f.outputs = {
      NumberAdder(f).Add(Op::kLess, {f.inputs[kDone], f.inputs[kTimes]}, {DType::kBool, kNumber.shape})};
  return f.name;
}

std::string AddStep(Module& module, const std::string& body, const std::vector<Type>& types) {
  Function& f = module.Add(body + "_step");
  for (const Type& type : types) f.AddInput(type);
  NumberAdder add(f);
  const ValueId gone = add.Add(Op::kMul, {f.inputs[kDone], f.inputs[kDelta]});
  std::vector<ValueId> arguments = {add.Add(Op::kAdd, {f.inputs[kStart], gone})};
  arguments.insert(arguments.end(), f.inputs.begin() + kFirstCarried, f.inputs.end());
  const std::vector<Type> carried(types.begin() + kFirstCarried, types.end());
  const Node& call =
      f.AddNode(Op::kCall, std::move(arguments), carried, MakeAttrs("subgraph", FunctionRef{body}));
  const std::vector<ValueId> results = call.results;
  f.outputs = {add.Add(Op::kAdd, {f.inputs[kDone], add.I32Scalar(1)}), f.inputs[kTimes], f.inputs[kStart],
               f.inputs[kDelta]};
  f.outputs.insert(f.outputs.end(), results.begin(), results.end());
  return f.name;
}

}  // namespace

Result<std::vector<ValueId>> AddForLoop(Module& module, Function& f, const std::string& body,
                                        const std::vector<ValueId>& operands) {
  constexpr size_t kBounds = 3;
  if (operands.size() < kBounds) return Invalid("it has no start, limit and delta");
  const ValueId start = operands[0];
  const ValueId limit = operands[1];
  const ValueId delta = operands[2];
  // (|limit - start| + |delta| - 1) / |delta|; a delta of zero fails at run time.
  NumberAdder add(f);
  const ValueId size = add.Add(Op::kAbs, {delta});
  const ValueId way = add.Add(Op::kAbs, {add.Add(Op::kSub, {limit, start})});
  const ValueId rounded = add.Add(Op::kSub, {add.Add(Op::kAdd, {way, size}), add.I32Scalar(1)});
  const ValueId times = add.Add(Op::kDiv, {rounded, size});
  std::vector<ValueId> variables = {add.I32Scalar(0), times, start, delta};
  variables.insert(variables.end(), operands.begin() + kBounds, operands.end());
  std::vector<Type> types(kFirstCarried, kNumber);
  for (size_t i = kBounds; i < operands.size(); ++i)
    types.push_back({f.value(operands[i]).type.dtype, fusebox::Shape()});  // a body may change shapes
  Attrs functions;
  functions.Set("cond_subgraph_index", FunctionRef{AddCondition(module, body, types)});
  functions.Set("body_subgraph_index", FunctionRef{AddStep(module, body, types)});
  const Node& loop = f.AddNode(Op::kWhile, std::move(variables), types, std::move(functions));
  return std::vector<ValueId>(loop.results.begin() + kFirstCarried, loop.results.end());
}

}  // namespace fusebox::saved_model
