// SPDX-License-Identifier: Apache-2.0
// Sizes found by sampling: the right ones, and nothing where samples could mislead.
#include "host/eval/open_sizes.h"

#include <gmock/gmock.h>

#include <numeric>

namespace fusebox {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Numbers = std::vector<int64_t>;
using Row = std::optional<Numbers>;

std::shared_ptr<Registry> Kernels() {
  Config config;
  config.search_default_path = false;
  return *Registry::Create(config);
}

std::string Text(const std::optional<Fit>& fit) {
  if (!fit) return "?";
  std::string text = std::to_string(fit->offset);
  for (const size_t i : fit->symbols)
    text += " + " + std::to_string(fit->factor) + " " + std::string(1, static_cast<char>('a' + i));
  return text;
}
std::string Text(size_t symbols, const Sample& sample) {
  std::string all;
  for (const auto& fit : FitSizes(symbols, sample)) all += (all.empty() ? "" : ", ") + Text(fit);
  return all;
}

// Nothing where two sizes neither are equal nor one of them is 1.
std::optional<int64_t> Broadcast(int64_t a, int64_t b) {
  if (a != b && a != 1 && b != 1) return std::nullopt;
  return a == 1 ? b : a;
}

TEST(FitSizes, FindsWhatNumbersDependOn) {
  EXPECT_EQ(Text(0, [](auto) -> Row { return Numbers{7, kNoNumber}; }), "7, ?");
  EXPECT_EQ(Text(2, [](auto s) -> Row { return Numbers{s[1], 5, 3 * s[0] - 2}; }), "0 + 1 b, 5, -2 + 3 a");
  // [2a] as [?, 2]: half of what only even sizes are; [3a] as [?, 3].
  EXPECT_EQ(
      Text(1, [](auto s) -> Row { return 2 * s[0] % 2 == 0 ? Row(Numbers{2 * s[0] / 2}) : std::nullopt; }),
      "0 + 1 a");
}

TEST(FitSizes, AreNotMisledByNumbersThatAreSizesTried) {
  for (const int64_t number : {0, 1, 2, 97, 98, 1013, 5040, 10080, 15120, 5040 * 106'000})
    EXPECT_EQ(Text(2, [&](auto s) -> Row { return Numbers{number, s[0], s[1] + number}; }),
              std::to_string(number) + ", 0 + 1 a, " + std::to_string(number) + " + 1 b");
}

TEST(FitSizes, FindsBroadcasts) {
  const auto sum = [](auto s) -> Row {
    const auto size = Broadcast(s[0], s[1]);
    return size ? Row(Numbers{*size}) : std::nullopt;
  };
  EXPECT_EQ(Text(2, sum), "0 + 1 a + 1 b");
  // Of three operands; and two pairs at once, with one that is free.
  EXPECT_EQ(Text(3,
                 [](auto s) -> Row {
                   const auto first = Broadcast(s[0], s[1]);
                   const auto all = first ? Broadcast(*first, s[2]) : std::nullopt;
                   return all ? Row(Numbers{*all}) : std::nullopt;
                 }),
            "0 + 1 a + 1 b + 1 c");
  EXPECT_EQ(Text(5,
                 [](auto s) -> Row {
                   const auto first = Broadcast(s[0], s[3]), second = Broadcast(s[1], s[4]);
                   return first && second ? Row(Numbers{*first, s[2], *second}) : std::nullopt;
                 }),
            "0 + 1 a + 1 d, 0 + 1 c, 0 + 1 b + 1 e");
}

// A product [a,b] x [c,d] wants b and c equal; a broadcast to b takes an a of 1, and gives b.
TEST(FitSizes, FindsWhatMustBeEqual) {
  EXPECT_EQ(
      Text(4, [](auto s) -> Row { return s[1] == s[2] ? Row(Numbers{s[0], s[3], s[2]}) : std::nullopt; }),
      "0 + 1 a, 0 + 1 d, 0 + 1 b");
  EXPECT_EQ(
      Text(2,
           [](auto s) -> Row { return s[0] == s[1] || s[0] == 1 ? Row(Numbers{s[1], s[0]}) : std::nullopt; }),
      "0 + 1 b, 0 + 1 a");
}

TEST(FitSizes, AreNotCertainOfWhatIsClampedRoundedOrMixed) {
  const std::vector<std::function<int64_t(std::span<const int64_t>)>> odd = {
      [](auto s) { return std::min<int64_t>(s[0], 500); },
      [](auto s) { return std::min<int64_t>(s[0], 5040); },
      [](auto s) { return std::min<int64_t>(s[0], 5041); },
      [](auto s) { return std::min<int64_t>(s[0], 100'000'000); },
      [](auto s) { return std::max<int64_t>(s[0], 1); },
      [](auto s) { return std::max<int64_t>(s[0] - 1, 0); },
      [](auto s) { return std::max<int64_t>(s[0], s[1]); },
      [](auto s) { return std::min<int64_t>(s[0], s[1]); },
      [](auto s) { return s[0] / 2; },
      [](auto s) { return (s[0] + 5039) / 5040; },
      [](auto s) { return (s[0] + 7) / 8 * 8; },
      [](auto s) { return s[0] * s[1]; },
      [](auto s) { return s[0] + s[1]; },
      [](auto s) { return std::gcd(s[0], int64_t{5040}); },
      [](auto s) { return s[0] % 1'000'003; },
  };
  for (size_t i = 0; i < odd.size(); ++i)
    EXPECT_EQ(Text(2, [&](auto s) -> Row { return Numbers{odd[i](s), s[1]}; }), "?, 0 + 1 b") << i;
}

TEST(FitSizes, WantSizesAtWhichTheOpRuns) {
  EXPECT_THAT(FitSizes(1, [](auto) -> Row { return std::nullopt; }), IsEmpty());
  EXPECT_THAT(FitSizes(1, [](auto s) -> Row { return s[0] == 5040 ? Row(Numbers{1}) : std::nullopt; }),
              IsEmpty());
  EXPECT_THAT(FitSizes(1, [](auto s) -> Row { return s[0] < 100'000 ? Row(Numbers{s[0]}) : std::nullopt; }),
              IsEmpty());
  EXPECT_THAT(FitSizes(40, [](auto s) -> Row { return Numbers(s.begin(), s.end()); }), IsEmpty());
  // Another number of numbers (a rank that depends on a size) leaves nothing certain that is not there each
  // time.
  EXPECT_EQ(Text(1, [](auto s) -> Row { return s[0] == 1 ? Numbers{s[0]} : Numbers{s[0], 7}; }),
            "0 + 1 a, ?");
}

// x [?,7] -> SHAPE -> op -> a size that FILL takes. What was folded: to which dimensions; -1: not.
Shape FilledShape(Op op, std::vector<int32_t> operand, Attrs attrs = {}, std::optional<DType> through = {}) {
  Module module;
  Function& f = module.Add("main");
  const ValueId x = f.AddInput({DType::kF32, {-1, 7}});
  ValueId sizes = f.AddNode(Op::kShape, {x}, {{DType::kI32, {2}}}).results[0];
  const auto count = static_cast<int64_t>(operand.size());
  const ValueId with = f.AddConst<int32_t>(DType::kI32, {count}, operand);
  if (op != Op::kShape)
    sizes =
        f.AddNode(op, {sizes, with}, {{through.value_or(DType::kI32), {count}}}, std::move(attrs)).results[0];
  if (through) sizes = f.AddNode(Op::kCast, {sizes}, {{DType::kI32, {count}}}).results[0];
  const ValueId one = f.AddConst<float>(DType::kF32, Shape::Scalar(), {1});
  f.outputs = f.AddNode(Op::kFill, {sizes, one}, {{DType::kF32, {-1, -1}}}).results;
  FoldShapes(*Kernels(), module, f);
  return f.value(f.outputs[0]).type.shape;
}

TEST(FoldShapes, FollowsIntegersThroughAnyOp) {
  EXPECT_EQ(FilledShape(Op::kShape, {}), Shape({-1, 7}));
  EXPECT_EQ(FilledShape(Op::kAdd, {1, 1}), Shape({-1, 8}));
  EXPECT_EQ(FilledShape(Op::kMul, {2, 3}), Shape({-1, 21}));
  EXPECT_EQ(FilledShape(Op::kReverseV2, {0}), Shape({-1, -1})) << "one size is declared, and two come";
  EXPECT_EQ(FilledShape(Op::kGather, {1, 1}), Shape({7, 7}));
  EXPECT_EQ(FilledShape(Op::kGather, {1, 0}), Shape({7, -1}));
}

// At sizes of thousands these never change, or follow the size; at others they do not.
TEST(FoldShapes, IsNotMisledByComparisons) {
  for (const Op op : {Op::kMinimum, Op::kMaximum, Op::kFloorDiv, Op::kFloorMod})
    for (const int32_t n : {2, 5, 5040, 50'000'000, 500'000'000})
      EXPECT_EQ(FilledShape(op, {n, n})[0], -1) << Name(op) << " " << n;
  for (const Op op : {Op::kEqual, Op::kGreater, Op::kLess, Op::kNotEqual})
    for (const int32_t n : {3, 17, 5040, 1'000'000})
      EXPECT_EQ(FilledShape(op, {n, n}, {}, DType::kBool), Shape({-1, -1})) << Name(op) << " " << n;
  for (const Op op : {Op::kMinimum, Op::kMaximum, Op::kFloorDiv})
    EXPECT_NE(FilledShape(op, {3, 3})[1], 3) << Name(op) << ": of 7 and 3";
}

// Of a function: the dimensions of its output by those of its inputs.
TEST(OpenSizes, GoThroughLoopsAndBranches) {
  Module module;
  Function &f = module.Add("main"), &body = module.Add("body"), &cond = module.Add("cond");
  const Type open{DType::kF32, {-1, 2}}, flag{DType::kBool, Shape::Scalar()};
  for (Function* inside : {&body, &cond})
    for (int i = 0; i < 3; ++i) inside->AddInput(open);
  cond.outputs = {cond.AddConst<uint8_t>(DType::kBool, Shape::Scalar(), {0})};
  // The first stays as it is, the second is the sum of both, the third the first.
  const ValueId sum = body.AddNode(Op::kAdd, {body.inputs[0], body.inputs[1]}, {open}).results[0];
  body.outputs = {body.AddNode(Op::kNeg, {body.inputs[0]}, {open}).results[0], sum, body.inputs[0]};
  Function &then = module.Add("then"), &other = module.Add("other");
  for (Function* branch : {&then, &other}) branch->AddInput(open);
  then.outputs = then.AddNode(Op::kTanh, {then.inputs[0]}, {open}).results;
  other.outputs = {other.inputs[0]};
  const ValueId a = f.AddInput(open), b = f.AddInput(open), yes = f.AddInput(flag);
  Attrs functions, branches;
  functions.Set("cond_subgraph_index", FunctionRef{"cond"});
  functions.Set("body_subgraph_index", FunctionRef{"body"});
  branches.Set("then_subgraph_index", FunctionRef{"then"});
  branches.Set("else_subgraph_index", FunctionRef{"other"});
  const Node& loop = f.AddNode(Op::kWhile, {a, a, b}, {open, open, open}, functions);
  const ValueId out = f.AddNode(Op::kIf, {yes, loop.results[1]}, {open}, branches).results[0];
  f.outputs = {out};
  OpenSizes sizes(*Kernels(), module, f, OpenSizes::Depth::kAll);
  const auto of = [&](const Function& in, ValueId v) {
    const auto dims = sizes.Dims(in, v);
    std::string text;
    for (const Size& size : dims ? *dims : Sizes())
      text += size.is_number() ? std::to_string(size.offset) + " "
                               : "%" + std::to_string(sizes.symbol(size).value) + " ";
    return text;
  };
  EXPECT_EQ(of(f, out), "%0 2 ") << "all are as many as a";
  EXPECT_EQ(of(body, sum), "%0 2 ");
  EXPECT_EQ(of(f, loop.results[2]), "%" + std::to_string(loop.results[2]) + " 2 ") << "b at first, then a";
  EXPECT_FALSE(sizes.Outside(*sizes.Dims(body, body.inputs[2]), false) ==
               sizes.Outside(*sizes.Dims(body, body.inputs[2]), true));
}

// Each body is walked again when a variable has changed: without an end to it, 2^24 times for the innermost.
TEST(OpenSizes, EndInLoopsInLoops) {
  Module module;
  const Type open{DType::kF32, {-1}};
  Function& cond = module.Add("cond");
  for (int i = 0; i < 2; ++i) cond.AddInput(open);
  cond.outputs = {cond.AddConst<uint8_t>(DType::kBool, Shape::Scalar(), {0})};
  constexpr int kDeep = 24;
  const Function* inner = nullptr;
  for (int level = 0; level <= kDeep; ++level) {
    Function& f = module.Add("f" + std::to_string(level));
    const ValueId a = f.AddInput(open), b = f.AddInput(open);
    if (level == 0) {
      f.outputs = {a, a};
      inner = &f;
      continue;
    }
    Attrs attrs;
    attrs.Set("cond_subgraph_index", FunctionRef{"cond"});
    attrs.Set("body_subgraph_index", FunctionRef{"f" + std::to_string(level - 1)});
    const Node& loop = f.AddNode(Op::kWhile, {a, b}, {open, open}, attrs);
    f.outputs = {loop.results[0], loop.results[1]};
  }
  OpenSizes sizes(*Kernels(), module, *module.functions.back(), OpenSizes::Depth::kAll);
  EXPECT_FALSE(sizes.Dims(*inner, inner->inputs[0]));
  EXPECT_TRUE(sizes.Dims(*module.functions.back(), module.functions.back()->inputs[0]));
}

// 2^80 rows; and a loop whose variable gains a dimension.
TEST(OpenSizes, SurviveSizesThatOverflowAndRanksThatChange) {
  Module module;
  Function &f = module.Add("main"), &body = module.Add("body"), &cond = module.Add("cond");
  const Type open{DType::kF32, {-1}}, any{DType::kF32, Shape()};
  ValueId x = f.AddInput(open);
  for (int i = 0; i < 80; ++i) x = f.AddNode(Op::kConcatenation, {x, x}, {open}).results[0];
  for (Function* inside : {&body, &cond}) inside->AddInput(any);
  cond.outputs = {cond.AddConst<uint8_t>(DType::kBool, Shape::Scalar(), {0})};
  const ValueId last = body.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {1});
  body.outputs = body.AddNode(Op::kExpandDims, {body.inputs[0], last}, {any}).results;
  Attrs functions;
  functions.Set("cond_subgraph_index", FunctionRef{"cond"});
  functions.Set("body_subgraph_index", FunctionRef{"body"});
  f.outputs = f.AddNode(Op::kWhile, {x}, {any}, functions).results;
  OpenSizes sizes(*Kernels(), module, f, OpenSizes::Depth::kAll);
  const auto dims = sizes.Dims(f, x);
  ASSERT_TRUE(dims);
  EXPECT_FALSE((*dims)[0].is_number());
  EXPECT_EQ(sizes.Dims(body, body.inputs[0]), std::nullopt);
  EXPECT_EQ(sizes.Dims(f, f.outputs[0]), std::nullopt);
}

}  // namespace
}  // namespace fusebox
