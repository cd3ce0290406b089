// SPDX-License-Identifier: Apache-2.0
// MediaPipe's pooling and transposed convolution, beside their definitions in f64.
#include "tests/plugins/vision/mediapipe.h"

namespace fusebox::mediapipe_test {
namespace {

// Padding, strides over width and height, window's width and height, activation, and what TFLite computes.
Ints PoolStruct(int32_t padding, int32_t stride, int32_t window) {
  return {padding, stride, stride, window, window, 0, 0, 0, 0, 0};
}

TEST(ArgmaxPooling, FindsTheMaximumAndItsPlaceInTheWindow) {
  OpNode pool{"MaxPoolingWithArgmax2D", 1, {{{1, 2, 4, 1}, {1, 5, 2, 2, 3, 4, 2, 9}}}, PoolStruct(1, 2, 2)};
  pool.results = 2;
  const auto out = pool.Run();
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ((*out)[0].type.shape, Shape({1, 1, 2, 1}));
  EXPECT_THAT(FloatsOf((*out)[0]), ElementsAre(5, 9));
  EXPECT_THAT(FloatsOf((*out)[1]), ElementsAre(1.1F, 3.1F));
}

TEST(ArgmaxPooling, PadsAsMaxPooling) {
  // 5 wide, windows of 3 at a distance of 2: one column before, one behind. The first of equals counts.
  OpNode pool{"MaxPoolingWithArgmax2D", 1, {{{1, 1, 5, 1}, {-7, -7, -1, -3, -2}}}, PoolStruct(1, 2, 3)};
  pool.results = 2;
  auto out = pool.Run();
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_THAT(FloatsOf((*out)[0]), ElementsAre(-7, -1, -2));
  EXPECT_THAT(FloatsOf((*out)[1]), ElementsAre(4.1F, 4.1F, 4.1F));
  pool.raw = {2, 2, 1, 3, 1, 0};  // VALID, and a struct without the computed members
  out = pool.Run();
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_THAT(FloatsOf((*out)[0]), ElementsAre(-1, -1));
  EXPECT_THAT(FloatsOf((*out)[1]), ElementsAre(2.1F, 0.1F));
  pool.operands = {{{2, 0, 5, 1}, {}}};
  out = pool.Run();
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ((*out)[1].type.shape, Shape({2, 0, 2, 1}));
}

TEST(ArgmaxUnpooling, UndoesArgmaxPooling) {
  const Given images = Some({2, 6, 8, 3}, 1);
  OpNode pool{"MaxPoolingWithArgmax2D", 1, {images}, PoolStruct(1, 2, 2)};
  pool.results = 2;
  const auto pooled = pool.Run();
  ASSERT_TRUE(pooled) << pooled.error().message;
  const Shape small({2, 3, 4, 3});
  const auto out = OpNode{"MaxUnpooling2D",
                          1,
                          {{small, FloatsOf((*pooled)[0])}, {small, FloatsOf((*pooled)[1])}},
                          PoolStruct(1, 2, 2)}
                       .Run();
  ASSERT_TRUE(out) << out.error().message;
  std::vector<double> wanted(images.values.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const size_t c = i % 3, x = i / 3 % 8, row = i / 24, first = (row / 2 * 16 + x / 2 * 2) * 3 + c;
    double most = -9;
    for (const size_t at : {size_t{0}, size_t{3}, size_t{24}, size_t{27}})
      most = std::max(most, double{images.values[first + at]});
    wanted[i] = images.values[i] == most ? most : 0;
  }
  Near((*out)[0], Shape({2, 6, 8, 3}), wanted);
}

TEST(ArgmaxUnpooling, DropsIndicesOutsideOfTheImage) {
  const Shape shape({1, 1, 4, 1});
  for (const float bad : {-5.0F, 1e30F, -1e30F, NAN, INFINITY}) {
    const auto out = OpNode{"MaxUnpooling2D",
                            1,
                            {{shape, {1, 2, 3, 4}}, {shape, {0.1F, bad, 3.1F, 1.1F}}},
                            PoolStruct(1, 2, 2)}
                         .Run();
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_THAT(FloatsOf((*out)[0]), ElementsAre(1, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 3, 0, 0));
  }
}

TEST(ArgmaxUnpooling, RefusesOtherOptions) {
  const Shape shape({1, 1, 1, 1});
  OpNode unpool{"MaxUnpooling2D", 1, {{shape, {1}}, {shape, {0}}}, PoolStruct(1, 2, 2)};
  EXPECT_EQ(unpool.Error(), "");
  for (const auto& [raw, why] : std::vector<std::pair<Ints, const char*>>{
           {{}, "are 0 bytes"},
           {{1, 2, 2}, "are 12 bytes"},
           {PoolStruct(0, 2, 2), "padding is 0"},
           {PoolStruct(1, -1, 2), "a stride or window is -1"},
           {PoolStruct(2, 2, 1 << 30), "a stride or window is 1073741824"},
           {{1, 2, 2, 2, 2, 1, 0, 0, 0, 0}, "an activation is unsupported"}}) {
    unpool.raw = raw;
    EXPECT_THAT(unpool.Error(), HasSubstr(why));
  }
  unpool.raw = PoolStruct(1, 2, 2);
  unpool.operands[1] = {{1, 1, 2, 1}, {0, 0}};
  EXPECT_THAT(unpool.Error(), HasSubstr("has a different shape than the values"));
  unpool.operands[1] = {{1}, {0}};
  EXPECT_THAT(unpool.Error(), HasSubstr("rank 1, expected 4"));
  unpool.operands.pop_back();
  EXPECT_THAT(unpool.Error(), HasSubstr("1 operands and 1 results, expected 2 and 1"));
}

// Every image element adds its filter to the result.
std::vector<double> Transposed(const Given& in, const Given& filter, const Given& bias, int64_t stride,
                               int64_t padding, const Shape& out) {
  const auto i = in.shape.dims(), f = filter.shape.dims(), o = out.dims();
  std::vector<double> wanted;
  for (int64_t n = 0; n < o[0] * o[1] * o[2]; ++n)
    wanted.insert(wanted.end(), bias.values.begin(), bias.values.end());
  for (int64_t at = 0; at < static_cast<int64_t>(in.values.size()); ++at) {
    const int64_t c = at % i[3], x = at / i[3] % i[2], y = at / i[3] / i[2] % i[1],
                  n = at / i[3] / i[2] / i[1];
    for (int64_t tap = 0; tap < static_cast<int64_t>(filter.values.size()) / i[3]; ++tap) {
      const int64_t kx = tap % f[2], ky = tap / f[2] % f[1], k = tap / f[2] / f[1];
      const int64_t ty = y * stride + ky - padding, tx = x * stride + kx - padding;
      if (ty < 0 || ty >= o[1] || tx < 0 || tx >= o[2]) continue;
      wanted[static_cast<size_t>(((n * o[1] + ty) * o[2] + tx) * o[3] + k)] +=
          double{in.values[static_cast<size_t>(at)]} *
          filter.values[static_cast<size_t>(((k * f[1] + ky) * f[2] + kx) * f[3] + c)];
    }
  }
  return wanted;
}

TEST(TransposedConvolution, IsTheDefinition) {
  struct Form {
    Shape in, filter;
    int32_t padding, stride;
    int64_t before;
    Shape out;
  };
  for (const Form& form : {Form{{2, 4, 6, 37}, {2, 2, 2, 37}, 1, 2, 0, {2, 8, 12, 2}},
                           Form{{1, 3, 5, 2}, {2, 4, 4, 2}, 1, 2, 1, {1, 5, 9, 2}},
                           Form{{1, 3, 3, 2}, {2, 3, 3, 2}, 1, 1, 1, {1, 3, 3, 2}},
                           Form{{1, 2, 3, 5}, {2, 3, 3, 5}, 2, 2, 0, {1, 5, 7, 2}},
                           Form{{1, 2, 2, 1}, {2, 1, 1, 1}, 2, 3, 0, {1, 4, 4, 2}},
                           Form{{2, 20, 64, 5}, {32, 3, 3, 5}, 1, 2, 0, {2, 40, 128, 32}},
                           Form{{1, 0, 2, 1}, {2, 1, 1, 1}, 2, 1, 0, {1, 0, 2, 2}}}) {
    const Given in = Some(form.in, 7), filter = Some(form.filter, 9), bias = Some({form.out.dims()[3]}, 3);
    OpNode conv{
        "Convolution2DTransposeBias", 1, {in, filter, bias}, {form.padding, form.stride, form.stride}};
    for (const size_t constant : {SIZE_MAX, size_t{1}}) {
      conv.constant = constant;
      const auto out = conv.Run();
      ASSERT_TRUE(out) << out.error().message;
      Near((*out)[0], form.out, Transposed(in, filter, bias, form.stride, form.before, form.out), 1e-4F);
    }
  }
}

TEST(TransposedConvolution, RefusesBrokenNodes) {
  OpNode conv{"Convolution2DTransposeBias",
              1,
              {Some({1, 2, 2, 3}, 1), Some({2, 2, 2, 3}, 2), Some({2}, 3)},
              {1, 2, 2}};
  EXPECT_EQ(conv.Error(), "");
  const auto why = [&](auto change) {
    OpNode changed = conv;
    change(changed);
    return changed.Error();
  };
  EXPECT_THAT(why([](OpNode& n) { n.raw = {1, 0, 2}; }), HasSubstr("a stride or window is 0"));
  EXPECT_THAT(why([](OpNode& n) { n.raw = {1, 2, -2}; }), HasSubstr("a stride or window is -2"));
  EXPECT_THAT(why([](OpNode& n) { n.raw = {7, 2, 2}; }), HasSubstr("padding is 7"));
  EXPECT_THAT(why([](OpNode& n) { n.raw = {1}; }), HasSubstr("are 4 bytes, expected 12"));
  EXPECT_THAT(why([](OpNode& n) { n.operands[1] = Some({2, 2, 2, 4}, 1); }),
              HasSubstr("channels of the images and of the filter differ: 3 and 4"));
  EXPECT_THAT(why([](OpNode& n) { n.operands[1] = Some({2, 0, 2, 3}, 1); }), HasSubstr("an empty filter"));
  EXPECT_THAT(why([](OpNode& n) { n.operands[2] = Some({3}, 1); }),
              HasSubstr("the filters and the bias differ: 2 and 3"));
  EXPECT_THAT(why([](OpNode& n) { n.operands.pop_back(); }), HasSubstr("2 operands"));
  EXPECT_THAT(why([](OpNode& n) { n.types = {DType::kF16}; }), HasSubstr("dtype f16, expected f32"));
}

}  // namespace
}  // namespace fusebox::mediapipe_test
