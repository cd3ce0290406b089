// SPDX-License-Identifier: Apache-2.0
// What the pass "legal" reports: causes and no consequences, and advice that can be followed.
#include <gmock/gmock.h>

#include "tests/converter/passes/bench.h"

namespace fusebox::converter {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const Type kAnyList{DType::kVariant, Shape::Scalar()};
const Type kUnknown{DType::kF32, Shape()};

ValueId Untranslated(Function& f, const std::string& op, std::vector<ValueId> operands, Type type) {
  Node& node = f.AddNode(Op::kOpaque, std::move(operands), {std::move(type)});
  node.name = op;
  node.location.name = op + "_at";
  return node.results[0];
}

// A list of which nothing is known, and what is stacked from it. With an item put in, where there is one.
ValueId ListOfUnknown(Function& f, ValueId item = kNoValue) {
  const ValueId any = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {-1}),
                two = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {2});
  ValueId list = f.AddNode(Op::kTensorListReserve, {any, two}, {kAnyList}).results[0];
  const ValueId first = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {0});
  if (item != kNoValue) list = f.AddNode(Op::kTensorListSetItem, {list, first, item}, {kAnyList}).results[0];
  return f.AddNode(Op::kTensorListStack, {list, any}, {kUnknown}).results[0];
}

std::vector<std::string> Groups(const Report& report) {
  std::vector<std::string> out;
  for (const UnsupportedOps& u : report.unsupported) out.push_back(u.op);
  return out;
}

TEST(Refusals, AreOfCausesAndNotOfWhatFollows) {
  Bench bench;
  Function& f = bench.Add("main");
  const ValueId strange = Untranslated(f, "NormalizeUTF8", {f.AddInput(F32({2, 4}))}, kUnknown);
  const ValueId axes = f.AddConst<int32_t>(DType::kI32, {1}, {0});
  const ValueId behind =
      Untranslated(f, "ReverseV2", {strange, axes}, kUnknown);  // has a translation, which asks for a rank
  f.outputs = {ListOfUnknown(f, behind),
               Untranslated(f, "Betainc", {behind}, kUnknown)};  // hopeless by itself
  bench.Sign(f);
  EXPECT_EQ(bench.Run(LowerTensorLists), "");
  EXPECT_THAT(bench.report.notes, IsEmpty());
  EXPECT_EQ(bench.Run(RequireLegal),
            "signature main: op NormalizeUTF8 (NormalizeUTF8_at): there is no translation of this op");
  EXPECT_THAT(Groups(bench.report), ElementsAre("NormalizeUTF8", "Betainc"));
}

// TensorFlow's converter leaves such files of models of Keras 3.
TEST(Refusals, NameVariablesThatTheFileHoldsNoValueOf) {
  Bench bench;
  Function& f = bench.Add("main");
  Attrs name;
  name.Set("shared_name", std::string("v"));
  const Type handle{DType::kResource, Shape::Scalar()};
  const ValueId v = f.AddNode(Op::kVarHandle, {}, {handle}, name).results[0];
  f.outputs = f.AddNode(Op::kReadVariable, {v}, {Type{DType::kNone, Shape()}}).results;
  bench.Sign(f);
  EXPECT_THAT(bench.Run(RequireLegal),
              HasSubstr("nothing assigns its variable: the file does not hold its value"));
}

// The node before the cause sees what the cause made in the round before.
TEST(Refusals, FollowACauseAroundALoop) {
  Bench bench;
  Function& cond = bench.Add("cond");
  cond.AddInput(kUnknown);
  cond.outputs = {cond.AddConst<uint8_t>(DType::kBool, Shape::Scalar(), {0})};
  Function& body = bench.Add("body");
  const ValueId axes = body.AddConst<int32_t>(DType::kI32, {1}, {0});
  const ValueId turned = Untranslated(body, "ReverseV2", {body.AddInput(kUnknown), axes}, kUnknown);
  body.outputs = {Untranslated(body, "NormalizeUTF8", {turned}, kUnknown)};
  Function& f = bench.Add("main");
  f.outputs = f.AddNode(Op::kWhile, {f.AddInput(F32({2}))}, {kUnknown},
                        Ref("cond_subgraph_index", "cond", "body_subgraph_index", "body"))
                  .results;
  bench.Sign(f);
  EXPECT_THAT(bench.Run(RequireLegal), HasSubstr("signature main: op NormalizeUTF8"));
  EXPECT_THAT(Groups(bench.report), ElementsAre("NormalizeUTF8"));
}

// A node whose own state it is that comes back unknown is a cause.
TEST(Refusals, ALoopThatIsItsOwnCauseIsReported) {
  Bench bench;
  Function& cond = bench.Add("cond");
  cond.AddInput(kUnknown);
  cond.outputs = {cond.AddConst<uint8_t>(DType::kBool, Shape::Scalar(), {0})};
  Function& body = bench.Add("body");
  const ValueId axes = body.AddConst<int32_t>(DType::kI32, {1}, {0});
  body.outputs = {Untranslated(body, "ReverseV2", {body.AddInput(kUnknown), axes}, kUnknown)};
  Function& f = bench.Add("main");
  f.outputs = f.AddNode(Op::kWhile, {f.AddInput(kUnknown)}, {kUnknown},
                        Ref("cond_subgraph_index", "cond", "body_subgraph_index", "body"))
                  .results;
  bench.Sign(f);
  EXPECT_THAT(bench.Run(RequireLegal), HasSubstr("signature main: op ReverseV2"));
}

// What is said of a list of unknown elements beside an input of these dims.
std::string Advice(std::vector<int64_t> dims, std::optional<int64_t> batch = {}) {
  Bench bench;
  bench.options.batch = batch;
  Function& f = bench.Add("main");
  f.outputs = {f.AddInput(F32(std::move(dims))), ListOfUnknown(f)};
  bench.Sign(f);
  EXPECT_EQ(bench.Run(Specialize), "");
  const std::string said = bench.Run(RequireLegal);
  EXPECT_THAT(said, HasSubstr("op TENSOR_LIST_RESERVE (): its element shape is not known"));
  return bench.Notes() + said;
}

TEST(Refusals, AdviseOnlyWhatIsLeftToFix) {
  EXPECT_THAT(Advice({-1, 4}),
              EndsWith("not known: fix the batch size (--batch N) or the input's shape (--shape i0=N,4)"));
  EXPECT_THAT(Advice({-1, -1, 4}, 1), EndsWith("not known: fix the input's shape (--shape i0=1,N,4)"));
  EXPECT_THAT(Advice({3, -1}), EndsWith("not known: fix the input's shape (--shape i0=3,N)"));
  EXPECT_THAT(Advice({-1, 4}, 1), EndsWith("not known"));
  EXPECT_THAT(Advice({2, 4}), EndsWith("not known"));
}

// One open dimension may be the length of a sound.
TEST(Refusals, AdviseTheShapeOfAnInputThatIsOnlyALength) {
  EXPECT_THAT(Advice({-1}), EndsWith("not known: fix the input's shape (--shape i0=N)"));
  EXPECT_THAT(Advice({-1}, 1),
              AllOf(HasSubstr("--batch 1 sets the only dimension of input i0[?] of signature main; if that "
                              "dimension is a length, use --shape i0=N instead\n"),
                    EndsWith("not known: fix the input's shape (--shape i0=N)")));
  EXPECT_THAT(Advice({-1, 4}, 1), Not(HasSubstr("a length")));
}

}  // namespace
}  // namespace fusebox::converter
