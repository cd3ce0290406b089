// SPDX-License-Identifier: Apache-2.0
// Attention, as litert-torch writes it: each form against its body in f64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <random>

#include "tests/plugins/nn/site.h"

namespace fusebox::nn_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

enum class OwnMask { kNone, kAdded, kSelected, kBanded };

struct Form {
  int64_t batch = 2, positions = 5, heads = 4, size = 6, keys = 7, shared = 4, value_size = 6;
  Dims mask = {};  // an operand, if not empty
  OwnMask own = OwnMask::kNone;
  float cap = 0;
  DType cache = DType::kF32;
};

float Hidden(const Form& f, int64_t t, int64_t key) {
  const bool seen = f.own == OwnMask::kBanded ? std::abs(t - key) <= 1 : key <= t;
  return seen ? 0 : std::numeric_limits<float>::lowest();
}

// A mask in the body: a constant that is added, or by which the scores are selected.
ValueId WithOwnMask(Site& s, const Form& f, ValueId scores) {
  if (f.own == OwnMask::kNone) return scores;
  const Dims dims = {f.positions, f.keys};
  std::vector<float> added;
  std::vector<uint8_t> seen;
  for (int64_t t = 0; t < f.positions; ++t)
    for (int64_t key = 0; key < f.keys; ++key) {
      added.push_back(Hidden(f, t, key));
      seen.push_back(added.back() == 0);
    }
  if (f.own != OwnMask::kSelected) return s.Binary(Op::kAdd, scores, s.Floats(dims, added));
  const ValueId condition = s.BodyConstant({{DType::kBool, Shape(dims)}, Buffer::Of<uint8_t>(seen)});
  return s.Add(Op::kSelectV2, {condition, scores, s.Scalar(std::numeric_limits<float>::lowest())},
               s.DimsOf(scores));
}

ValueId CacheOperand(Site& s, const Form& f, int64_t size, size_t operand) {
  const Dims dims = {f.batch, f.keys, f.shared, size};
  if (f.cache == DType::kF32) return s.Operand(dims);
  if (f.cache == DType::kI8) {
    const ValueId bytes = s.Operand(dims, DType::kI8);
    s.QuantizeOperand(operand, operand == 1 ? 0.02f : 0.05f, operand == 1 ? 3 : -7);
    return s.Add(Op::kDequantize, {bytes}, dims);
  }
  std::vector<uint16_t> halves(static_cast<size_t>(f.batch * f.keys * f.shared * size));
  std::mt19937 random(static_cast<uint32_t>(operand));
  for (uint16_t& half : halves)
    half = static_cast<uint16_t>(0x3000 + random() % 0x0e00 + (random() % 2 << 15));
  const ValueId constant = s.Constant({{DType::kF16, Shape(dims)}, Buffer::Of<uint16_t>(halves)});
  return s.Add(Op::kDequantize, {constant}, dims);
}

Site AttentionOf(const Form& f) {
  Site s("odml.scaled_dot_product_attention");
  s.attrs.Set("scale", 0.3);
  if (f.cap > 0) s.attrs.Set("logit_cap", static_cast<double>(f.cap));
  const int64_t group = f.heads / f.shared;
  const ValueId q = s.Operand({f.batch, f.positions, f.heads, f.size});
  const ValueId k = CacheOperand(s, f, f.size, 1), v = CacheOperand(s, f, f.value_size, 2);
  const std::vector<int32_t> heads_first = {0, 2, 1, 3};
  ValueId x = s.Transpose(s.Binary(Op::kMul, q, s.Scalar(0.3f)), heads_first);
  x = s.Reshape(x, {f.batch, f.shared, group * f.positions, f.size});
  ValueId scores = s.Add(Op::kBatchMatmul, {x, s.Transpose(k, {0, 2, 3, 1})},
                         {f.batch, f.shared, group * f.positions, f.keys});
  scores = s.Reshape(scores, {f.batch, f.heads, f.positions, f.keys});
  if (f.cap > 0) {
    scores = s.Unary(Op::kTanh, s.Binary(Op::kDiv, scores, s.Scalar(f.cap)));
    scores = s.Binary(Op::kMul, scores, s.Scalar(f.cap));
  }
  if (!f.mask.empty()) scores = s.Binary(Op::kAdd, scores, s.Operand(f.mask));
  scores = WithOwnMask(s, f, scores);
  Attrs beta;
  beta.Set("beta", 1.0);
  scores = s.Add(Op::kSoftmax, {scores}, s.DimsOf(scores), beta);
  scores = s.Reshape(scores, {f.batch, f.shared, group * f.positions, f.keys});
  x = s.Add(Op::kBatchMatmul, {scores, s.Transpose(v, heads_first)},
            {f.batch, f.shared, group * f.positions, f.value_size});
  s.Return(s.Transpose(s.Reshape(x, {f.batch, f.heads, f.positions, f.value_size}), heads_first));
  return s;
}

struct FormCase {
  const char* name;
  Form form;
  const char* op;  // emitted, with some of its attributes
};
void PrintTo(const FormCase& c, std::ostream* out) { *out << c.name; }

class Forms : public ::testing::TestWithParam<FormCase> {};

TEST_P(Forms, AgreeWithTheirBodies) {
  const Site site = AttentionOf(GetParam().form);
  EXPECT_THAT(site.Emitted(), StartsWith("fusebox.attention{"));
  EXPECT_THAT(site.Emitted(), HasSubstr(GetParam().op));
  // Large numbers cancel out exactly: with some seeds, rounding, which depends on the CPU, decides which key
  // is largest. Bytes have only two extremes.
  const bool bytes = GetParam().form.cache == DType::kI8;
  const uint64_t first = GetParam().form.own == OwnMask::kBanded ? 2 : 1;
  for (uint64_t seed = first; seed < first + (bytes ? 2 : 3); ++seed)
    EXPECT_THAT(site.Verified(seed), StartsWith("agrees (f64, 6 cases")) << "seed " << seed;
}

INSTANTIATE_TEST_SUITE_P(
    All, Forms,
    ::testing::Values(
        FormCase{"plain", {}, "causal=false"},
        FormCase{"one_head", {.batch = 1, .heads = 1, .shared = 1}, "scale=0.3"},
        FormCase{"grouped", {.heads = 6, .shared = 2}, "causal=false"},
        FormCase{"multi_query", {.heads = 5, .shared = 1}, "causal=false"},
        FormCase{"other_value_size", {.value_size = 11}, "causal=false"},
        FormCase{"one_position", {.positions = 1, .keys = 200}, "causal=false"},
        FormCase{"one_key", {.keys = 1}, "causal=false"},
        FormCase{
            "many_keys", {.batch = 1, .positions = 70, .heads = 2, .keys = 211, .shared = 1}, "causal=false"},
        FormCase{"mask", {.mask = {2, 1, 5, 7}}, "causal=false"},
        FormCase{"mask_of_all", {.heads = 6, .shared = 2, .mask = {2, 6, 5, 7}}, "causal=false"},
        FormCase{"mask_of_keys", {.mask = {1, 1, 1, 7}}, "causal=false"},
        FormCase{"mask_of_two_dims", {.mask = {5, 7}}, "causal=false"},
        FormCase{"mask_of_blocks",
                 {.batch = 1, .positions = 70, .heads = 2, .keys = 211, .shared = 1, .mask = {1, 1, 70, 211}},
                 "causal=false"},
        FormCase{"causal", {.positions = 7, .own = OwnMask::kAdded}, "causal=true"},
        FormCase{"causal_by_selection", {.positions = 7, .own = OwnMask::kSelected}, "selects=true"},
        FormCase{"causal_of_fewer_keys", {.positions = 9, .keys = 4, .own = OwnMask::kAdded}, "causal=true"},
        FormCase{"causal_of_blocks",
                 {.batch = 1, .positions = 211, .heads = 4, .keys = 211, .shared = 2, .own = OwnMask::kAdded},
                 "causal=true"},
        FormCase{"own_mask", {.positions = 7, .own = OwnMask::kBanded}, "causal=false"},
        FormCase{"cap", {.mask = {2, 1, 5, 7}, .cap = 5}, "logit_cap=5"},
        FormCase{"f16", {.heads = 6, .shared = 2, .cache = DType::kF16}, "causal=false"},
        FormCase{
            "f16_of_blocks",
            {.batch = 1, .positions = 3, .size = 67, .keys = 211, .value_size = 33, .cache = DType::kF16},
            ""},
        FormCase{"i8", {.heads = 6, .shared = 2, .cache = DType::kI8}, "causal=false"},
        FormCase{"i8_of_blocks",
                 {.batch = 1, .positions = 3, .size = 67, .keys = 211, .value_size = 33, .cache = DType::kI8},
                 ""}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(AttentionRule, DeclinesWithTheReason) {
  EXPECT_THAT(AttentionOf({.positions = 7, .mask = {7, 7}, .own = OwnMask::kAdded}).Emitted(),
              HasSubstr("several masks"));
  EXPECT_THAT(AttentionOf({.mask = {2, 1, 5, 7}, .own = OwnMask::kNone}).Emitted(),
              HasSubstr("fusebox.attention"));
  Site heads("odml.scaled_dot_product_attention");
  const ValueId q = heads.Operand({1, 2, 3, 4});
  heads.Operand({1, 2, 2, 4});
  heads.Operand({1, 2, 2, 4});
  heads.Return(heads.Unary(Op::kTanh, q));
  EXPECT_THAT(heads.Emitted(), HasSubstr("3 heads are no multiple of the 2 heads of k"));
  Site no_softmax("odml.scaled_dot_product_attention");
  const ValueId x = no_softmax.Operand({1, 2, 2, 4});
  no_softmax.Operand({1, 2, 2, 4});
  no_softmax.Operand({1, 2, 2, 4});
  no_softmax.Return(no_softmax.Unary(Op::kTanh, x));
  EXPECT_THAT(no_softmax.Emitted(), HasSubstr("no SOFTMAX"));
}

TEST(AttentionRule, AcceptsNoPositions) {
  EXPECT_THAT(AttentionOf({.positions = 0}).Emitted(), StartsWith("fusebox.attention{"));
}

// [batch, head, position, feature] instead: the body's rows of scores are others.
TEST(AttentionRule, DeclinesAnotherLayout) {
  Site s("odml.scaled_dot_product_attention");
  const ValueId q = s.Operand({1, 4, 9, 6}), k = s.Operand({1, 4, 9, 6}), v = s.Operand({1, 4, 9, 6});
  const ValueId scores = s.Add(Op::kBatchMatmul, {q, s.Transpose(k, {0, 1, 3, 2})}, {1, 4, 9, 9});
  s.Return(s.Add(Op::kBatchMatmul, {s.Unary(Op::kSoftmax, scores), v}, {1, 4, 9, 6}));
  EXPECT_THAT(s.Emitted(), HasSubstr("softmax is not over the keys"));
}

std::vector<Tensor> InputsOf(const Site& site, uint64_t seed) {
  const auto module = site.Build();
  const Function& main = *module->functions[0];
  std::vector<Tensor> inputs;
  for (const ValueId input : main.inputs)
    inputs.push_back(RandomFloats(main.value(input).type.shape.dims(), seed++));
  return inputs;
}

TEST(AttentionKernel, ReturnsTheSameForEveryNumberOfThreads) {
  const Site site =
      AttentionOf({.positions = 800, .heads = 6, .keys = 800, .shared = 3, .own = OwnMask::kAdded});
  const auto inputs = InputsOf(site, 5);
  const auto one = site.Run(inputs, 1);
  ASSERT_TRUE(one) << one.error().message;
  for (const int threads : {2, 3, 8, 2, 3}) {
    const auto more = site.Run(inputs, threads);
    ASSERT_TRUE(more) << more.error().message;
    EXPECT_EQ(FloatsOf((*more)[0]), FloatsOf((*one)[0])) << threads << " threads";
  }
}

TEST(AttentionKernel, AcceptsOtherSizes) {
  const Site site = AttentionOf({});
  for (const int64_t batch : {0, 1, 3}) {
    for (const int64_t keys : {0, 1, 9}) {
      const auto out = site.Run({RandomFloats({batch, 5, 4, 6}, 1), RandomFloats({batch, keys, 4, 6}, 2),
                                 RandomFloats({batch, keys, 4, 6}, 3)});
      ASSERT_TRUE(out) << out.error().message;
      EXPECT_EQ((*out)[0].type.shape, Shape({batch, 5, 4, 6}));
      for (const float value : FloatsOf((*out)[0]))
        EXPECT_TRUE(std::isfinite(value) && (keys > 0 || value == 0));
    }
  }
}

}  // namespace
}  // namespace fusebox::nn_test
