// SPDX-License-Identifier: Apache-2.0
// Rotary embeddings, as litert-torch writes them: each form against its body in f64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "host/graph/rewriter.h"
#include "tests/plugins/nn/site.h"

namespace fusebox::nn_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct RopeForm {
  Dims x = {1, 3, 5, 8};  // [batch, head, position, feature]
  Dims positions = {5};   // or [rows, position]
  DType integer = DType::kI32;
  bool heads_inside = true;  // else [batch, position, head, feature]
  bool divides = true;       // else a MUL by inverse rates
  bool slices = false;       // halves by SLICE instead of SPLIT
  bool broadcasts = false;   // cosines and sines by BROADCAST_TO
  const char* name = "odml.rope";
};

int64_t CountOf(const RopeForm& f) { return f.positions.back(); }

// [1, T, H/2] of the first row of the positions.
ValueId AnglesOf(Site& s, const RopeForm& f, ValueId positions) {
  const int64_t half = f.x.back() / 2;
  const int64_t count = CountOf(f);
  ValueId row = positions;
  if (f.positions.size() == 2 && f.positions[0] != 1)
    row = s.Typed(Op::kSlice, {positions, s.Ints({0, 0}), s.Ints({1, static_cast<int32_t>(count)})},
                  {f.integer, Shape({1, count})});
  row = s.Typed(Op::kReshape, {row, s.Ints({1, static_cast<int32_t>(count), 1})},
                {f.integer, Shape({1, count, 1})});
  const ValueId real = s.Typed(Op::kCast, {row}, {DType::kF32, Shape({1, count, 1})},
                               MakeAttrs("in_data_type", f.integer, "out_data_type", DType::kF32));
  std::vector<float> rates;
  for (int64_t i = 0; i < half; ++i) {
    const double scale = std::pow(10000.0, static_cast<double>(i) / static_cast<double>(half));
    rates.push_back(static_cast<float>(f.divides ? scale : 1 / scale));
  }
  return s.Add(f.divides ? Op::kDiv : Op::kMul, {real, s.Floats({1, 1, half}, rates)}, {1, count, half});
}

ValueId HalfOf(Site& s, ValueId x, bool second) {
  Dims dims = s.DimsOf(x);
  const auto half = static_cast<int32_t>(dims.back() / 2);
  dims.back() = half;
  std::vector<int32_t> begin = {0, 0, 0, second ? half : 0};
  return s.Add(Op::kSlice, {x, s.Ints(begin), s.Ints({-1, -1, -1, half})}, dims);
}

struct Rotated {
  ValueId left, right;
};

Rotated Rotate(Site& s, const RopeForm& f, ValueId x, ValueId angle) {
  Dims wide = s.DimsOf(angle);
  if (f.heads_inside) wide = {1, wide[1], 1, wide[2]};
  Dims dims = s.DimsOf(x);
  dims.back() /= 2;
  const auto spread = [&](Op op) {
    const ValueId v = f.heads_inside ? s.Reshape(s.Unary(op, angle), wide) : s.Unary(op, angle);
    if (!f.broadcasts) return v;
    return s.Add(Op::kBroadcastTo, {v, s.Ints({dims.begin(), dims.end()})}, dims);
  };
  const ValueId cosine = spread(Op::kCos), sine = spread(Op::kSin);
  std::vector<ValueId> halves;
  if (f.slices) halves = {HalfOf(s, x, false), HalfOf(s, x, true)};
  else halves = s.Split(x, 3, 2);
  const auto product = [&](size_t i, ValueId by) { return s.Binary(Op::kMul, halves[i], by); };
  return {s.Binary(Op::kSub, product(0, cosine), product(1, sine)),
          s.Binary(Op::kAdd, product(1, cosine), product(0, sine))};
}

// As litert-torch: dimensions 1 and 2 are swapped, the cosines are those of [1, T, 1, H/2] or [1, T, H/2].
Site RopeOf(const RopeForm& f) {
  Site s(f.name);
  s.attrs = MakeAttrs("min_timescale", 1.0, "max_timescale", 10000.0, "proportion", 1.0);
  const ValueId x = s.Operand(f.x);
  const ValueId angle = AnglesOf(s, f, s.Operand(f.positions, f.integer));
  const ValueId moved = s.Transpose(x, {0, 2, 1, 3});
  const Rotated rotated = Rotate(s, f, moved, angle);
  const ValueId joined = s.Add(Op::kConcatenation, {rotated.left, rotated.right}, s.DimsOf(moved),
                               MakeAttrs("axis", int64_t{3}));
  s.Return(s.Transpose(joined, {0, 2, 1, 3}));
  return s;
}

void ExpectRope(const RopeForm& form, const std::string& attrs) {
  const Site site = RopeOf(form);
  EXPECT_EQ(site.Emitted(), "fusebox.rope{" + attrs + "}");
  for (uint64_t seed = 1; seed < 4; ++seed)
    EXPECT_THAT(site.Verified(seed), StartsWith("agrees (f64, 6 cases")) << "seed " << seed;
}

TEST(Rope, HeadsBeforePositions) {
  ExpectRope({}, "axis=2, divides=true");
  ExpectRope({.divides = false}, "axis=2, divides=false");
  ExpectRope({.slices = true}, "axis=2, divides=true");
  ExpectRope({.broadcasts = true}, "axis=2, divides=true");
  ExpectRope({.name = "custom_call.rotary_positional_embedding"}, "axis=2, divides=true");
}

TEST(Rope, PositionsBeforeHeads) {
  ExpectRope({.x = {2, 5, 3, 8}, .heads_inside = false}, "axis=1, divides=true");
  ExpectRope({.x = {2, 5, 3, 8}, .heads_inside = false, .slices = true, .broadcasts = true},
             "axis=1, divides=true");
}

// The attributes and the sizes are equal; the body tells them apart.
TEST(Rope, AsManyHeadsAsPositions) {
  ExpectRope({.x = {1, 5, 5, 4}}, "axis=2, divides=true");
  ExpectRope({.x = {1, 5, 5, 4}, .heads_inside = false}, "axis=1, divides=true");
}

TEST(Rope, Sizes) {
  ExpectRope({.x = {1, 4, 1, 256}, .positions = {1}}, "axis=2, divides=true");
  ExpectRope({.x = {2, 1, 7, 2}, .positions = {7}}, "axis=2, divides=true");
  ExpectRope({.x = {3, 2, 9, 34}, .positions = {9}}, "axis=2, divides=true");
  ExpectRope({.x = {-1, 2, 5, 8}}, "axis=2, divides=true");
  ExpectRope({.x = {1, 2, -1, 8}, .positions = {-1}}, "axis=2, divides=true");
}

TEST(Rope, PositionsInRows) {
  ExpectRope({.positions = {1, 5}}, "axis=2, divides=true");
  ExpectRope({.x = {2, 3, 5, 8}, .positions = {2, 5}, .integer = DType::kI64}, "axis=2, divides=true");
}

// Positions of long prompts: beside the definition in f64, with the rates of the body.
TEST(Rope, LargePositions) {
  const Site site = RopeOf({.x = {1, 2, 4, 64}, .positions = {4}, .divides = false});
  const std::vector<int32_t> positions = {0, 8191, 131071, -4097};
  const Tensor x = RandomFloats({1, 2, 4, 64}, 7);
  const auto y = site.Run({x, {{DType::kI32, Shape({4})}, Buffer::Of<int32_t>(positions)}}, 3);
  ASSERT_TRUE(y) << y.error().message;
  const auto in = FloatsOf(x), out = FloatsOf((*y)[0]);
  for (size_t row = 0; row < 8; ++row)
    for (size_t i = 0; i < 32; ++i) {
      const auto rate =
          static_cast<double>(static_cast<float>(1 / std::pow(10000.0, static_cast<double>(i) / 32)));
      const double angle = positions[row % 4] * rate;
      const double a = in[row * 64 + i], b = in[row * 64 + 32 + i];
      EXPECT_NEAR(out[row * 64 + i], a * std::cos(angle) - b * std::sin(angle), 6e-7) << row << " " << i;
      EXPECT_NEAR(out[row * 64 + 32 + i], b * std::cos(angle) + a * std::sin(angle), 6e-7) << row << " " << i;
    }
}

TEST(Rope, EmptyInputs) {
  const Site site = RopeOf({.x = {-1, 2, -1, 8}, .positions = {-1}});
  const auto integers = [](int64_t count) {
    return Tensor{{DType::kI32, Shape({count})},
                  Buffer::Of<int32_t>(std::vector<int32_t>(static_cast<size_t>(count)))};
  };
  for (const int64_t batch : {0, 2})
    for (const int64_t count : {0, 3}) {
      const auto y = site.Run({RandomFloats({batch, 2, count, 8}, 1), integers(count)});
      ASSERT_TRUE(y) << y.error().message;
      EXPECT_EQ((*y)[0].type.shape, Shape({batch, 2, count, 8}));
    }
  const auto other = site.Run({RandomFloats({1, 2, 3, 8}, 1), integers(4)});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("does not have one element per position of dimension 2"));
}

TEST(Rope, DeclinesWithTheReason) {
  EXPECT_THAT(RopeOf({.integer = DType::kI16}).Emitted(), HasSubstr("DTYPE: is neither i32 nor i64"));
  // A position per batch item: the kernel has one per position.
  Site rows("odml.rope");
  const RopeForm form{.x = {2, 3, 5, 8}, .positions = {5}};
  const ValueId x = rows.Operand(form.x);
  ValueId angle = AnglesOf(rows, form, rows.Operand({5}, DType::kI32));
  angle = rows.Add(Op::kBroadcastTo, {angle, rows.Ints({2, 5, 4})}, {2, 5, 4});
  const ValueId moved = rows.Transpose(x, {0, 2, 1, 3});
  const auto spread = [&](Op op) { return rows.Reshape(rows.Unary(op, angle), {2, 5, 1, 4}); };
  const ValueId cosine = spread(Op::kCos), sine = spread(Op::kSin);
  const auto halves = rows.Split(moved, 3, 2);
  const ValueId left =
      rows.Binary(Op::kSub, rows.Binary(Op::kMul, halves[0], cosine), rows.Binary(Op::kMul, halves[1], sine));
  const ValueId right =
      rows.Binary(Op::kAdd, rows.Binary(Op::kMul, halves[1], cosine), rows.Binary(Op::kMul, halves[0], sine));
  rows.Return(
      rows.Transpose(rows.Add(Op::kConcatenation, {left, right}, {2, 5, 3, 8}, MakeAttrs("axis", int64_t{3})),
                     {0, 2, 1, 3}));
  EXPECT_THAT(rows.Emitted(), HasSubstr("BODY: it computes its angles otherwise"));
}

// Each change of the body is another function, which the op does not compute.
struct Other {
  const char* why;
  std::function<ValueId(Site&, ValueId moved, ValueId cosine, ValueId sine)> joined;
};

Site OtherRope(const Other& other) {
  Site s("odml.rope");
  const RopeForm form;
  const ValueId x = s.Operand(form.x);
  const ValueId angle = AnglesOf(s, form, s.Operand(form.positions, DType::kI32));
  const ValueId moved = s.Transpose(x, {0, 2, 1, 3});
  const auto spread = [&](Op op) { return s.Reshape(s.Unary(op, angle), {1, 5, 1, 4}); };
  const ValueId cosine = spread(Op::kCos), sine = spread(Op::kSin);
  s.Return(s.Transpose(other.joined(s, moved, cosine, sine), {0, 2, 1, 3}));
  return s;
}

ValueId Join(Site& s, ValueId left, ValueId right) {
  return s.Add(Op::kConcatenation, {left, right}, {1, 5, 3, 8}, MakeAttrs("axis", int64_t{3}));
}

TEST(Rope, DeclinesOtherBodies) {
  const auto product = [](Site& s, ValueId a, ValueId b) { return s.Binary(Op::kMul, a, b); };
  const Other others[] = {
      {"it is no rotation of two halves",  // in the other direction
       [&](Site& s, ValueId x, ValueId c, ValueId n) {
         const auto h = s.Split(x, 3, 2);
         return Join(s, s.Binary(Op::kAdd, product(s, h[0], c), product(s, h[1], n)),
                     s.Binary(Op::kSub, product(s, h[1], c), product(s, h[0], n)));
       }},
      {"it is no rotation of two halves",  // the halves are swapped
       [&](Site& s, ValueId x, ValueId c, ValueId n) {
         const auto h = s.Split(x, 3, 2);
         return Join(s, s.Binary(Op::kSub, product(s, h[1], c), product(s, h[0], n)),
                     s.Binary(Op::kAdd, product(s, h[0], c), product(s, h[1], n)));
       }},
      {"it rotates a part of the features only",
       [&](Site& s, ValueId x, ValueId c, ValueId n) {
         const auto h = s.Split(x, 3, 2);
         const ValueId left = s.Binary(Op::kSub, product(s, h[0], c), product(s, h[1], n));
         return s.Add(Op::kConcatenation, {left, left, left}, {1, 5, 3, 8}, MakeAttrs("axis", int64_t{3}));
       }},
      {"its result is no concatenation",
       [&](Site& s, ValueId x, ValueId, ValueId) { return s.Unary(Op::kTanh, x); }},
      {"it computes with GATHER", [&](Site& s, ValueId x, ValueId c, ValueId n) {
         const auto pick = [&](std::vector<int32_t> which) {
           return s.Add(Op::kGather, {x, s.Ints(std::move(which))}, {1, 5, 3, 4},
                        MakeAttrs("axis", int64_t{3}));
         };
         const ValueId even = pick({0, 2, 4, 6}), odd = pick({1, 3, 5, 7});
         return Join(s, s.Binary(Op::kSub, product(s, even, c), product(s, odd, n)),
                     s.Binary(Op::kAdd, product(s, odd, c), product(s, even, n)));
       }}};
  for (const Other& other : others) EXPECT_THAT(OtherRope(other).Emitted(), HasSubstr(other.why));
}

}  // namespace
}  // namespace fusebox::nn_test
