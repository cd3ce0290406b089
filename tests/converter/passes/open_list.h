// SPDX-License-Identifier: Apache-2.0
// A loop that writes a list whose element shape is only known at run time.
#pragma once

#include <functional>

#include "tests/converter/passes/bench.h"

namespace fusebox::converter {

inline const Type kListType{DType::kVariant, Shape::Scalar()}, kStep{DType::kI32, Shape::Scalar()};

// for i < 3: list[i] = item(body, i, variables); `next` updates the variables (empty: unchanged). Inputs: the
// variables.
struct OpenList : Bench {
  using Body = std::function<ValueId(Function&, ValueId, std::vector<ValueId>&)>;
  Function& f = Add("main");

  explicit OpenList(const std::vector<Type>& given, const Body& step, int32_t length = 3) {
    std::vector<ValueId> inputs;
    for (const Type& type : given) inputs.push_back(f.AddInput(type));
    const ValueId shape = f.AddConst<int32_t>(DType::kI32, {1}, {-1});
    const ValueId size = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {length});
    const ValueId list = f.AddNode(Op::kTensorListReserve, {shape, size}, {kListType}).results[0];
    const auto results = Loop(f, "loop", inputs, list, step, length == 0);
    f.outputs = f.AddNode(Op::kTensorListStack, {results[1], shape}, {{DType::kF32, Shape()}}).results;
    for (size_t i = 2; i < results.size(); ++i) f.outputs.push_back(results[i]);
    Sign(f);
  }

  // Results of the loop: counter, list, variables.
  std::vector<ValueId> Loop(Function& outer, const std::string& name, const std::vector<ValueId>& variables,
                            ValueId list, const Body& step, bool grows) {
    Function &cond = Add(name + "_cond"), &body = Add(name + "_body");
    std::vector<Type> types = {kStep, kListType};
    for (const ValueId v : variables) types.push_back(outer.value(v).type);
    for (Function* inside : {&cond, &body})
      for (const Type& type : types) inside->AddInput(type);
    const ValueId three = cond.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {3});
    cond.outputs =
        cond.AddNode(Op::kLess, {cond.inputs[0], three}, {{DType::kBool, Shape::Scalar()}}).results;
    std::vector<ValueId> carried(body.inputs.begin() + 2, body.inputs.end());
    const ValueId item = step(body, body.inputs[0], carried);
    Node& set = body.AddNode(Op::kTensorListSetItem, {body.inputs[1], body.inputs[0], item}, {kListType});
    if (grows) set.attrs.Set("resize_if_index_out_of_bounds", true);
    const ValueId written = set.results[0];
    const ValueId one = body.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {1});
    body.outputs = {body.AddNode(Op::kAdd, {body.inputs[0], one}, {kStep}).results[0], written};
    body.outputs.insert(body.outputs.end(), carried.begin(), carried.end());
    const ValueId zero = outer.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {0});
    std::vector<ValueId> operands = {zero, list};
    operands.insert(operands.end(), variables.begin(), variables.end());
    const Node& loop =
        outer.AddNode(Op::kWhile, operands, types,
                      Ref("cond_subgraph_index", name + "_cond", "body_subgraph_index", name + "_body"));
    return {loop.results.begin(), loop.results.end()};
  }

  std::string Lower() {
    if (std::string error = Run(LowerTensorLists); !error.empty()) return error;
    return Notes() + Run(RequireLegal);
  }
  std::string Failure(const std::vector<Tensor>& inputs) {
    const auto program = run::Program::Create(module, BuiltIn());
    if (!program) return program.error().message;
    const auto outputs = (*run::Runner::Create(**program, 1))->Run("main", inputs);
    return outputs ? "" : outputs.error().message;
  }
};

}  // namespace fusebox::converter
