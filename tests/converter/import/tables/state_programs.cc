// SPDX-License-Identifier: Apache-2.0
// Variables and tensor lists.
#include "host/graph/values.h"
#include "tests/converter/import/tables/programs.h"

namespace fusebox::converter {
namespace {

const Type kList{DType::kVariant, Shape::Scalar()};

Attrs OfFloats() { return A("element_dtype", DType::kF32); }

// A variable [1, 2] that an input is assigned to, added to or subtracted from; then it is read.
Program Writes(const char* op, std::vector<double> after, int runs) {
  return {op,
          [op](ProgramWriter& w) {
            const ValueId v = w.Variable(F({2}, {1, 2}));
            w.Ops(op, {v, w.In(F32({2}))}, {}, 0);
            w.Out(w.One("ReadVariableOp", {v}, A("dtype", DType::kF32), F32({2})));
          },
          {F({2}, {10, 30})},
          Are({std::move(after)}),
          runs};
}

// A list of the rows of an input [2, 3], and what is asked of it.
Program OfRows(const char* op, std::function<void(ProgramWriter&, ValueId)> ask,
               std::vector<std::vector<double>> expected) {
  return {op,
          [ask = std::move(ask)](ProgramWriter& w) {
            const ValueId x = w.In(F32({2, 3}));
            ask(w, w.One("TensorListFromTensor", {x, w.C(I({1}, {3}))}, OfFloats(), kList));
          },
          {F({2, 3}, {1, 2, 3, 4, 5, 6})},
          Are(std::move(expected))};
}

ValueId Stack(ProgramWriter& w, ValueId list) {
  return w.One("TensorListStack", {list, w.C(I({1}, {3}))}, OfFloats(), {DType::kF32, Shape()});
}

// An empty list, onto which the input and twice the input are pushed.
Program Pushes(const char* op) {
  return {op,
          [](ProgramWriter& w) {
            const ValueId x = w.In(F32({3}));
            const ValueId none =
                w.One("EmptyTensorList", {w.C(I({1}, {3})), w.C(I({}, {-1}))}, OfFloats(), kList);
            const ValueId one = w.One("TensorListPushBack", {none, x}, OfFloats(), kList);
            const ValueId two = w.One("TensorListPushBack", {one, w.One("AddV2", {x, x})}, OfFloats(), kList);
            w.Out(Stack(w, two));
          },
          {F({3}, {1, 2, 3})},
          Are({{1, 2, 3, 2, 4, 6}})};
}

// A list of two zeros, of which the second is set.
Program Sets(const char* op) {
  return {op,
          [](ProgramWriter& w) {
            const ValueId x = w.In(F32({3}));
            const ValueId list =
                w.One("TensorListReserve", {w.C(I({1}, {3})), w.C(I({}, {2}))}, OfFloats(), kList);
            w.Out(Stack(w, w.One("TensorListSetItem", {list, w.C(I({}, {1})), x}, OfFloats(), kList)));
          },
          {F({3}, {1, 2, 3})},
          Are({{0, 0, 0, 1, 2, 3}})};
}

}  // namespace

std::function<void(const Program::Outputs&)> Are(std::vector<std::vector<double>> expected) {
  return [expected = std::move(expected)](const Program::Outputs& outputs) {
    ASSERT_EQ(outputs.size(), expected.size());
    for (size_t o = 0; o < outputs.size(); ++o) {
      const auto values = ToDoubles(outputs[o]);
      ASSERT_EQ(values.size(), expected[o].size()) << "output " << o;
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(values[i], expected[o][i], 1e-5) << "output " << o << " at " << i;
    }
  };
}

std::vector<Program> StatePrograms() {
  const Tensor table = F({3, 2}, {1, 2, 3, 4, 5, 6});
  const Attrs f32 = A("dtype", DType::kF32);
  std::vector<Program> programs = {
      {"ReadVariableOp",
       [=](ProgramWriter& w) { w.Out(w.One("ReadVariableOp", {w.Variable(table)}, f32)); },
       {},
       Are({{1, 2, 3, 4, 5, 6}})},
      {"ResourceGather",
       [=](ProgramWriter& w) { w.Out(w.One("ResourceGather", {w.Variable(table), w.In(I32({2}))}, f32)); },
       {I({2}, {2, 0})},
       Are({{5, 6, 1, 2}})},
      {"ResourceGather",
       [=](ProgramWriter& w) {
         w.Out(w.One("ResourceGather", {w.Variable(table), w.In(I32({3, 1}))},
                     A("dtype", DType::kF32, "batch_dims", 1)));
       },
       {I({3, 1}, {1, 0, 1})},
       Are({{2, 3, 6}})},
      {"VariableShape",
       [=](ProgramWriter& w) {
         const ValueId v = w.Variable(table);
         w.Out(w.One("VariableShape", {v}));
         w.Out(w.One("VariableShape", {v}, A("out_type", DType::kI64)));
       },
       {},
       Are({{3, 2}, {3, 2}})},
      Writes("AssignVariableOp", {10, 30}, 2),
      Writes("AssignAddVariableOp", {21, 62}, 2),
      Writes("AssignSubVariableOp", {-19, -58}, 2),
      Pushes("EmptyTensorList"),
      Pushes("TensorListPushBack"),
      Sets("TensorListReserve"),
      Sets("TensorListSetItem"),
  };
  for (const char* op : {"TensorListFromTensor", "TensorListStack"})
    programs.push_back(
        OfRows(op, [](ProgramWriter& w, ValueId list) { w.Out(Stack(w, list)); }, {{1, 2, 3, 4, 5, 6}}));
  programs.push_back(
      OfRows("TensorListGetItem",
             [](ProgramWriter& w, ValueId list) {
               w.Out(w.One("TensorListGetItem", {list, w.C(I({}, {1})), w.C(I({1}, {3}))}, OfFloats()));
             },
             {{4, 5, 6}}));
  programs.push_back(OfRows("TensorListLength",
                            [](ProgramWriter& w, ValueId list) { w.Out(w.One("TensorListLength", {list})); },
                            {{2}}));
  programs.push_back(
      OfRows("TensorListGather",
             [](ProgramWriter& w, ValueId list) {
               w.Out(w.One("TensorListGather", {list, w.C(I({3}, {1, 0, 1})), w.C(I({1}, {3}))}, OfFloats()));
             },
             {{4, 5, 6, 1, 2, 3, 4, 5, 6}}));
  programs.push_back(
      OfRows("TensorListConcatV2",
             [](ProgramWriter& w, ValueId list) {
               w.Out(w.Ops("TensorListConcatV2", {list, w.C(I({1}, {3})), w.C(L({0}, {}))}, OfFloats(), 2));
             },
             {{1, 2, 3, 4, 5, 6}, {3, 3}}));
  return programs;
}

}  // namespace fusebox::converter
