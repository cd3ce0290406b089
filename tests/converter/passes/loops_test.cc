// SPDX-License-Identifier: Apache-2.0
// Loops over tensor lists: lowered to dense tensors, then made to carry less.
#include <gmock/gmock.h>

#include "tests/converter/passes/bench.h"

namespace fusebox::converter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Type kList{DType::kVariant, Shape::Scalar()};
const Type kIndex = {DType::kI32, Shape::Scalar()};

// x [T,2] as a list; for i < T: y[i] = x[i] * w + h; h = h + x[i]; out: y stacked [T,2], h.
struct Loop : Bench {
  Function& f = Add("main");
  Function& cond = Add("cond");
  Function& body = Add("body");
  std::vector<Type> types;
  Node* loop = nullptr;

  explicit Loop(int64_t steps, int64_t width = 2) {
    types = {kIndex, kIndex, F32({width}), F32({}), kList, kList};  // i, T, h, w, x, y
    for (Function* inside : {&cond, &body})
      for (const Type& type : types) inside->AddInput(type);
    cond.outputs =
        cond.AddNode(Op::kLess, {cond.inputs[0], cond.inputs[1]}, {{DType::kBool, Shape::Scalar()}}).results;
    Body(width);
    const ValueId x = f.AddInput(F32({steps, width}));
    const ValueId h = f.AddInput(F32({width}));
    const ValueId w = f.AddConst<float>(DType::kF32, Shape::Scalar(), {10});
    const ValueId zero = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {0});
    const ValueId length = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {static_cast<int32_t>(steps)});
    const ValueId shape = f.AddConst<int32_t>(DType::kI32, {1}, {-1});
    const ValueId from = f.AddNode(Op::kTensorListFromTensor, {x, shape}, {kList}).results[0];
    const ValueId to = f.AddNode(Op::kTensorListReserve, {shape, length}, {kList}).results[0];
    loop = &f.AddNode(Op::kWhile, {zero, length, h, w, from, to}, types,
                      Ref("cond_subgraph_index", "cond", "body_subgraph_index", "body"));
    const ValueId stacked =
        f.AddNode(Op::kTensorListStack, {loop->results[5], shape}, {F32({-1, width})}).results[0];
    f.outputs = {stacked, loop->results[2]};
    Sign(f);
  }
  void Body(int64_t width) {
    const auto& in = body.inputs;
    const ValueId shape = body.AddConst<int32_t>(DType::kI32, {1}, {-1});
    const ValueId one = body.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {1});
    const ValueId item =
        body.AddNode(Op::kTensorListGetItem, {in[4], in[0], shape}, {F32({width})}).results[0];
    const ValueId scaled = body.AddNode(Op::kMul, {item, in[3]}, {F32({width})}).results[0];
    const ValueId y = body.AddNode(Op::kAdd, {scaled, in[2]}, {F32({width})}).results[0];
    const ValueId h = body.AddNode(Op::kAdd, {in[2], item}, {F32({width})}).results[0];
    const ValueId list = body.AddNode(Op::kTensorListSetItem, {in[5], in[0], y}, {kList}).results[0];
    const ValueId next = body.AddNode(Op::kAdd, {in[0], one}, {kIndex}).results[0];
    body.outputs = {next, in[1], h, in[3], in[4], list};
  }
};

TEST(LowerLists, MakesDenseTensorsThatComputeTheSame) {
  Loop bench(3);
  EXPECT_EQ(bench.Run(LowerTensorLists), "");
  EXPECT_THAT(bench.report.notes, IsEmpty());
  for (const Function* f : {&bench.f, &bench.body})
    for (const auto& node : f->nodes) EXPECT_GE(Info(node->op).code, 0) << Describe(*f, *node);
  const auto out = bench.Compute("main", {Floats({3, 2}, {1, 2, 3, 4, 5, 6}), Floats({2}, {100, 200})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_THAT(FloatsOf(out[0]), ElementsAre(110, 220, 131, 242, 154, 266));
  EXPECT_THAT(FloatsOf(out[1]), ElementsAre(109, 212));
}

// LiteRT rejects a file in which a tensor that is no variant has them.
TEST(LowerLists, DropTheTypesOfItems) {
  Loop bench(3);
  const auto each = [&](const auto& visit) {
    for (const auto& f : bench.module.functions)
      for (ValueId v = 0; v < f->value_count(); ++v) visit(f->value(v));
  };
  each([](Value& value) {
    if (value.type == kList) value.extra = "types of items";
  });
  EXPECT_EQ(bench.Run(LowerTensorLists), "");
  each([](const Value& value) { EXPECT_TRUE(value.extra.empty() || value.type == kList) << value.name; });
}

// What TensorFlow's dynamic_size says: a list of none that every turn makes longer by one.
TEST(LowerLists, GrowWhereTheyMay) {
  for (const int32_t length : {0, 1, 3}) {
    Loop bench(3);
    for (const auto& node : bench.f.nodes)
      if (node->is(Op::kTensorListReserve))
        node->operands[1] = bench.f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {length});
    for (const auto& node : bench.body.nodes)
      if (node->is(Op::kTensorListSetItem)) node->attrs.Set("resize_if_index_out_of_bounds", true);
    EXPECT_EQ(bench.Run(LowerTensorLists), "");
    const auto outputs = bench.Compute("main", {Floats({3, 2}, {1, 2, 3, 4, 5, 6}), Floats({2}, {1, 1})});
    ASSERT_EQ(outputs.size(), 2u);
    EXPECT_EQ(outputs[0].type.shape, Shape({3, 2}));
    EXPECT_THAT(FloatsOf(outputs[0]), ElementsAre(11, 21, 32, 43, 55, 67)) << length;
  }
}

// One branch writes to the list, the other hands it on; or one makes a list of its own.
TEST(LowerLists, GoThroughBranches) {
  for (const bool fresh : {false, true}) {
    Bench bench;
    Function &f = bench.Add("main"), &then = bench.Add("then"), &other = bench.Add("other");
    const ValueId given = then.AddInput(kList), item = then.AddInput(F32({2}));
    const ValueId at = then.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {1});
    then.outputs = then.AddNode(Op::kTensorListSetItem, {given, at, item}, {kList}).results;
    const ValueId handed = other.AddInput(kList), row = other.AddInput(F32({2}));
    other.outputs = {handed};
    if (fresh) {
      const ValueId dims = other.AddConst<int32_t>(DType::kI32, {1}, {2}),
                    count = other.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {3}),
                    last = other.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {2});
      const ValueId made = other.AddNode(Op::kTensorListReserve, {dims, count}, {kList}).results[0];
      other.outputs = other.AddNode(Op::kTensorListSetItem, {made, last, row}, {kList}).results;
    }
    const ValueId yes = f.AddInput({DType::kBool, Shape::Scalar()}), x = f.AddInput(F32({2}));
    const ValueId shape = f.AddConst<int32_t>(DType::kI32, {1}, {2}),
                  length = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {3});
    const ValueId list = f.AddNode(Op::kTensorListReserve, {shape, length}, {kList}).results[0];
    const ValueId chosen = f.AddNode(Op::kIf, {yes, list, x}, {kList},
                                     Ref("then_subgraph_index", "then", "else_subgraph_index", "other"))
                               .results[0];
    f.outputs = f.AddNode(Op::kTensorListStack, {chosen, shape}, {F32({3, 2})}).results;
    bench.Sign(f);
    EXPECT_EQ(bench.Run(LowerTensorLists), "");
    EXPECT_EQ(bench.Notes(), "");
    const auto run = [&](uint8_t condition) {
      const Tensor flag{{DType::kBool, Shape::Scalar()}, Buffer::Of<uint8_t>(std::vector{condition})};
      const auto outputs = bench.Compute("main", {flag, Floats({2}, {7, 8})});
      return outputs.empty() ? std::vector<float>() : FloatsOf(outputs[0]);
    };
    EXPECT_THAT(run(1), ElementsAre(0, 0, 7, 8, 0, 0));
    EXPECT_EQ(run(0), fresh ? (std::vector<float>{0, 0, 0, 0, 7, 8}) : std::vector<float>(6));
  }
}

// PushBack, as the translation says it: behind what is there.
TEST(LowerLists, TakeItemsAtTheirEnd) {
  Bench bench;
  Function& f = bench.Add("main");
  const ValueId shape = f.AddConst<int32_t>(DType::kI32, {1}, {-1}),
                most = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {-1});
  const ValueId x = f.AddInput(F32({1, 2})), y = f.AddInput(F32({1, 2}));
  Attrs attrs;
  attrs.Set("element_dtype", DType::kF32);
  ValueId list = Opaque(f, "EmptyTensorList", {shape, most}, kList, attrs);
  for (const ValueId item : {x, y, x}) list = Opaque(f, "TensorListPushBack", {list, item}, kList, attrs);
  Node& concat = f.AddNode(Op::kOpaque, {list, shape, f.AddConst<int64_t>(DType::kI64, {0}, {})},
                           {F32({-1, 2}), {DType::kI64, {-1}}}, attrs);
  concat.name = "TensorListConcatV2";
  const ValueId whole = concat.results[0], rows = concat.results[1];
  const ValueId order = f.AddConst<int32_t>(DType::kI32, {2}, {2, 1});
  f.outputs = {whole, rows, Opaque(f, "TensorListGather", {list, order, shape}, F32({2, 1, 2}), attrs)};
  bench.Sign(f);
  EXPECT_EQ(bench.Run(FoldToFixpoint), "");
  EXPECT_EQ(bench.Run(LowerTensorLists), "");
  EXPECT_EQ(bench.Notes(), "");
  const auto out = bench.Compute("main", {Floats({1, 2}, {1, 2}), Floats({1, 2}, {3, 4})});
  ASSERT_EQ(out.size(), 3u) << ToText(bench.module);
  EXPECT_THAT(FloatsOf(out[0]), ElementsAre(1, 2, 3, 4, 1, 2));
  EXPECT_THAT(out[1].data.As<int64_t>(), ElementsAre(1, 1, 1));
  EXPECT_THAT(FloatsOf(out[2]), ElementsAre(1, 2, 3, 4));
}

TEST(LowerLists, RefuseItemsOfDifferentShapes) {
  Bench bench;
  Function& f = bench.Add("main");
  const ValueId shape = f.AddConst<int32_t>(DType::kI32, {1}, {-1}),
                most = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {-1});
  Attrs attrs;
  attrs.Set("element_dtype", DType::kF32);
  ValueId list = Opaque(f, "EmptyTensorList", {shape, most}, kList, attrs);
  for (const int64_t size : {4, 2})
    list = Opaque(f, "TensorListPushBack", {list, f.AddInput(F32({size}))}, kList, attrs);
  f.outputs = {Opaque(f, "TensorListStack", {list, shape}, F32({-1, -1}), attrs)};
  bench.Sign(f);
  EXPECT_EQ(bench.Run(FoldToFixpoint), "");
  EXPECT_EQ(bench.Run(LowerTensorLists), "");
  EXPECT_THAT(bench.Notes(), HasSubstr("items of different shapes, f32[4] and f32[2]"));
  EXPECT_THAT(bench.Run(RequireLegal), HasSubstr("items of different shapes, f32[4] and f32[2]"));
}

// Each branch takes the list several times: asked once per way there, this would take for ever.
TEST(LowerLists, GoThroughManyBranches) {
  constexpr int kMany = 14, kWidth = 6;
  Bench bench;
  Function& f = bench.Add("main");
  const ValueId yes = f.AddInput({DType::kBool, Shape::Scalar()}), x = f.AddInput(F32({-1}));
  const ValueId shape = f.AddConst<int32_t>(DType::kI32, {1}, {-1}),
                length = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {0});
  ValueId list = f.AddNode(Op::kTensorListReserve, {shape, length}, {kList}).results[0];
  for (int k = 0; k < kMany; ++k) {
    const std::string names[] = {"then" + std::to_string(k), "other" + std::to_string(k)};
    std::vector<ValueId> operands = {yes};
    for (int i = 0; i < kWidth; ++i) operands.push_back(list);
    for (const std::string& name : names) {
      Function& branch = bench.Add(name);
      for (int i = 0; i < kWidth; ++i) branch.AddInput(kList);
      branch.outputs = {branch.inputs[0]};
    }
    list = f.AddNode(Op::kIf, operands, {kList},
                     Ref("then_subgraph_index", names[0], "else_subgraph_index", names[1]))
               .results[0];
  }
  const ValueId zero = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {0});
  Attrs grows;
  grows.Set("resize_if_index_out_of_bounds", true);
  list = f.AddNode(Op::kTensorListSetItem, {list, zero, x}, {kList}, grows).results[0];
  f.outputs = f.AddNode(Op::kTensorListStack, {list, shape}, {F32({-1, -1})}).results;
  bench.Sign(f);
  EXPECT_EQ(bench.Run(LowerTensorLists), "");
  EXPECT_EQ(bench.Notes(), "");
}

TEST(LowerLists, OfALoopThatNeverRuns) {
  Loop bench(0);
  EXPECT_EQ(bench.Run(LowerTensorLists), "");
  const auto out = bench.Compute("main", {Floats({0, 2}, {}), Floats({2}, {7, 8})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].type.shape, Shape({0, 2}));
  EXPECT_THAT(FloatsOf(out[1]), ElementsAre(7, 8));
}

TEST(LowerLists, GivesTheLength) {
  Bench bench;
  Function& f = bench.Add("main");
  const ValueId shape = f.AddConst<int32_t>(DType::kI32, {1}, {-1});
  const ValueId list =
      f.AddNode(Op::kTensorListFromTensor, {f.AddInput(F32({-1, 2})), shape}, {kList}).results[0];
  f.outputs = f.AddNode(Op::kTensorListLength, {list}, {kIndex}).results;
  bench.Sign(f);
  EXPECT_EQ(bench.Run(LowerTensorLists), "");
  const auto out = bench.Compute("main", {Floats({4, 2}, std::vector<float>(8))});
  EXPECT_EQ(out[0].data.As<int32_t>()[0], 4);
}

TEST(LowerLists, HoldsElementsOfAnyType) {
  Bench bench;
  Function& f = bench.Add("main");
  const Type flag{DType::kBool, Shape::Scalar()};
  const ValueId shape = f.AddConst<int32_t>(DType::kI32, {0}, {}),
                two = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {2});
  const ValueId list = f.AddNode(Op::kTensorListReserve, {shape, two}, {kList}).results[0];
  const ValueId one = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {1});
  const ValueId set = f.AddNode(Op::kTensorListSetItem, {list, one, f.AddInput(flag)}, {kList}).results[0];
  f.outputs = f.AddNode(Op::kTensorListStack, {set, shape}, {{DType::kBool, {2}}}).results;
  bench.Sign(f);
  EXPECT_EQ(bench.Run(LowerTensorLists), "");
  EXPECT_THAT(bench.report.notes, IsEmpty()) << ToText(bench.module);
  bool fills = false;
  for (const auto& node : f.nodes)
    if (node->is(Op::kFill)) fills = f.value(node->operands[1]).type == flag;
  EXPECT_TRUE(fills) << ToText(f);
}

TEST(LowerLists, SaysWhichListItDoesNotKnowEnoughOf) {
  Loop bench(3, -1);
  Function& body = bench.body;  // an item whose length hangs on its values
  for (size_t i = 0; i < body.nodes.size(); ++i) {
    if (!body.nodes[i]->is(Op::kTensorListSetItem)) continue;
    const ValueId item = body.nodes[i]->operands[2];
    const ValueId places = body.InsertNode(i, Op::kWhere, {item}, {{DType::kI64, {-1, 1}}}).results[0];
    const ValueId found = body.InsertNode(i + 1, Op::kGatherNd, {item, places}, {F32({-1})}).results[0];
    body.nodes[i + 2]->operands[2] = found;
    break;
  }
  EXPECT_EQ(bench.Run(LowerTensorLists), "");
  EXPECT_THAT(
      bench.Notes(),
      HasSubstr("the shape of the list's elements is not known: fix the inputs' shapes (--shape i0=3,N"));
}

// The same loop over elements of a width that only a run knows, with y[i] = h as an RNN has it.
struct StateLoop : Loop {
  StateLoop() : Loop(3, -1) {
    for (const auto& node : body.nodes)
      if (node->is(Op::kTensorListSetItem)) node->operands[2] = body.outputs[2];
  }
  std::string Failure(const std::vector<Tensor>& inputs) {
    const auto program = run::Program::Create(module, BuiltIn());
    if (!program) return program.error().message;
    const auto outputs = (*run::Runner::Create(**program, 1))->Run("main", inputs);
    return outputs ? "" : outputs.error().message;
  }
};

TEST(LowerLists, TakesTheShapeOfElementsFromTheVariableThatTheyGoThrough) {
  StateLoop bench;
  EXPECT_EQ(bench.Run(LowerTensorLists), "");
  EXPECT_THAT(bench.report.notes, IsEmpty()) << ToText(bench.module);
  for (const Function* f : {&bench.f, &bench.body})
    for (const auto& node : f->nodes) EXPECT_GE(Info(node->op).code, 0) << Describe(*f, *node);
  const Type list = F32({3, -1});
  for (const Type& type :
       {bench.f.value(bench.loop->operands[5]).type, bench.f.value(bench.loop->results[5]).type,
        bench.cond.value(bench.cond.inputs[5]).type, bench.body.value(bench.body.inputs[5]).type,
        bench.body.value(bench.body.outputs[5]).type})
    EXPECT_EQ(ToString(type), ToString(list)) << ToText(bench.module);
  auto out = bench.Compute("main", {Floats({3, 2}, {1, 2, 3, 4, 5, 6}), Floats({2}, {100, 200})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_THAT(FloatsOf(out[0]), ElementsAre(101, 202, 104, 206, 109, 212));
  EXPECT_THAT(FloatsOf(out[1]), ElementsAre(109, 212));
  out = bench.Compute("main", {Floats({3, 1}, {1, 2, 3}), Floats({1}, {10})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].type.shape, Shape({3, 1}));
  EXPECT_THAT(FloatsOf(out[0]), ElementsAre(11, 13, 16));
}

TEST(LowerLists, MakesTheListWhereThatVariableIsDefined) {
  StateLoop bench;
  const ValueId h = bench.loop->operands[2];
  const Node& twice = bench.f.InsertNode(2, Op::kAdd, {h, h}, {F32({-1})});
  ASSERT_TRUE(bench.f.nodes[1]->is(Op::kTensorListReserve));
  bench.loop->operands[2] = twice.results[0];
  EXPECT_EQ(bench.Run(LowerTensorLists), "");
  EXPECT_THAT(bench.report.notes, IsEmpty()) << ToText(bench.module);
  const auto out = bench.Compute("main", {Floats({3, 1}, {1, 2, 3}), Floats({1}, {10})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_THAT(FloatsOf(out[0]), ElementsAre(21, 23, 26));
}

TEST(LowerLists, FailsRatherThanMisplaceElementsOfAnotherShapeThanTheVariableBeganWith) {
  StateLoop bench;
  for (const auto& node : bench.body.nodes)  // h = x[i], whatever h was
    if (node->results[0] == bench.body.outputs[2]) node->operands[0] = bench.body.inputs[3];
  EXPECT_EQ(bench.Run(LowerTensorLists), "");
  EXPECT_THAT(bench.report.notes, IsEmpty()) << ToText(bench.module);
  EXPECT_EQ(bench.Failure({Floats({3, 2}, {1, 2, 3, 4, 5, 6}), Floats({2}, {0, 0})}), "");
  EXPECT_THAT(bench.Failure({Floats({3, 1}, {1, 2, 3}), Floats({2}, {0, 0})}), HasSubstr("RESHAPE"));
  EXPECT_NE(bench.Failure({Floats({3, 2}, {1, 2, 3, 4, 5, 6}), Floats({1}, {0})}), "");
}

TEST(SimplifyLoops, CarriesWhatChangesAndIsRead) {
  Loop bench(3);
  EXPECT_EQ(bench.Run(LowerTensorLists), "");
  bench.f.outputs.pop_back();  // nobody asks for h, but y hangs on it
  bench.module.signatures[0].output_names.pop_back();
  EXPECT_EQ(bench.Run(SimplifyLoops), "");
  const Node* loop = nullptr;
  for (const auto& node : bench.f.nodes)
    if (node->is(Op::kWhile)) loop = node.get();
  ASSERT_NE(loop, nullptr);
  EXPECT_EQ(loop->operands.size(), 4u) << "i, h, x and y stay; T and w are constants:\n"
                                       << ToText(bench.module);
  const auto out = bench.Compute("main", {Floats({3, 2}, {1, 2, 3, 4, 5, 6}), Floats({2}, {100, 200})});
  EXPECT_THAT(FloatsOf(out[0]), ElementsAre(110, 220, 131, 242, 154, 266));
}

TEST(SimplifyLoops, DropsAVariableThatNobodyNeeds) {
  Loop bench(3);
  EXPECT_EQ(bench.Run(LowerTensorLists), "");
  bench.f.outputs.erase(bench.f.outputs.begin());  // only h is asked for: y goes, with its list
  bench.module.signatures[0].output_names.pop_back();
  EXPECT_EQ(bench.Run(SimplifyLoops), "");
  const Node& loop = *bench.f.nodes.back();
  ASSERT_TRUE(loop.is(Op::kWhile)) << ToText(bench.f);
  EXPECT_EQ(loop.operands.size(), 3u);
  const auto out = bench.Compute("main", {Floats({3, 2}, {1, 2, 3, 4, 5, 6}), Floats({2}, {100, 200})});
  EXPECT_THAT(FloatsOf(out[0]), ElementsAre(109, 212));
}

TEST(SimplifyLoops, LeavesALoopOneVariable) {
  Bench bench;
  Function& f = bench.Add("main");
  for (const char* name : {"cond", "body"}) {
    Function& inside = bench.Add(name);
    inside.outputs = {inside.AddInput(F32({1}))};
  }
  Function& cond = *bench.module.Find("cond");
  cond.outputs = {cond.AddConst<uint8_t>(DType::kBool, Shape::Scalar(), {0})};
  const ValueId x = f.AddInput(F32({1}));
  f.AddNode(Op::kWhile, {x}, {F32({1})}, Ref("cond_subgraph_index", "cond", "body_subgraph_index", "body"));
  f.outputs = {x};
  bench.Sign(f);
  EXPECT_EQ(bench.Run(SimplifyLoops), "");
  EXPECT_EQ(f.nodes[0]->operands.size(), 1u);
}

}  // namespace
}  // namespace fusebox::converter
