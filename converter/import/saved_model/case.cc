// SPDX-License-Identifier: Apache-2.0
// Case(index, arguments...) calls one of its branches, the last one if the index is out of range. TFLite has
// no such op; Case becomes nested Ifs.
#include <algorithm>

#include "converter/import/saved_model/function_import.h"
#include "host/graph/rewriter.h"

namespace fusebox::saved_model {
namespace {

// Adds nodes at the end of a function.
struct Adder : Rewriter {
  using Rewriter::Rewriter;
  ValueId Add(Op op, ValueIds operands, DType dtype) {
    return Typed(op, std::move(operands), {dtype, fusebox::Shape::Scalar()});
  }
  ValueId Number(size_t value) { return I32Scalar(static_cast<int64_t>(value)); }
};

// Branches as functions of the index and the arguments.
struct Branches {
  Module& module;
  std::span<const std::string> names;
  std::vector<Type> inputs, results;

  // Selects one of [begin, end) by bisection, which keeps the nesting shallow.
  std::vector<ValueId> Choose(Function& f, size_t begin, size_t end,
                              const std::vector<ValueId>& operands) const {
    if (end - begin == 1)
      return f
          .AddNode(Op::kCall, {operands.begin() + 1, operands.end()}, results,
                   MakeAttrs("subgraph", FunctionRef{names[begin]}))
          .results;
    const size_t middle = (begin + end) / 2;
    Adder add(f);
    std::vector<ValueId> all = {add.Add(Op::kLess, {operands[0], add.Number(middle)}, DType::kBool)};
    all.insert(all.end(), operands.begin(), operands.end());
    Attrs attrs;
    attrs.Set("then_subgraph_index", FunctionRef{AddFunction(begin, middle)});
    attrs.Set("else_subgraph_index", FunctionRef{AddFunction(middle, end)});
    return f.AddNode(Op::kIf, std::move(all), results, std::move(attrs)).results;
  }

  std::string AddFunction(size_t begin, size_t end) const {
    std::string name = names[begin] + "_cases";
    while (module.Find(name)) name += "_";
    Function& f = module.Add(name);
    for (const Type& type : inputs) f.AddInput(type);
    f.outputs = Choose(f, begin, end, f.inputs);
    return name;
  }
};

}  // namespace

Result<ValueId> ConditionOf(Function& f, ValueId condition, const std::string& node) {
  const Type type = f.value(condition).type;
  if (type.shape.rank() > 0) {
    const auto count = type.shape.element_count();
    if (!count) return Unsupported("its condition is " + ToString(type) + ", whose size is unknown");
    return f.AddConst<uint8_t>(DType::kBool, fusebox::Shape::Scalar(), {static_cast<uint8_t>(*count > 0)});
  }
  constexpr DType kNumbers[] = {DType::kI8, DType::kI16, DType::kI32, DType::kI64,
                                DType::kU8, DType::kF32, DType::kF64};
  if (std::ranges::find(kNumbers, type.dtype) == std::end(kNumbers)) return condition;
  const ValueId zero =
      f.AddConst({type.dtype, fusebox::Shape::Scalar()}, Buffer::Make(BitsOf(type.dtype) / 8, nullptr));
  Node& made = f.AddNode(Op::kNotEqual, {condition, zero}, {{DType::kBool, type.shape}});
  made.location.name = node;
  return made.results[0];
}

std::vector<std::string> BranchesOf(const tf::NodeDef& of_case) {
  std::vector<std::string> names;
  if (const auto it = of_case.attr().find("branches"); it != of_case.attr().end())
    for (const auto& function : it->second.list().func()) names.push_back(function.name());
  return names;
}

Result<std::vector<ValueId>> AddCase(Module& module, Function& f, const std::vector<std::string>& branches,
                                     const std::vector<ValueId>& operands, const std::vector<Type>& results) {
  constexpr size_t kMost = 1024;
  if (operands.empty()) return Invalid("it has no index");
  if (branches.empty()) return Invalid("it has no branches");
  if (branches.size() > kMost) return Unsupported("it has more than " + std::to_string(kMost) + " branches");
  std::vector<Type> inputs;
  for (const ValueId operand : operands) inputs.push_back({f.value(operand).type.dtype, fusebox::Shape()});
  inputs[0].shape = fusebox::Shape::Scalar();
  Adder add(f);
  const ValueId last = add.Number(branches.size() - 1);
  const ValueId below = add.Add(Op::kLess, {operands[0], add.Number(0)}, DType::kBool);
  std::vector<ValueId> inside = operands;
  inside[0] = add.Add(Op::kSelectV2, {below, last, add.Add(Op::kMinimum, {operands[0], last}, DType::kI32)},
                      DType::kI32);
  return Branches{module, branches, std::move(inputs), results}.Choose(f, 0, branches.size(), inside);
}

}  // namespace fusebox::saved_model
