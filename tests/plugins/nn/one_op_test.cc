// SPDX-License-Identifier: Apache-2.0
// Composites that builtin ops compute, each against a body of other ops in f64. Images:
// one_op_images_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "host/graph/rewriter.h"
#include "tests/plugins/composite.h"
#include "tests/plugins/nn/site.h"

namespace fusebox::nn_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kAgrees[] = "agrees (";  // in f64, integers exactly

void ExpectFused(const Site& s, const std::string& ops) {
  EXPECT_EQ(s.Ops(), ops);
  EXPECT_THAT(s.Verified(), StartsWith(kAgrees));
}

// Sizes that dynamic exports write before the operands.
void AddSizes(Site& s, int count) {
  for (int i = 0; i < count; ++i) s.Operand({}, DType::kI32);
}

Site HardSwish(Dims dims, DType dtype = DType::kF32) {
  Site s("aten.hardswish.default");
  const ValueId x = s.Operand(dims, dtype);
  const ValueId low = s.Binary(Op::kMaximum, s.Binary(Op::kAdd, x, s.Scalar(3)), s.Scalar(0));
  s.Return(s.Binary(Op::kDiv, s.Binary(Op::kMul, x, s.Binary(Op::kMinimum, low, s.Scalar(6))), s.Scalar(6)));
  return s;
}

TEST(OneOp, HardSwish) {
  for (const Dims& dims : {Dims{7}, Dims{2, 3, 5}, Dims{-1, 4}}) ExpectFused(HardSwish(dims), "HARD_SWISH");
  EXPECT_THAT(HardSwish({4}, DType::kF16).Ops(), HasSubstr("DTYPE: is f16, expected f32 (operand 0)"));
}

Site Gelu(const char* name, int sizes, Dims dims) {
  Site s(name);
  AddSizes(s, sizes);
  const ValueId x = s.Operand(dims);
  const ValueId cube = s.Binary(Op::kMul, x, s.Binary(Op::kMul, x, x));
  const ValueId sum = s.Binary(Op::kAdd, x, s.Binary(Op::kMul, cube, s.Scalar(0.044715F)));
  const auto root = static_cast<float>(std::sqrt(2 / std::numbers::pi));
  const ValueId tanh = s.Unary(Op::kTanh, s.Binary(Op::kMul, sum, s.Scalar(root)));
  const ValueId half = s.Binary(Op::kMul, x, s.Scalar(0.5F));
  s.Return(s.Binary(Op::kMul, half, s.Binary(Op::kAdd, tanh, s.Scalar(1))));
  return s;
}

TEST(OneOp, ApproximateGelu) {
  for (const Dims& dims : {Dims{9}, Dims{2, 3, 4}, Dims{-1, 5}}) {
    Site aten = Gelu("aten.gelu.default", 0, dims);
    aten.attrs.Set("approximate", "tanh");
    ExpectFused(aten, "GELU");
    for (int sizes = 0; sizes <= 3; ++sizes) {
      Site jax = Gelu("tfl.gelu", sizes, dims);
      jax.attrs.Set("approximate", true);
      ExpectFused(jax, "GELU");
    }
  }
}

// No builtin op is an error function, so the definition stands here.
TEST(OneOp, ExactGelu) {
  Site s = Gelu("aten.gelu.default", 0, {64});
  s.attrs.Set("approximate", "none");
  const Tensor x = RandomFloats({64}, 3);
  const auto y = s.Run({x});
  ASSERT_TRUE(y) << y.error().message;
  for (size_t i = 0; i < 64; ++i) {
    const double v = FloatsOf(x)[i];
    EXPECT_NEAR(FloatsOf((*y)[0])[i], v / 2 * (1 + std::erf(v / std::numbers::sqrt2)), 1e-6);
  }
  EXPECT_THAT(s.Verified(), Not(StartsWith(kAgrees)));  // the approximation differs
  s.attrs.Set("approximate", "sigmoid");
  EXPECT_THAT(s.Ops(), HasSubstr("ATTR: is sigmoid, expected none or tanh (attr approximate)"));
}

Site Softmax(Dims dims, int32_t axis) {
  Site s("odml.softmax");
  const ValueId x = s.Operand(dims);
  const ValueId e = s.Unary(Op::kExp, s.Binary(Op::kSub, x, s.Reduce(Op::kReduceMax, x, {axis})));
  s.Return(s.Binary(Op::kDiv, e, s.Reduce(Op::kSum, e, {axis})));
  return s;
}

TEST(OneOp, Softmax) {
  ExpectFused(Softmax({3, 10}, 1), "SOFTMAX");
  ExpectFused(Softmax({-1, 2, 7}, 2), "SOFTMAX");
  EXPECT_THAT(Softmax({3, 10}, 0).Ops(), HasSubstr("BODY: reduces dimension 0, the op only the last one"));
}

Site Mean(Dims dims, std::vector<int64_t> axes, bool keep, int sizes = 0) {
  Site s("tfl.mean");
  AddSizes(s, sizes);
  const ValueId x = s.Operand(dims);
  int64_t count = 1;
  Dims out;
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool reduced = std::ranges::find(axes, static_cast<int64_t>(d)) != axes.end();
    if (reduced) count *= dims[d];
    if (!reduced || keep) out.push_back(reduced ? 1 : dims[d]);
  }
  Attrs options;
  options.Set("keep_dims", keep);
  const ValueId sum = s.Add(Op::kSum, {x, s.Ints({axes.begin(), axes.end()})}, out, options);
  s.attrs.Set("axis", axes);
  s.attrs.Set("keep_dims", keep);
  s.Return(s.Binary(Op::kMul, sum, s.Scalar(1 / static_cast<float>(count))));
  return s;
}

TEST(OneOp, Mean) {
  for (int sizes = 0; sizes <= 3; ++sizes)
    ExpectFused(Mean({2, 3, 4}, {1, 2}, sizes % 2 == 0, sizes), "MEAN");
  ExpectFused(Mean({-1, 8}, {1}, true), "MEAN");
  Site one = Mean({2, 6}, {1}, false);
  one.attrs.Set("axis", int64_t{1});
  ExpectFused(one, "MEAN");
  one.attrs.Set("axis", int64_t{2});
  EXPECT_THAT(one.Ops(), HasSubstr("AXIS: is 2 for rank 2 (attr axis)"));
}

TEST(OneOp, Product) {
  for (int sizes = 0; sizes <= 2; ++sizes) {
    Site s("tfl.bmm_4d_adj_y");
    AddSizes(s, sizes);
    const ValueId a = s.Operand({1, 2, 3, 5});
    const ValueId b = s.Operand({1, 2, 4, 5});
    s.Return(s.Add(Op::kBatchMatmul, {a, s.Transpose(b, {0, 1, 3, 2})}, {1, 2, 3, 4}));
    ExpectFused(s, "BATCH_MATMUL");
  }
}

Site Pack(int count, DType dtype, int sizes) {
  Site s("tfl.pack");
  AddSizes(s, sizes);
  std::vector<ValueId> parts;
  for (int i = 0; i < count; ++i)
    parts.push_back(
        s.Typed(Op::kReshape, {s.Operand({2, 3}, dtype), s.Ints({2, 1, 3})}, {dtype, Shape({2, 1, 3})}));
  Attrs axis;
  axis.Set("axis", int64_t{1});
  s.attrs.Set("values_count", int64_t{count});
  s.attrs.Set("axis", int64_t{1});
  s.Return(s.Typed(Op::kConcatenation, parts, {dtype, Shape({2, count, 3})}, axis));
  return s;
}

TEST(OneOp, Pack) {
  for (const DType dtype : {DType::kF32, DType::kI32, DType::kI8})
    for (const int count : {1, 4, 5}) ExpectFused(Pack(count, dtype, count % 2), "PACK");
  Site more = Pack(4, DType::kF32, 0);
  more.attrs.Set("values_count", int64_t{3});
  EXPECT_THAT(more.Ops(), HasSubstr("ARITY: is no size before 3 operands (operand 0)"));
}

TEST(OneOp, Unpack) {
  for (const int sizes : {0, 1}) {
    Site s("tfl.unpack");
    AddSizes(s, sizes);
    const ValueId x = s.Operand({2, 3, 4});
    std::vector<ValueId> parts;
    for (int32_t i = 0; i < 3; ++i)
      parts.push_back(
          s.Reshape(s.Add(Op::kSlice, {x, s.Ints({0, i, 0}), s.Ints({2, 1, 4})}, {2, 1, 4}), {2, 4}));
    s.attrs.Set("num", int64_t{3});
    s.attrs.Set("axis", int64_t{1});
    s.ReturnAll(parts);
    ExpectFused(s, "UNPACK");
    s.attrs.Set("num", int64_t{2});
    EXPECT_THAT(s.Ops(), HasSubstr("ARITY: is not the number of results (attr num)"));
  }
}

Tensor List(const std::vector<int32_t>& values) {
  return {{DType::kI32, Shape({static_cast<int64_t>(values.size())})}, Buffer::Of<int32_t>(values)};
}

TEST(OneOp, Slice) {
  for (const int sizes : {0, 1}) {
    Site s("tfl.slice");
    AddSizes(s, sizes);
    const ValueId x = s.Operand({4, 5});
    s.Constant(List({1, 2}));
    s.Constant(List({2, 3}));
    s.Return(s.Add(Op::kGather, {s.Add(Op::kGather, {x, s.Ints({1, 2})}, {2, 5}), s.Ints({2, 3, 4})}, {2, 3},
                   MakeAttrs("axis", int64_t{1})));
    ExpectFused(s, "SLICE");
  }
}

TEST(OneOp, UpdateSlice) {
  Site s("tfl.dynamic_update_slice");
  const ValueId x = s.Operand({5, 3});
  const ValueId update = s.Operand({2, 3});
  s.Constant(List({1, 0}));
  const ValueId before = s.Add(Op::kSlice, {x, s.Ints({0, 0}), s.Ints({1, 3})}, {1, 3});
  const ValueId after = s.Add(Op::kSlice, {x, s.Ints({3, 0}), s.Ints({2, 3})}, {2, 3});
  s.Return(s.Add(Op::kConcatenation, {before, update, after}, {5, 3}, MakeAttrs("axis", int64_t{0})));
  ExpectFused(s, "DYNAMIC_UPDATE_SLICE");
}

// Bodies of random numbers are constants, so the op is compared with its own distribution.
TEST(OneOp, RandomNumbers) {
  for (const bool normal : {false, true}) {
    testing::Composite c{normal ? "odml.random_standard_normal" : "odml.random_uniform",
                         {{DType::kI32, Shape({2})}},
                         {{DType::kF32, Shape({50, 60})}}};
    c.attrs = MakeAttrs("seed", int64_t{5}, "seed2", int64_t{-7});
    c.constants = {List({50, 60})};
    EXPECT_EQ(c.WhyNot(FUSEBOX_NN), "");
    const auto first = c.Run(FUSEBOX_NN, {});
    ASSERT_TRUE(first) << first.error().message;
    double sum = 0, squares = 0;
    for (const float v : FloatsOf((*first)[0])) {
      sum += v;
      squares += v * v;
    }
    EXPECT_NEAR(sum / 3000, normal ? 0 : 0.5, 0.06);
    EXPECT_NEAR(squares / 3000, normal ? 1 : 1.0 / 3, 0.12);
    const auto again = c.Run(FUSEBOX_NN, {});
    ASSERT_TRUE(again);
    EXPECT_EQ((*first)[0], (*again)[0]);
    c.attrs = MakeAttrs("seed", int64_t{5});
    EXPECT_THAT(c.WhyNot(FUSEBOX_NN), HasSubstr("ATTR: is missing (attr seed2)"));
  }
}

// As LiteRT writes it: without a body (decomposition_subgraph_index is -1) and without attributes.
TEST(OneOp, ADetectorWithoutBodyIsNamed) {
  const Type type = {DType::kF32, Shape({2})};
  auto module = testing::Composite{"odml.detector", {type}, {type}}.Build();
  module->functions[0]->nodes[0]->body.clear();
  const auto model = Model::FromModule(std::move(module), {.registry = NnPlugin()});
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message,
              HasSubstr("no rule fused the composite odml.detector, and it has no body to run"));
}

TEST(OneOp, QuantizedElementsStay) {
  Site s = Pack(2, DType::kI8, 0);
  s.QuantizeOperand(0, 0.5F, 3);
  EXPECT_THAT(s.Ops(), HasSubstr("QUANT: is quantized (operand 0)"));
}

}  // namespace
}  // namespace fusebox::nn_test
