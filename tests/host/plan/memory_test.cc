// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "host/plan/plan.h"

namespace fusebox::plan {
namespace {

bool Meet(const Request& a, const Request& b) { return a.first <= b.last && b.first <= a.last; }

// Bytes of a request and what may be read behind it.
bool Overlap(const Request& a, const Request& b) {
  return a.offset < b.offset + b.bytes + kOverread && b.offset < a.offset + a.bytes + kOverread;
}

TEST(Memory, ReusesTheArenaOfADeadTensor) {
  std::vector<Request> requests = {{1000, 0, 1}, {1000, 1, 2}, {1000, 2, 3}};
  const size_t total = Arrange(requests);
  EXPECT_EQ(requests[0].offset, requests[2].offset);
  EXPECT_NE(requests[0].offset, requests[1].offset);
  EXPECT_LE(total, 2 * 1088u);
}

TEST(Memory, PutsASmallPieceIntoTheTightestGap) {
  // At node 1 the pieces at both ends live, with a hole of the third between them and free room behind.
  std::vector<Request> requests = {{4096, 0, 1}, {2048, 0, 0}, {1024, 0, 1}, {1000, 1, 1}};
  const size_t total = Arrange(requests);
  EXPECT_EQ(requests[3].offset, requests[1].offset);
  EXPECT_EQ(total, 4096 + 2048 + 1024 + 3 * kAlignment);
}

void ExpectNoOverlap(std::vector<Request> requests) {
  const size_t total = Arrange(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(requests[i].offset % kAlignment, 0u);
    EXPECT_LE(requests[i].offset + requests[i].bytes + kOverread, total);
    for (size_t j = 0; j < i; ++j)
      ASSERT_FALSE(Meet(requests[i], requests[j]) && Overlap(requests[i], requests[j])) << i << ", " << j;
  }
}

TEST(Memory, NeverOverlapsWhatIsInUseAtTheSameTime) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Request> requests;
    const int count = 1 + static_cast<int>(random() % 60);
    for (int i = 0; i < count; ++i) {
      const int first = static_cast<int>(random() % 40);
      requests.push_back({random() % 5000, first, first + static_cast<int>(random() % 10)});
    }
    SCOPED_TRACE(round);
    ExpectNoOverlap(requests);
  }
}

TEST(Memory, NeverOverlapsWhatIsInUseForLong) {
  std::mt19937 random(8);
  for (int round = 0; round < 50; ++round) {
    std::vector<Request> requests;
    const int longest = round % 2 ? 300 : 60;
    for (int i = 0; i < 200; ++i) {
      const int first = static_cast<int>(random() % 300) - 5;
      const int length = static_cast<int>(random()) % (i % 8 == 0 ? longest : 4);
      requests.push_back({random() % 5000, first, first + std::abs(length)});
    }
    SCOPED_TRACE(round);
    ExpectNoOverlap(requests);
  }
}

TEST(Memory, StaysNearTheLargestSetInUseOnAChain) {
  std::vector<Request> requests;
  for (int i = 0; i < 200; ++i) requests.push_back({1 << 16, i, i + 1});
  EXPECT_LE(Arrange(requests), 2 * ((1u << 16) + kAlignment));
}

TEST(Analyze, CopiesAStateThatIsReadLaterAConstantOrAnInput) {
  Module module;
  Function& f = module.Add("main");
  const Type type{DType::kF32, {2}};
  const ValueId x = f.AddInput(type), given = f.AddInput(type);
  const ValueId constant = f.AddConst<float>(DType::kF32, {2}, {1, 2});
  const auto computed = [&] { return f.AddNode(Op::kExp, {x}, {type}).results[0]; };
  const ValueId once = computed(), twice = computed(), kept = f.AddValue(type);
  f.value(kept).is_variable = true;
  for (const ValueId state : {given, constant, once, twice, kept}) {
    f.AddNode(Op::kUnidirectionalSequenceRnn, {x, kNoValue, kNoValue, kNoValue, state}, {type, type});
  }
  f.outputs = {f.AddNode(Op::kExp, {twice}, {type}).results[0]};
  const Code code = Analyze(module, f);
  std::vector<bool> copies;
  for (const auto& states : code.states) {
    if (!states.empty()) copies.push_back(states[0].copy);
  }
  EXPECT_EQ(copies, (std::vector<bool>{true, true, false, true, false}));
  EXPECT_EQ(code.variables, (std::vector<ValueId>{kept}));
}

}  // namespace
}  // namespace fusebox::plan
