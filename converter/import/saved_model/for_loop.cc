// SPDX-License-Identifier: Apache-2.0
// For(start, limit, delta, carried...) calls its body with start, start + delta, ... before limit. TFLite has
// no such op; For becomes a While with an iteration counter.
#include "converter/import/saved_model/function_import.h"

namespace fusebox::saved_model {
namespace {

const Type kNumber{DType::kI32, fusebox::Shape::Scalar()};

enum Variable : size_t { kDone, kTimes, kStart, kDelta, kFirstCarried };

ValueId Add(Function& f, Op op, std::vector<ValueId> operands, Type type = kNumber) {
  return f.AddNode(op, std::move(operands), {std::move(type)}).results[0];
}

ValueId One(Function& f) { return f.AddConst<int32_t>(DType::kI32, fusebox::Shape::Scalar(), {1}); }

std::string AddCondition(Module& module, const std::string& body, const std::vector<Type>& types) {
  Function& f = module.Add(body + "_condition");
  for (const Type& type : types) f.AddInput(type);
  f.outputs = {Add(f, Op::kLess, {f.inputs[kDone], f.inputs[kTimes]}, {DType::kBool, kNumber.shape})};
  return f.name;
}

std::string AddStep(Module& module, const std::string& body, const std::vector<Type>& types) {
  Function& f = module.Add(body + "_step");
  for (const Type& type : types) f.AddInput(type);
  const ValueId gone = Add(f, Op::kMul, {f.inputs[kDone], f.inputs[kDelta]});
  std::vector<ValueId> arguments = {Add(f, Op::kAdd, {f.inputs[kStart], gone})};
  arguments.insert(arguments.end(), f.inputs.begin() + kFirstCarried, f.inputs.end());
  Attrs callee;
  callee.Set("subgraph", FunctionRef{body});
  const std::vector<Type> carried(types.begin() + kFirstCarried, types.end());
  const Node& call = f.AddNode(Op::kCall, std::move(arguments), carried, std::move(callee));
  const std::vector<ValueId> results = call.results;
  f.outputs = {Add(f, Op::kAdd, {f.inputs[kDone], One(f)}), f.inputs[kTimes], f.inputs[kStart],
               f.inputs[kDelta]};
  f.outputs.insert(f.outputs.end(), results.begin(), results.end());
  return f.name;
}

}  // namespace

Result<std::vector<ValueId>> AddForLoop(Module& module, Function& f, const std::string& body,
                                        const std::vector<ValueId>& operands) {
  constexpr size_t kBounds = 3;
  if (operands.size() < kBounds) return Invalid("it has no start, limit and delta");
  const ValueId start = operands[0], limit = operands[1], delta = operands[2];
  // (|limit - start| + |delta| - 1) / |delta|; a delta of zero fails at run time.
  const ValueId size = Add(f, Op::kAbs, {delta});
  const ValueId way = Add(f, Op::kAbs, {Add(f, Op::kSub, {limit, start})});
  const ValueId rounded = Add(f, Op::kSub, {Add(f, Op::kAdd, {way, size}), One(f)});
  const ValueId times = Add(f, Op::kDiv, {rounded, size});
  std::vector<ValueId> variables = {f.AddConst<int32_t>(DType::kI32, kNumber.shape, {0}), times, start,
                                    delta};
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
