// SPDX-License-Identifier: Apache-2.0
// Calls and variables: inlining, own copies, who writes what, freezing, the written form.
#include <gmock/gmock.h>

#include <chrono>
#include <functional>

#include "host/eval/open_sizes.h"
#include "tests/converter/passes/bench.h"

namespace fusebox::converter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Type kHandle{DType::kResource, Shape::Scalar()};
const Type kOne = F32({1});

Function& Unary(Bench& bench, const std::string& name, Op op) {
  Function& f = bench.Add(name);
  f.outputs = f.AddNode(op, {f.AddInput(kOne)}, {kOne}).results;
  return f;
}
ValueId Call(Function& f, const std::string& callee, std::vector<ValueId> operands) {
  Node& node = f.AddNode(Op::kCall, std::move(operands), {kOne}, Ref("subgraph", callee));
  node.location.name = "layer/StatefulPartitionedCall_1";
  return node.results[0];
}

TEST(InlineCalls, InlinesASharedCalleeTwice) {
  Bench bench;
  Function& f = bench.Add("main");
  Unary(bench, "square", Op::kSquare).nodes[0]->location.name = "sq";
  f.outputs = {Call(f, "square", {Call(f, "square", {f.AddInput(kOne)})})};
  bench.Sign(f);
  EXPECT_EQ(bench.Run(InlineCalls), "");
  EXPECT_EQ(Count(f, Op::kSquare), 2u);
  EXPECT_EQ(f.nodes[0]->location.name, "layer/sq") << "call noise is left out";
  EXPECT_EQ(bench.module.functions.size(), 1u);
  EXPECT_THAT(FloatsOf(bench.Compute("main", {Floats({1}, {3})})[0]), ElementsAre(81));
}

TEST(InlineCalls, GivesEachLoopFunctionsOfItsOwn) {
  Bench bench;
  Function& f = bench.Add("main");
  Function& cond = bench.Add("cond");
  cond.AddInput(kOne);
  cond.outputs = {cond.AddConst<uint8_t>(DType::kBool, Shape::Scalar(), {0})};
  Unary(bench, "body", Op::kNeg);
  ValueId x = f.AddInput(kOne);
  for (int i = 0; i < 2; ++i)
    x = f.AddNode(Op::kWhile, {x}, {kOne}, Ref("cond_subgraph_index", "cond", "body_subgraph_index", "body"))
            .results[0];
  f.outputs = {x};
  bench.Sign(f);
  EXPECT_EQ(bench.Run(InlineCalls), "");
  EXPECT_EQ(bench.module.functions.size(), 5u);
  EXPECT_NE(f.nodes[0]->attrs.function("body_subgraph_index")->name,
            f.nodes[1]->attrs.function("body_subgraph_index")->name);
}

TEST(InlineCalls, RefusesCallsThatMultiply) {
  Bench bench;
  Function& f = bench.Add("main");
  f.outputs = {Call(f, "f0", {f.AddInput(kOne)})};
  for (int i = 0; i < 40; ++i) {
    Function& g = bench.Add("f" + std::to_string(i));
    const ValueId x = g.AddInput(kOne);
    if (i == 39) g.outputs = g.AddNode(Op::kNeg, {x}, {kOne}).results;
    else g.outputs = {Call(g, "f" + std::to_string(i + 1), {Call(g, "f" + std::to_string(i + 1), {x})})};
  }
  bench.Sign(f);
  EXPECT_THAT(bench.Run(InlineCalls), HasSubstr("its nested calls expand to more than"));
}

// 60 functions, each of which uses the next one twice, in both branches. `last` adds the result of the last.
struct Doubling : Bench {
  static constexpr int kDeep = 60;
  explicit Doubling(const std::function<ValueId(Function&, ValueId)>& last) {
    const Type flag{DType::kBool, Shape::Scalar()};
    for (int i = 0; i <= kDeep; ++i) {
      Function& g = Add("f" + std::to_string(i));
      const ValueId yes = g.AddInput(flag), x = g.AddInput(kOne);
      const std::string next = "f" + std::to_string(i + 1);
      if (i == kDeep) g.outputs = {last(g, x)};
      else
        g.outputs = g.AddNode(Op::kIf, {yes, yes, x}, {kOne},
                              Ref("then_subgraph_index", next, "else_subgraph_index", next))
                        .results;
    }
    Sign(*module.functions[0]);
  }
};

TEST(InlineCalls, SharesBranchesThatMultiply) {
  Doubling bench([](Function& g, ValueId x) { return g.AddNode(Op::kNeg, {x}, {kOne}).results[0]; });
  EXPECT_EQ(bench.Run(InlineCalls), "");
  EXPECT_EQ(bench.module.functions.size(), 61u);
}

TEST(InlineCalls, RefusesBranchesThatMultiplyAndDependOnTheirCallers) {
  Doubling bench([](Function& g, ValueId x) { return Opaque(g, "Unknown", {x}, kOne); });
  EXPECT_THAT(bench.Run(InlineCalls), HasSubstr("more than 8192 copies of functions"));
}

TEST(Fold, TakesTheBranchOfAKnownCondition) {
  for (const bool yes : {false, true}) {
    Bench bench;
    Function &main = bench.Add("main"), &negate = bench.Add("negate"), &square = bench.Add("square");
    negate.outputs = negate.AddNode(Op::kNeg, {negate.AddInput(kOne)}, {kOne}).results;
    square.outputs = square.AddNode(Op::kSquare, {square.AddInput(kOne)}, {kOne}).results;
    const ValueId known = main.AddConst<uint8_t>(DType::kBool, Shape::Scalar(), {yes});
    main.outputs = main.AddNode(Op::kIf, {known, main.AddInput(kOne)}, {kOne},
                                Ref("then_subgraph_index", "negate", "else_subgraph_index", "square"))
                       .results;
    bench.Sign(main);
    EXPECT_EQ(bench.Run(FoldToFixpoint), "");
    EXPECT_EQ(Count(main, Op::kIf), 0u);
    EXPECT_EQ(Count(main, yes ? Op::kNeg : Op::kSquare), 1u) << ToText(bench.module);
  }
}

// --batch changes the types in an entry, but not those in a branch that has the same function.
TEST(InlineCalls, CopiesEntriesForBranches) {
  for (const bool batch : {false, true}) {
    Doubling bench([](Function& g, ValueId x) { return g.AddNode(Op::kNeg, {x}, {kOne}).results[0]; });
    Function& last = *bench.module.Find("f60");
    bench.Sign(last);
    if (batch) bench.options.batch = 1;
    EXPECT_EQ(bench.Run(InlineCalls), "");
    const auto used = bench.module.Find("f59")->nodes[0]->attrs.function("then_subgraph_index")->name;
    EXPECT_EQ(used == last.name, !batch);
  }
}

TEST(InlineComposites, RefusesBodiesThatMultiply) {
  Bench bench;
  for (int i = 0; i <= 40; ++i) {
    Function& g = bench.Add("f" + std::to_string(i));
    ValueId x = g.AddInput(kOne);
    for (int use = 0; use < 2; ++use) {
      Node& node = g.AddNode(i == 40 ? Op::kNeg : Op::kStablehloComposite, {x}, {kOne});
      if (i < 40) node.name = "twice", node.body = "f" + std::to_string(i + 1);
      x = node.results[0];
    }
    g.outputs = {x};
  }
  bench.Sign(*bench.module.functions[0]);
  EXPECT_EQ(bench.Run(InlineCalls), "");
  EXPECT_EQ(bench.module.functions.size(), 41u) << "they do not depend on their callers";
  EXPECT_THAT(bench.Run(InlineComposites), HasSubstr("its nested calls expand to more than"));
}

// What calls nobody costs no walk over the whole function.
TEST(InlineCalls, IsQuickWithManyNodes) {
  Bench bench;
  Function& f = bench.Add("main");
  ValueId x = f.AddInput(kOne);
  for (int i = 0; i < 40000; ++i) x = f.AddNode(Op::kNeg, {x}, {kOne}).results[0];
  f.outputs = {x};
  bench.Sign(f);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(bench.Run(InlineCalls), "");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
}

TEST(InlineCalls, RefusesRecursion) {
  Bench bench;
  Function& f = bench.Add("main");
  f.outputs = {Call(f, "main", {f.AddInput(kOne)})};
  bench.Sign(f);
  EXPECT_THAT(bench.Run(InlineCalls), HasSubstr("recursive"));
}

// main: while (...) { v += 1 }, the variable's handle carried through the loop.
TEST(InlineCalls, NamesVariablesInsideLoops) {
  Bench bench;
  Function& f = bench.Add("main");
  Function& cond = bench.Add("cond");
  Function& body = bench.Add("body");
  for (Function* inside : {&cond, &body}) {
    inside->AddInput(kOne);
    inside->AddInput(kHandle);
    inside->input_names = {"x", "v"};
  }
  cond.outputs = {cond.AddConst<uint8_t>(DType::kBool, Shape::Scalar(), {0})};
  const ValueId read = body.AddNode(Op::kReadVariable, {body.inputs[1]}, {kOne}).results[0];
  body.outputs = {body.AddNode(Op::kAdd, {body.inputs[0], read}, {kOne}).results[0], body.inputs[1]};
  const ValueId x = f.AddInput(kOne), handle = Handle(f, "v");
  f.outputs = {f.AddNode(Op::kWhile, {x, handle}, {kOne, kHandle},
                         Ref("cond_subgraph_index", "cond", "body_subgraph_index", "body"))
                   .results[0]};
  bench.Sign(f);
  bench.module.variables.push_back({"v", "", kOne, Buffer::Of<float>(std::vector<float>{5})});
  EXPECT_EQ(bench.Run(InlineCalls), "");
  EXPECT_EQ(f.nodes.back()->operands.size(), 1u);
  EXPECT_EQ(body.inputs.size(), 1u);
  EXPECT_EQ(bench.Run(AnalyzeVariables), "");
  EXPECT_EQ(bench.module.variables[0].mutability, Variable::Mutability::kReadOnly)
      << bench.module.variables[0].why;
  EXPECT_EQ(bench.Run(Freeze), "");
  EXPECT_EQ(Count(body, Op::kReadVariable), 0u);
  EXPECT_EQ(Count(body, Op::kVarHandle), 0u);
}

// Variables "r" (read), "w" (written in signature two), "u" (unused).
struct Variables : Bench {
  Function& one = Add("one");
  Function& two = Add("two");
  Variables() {
    const ValueId r = one.AddNode(Op::kReadVariable, {Handle(one, "r")}, {kOne}).results[0];
    const ValueId w = one.AddNode(Op::kReadVariable, {Handle(one, "w")}, {kOne}).results[0];
    one.outputs = {one.AddNode(Op::kAdd, {r, w}, {kOne}).results[0]};
    const ValueId x = two.AddInput(kOne);
    two.AddNode(Op::kAssignVariable, {Handle(two, "w"), x}, {});
    two.nodes.back()->location.name = "step/Assign";
    two.outputs = {x};
    Sign(one);
    Sign(two);
    for (const auto& [name, value] : {std::pair("r", 1.0f), {"w", 2.0f}, {"u", 3.0f}})
      module.variables.push_back({name, "", kOne, Buffer::Of<float>(std::vector<float>{value})});
  }
};

TEST(Variables, ThatAnySignatureWritesStay) {
  Variables bench;
  EXPECT_EQ(bench.Run(AnalyzeVariables), "");
  using enum Variable::Mutability;
  EXPECT_EQ(bench.module.FindVariable("r")->mutability, kReadOnly);
  EXPECT_EQ(bench.module.FindVariable("w")->mutability, kMutable);
  EXPECT_EQ(bench.module.FindVariable("u")->mutability, kUnused);
  ASSERT_EQ(bench.report.variables.size(), 3u);
  EXPECT_EQ(bench.report.variables[1].why, "written by two: step/Assign");
  EXPECT_FALSE(bench.report.variables[0].initial) << "a report holds no weights";
  EXPECT_EQ(bench.Run(Freeze), "");
  EXPECT_EQ(Count(bench.one, Op::kReadVariable), 1u);
  EXPECT_EQ(bench.Run(WriteVariables), "");
  EXPECT_EQ(bench.module.variables.size(), 1u);
  EXPECT_TRUE(bench.one.nodes[0]->is(Op::kCallOnce) && bench.two.nodes[0]->is(Op::kCallOnce));
  EXPECT_THAT(FloatsOf(bench.Compute("one", {})[0]), ElementsAre(3));
}

TEST(Variables, BehindAHandleThatCannotBeFollowedAreAllMutable) {
  Variables bench;
  const ValueId handle = bench.two.AddInput(kHandle);
  bench.module.signatures[1].input_names.push_back("handle");
  bench.two.AddNode(Op::kAssignVariable, {handle, bench.two.inputs[0]}, {});
  EXPECT_EQ(bench.Run(AnalyzeVariables), "");
  EXPECT_EQ(bench.module.FindVariable("r")->mutability, Variable::Mutability::kMutable);
  EXPECT_THAT(bench.module.FindVariable("r")->why, HasSubstr("unknown handle"));
}

TEST(Legal, DropsASignatureThatCannotBeWrittenAndWhatOnlyItUses) {
  Bench bench;
  Function& good = Unary(bench, "good", Op::kNeg);
  Function& bad = bench.Add("bad");
  bad.outputs = {Opaque(bad, "Betainc", {bad.AddInput(kOne)}, kOne),
                 Opaque(bad, "Betainc", {bad.inputs[0]}, kOne)};
  bad.AddNode(Op::kAssignVariable, {Handle(bad, "v"), bad.inputs[0]}, {});
  bench.module.variables.push_back({"v", "", kOne, Buffer::Of<float>(std::vector<float>{5})});
  bench.Sign(good);
  bench.Sign(bad);
  EXPECT_EQ(bench.Run(RequireLegal), "");
  ASSERT_EQ(bench.module.signatures.size(), 1u);
  EXPECT_EQ(bench.module.signatures[0].key, "good");
  ASSERT_EQ(bench.report.refused.size(), 1u);
  EXPECT_EQ(bench.report.refused[0].first, "bad");
  EXPECT_THAT(bench.report.refused[0].second,
              HasSubstr("op Betainc (n/Betainc): there is no translation of this op"));
  ASSERT_EQ(bench.report.unsupported.size(), 1u);
  EXPECT_EQ(bench.report.unsupported[0].count, 2);
  EXPECT_EQ(bench.Run(WriteVariables), "");
  EXPECT_THAT(bench.module.variables, IsEmpty());
  EXPECT_EQ(Count(*bench.module.Find("good"), Op::kCallOnce), 0u);
}

TEST(Legal, FailsWhereTheSignatureWasAskedForOrNoneIsLeft) {
  for (const bool asked : {false, true}) {
    Bench bench;
    Function& bad = bench.Add("bad");
    bad.outputs = {Opaque(bad, "Betainc", {bad.AddInput(kOne)}, kOne)};
    bench.Sign(bad);
    if (asked) {
      bench.Sign(Unary(bench, "good", Op::kNeg));
      bench.options.signatures = {"bad", "good"};
    }
    EXPECT_THAT(bench.Run(RequireLegal), HasSubstr("signature bad: op Betainc"));
  }
}

TEST(Legal, AKeptBodyThatCannotBeWrittenGoesAlone) {
  Bench bench;
  Function& f = bench.Add("main");
  Node& fused = f.AddNode(Op::kCustom, {f.AddInput(kOne)}, {kOne});
  fused.name = "my.op";
  fused.body = "body";
  f.outputs = fused.results;
  Function& body = bench.Add("body");
  body.outputs = {Opaque(body, "Betainc", {body.AddInput(kOne)}, kOne)};
  bench.Sign(f);
  EXPECT_EQ(bench.Run(RequireLegal), "");
  EXPECT_EQ(fused.body, "");
  EXPECT_THAT(bench.Notes(), HasSubstr("body dropped: op Betainc"));
  EXPECT_EQ(bench.module.functions.size(), 1u);
}

TEST(Specialize, SetsBatchAndShapes) {
  Bench bench;
  Function& f = bench.Add("main");
  const ValueId x = f.AddInput(F32({-1, 3})), y = f.AddInput(F32({-1, -1}));
  f.outputs = {f.AddNode(Op::kNeg, {x}, {F32({-1, 3})}).results[0], y};
  bench.Sign(f);
  bench.options.batch = 4;
  bench.options.shapes["i1"] = {2, 5};
  EXPECT_EQ(bench.Run(Specialize), "");
  EXPECT_EQ(f.value(x).type, F32({4, 3}));
  EXPECT_EQ(f.value(y).type, F32({2, 5}));
  EXPECT_EQ(f.value(f.outputs[0]).type, F32({4, 3}));
}

TEST(Specialize, NamesWhatDoesNotFit) {
  const auto error = [](const std::string& name, const Shape& shape, std::optional<int64_t> batch = {}) {
    Bench bench;
    Function& f = bench.Add("main");
    f.outputs = {f.AddInput(F32({-1, 3}))};
    bench.Sign(f);
    if (!name.empty()) bench.options.shapes[name] = shape;
    bench.options.batch = batch;
    return bench.Run(Specialize);
  };
  EXPECT_EQ(error("i0", {2, 4}), "signature main: --shape i0=[2,4]: the model declares [?,3]");
  EXPECT_EQ(error("i0", {2}), "signature main: --shape i0=[2]: the model declares [?,3]");
  EXPECT_EQ(error("image", {2, 3}), "--shape image: no such input; available: i0");
  EXPECT_THAT(error("", {}, 0), HasSubstr("--batch 0"));
}

TEST(FoldShapes, TakesADimensionThatIsKnown) {
  for (const int64_t dim : {0, 1, -1}) {
    Bench bench;
    Function& f = bench.Add("main");
    const ValueId shape = f.AddNode(Op::kShape, {f.AddInput(F32({-1, 7}))}, {I32({2})}).results[0];
    const auto at = [&](int64_t i) {
      return f.AddConst<int32_t>(DType::kI32, {1}, {static_cast<int32_t>(i)});
    };
    Attrs shrink;
    shrink.Set("shrink_axis_mask", 1);
    f.outputs = f.AddNode(Op::kStridedSlice, {shape, at(dim), at(dim + 1), at(1)}, {I32({})}, shrink).results;
    EXPECT_EQ(FoldShapes(*BuiltIn(), bench.module, f), dim == 0 ? 0 : 1);
    EXPECT_EQ(f.value(f.outputs[0]).is_const(), dim != 0);
    if (dim != 0) {
      EXPECT_THAT(f.value(f.outputs[0]).data.As<int32_t>(), ElementsAre(7));
    }
  }
}

TEST(Finish, PutsEntriesFirstAndDropsDefaults) {
  Bench bench;
  Unary(bench, "unused", Op::kNeg);
  Function& f = bench.Add("main");
  Attrs attrs;
  attrs.Set("fused_activation_function", "NONE");
  f.outputs = f.AddNode(Op::kAdd, {f.AddInput(kOne), f.AddInput(kOne)}, {kOne}, attrs).results;
  bench.Sign(f);
  bench.module.source = "/models/demo";
  EXPECT_EQ(bench.Run(Finish), "");
  ASSERT_EQ(bench.module.functions.size(), 1u);
  EXPECT_TRUE(f.nodes[0]->attrs.empty());
  EXPECT_EQ(bench.module.description, "converted by fusebox from demo");
}

}  // namespace
}  // namespace fusebox::converter
