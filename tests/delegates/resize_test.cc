// SPDX-License-Identifier: Apache-2.0
// Partitions whose inputs are resized: reshaped, compiled again, or run by kernels.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "tests/delegates/models.h"

namespace fusebox::delegates_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// y = (x + x) * x of the given length.
std::unique_ptr<Module> Square(int64_t n) {
  auto module = std::make_unique<Module>();
  module->source = "square.tflite";
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(F32({n}), "x");
  f.outputs = {Make(f, Op::kMul, {Make(f, Op::kAdd, {x, x}, n), x}, n)};
  return module;
}

std::vector<float> Resized(Session& session, const std::vector<float>& x) {
  const Status resized = session.Resize(0, Shape({static_cast<int64_t>(x.size())}));
  EXPECT_TRUE(resized) << resized.error().message;
  return Output(session, x);
}

Config::Delegate ToyThatReshapes(const std::string& lie = {}) {
  Config::Delegate toy = ToyThat(lie);
  toy.options.Set("reshape", true);
  return toy;
}

TEST(Delegate, RunsResizedInputsIfItReshapes) {
  const auto session = SessionOf(Open(Square(2), {ToyThatReshapes()}));
  const int reshaped = toy::counts.reshaped, invoked = toy::counts.invoked;
  EXPECT_THAT(Resized(*session, {1, 2, 3}), ElementsAre(2, 8, 18));
  EXPECT_EQ(toy::counts.reshaped - reshaped, 1);
  EXPECT_THAT(Resized(*session, {1, 2}), ElementsAre(2, 8)) << "as compiled";
  EXPECT_EQ(toy::counts.reshaped - reshaped, 1);
  EXPECT_THAT(Resized(*session, {3, 2, 1}), ElementsAre(18, 8, 2));
  EXPECT_EQ(toy::counts.reshaped - reshaped, 2) << "before each prepare";
  EXPECT_THAT(Resized(*session, {1, 1, 1}), ElementsAre(2, 2, 2));
  EXPECT_EQ(toy::counts.reshaped - reshaped, 2);
  EXPECT_EQ(toy::counts.invoked - invoked, 4);
  EXPECT_THAT(session->notices(), IsEmpty());
  EXPECT_EQ(session->placements()[0].runner, "toy (partition 0)");
}

TEST(Delegate, LeavesResizedInputsToKernelsIfItDoesNotReshape) {
  const std::pair<Config::Delegate, const char*> kCases[] = {
      {ToyThat(), "test.toy: SHAPE: toys do not grow"},
      {ToyThatReshapes("reshape"), "test.toy: EXCEPTION: reshape threw"}};
  for (const auto& [delegate, why] : kCases) {
    const auto session = SessionOf(Open(Square(2), {delegate}));
    const int invoked = toy::counts.invoked;
    EXPECT_THAT(Resized(*session, {1, 2, 3}), ElementsAre(2, 8, 18));
    EXPECT_EQ(toy::counts.invoked - invoked, 0);
    EXPECT_THAT(session->notices(), ElementsAre(HasSubstr(why)));
    EXPECT_THAT(session->notices(), ElementsAre(HasSubstr("is declared f32[2], but is f32[3]")));
  }
}

Config::Delegate Recompiler(const std::string& lie = {}) {
  Config::Delegate toy{"toy.recompiler"};
  toy.options.Set("lie", lie);
  return toy;
}

// Of sizes 2 (as in the file), 3, 4, 3, 2.
struct Recompiled {
  std::string lie;
  int compiled, invoked;
  std::string notice;
};

class DelegateRecompiles : public ::testing::TestWithParam<Recompiled> {};

TEST_P(DelegateRecompiles, ForOtherSizes) {
  const auto session = SessionOf(Open(Square(2), {Recompiler(GetParam().lie)}));
  const int compiled = toy::counts.compiled, finished = toy::counts.finished, invoked = toy::counts.invoked;
  for (const std::vector<float>& x : {std::vector<float>{1, 2}, {1, 2, 3}, {4, 3, 2, 1}, {3, 2, 1}, {5, 6}}) {
    std::vector<float> expected;
    for (const float v : x) expected.push_back(2 * v * v);
    EXPECT_EQ(Resized(*session, x), expected);
    EXPECT_EQ(Output(*session, x), expected);
  }
  EXPECT_EQ(toy::counts.compiled - compiled, GetParam().compiled);
  EXPECT_EQ(toy::counts.finished - finished, GetParam().compiled);
  EXPECT_EQ(toy::counts.invoked - invoked, GetParam().invoked);
  EXPECT_THAT(fmt::format("{}", fmt::join(session->notices(), "\n")), HasSubstr(GetParam().notice));
  EXPECT_EQ(session->notices().empty(), GetParam().notice.empty());
  EXPECT_EQ(session->placements()[0].runner, "toy.recompiler (partition 0)");
}

INSTANTIATE_TEST_SUITE_P(
    All, DelegateRecompiles,
    ::testing::Values(
        Recompiled{"", 2, 10, ""}, Recompiled{"sizes", 3, 10, ""},
        Recompiled{
            "two", 1, 4,
            "declined other sizes: value 'x' is declared f32[2], but is f32[3]: plugin test.toy: SHAPE: "
            "only two; kernels run its 2 nodes"},
        Recompiled{"open prepare", 2, 4, "declined other sizes: plugin test.toy: EXCEPTION: prepare threw"}));

// Square of an unknown size.
TEST(Delegate, CompilesDimsThatTheFileLeavesUnknownWhenTheyAreKnown) {
  const auto session = SessionOf(Open(Square(-1), {Recompiler("sizes")}));
  const int compiled = toy::counts.compiled, finished = toy::counts.finished, invoked = toy::counts.invoked;
  for (const std::vector<float>& x : {std::vector<float>{1, 2}, {1, 2, 3}, {3, 4}, {3, 2, 1}}) {
    std::vector<float> expected;
    for (const float v : x) expected.push_back(2 * v * v);
    EXPECT_EQ(Resized(*session, x), expected);
  }
  EXPECT_EQ(toy::counts.compiled - compiled, 2);
  EXPECT_EQ(toy::counts.finished - finished, 2);
  EXPECT_EQ(toy::counts.invoked - invoked, 4);
  EXPECT_THAT(session->notices(), IsEmpty());
  EXPECT_EQ(session->placements()[0].runner, "toy.recompiler (partition 0)");
}

TEST(Delegate, MayDeclineKnownDimsToo) {
  const auto session = SessionOf(Open(Square(-1), {Recompiler("two")}));
  EXPECT_THAT(Resized(*session, {1, 2, 3}), ElementsAre(2, 8, 18));
  const char* const why =
      "declined its sizes: value 'x' is declared f32[?], but is f32[3]: plugin test.toy: SHAPE";
  EXPECT_THAT(session->notices(), ElementsAre(HasSubstr(why)));
  EXPECT_EQ(session->placements()[0].runner, "fusebox.cpu");
  EXPECT_THAT(session->placements()[0].why, HasSubstr(why));
  const int invoked = toy::counts.invoked;
  EXPECT_THAT(Resized(*session, {1, 2}), ElementsAre(2, 8));
  EXPECT_EQ(toy::counts.invoked - invoked, 1) << "a size that it supports";
}

TEST(Delegate, WithoutRecompileDeclinesUnknownDimsOnce) {
  const auto session = SessionOf(Open(Square(-1), {ToyThat("sizes")}));
  EXPECT_THAT(Resized(*session, {1, 2, 3}), ElementsAre(2, 8, 18));
  EXPECT_THAT(session->notices(),
              ElementsAre(HasSubstr("declined at compile: plugin test.toy: SHAPE: an unknown")));
}

TEST(Delegate, RunsManySizesThatItMustCompileForOnKernels) {
  const auto session = SessionOf(Open(Square(2), {Recompiler("sizes")}));
  const int compiled = toy::counts.compiled;
  for (size_t n = 2; n < 20; ++n) EXPECT_THAT(Resized(*session, std::vector<float>(n, 1)), Each(2));
  EXPECT_EQ(toy::counts.compiled - compiled, 8);
  EXPECT_THAT(Resized(*session, {1, 2}), ElementsAre(2, 8));
  EXPECT_EQ(toy::counts.partitions, 8);
}

}  // namespace
}  // namespace fusebox::delegates_test
