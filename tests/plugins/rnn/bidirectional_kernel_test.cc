// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plugins/rnn/kernel_case.h"
#include "tests/plugins/rnn/lstm_case.h"

namespace fusebox::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kOp[] = "BIDIRECTIONAL_SEQUENCE_LSTM";

using Vector = std::vector<double>;

// Two cells over one input; sizes and options of `forward` but for the backward cells.
struct Pair {
  LstmCase forward, backward;
  bool merge = true;
  std::vector<Vector> of_forward, of_backward;  // operands of each, the same input

  Pair(const LstmCase& lstm, int64_t backward_cells, bool merge)
      : forward(lstm), backward(lstm), merge(merge) {
    backward.cells = backward_cells;
    of_forward = RandomOperands(forward, 1);
    of_backward = RandomOperands(backward, 2);
    of_backward[0] = of_forward[0];
  }
};

// Time from its end to its beginning, rows of `width`.
Vector Reversed(const LstmCase& lstm, const Vector& values, int64_t width) {
  Vector out(values.size());
  for (int64_t t = 0; t < lstm.steps; ++t) {
    for (int64_t row = 0; row < lstm.batch; ++row) {
      const auto at = [&](int64_t step) {
        return (lstm.time_major ? step * lstm.batch + row : row * lstm.steps + step) * width;
      };
      std::copy_n(values.begin() + at(lstm.steps - 1 - t), width, out.begin() + at(t));
    }
  }
  return out;
}

struct PairResult {
  LstmResult forward, backward;
};

PairResult Definition(const Pair& pair) {
  std::vector<Vector> operands = pair.of_backward;
  operands[0] = Reversed(pair.backward, operands[0], pair.backward.inputs);
  PairResult result{Definition(pair.forward, pair.of_forward), Definition(pair.backward, operands)};
  result.backward.output = Reversed(pair.backward, result.backward.output, pair.backward.width());
  return result;
}

std::vector<FakeTensor> Operands(const Pair& pair, fbx_dtype dtype) {
  const auto f = Operands(pair.forward, dtype, pair.of_forward),
             b = Operands(pair.backward, dtype, pair.of_backward);
  std::vector<FakeTensor> operands(48);
  operands[0] = f[0];
  for (size_t i = 0; i < 17; ++i) {
    operands[1 + i] = f[1 + i];
    operands[18 + i] = b[1 + i];
  }
  for (size_t i = 0; i < 2; ++i) {
    operands[35 + i] = f[18 + i];
    operands[37 + i] = b[18 + i];
  }
  return operands;
}

FakeAttrs Attributes(const Pair& pair) {
  FakeAttrs attrs = Attributes(pair.forward);
  attrs["merge_outputs"] = pair.merge;
  if (pair.forward.time_major) attrs.erase("time_major");  // what the op means where it does not say
  return attrs;
}

PairResult RunPair(const Pair& pair, fbx_dtype dtype, uint32_t threads = 1) {
  const FakeHost host(threads);
  auto operands = Operands(pair, dtype);
  const auto& x = operands[0].dims();
  const int64_t ahead = pair.forward.width(), back = pair.backward.width();
  std::vector<FakeTensor> results;
  if (pair.merge) {
    results = {EmptyTensor(dtype, {x[0], x[1], ahead + back})};
  } else {
    results = {EmptyTensor(dtype, {x[0], x[1], ahead}), EmptyTensor(dtype, {x[0], x[1], back})};
  }
  const size_t states = results.size();
  for (size_t i = 0; i < 4; ++i)
    results.push_back(FakeTensor(dtype, operands[35 + i].dims()).ShareMemoryOf(operands[35 + i]));
  FakeNode node(host, KernelOfThePlugin(kOp), Attributes(pair), operands, results);
  RunNode(host, node);
  PairResult is;
  if (pair.merge) {
    const Vector all = ValuesOf(node.result(0), dtype);
    for (size_t i = 0; i < all.size(); ++i) {
      const bool of_forward = static_cast<int64_t>(i) % (ahead + back) < ahead;
      (of_forward ? is.forward : is.backward).output.push_back(all[i]);
    }
  } else {
    is.forward.output = ValuesOf(node.result(0), dtype);
    is.backward.output = ValuesOf(node.result(1), dtype);
  }
  is.forward.h = ValuesOf(node.result(states), dtype);
  is.forward.c = ValuesOf(node.result(states + 1), dtype);
  is.backward.h = ValuesOf(node.result(states + 2), dtype);
  is.backward.c = ValuesOf(node.result(states + 3), dtype);
  return is;
}

void ExpectNear(const Pair& pair, fbx_dtype dtype, double tolerance, uint32_t threads = 1) {
  const PairResult expected = Definition(pair), is = RunPair(pair, dtype, threads);
  EXPECT_LE(Difference(is.forward, expected.forward), tolerance);
  EXPECT_LE(Difference(is.backward, expected.backward), tolerance);
}

TEST(BidirectionalKernel, IsTwoLstmsInOppositeDirections) {
  for (const bool merge : {true, false}) {
    for (const bool time_major : {true, false}) {
      const Pair pair({.batch = 3, .steps = 4, .time_major = time_major}, 5, merge);
      ExpectNear(pair, FBX_F32, 1e-6);
      ExpectNear(pair, FBX_F64, 1e-13);
    }
  }
}

TEST(BidirectionalKernel, HasTheVariantsOfTheLstm) {
  const LstmCase base{.batch = 2, .steps = 4};
  LstmCase cifg = base, peephole = base, projection = base, computed = base, clipped = base;
  cifg.cifg = true;
  peephole.peephole = true;
  projection.outputs = 4;
  computed.constant_weights = false;
  clipped.cell_clip = 0.2;
  for (const LstmCase& lstm : {cifg, peephole, projection, computed, clipped}) {
    ExpectNear(Pair(lstm, 7, true), FBX_F32, 1e-6);
    ExpectNear(Pair(lstm, 7, false), FBX_F64, 1e-13);
  }
}

TEST(BidirectionalKernel, AgreesOnThreads) {
  ExpectNear(Pair({.batch = 2, .steps = 3, .cells = 9}, 7, true), FBX_F64, 1e-13,
             5);  // fewer rows than threads
  ExpectNear(Pair({.batch = 8, .steps = 6, .inputs = 40, .cells = 64}, 48, true), FBX_F32, 1e-5, 4);
  ExpectNear(Pair({.batch = 1, .steps = 3, .inputs = 300, .cells = 300}, 260, false), FBX_F32, 1e-5, 4);
}

TEST(BidirectionalKernel, InfersOutputsAndStates) {
  const FakeHost host;
  const Pair merged({.batch = 2}, 5, true), separate({.batch = 2}, 5, false);
  FakeNode one(host, KernelOfThePlugin(kOp), Attributes(merged), Operands(merged, FBX_F32),
               std::vector<FakeTensor>(5, F32Tensor({})));
  ASSERT_EQ(one.Infer(), FBX_OK);
  EXPECT_THAT(one.inferred[0].dims, ElementsAre(2, 3, 12));
  EXPECT_THAT(one.inferred[4].dims, ElementsAre(2, 5));
  FakeNode two(host, KernelOfThePlugin(kOp), Attributes(separate), Operands(separate, FBX_F32),
               std::vector<FakeTensor>(6, F32Tensor({})));
  ASSERT_EQ(two.Infer(), FBX_OK);
  EXPECT_THAT(two.inferred[0].dims, ElementsAre(2, 3, 7));
  EXPECT_THAT(two.inferred[1].dims, ElementsAre(2, 3, 5));
  EXPECT_THAT(two.inferred[2].dims, ElementsAre(2, 7));
}

template <class Change>
std::string WhyNot(const Change& change) {
  const Pair pair({}, 5, false);
  const FakeHost host;
  auto operands = Operands(pair, FBX_F32);
  change(operands);
  FakeNode node(host, KernelOfThePlugin(kOp), Attributes(pair), operands,
                std::vector<FakeTensor>(6, F32Tensor({})));
  return Declined(host, node);
}

using Tensors = std::vector<FakeTensor>;

TEST(BidirectionalKernel, DeclinesWhatItCannotDo) {
  EXPECT_EQ(WhyNot([](Tensors& t) { t.pop_back(); }), "ARITY : has 47 operands, expected 48");
  EXPECT_EQ(WhyNot([](Tensors& t) { t[39] = t[0]; }),
            "OPERANDS operand 39: is present: auxiliary inputs are not supported");
  EXPECT_EQ(WhyNot([](Tensors& t) { t[19] = FakeTensor(FBX_F64, {5, 5}); }),
            "DTYPE backward LSTM, operand 2: is f64, expected f32 beside f32 input");
  EXPECT_EQ(WhyNot([](Tensors& t) { t[19] = FakeTensor(FBX_I8, {5, 5}); }),
            "DTYPE backward LSTM, operand 1: is f32, expected i8 beside i8 weights");
  EXPECT_THAT(WhyNot([](Tensors& t) { t[19] = F32Tensor({5, 9}); }),
              HasSubstr("SHAPE backward LSTM, operand 2"));
  EXPECT_THAT(WhyNot([](Tensors& t) { t[35] = FakeTensor(); }),
              HasSubstr("OPERANDS forward LSTM, operand 18: is absent"));
}

}  // namespace
}  // namespace fusebox::testing
