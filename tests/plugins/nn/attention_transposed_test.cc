// SPDX-License-Identifier: Apache-2.0
// odml.sdpa_transposed, as litert-torch writes it: heads before positions, the keys of v side by side, and a
// mask that selects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "host/graph/rewriter.h"
#include "tests/plugins/nn/site.h"

namespace fusebox::nn_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

enum class MaskKind { kNone, kBool, kAdded };

struct TransposedForm {
  int64_t batch = 1, heads = 4, shared = 4, positions = 5, size = 6, keys = 7, value_size = 6;
  MaskKind mask = MaskKind::kBool;
  float fill = -10000;
  float cap = 0;
  bool parameters = true;
  bool transposed_values = true;
  DType cache = DType::kF32;
  bool scales = false;  // inside of the body
};

ValueId TransposedCache(Site& s, const TransposedForm& f, size_t operand, const Dims& dims) {
  if (f.cache == DType::kF32) return s.Operand(dims);
  const ValueId bytes = s.Operand(dims, DType::kI8);
  s.QuantizeOperand(operand, 0.04F, operand == 1 ? 5 : -3);
  return s.Add(Op::kDequantize, {bytes}, dims);
}

// The mask for `group` heads that are packed into the positions, by way of floats.
ValueId PackedMask(Site& s, const TransposedForm& f, ValueId mask, int64_t group) {
  if (group == 1) return mask;
  const Dims one = {1, 1, f.positions, f.keys}, all = {1, group, f.positions, f.keys};
  const Dims packed = {1, 1, group * f.positions, f.keys};
  ValueId real = mask;
  if (f.mask == MaskKind::kBool)
    real = s.Typed(Op::kCast, {mask}, {DType::kF32, Shape(one)},
                   MakeAttrs("in_data_type", DType::kBool, "out_data_type", DType::kF32));
  const std::vector<ValueId> copies(static_cast<size_t>(group), real);
  real = s.Add(Op::kConcatenation, copies, all, MakeAttrs("axis", int64_t{1}));
  if (f.mask == MaskKind::kAdded) return s.Reshape(real, packed);
  const ValueId condition = s.Typed(Op::kNotEqual, {real, s.Scalar(0)}, {DType::kBool, Shape(all)});
  return s.Typed(Op::kReshape, {condition, s.Ints({packed.begin(), packed.end()})},
                 {DType::kBool, Shape(packed)});
}

// A zero that keeps the parameters in use.
ValueId ZeroOf(Site& s, ValueId parameters) {
  const Type scalar{DType::kI32, Shape::Scalar()};
  const ValueId sum = s.Typed(Op::kSum, {parameters, s.Ints({0, 1, 2, 3})}, scalar);
  const ValueId none = s.BodyConstant({scalar, Buffer::Of<int32_t>(std::vector<int32_t>{0})});
  return s.Typed(Op::kCast, {s.Typed(Op::kMul, {sum, none}, scalar)}, {DType::kF32, Shape::Scalar()},
                 MakeAttrs("in_data_type", DType::kI32, "out_data_type", DType::kF32));
}

ValueId WithMask(Site& s, const TransposedForm& f, ValueId scores, ValueId mask) {
  if (f.mask == MaskKind::kNone) return scores;
  const ValueId packed = PackedMask(s, f, mask, f.heads / f.shared);
  if (f.mask == MaskKind::kAdded) return s.Binary(Op::kAdd, scores, packed);
  return s.Add(Op::kSelectV2, {packed, scores, s.Scalar(f.fill)}, s.DimsOf(scores));
}

Site TransposedOf(const TransposedForm& f) {
  Site s("odml.sdpa_transposed");
  s.attrs = MakeAttrs("k_ts_idx", int64_t{2}, "v_ts_idx", int64_t{f.transposed_values ? 3 : 2});
  if (f.cap > 0) s.attrs.Set("softcap", static_cast<double>(f.cap));
  const int64_t rows = f.heads / f.shared * f.positions;
  const ValueId q = s.Operand({f.batch, f.heads, f.positions, f.size});
  const ValueId k = TransposedCache(s, f, 1, {f.batch, f.shared, f.keys, f.size});
  const ValueId v = TransposedCache(s, f, 2,
                                    f.transposed_values ? Dims{f.batch, f.shared, f.value_size, f.keys}
                                                        : Dims{f.batch, f.shared, f.keys, f.value_size});
  ValueId mask = kNoValue;
  const Dims mask_dims = {1, 1, f.positions, f.keys};
  if (f.mask == MaskKind::kBool) mask = s.Operand(mask_dims, DType::kBool);
  if (f.mask == MaskKind::kAdded) mask = s.Operand(mask_dims);
  const ValueId zero = f.parameters ? ZeroOf(s, s.Operand({1, 1, 1, 7}, DType::kI32)) : kNoValue;
  const auto kept = [&](ValueId x) { return f.parameters ? s.Binary(Op::kAdd, x, zero) : x; };
  ValueId scores = s.Add(Op::kBatchMatmul, {s.Reshape(q, {f.batch, f.shared, rows, f.size}), k},
                         {f.batch, f.shared, rows, f.keys}, MakeAttrs("adj_y", true));
  scores = kept(scores);
  if (f.scales) scores = s.Binary(Op::kMul, scores, s.Scalar(0.5F));
  if (f.cap > 0) {
    scores = s.Unary(Op::kTanh, s.Binary(Op::kDiv, scores, s.Scalar(f.cap)));
    scores = s.Binary(Op::kMul, scores, s.Scalar(f.cap));
  }
  scores = WithMask(s, f, scores, mask);
  scores = s.Add(Op::kSoftmax, {scores}, s.DimsOf(scores), MakeAttrs("beta", 1.0));
  const ValueId out = s.Add(Op::kBatchMatmul, {scores, v}, {f.batch, f.shared, rows, f.value_size},
                            MakeAttrs("adj_y", f.transposed_values));
  s.Return(s.Reshape(kept(out), {f.batch, f.heads, f.positions, f.value_size}));
  return s;
}

struct TransposedCase {
  const char* name;
  TransposedForm form;
};
void PrintTo(const TransposedCase& c, std::ostream* out) { *out << c.name; }

class TransposedForms : public ::testing::TestWithParam<TransposedCase> {};

TEST_P(TransposedForms, AgreeWithTheirBodies) {
  const TransposedForm& form = GetParam().form;
  const Site site = TransposedOf(form);
  const std::string op = site.Emitted();
  EXPECT_THAT(op, StartsWith("fusebox.attention{"));
  EXPECT_THAT(op, HasSubstr("heads_first=true"));
  EXPECT_THAT(op, HasSubstr(form.transposed_values ? "transposed_values=true" : "transposed_values=false"));
  for (uint64_t seed = 1; seed < (form.cache == DType::kI8 ? 3 : 4); ++seed)
    EXPECT_THAT(site.Verified(seed), StartsWith("agrees (f64, 6 cases")) << "seed " << seed;
}

INSTANTIATE_TEST_SUITE_P(
    All, TransposedForms,
    ::testing::Values(
        TransposedCase{"plain", {}}, TransposedCase{"grouped", {.heads = 6, .shared = 2}},
        TransposedCase{"multi_query", {.heads = 5, .shared = 1}},
        TransposedCase{"decode",
                       {.heads = 8, .shared = 2, .positions = 1, .size = 64, .keys = 211, .value_size = 64}},
        TransposedCase{"prefill",
                       {.heads = 4, .shared = 2, .positions = 70, .size = 33, .keys = 211, .value_size = 17}},
        TransposedCase{"batch", {.batch = 2, .parameters = false}}, TransposedCase{"one_key", {.keys = 1}},
        TransposedCase{"low_fill", {.fill = -1e30F}}, TransposedCase{"no_mask", {.mask = MaskKind::kNone}},
        TransposedCase{"no_mask_and_parameters", {.mask = MaskKind::kNone, .parameters = false}},
        TransposedCase{"added_mask", {.heads = 6, .shared = 2, .mask = MaskKind::kAdded}},
        TransposedCase{"cap", {.cap = 5}},
        TransposedCase{"values_in_rows", {.heads = 6, .shared = 2, .transposed_values = false}},
        TransposedCase{"bytes", {.heads = 6, .shared = 2, .cache = DType::kI8}},
        TransposedCase{"bytes_of_blocks",
                       {.heads = 2,
                        .shared = 1,
                        .positions = 30,
                        .size = 67,
                        .keys = 211,
                        .value_size = 33,
                        .cache = DType::kI8}}),
    [](const auto& info) { return std::string(info.param.name); });

// The decoding of a token is within 8 rows, prompts are not: both read keys behind the valid ones only if the
// mask hides all.
TEST(TransposedAttention, DoesNotReadHiddenKeys) {
  for (const int64_t positions : {1, 30}) {
    const TransposedForm form{
        .heads = 2, .shared = 2, .positions = positions, .size = 8, .keys = 400, .value_size = 8};
    const Site site = TransposedOf(form);
    const Tensor q = RandomFloats({1, 2, positions, 8}, 1);
    Tensor k = RandomFloats({1, 2, 400, 8}, 2), v = RandomFloats({1, 2, 8, 400}, 3);
    std::vector<uint8_t> seen(static_cast<size_t>(positions * 400));
    for (size_t i = 0; i < seen.size(); ++i) seen[i] = i % 400 < 100;
    const Tensor mask{{DType::kBool, Shape({1, 1, positions, 400})}, Buffer::Of<uint8_t>(seen)};
    const Tensor parameters{{DType::kI32, Shape({1, 1, 1, 7})}, Buffer::Of<int32_t>(std::vector<int32_t>(7))};
    const auto before = site.Run({q, k, v, mask, parameters});
    ASSERT_TRUE(before) << before.error().message;
    std::vector<float> keys = FloatsOf(k), values = FloatsOf(v);
    for (size_t i = 0; i < keys.size(); ++i)
      if (i / 8 % 400 >= 192) keys[i] = NAN;
    for (size_t i = 0; i < values.size(); ++i)
      if (i % 400 >= 192) values[i] = NAN;
    k.data = Buffer::Of<float>(keys);
    v.data = Buffer::Of<float>(values);
    const auto after = site.Run({q, k, v, mask, parameters});
    ASSERT_TRUE(after) << after.error().message;
    EXPECT_EQ(FloatsOf((*after)[0]), FloatsOf((*before)[0])) << positions << " positions";
  }
}

// All scores of a row are the fill then, as in the body: the result is the mean of all values.
TEST(TransposedAttention, AMaskThatHidesAll) {
  for (const int64_t positions : {1, 20}) {
    const Site site =
        TransposedOf({.heads = 1, .shared = 1, .positions = positions, .keys = 300, .parameters = false});
    const std::vector<uint8_t> none(static_cast<size_t>(positions * 300));
    const Tensor v = RandomFloats({1, 1, 6, 300}, 3);
    const auto out = site.Run({RandomFloats({1, 1, positions, 6}, 1),
                               RandomFloats({1, 1, 300, 6}, 2),
                               v,
                               {{DType::kBool, Shape({1, 1, positions, 300})}, Buffer::Of<uint8_t>(none)}});
    ASSERT_TRUE(out) << out.error().message;
    double mean = 0;
    for (size_t key = 0; key < 300; ++key) mean += FloatsOf(v)[key] / 300.0;
    EXPECT_NEAR(FloatsOf((*out)[0])[0], mean, 1e-6);
  }
}

TEST(TransposedAttention, AcceptsOtherSizes) {
  const Site site = TransposedOf({.mask = MaskKind::kNone, .parameters = false});
  for (const int64_t batch : {0, 1, 3})
    for (const int64_t keys : {0, 1, 130}) {
      const auto out = site.Run({RandomFloats({batch, 4, 5, 6}, 1), RandomFloats({batch, 4, keys, 6}, 2),
                                 RandomFloats({batch, 4, 6, keys}, 3)});
      ASSERT_TRUE(out) << out.error().message;
      EXPECT_EQ((*out)[0].type.shape, Shape({batch, 4, 5, 6}));
      for (const float value : FloatsOf((*out)[0]))
        EXPECT_TRUE(std::isfinite(value) && (keys > 0 || value == 0));
    }
}

TEST(TransposedAttention, DeclinesWithTheReason) {
  EXPECT_THAT(TransposedOf({.scales = true}).Emitted(), HasSubstr("BODY: it scales the scores"));
  EXPECT_THAT(TransposedOf({.fill = 3}).Emitted(),
              HasSubstr("its mask selects other values than one negative number"));
  Site cap = TransposedOf({.cap = 5});
  cap.attrs = MakeAttrs("k_ts_idx", int64_t{2}, "v_ts_idx", int64_t{3});
  EXPECT_THAT(cap.Emitted(), HasSubstr("it limits the scores otherwise than its attributes"));
  Site keys = TransposedOf({});
  keys.attrs.Set("k_ts_idx", int64_t{3});
  EXPECT_THAT(keys.Emitted(), HasSubstr("ATTR: is not 2 (attr k_ts_idx)"));
  Site values = TransposedOf({.keys = 6});
  values.attrs.Set("v_ts_idx", int64_t{2});
  EXPECT_THAT(values.Emitted(), HasSubstr("it does not multiply by v in the layout of its attributes"));
}

}  // namespace
}  // namespace fusebox::nn_test
