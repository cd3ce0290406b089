// SPDX-License-Identifier: Apache-2.0
// Mutations: a kernel that is wrong in one way must be caught, and one that is right must not.
#include <gmock/gmock.h>

#include "host/graph/values.h"
#include "host/verify/cases.h"
#include "host/verify/verify.h"
#include "tests/host/verify/pair.h"

namespace fusebox::verify {
namespace {

using ::testing::HasSubstr;

// x / sqrt(mean(x^2) + 0.001)
void BuildNorm(Pair& pair, const std::string& fault, std::vector<int64_t> dims = {3, 4}) {
  const auto [x, y] = pair.Input(F32(dims));
  Function& f = pair.body;
  Attrs keep;
  keep.Set("keep_dims", true);
  const ValueId square = f.AddNode(Op::kSquare, {x}, {F32(dims)}).results[0];
  const ValueId axis = f.AddConst<int32_t>(DType::kI32, {1}, {1});
  const ValueId epsilon = f.AddConst<float>(DType::kF32, Shape::Scalar(), {0.001f});
  const ValueId mean = f.AddNode(Op::kMean, {square, axis}, {F32({dims[0], 1})}, keep).results[0];
  const ValueId sum = f.AddNode(Op::kAdd, {mean, epsilon}, {F32({dims[0], 1})}).results[0];
  const ValueId root = f.AddNode(Op::kSqrt, {sum}, {F32({dims[0], 1})}).results[0];
  f.outputs = f.AddNode(Op::kDiv, {x, root}, {F32(dims)}).results;
  pair.Replace("b.norm", {y}, fault, fault == "shape" ? F32({dims[0]}) : F32(dims));
}

TEST(VerifyFused, AgreesWithARightKernelAgainstF64) {
  Pair pair;
  BuildNorm(pair, "none");
  const Verdict verdict = pair.Ask();
  EXPECT_EQ(verdict.outcome, Outcome::kAgrees) << verdict.Summary();
  EXPECT_EQ(verdict.truth, "f64");
  EXPECT_EQ(verdict.cases.size(), 6u);
  EXPECT_THAT(verdict.Summary(), HasSubstr("agrees (f64, 6 cases, worst "));
  EXPECT_EQ(pair.Ask(false).cases.size(), 2u);
}

TEST(VerifyFused, DoesNotAllocateGiantOperands) {
  Pair pair;
  BuildNorm(pair, "none", {int64_t{1} << 40, 4});
  const Verdict verdict = pair.Ask();
  EXPECT_EQ(verdict.outcome, Outcome::kNotVerified);
  EXPECT_THAT(verdict.why, HasSubstr("operand 0 is f32[1099511627776,4]; the operands need more than"));
}

class Mutation : public ::testing::TestWithParam<const char*> {};

TEST_P(Mutation, IsCaught) {
  Pair pair;
  BuildNorm(pair, GetParam());
  const Verdict verdict = pair.Ask();
  EXPECT_EQ(verdict.outcome, Outcome::kDiffers) << verdict.Summary();
  EXPECT_THAT(verdict.why, HasSubstr("seed 1"));
}

INSTANTIATE_TEST_SUITE_P(All, Mutation, ::testing::Values("epsilon", "tail", "axis", "leak", "shape", "fail"),
                         [](const auto& info) { return std::string(info.param); });

// Memory that held the body's results before must not serve as the results of a kernel that writes none.
TEST(VerifyFused, CatchesResultsThatAreNotWritten) {
  for (const int64_t rows : {1, 3, 45, 1000, 100000}) {
    Pair pair;
    BuildNorm(pair, "unwritten", {rows, 4});
    EXPECT_EQ(pair.Ask().outcome, Outcome::kDiffers) << rows;
  }
}

TEST(VerifyFused, TellsThePlaceOfTheWorstError) {
  Pair tail, leak, shape, fail;
  BuildNorm(tail, "tail");
  EXPECT_THAT(tail.Ask().why, HasSubstr("result 0 [2,3]: "));
  BuildNorm(leak, "leak");
  EXPECT_THAT(leak.Ask().why, HasSubstr("in a second call, result 0 [0,0]: "));
  BuildNorm(shape, "shape");
  EXPECT_THAT(shape.Ask().why, HasSubstr("expected shape [3,4]"));
  BuildNorm(fail, "fail");
  EXPECT_THAT(fail.Ask().why, HasSubstr("the fused op fails: "));
}

TEST(VerifyFused, CatchesTransposedWeightsThatAreConstant) {
  for (const std::string fault : {"none", "transposed"}) {
    Pair pair;
    const auto [x, y] = pair.Input(F32({2, 3}));
    const auto [w, v] = pair.Input(F32({3, 3}));
    pair.constants[1] = {F32({3, 3}), Buffer::Of<float>(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9})};
    pair.body.outputs = pair.body.AddNode(Op::kBatchMatmul, {x, w}, {F32({2, 3})}).results;
    pair.Replace("b.product", {y, v}, fault, F32({2, 3}));
    EXPECT_EQ(pair.Ask().outcome, fault == "none" ? Outcome::kAgrees : Outcome::kDiffers) << fault;
  }
}

// Roundings of values of 1e30 are not 1e22 to people who read the summary.
TEST(VerifyFused, TellsErrorsInUnitsOfTheResult) {
  Pair pair;
  const auto [x, y] = pair.Input(F32({2, 3}));
  const auto [w, v] = pair.Input(F32({3, 3}));
  pair.constants[1] = {F32({3, 3}), Buffer::Of<float>(std::vector<float>(9, 0.1F))};
  pair.body.outputs = pair.body.AddNode(Op::kBatchMatmul, {x, w}, {F32({2, 3})}).results;
  pair.Replace("b.product", {y, v}, "none", F32({2, 3}));
  const Verdict verdict = pair.Ask();
  EXPECT_EQ(verdict.outcome, Outcome::kAgrees) << verdict.Summary();
  double largest = 0;
  for (const Case& c : verdict.cases) largest = std::max(largest, c.worst);
  EXPECT_GT(largest, 0);
  EXPECT_LT(largest, 1e-5) << verdict.Summary();
}

// An infinity of the truth is no licence: it must be met.
TEST(VerifyFused, AsksForInfinitiesWhereTheBodyHasThem) {
  for (const std::string fault : {"none", "clamp"}) {
    Pair pair;
    const auto [x, y] = pair.Input(F32({4}));
    const ValueId one = pair.body.AddConst<float>(DType::kF32, Shape::Scalar(), {1});
    pair.body.outputs = pair.body.AddNode(Op::kDiv, {one, x}, {F32({4})}).results;
    pair.Replace("b.inverse", {y}, fault, F32({4}));
    const Verdict verdict = pair.Ask(false);  // normal and zero
    EXPECT_EQ(verdict.outcome, fault == "none" ? Outcome::kAgrees : Outcome::kDiffers) << verdict.Summary();
  }
}

// The sine of a million hangs on the last bits of its products, three in f32. What is off by no more than
// four roundings, of which the sine is one, is right, though far from the truth; what is off by more is not.
TEST(VerifyFused, AllowsForRoundingAndNoMore) {
  for (const int off : {0, 3, -3, 16, 64}) {
    Pair pair;
    const auto [x, y] = pair.Input(F32({20}));
    const ValueId ten = pair.body.AddConst<float>(DType::kF32, Shape::Scalar(), {10});
    ValueId product = x;
    for (int i = 0; i < 3; ++i) product = pair.body.AddNode(Op::kMul, {product, ten}, {F32({20})}).results[0];
    pair.body.outputs = pair.body.AddNode(Op::kSin, {product}, {F32({20})}).results;
    Attrs attrs;
    attrs.Set("off", double(off));
    Node& node = pair.replacement.AddNode(Op::kCustom, {y}, {F32({20})}, attrs);
    node.name = "b.wave";
    pair.replacement.outputs = node.results;
    const Verdict verdict = pair.Ask();
    EXPECT_EQ(verdict.outcome, std::abs(off) <= 3 ? Outcome::kAgrees : Outcome::kDiffers)
        << off << ": " << verdict.Summary();
  }
}

// (1e8 x + x) - 1e8 x is x, but mostly 0 in f32. That error would excuse 2 x, too.
TEST(VerifyFused, DoesNotTakeABodyThatIsItselfWrongForAProof) {
  for (const bool right : {true, false}) {
    Pair pair;
    const auto [x, y] = pair.Input(F32({20}));
    const auto node = [](Function& f, Op op, ValueId a, ValueId b) {
      return f.AddNode(op, {a, b}, {F32({20})}).results[0];
    };
    Function& f = pair.body;
    const ValueId product = node(f, Op::kMul, x, f.AddConst<float>(DType::kF32, Shape::Scalar(), {1e8F}));
    f.outputs = {node(f, Op::kSub, node(f, Op::kAdd, product, x), product)};
    const ValueId zero = pair.replacement.AddConst<float>(DType::kF32, Shape::Scalar(), {0});
    pair.replacement.outputs = {node(pair.replacement, Op::kAdd, y, right ? zero : y)};
    const Verdict verdict = pair.Ask();
    EXPECT_EQ(verdict.outcome, right ? Outcome::kAgrees : Outcome::kNotVerified) << verdict.Summary();
    EXPECT_EQ(verdict.unprovable, !right);
    if (!right) {
      EXPECT_THAT(verdict.Summary(), HasSubstr("cannot be verified: the body's own f32 error is "));
    }
  }
}

TEST(VerifyFused, GivesOperandsTheShapesThatTheCallerKnows) {
  Pair pair;
  BuildNorm(pair, "none", {-1, 4});
  Options options;
  options.shapes = {Shape{5, 4}};
  const auto verdict = VerifyFused(pair.module, pair.body, pair.scratch, pair.replacement, pair.constants,
                                   pair.used, pair.tolerance, Broken(), options);
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_EQ(verdict->outcome, Outcome::kAgrees) << verdict->Summary();
  options.shapes = {Shape{5, 3}};  // which the body does not take
  const auto other = VerifyFused(pair.module, pair.body, pair.scratch, pair.replacement, pair.constants,
                                 pair.used, pair.tolerance, Broken(), options);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_NE(other->outcome, Outcome::kAgrees) << other->Summary();
}

TEST(VerifyFused, LooksOnlyAtResultsThatSomebodyReads) {
  Pair pair;
  BuildNorm(pair, "tail");
  pair.used = {false};
  EXPECT_EQ(pair.Ask().outcome, Outcome::kAgrees);
}

TEST(VerifyFused, TakesTheToleranceThatTheRuleDeclares) {
  Pair pair;
  BuildNorm(pair, "tail");
  pair.tolerance.atol = 0.1;
  EXPECT_EQ(pair.Ask().outcome, Outcome::kAgrees);
}

TEST(VerifyFused, GivesOpenDimensionsASize) {
  Pair pair;
  BuildNorm(pair, "none", {-1, 4});
  const Verdict verdict = pair.Ask();
  EXPECT_EQ(verdict.outcome, Outcome::kAgrees) << verdict.Summary();
  EXPECT_EQ(verdict.cases[0].name, "normal, unknown sizes 3");
}

TEST(VerifyFused, HasAbsentOperands) {
  Pair pair;
  const auto [x, y] = pair.Input(F32({2}));
  pair.Input(Type{});
  const auto [z, u] = pair.Input(F32({2}));
  pair.body.outputs = pair.body.AddNode(Op::kAdd, {x, z}, {F32({2})}).results;
  pair.Replace("b.optional", {y, kNoValue, u}, "none", F32({2}));
  const Verdict verdict = pair.Ask();
  EXPECT_EQ(verdict.outcome, Outcome::kAgrees) << verdict.Summary();
}

TEST(VerifyFused, SaysWhyItCannot) {
  Pair no_kernel, unranked, text;
  BuildNorm(no_kernel, "none");
  no_kernel.body.nodes[0]->op = Op::kCustom;
  no_kernel.body.nodes[0]->name = "nobody.knows";
  EXPECT_THAT(no_kernel.Ask().Summary(), HasSubstr("not verified: "));
  EXPECT_THAT(no_kernel.Ask().why, HasSubstr("nobody.knows"));

  const auto [x, y] = unranked.Input({DType::kF32, Shape()});
  unranked.body.outputs = unranked.body.AddNode(Op::kNeg, {x}, {{DType::kF32, Shape()}}).results;
  unranked.Replace("b.inverse", {y}, "none", {DType::kF32, Shape()});
  EXPECT_THAT(unranked.Ask().why, HasSubstr("the rank of operand 0 is unknown"));

  const auto [s, t] = text.Input({DType::kString, {2}});
  text.body.outputs = {s};
  text.replacement.outputs = {t};
  const Verdict verdict = text.Ask();
  EXPECT_EQ(verdict.outcome, Outcome::kNotVerified) << "strings are not compared, so nothing is verified";
  EXPECT_THAT(verdict.why, HasSubstr("string"));
}

TEST(VerifyFused, BeginsNoCaseWhenTheTimeIsOver) {
  Pair pair;
  BuildNorm(pair, "none");
  Options options;
  options.all = true;
  options.seconds = 1e-9;
  const auto verdict = VerifyFused(pair.module, pair.body, pair.scratch, pair.replacement, pair.constants,
                                   pair.used, pair.tolerance, Broken(), options);
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_TRUE(verdict->shortened);
  EXPECT_EQ(verdict->cases.size(), 1u);
  EXPECT_FALSE(pair.Ask().shortened);
}

TEST(VerifyModel, HasARowForEveryFusedOp) {
  Pair pair;
  BuildNorm(pair, "none");
  Module module;
  Function& main = module.Add("main");
  const ValueId x = main.AddInput(F32({3, 4}));
  const auto add = [&](const std::string& fault, const std::string& body) {
    Attrs attrs;
    attrs.Set("fault", fault);
    Node& node = main.AddNode(Op::kCustom, {x}, {F32({3, 4})}, attrs);
    node.name = "b.norm";
    node.body = body;
    node.fused = std::make_shared<const Provenance>(Provenance{"b.broken", "1.0.0", "b.rule", "norm"});
    main.outputs.push_back(node.results[0]);
  };
  add("none", "body");
  add("tail", "body");
  add("none", "");
  module.functions.push_back(Clone(pair.body, "body"));
  const auto rows = VerifyModel(module, Broken());
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[0].verdict.outcome, Outcome::kAgrees) << (*rows)[0].verdict.Summary();
  EXPECT_EQ((*rows)[1].verdict.outcome, Outcome::kDiffers);
  EXPECT_EQ((*rows)[2].verdict.outcome, Outcome::kNotVerified);
  EXPECT_EQ((*rows)[2].verdict.why, "the file has no kept body");
  EXPECT_EQ((*rows)[0].op, "b.norm");
  EXPECT_EQ((*rows)[0].plugin, "b.broken");
}

TEST(VerifyModel, KeepsAbsentOperandsAbsent) {
  Module module;
  Function& main = module.Add("main");
  const ValueId x = main.AddInput(F32({2}));
  Node& node = main.AddNode(Op::kCustom, {x, kNoValue, x}, {F32({2})});
  node.name = "b.optional";
  node.body = "body";
  node.fused = std::make_shared<const Provenance>();
  main.outputs = node.results;
  Function& body = module.Add("body");
  const ValueId a = body.AddInput(F32({2}));
  body.AddInput(Type{});
  const ValueId b = body.AddInput(F32({2}));
  body.outputs = body.AddNode(Op::kAdd, {a, b}, {F32({2})}).results;
  const auto rows = VerifyModel(module, Broken());
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ((*rows)[0].verdict.outcome, Outcome::kAgrees) << (*rows)[0].verdict.Summary();
}

TEST(Retype, TurnsValuesConstantsAndTypeOptionsToF64) {
  Module module;
  Function& f = module.Add("f");
  Attrs attrs;
  attrs.Set("in_data_type", DType::kI32);
  attrs.Set("out_data_type", DType::kF32);
  const ValueId cast = f.AddNode(Op::kCast, {f.AddInput({DType::kI32, {1}})}, {F32({1})}, attrs).results[0];
  const ValueId constant = f.AddConst<float>(DType::kF32, {1}, {0.5f});
  f.outputs = {cast};
  RetypeToF64(module);
  EXPECT_EQ(f.value(cast).type.dtype, DType::kF64);
  EXPECT_EQ(f.value(f.inputs[0]).type.dtype, DType::kI32);
  EXPECT_EQ(f.value(constant).data.As<double>()[0], 0.5);
  EXPECT_EQ(std::get<DType>(*f.nodes[0]->attrs.Find("out_data_type")), DType::kF64);
  EXPECT_EQ(std::get<DType>(*f.nodes[0]->attrs.Find("in_data_type")), DType::kI32);
}

TEST(Cases, RepeatThemselvesForTheSameSeed) {
  for (ValueClass c : ValueClasses(true)) {
    const auto one = MakeOperand(F32({50}), c, 1, 0), same = MakeOperand(F32({50}), c, 1, 0);
    EXPECT_EQ(ToDoubles(one), ToDoubles(same)) << Name(c);
    if (c == ValueClass::kZero) continue;
    EXPECT_NE(ToDoubles(one), ToDoubles(MakeOperand(F32({50}), c, 2, 0))) << Name(c);
    EXPECT_NE(ToDoubles(one), ToDoubles(MakeOperand(F32({50}), c, 1, 1))) << Name(c);
  }
}

}  // namespace
}  // namespace fusebox::verify
