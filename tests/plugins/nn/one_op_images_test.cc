// SPDX-License-Identifier: Apache-2.0
// Composites of images that builtin ops compute, each against products with matrices in f64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/plugins/nn/site.h"

namespace fusebox::nn_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kAgreesInF64[] = "agrees (f64";

void ExpectFusedInF64(const Site& s, const std::string& ops) {
  EXPECT_EQ(s.Ops(), ops);
  EXPECT_THAT(s.Verified(), StartsWith(kAgreesInF64));
}

// rows * x * columns^T for x [N,C,H,W] and matrices of these sizes.
struct Matrices {
  int64_t rows, columns;
  std::function<double(int64_t, int64_t)> row, column;
};

ValueId OfImage(Site& s, ValueId x, const Matrices& m) {
  const Dims in = s.DimsOf(x);
  std::vector<float> row, column;
  for (int64_t o = 0; o < m.rows; ++o)
    for (int64_t i = 0; i < in[2]; ++i) row.push_back(static_cast<float>(m.row(o, i)));
  for (int64_t i = 0; i < in[3]; ++i)
    for (int64_t o = 0; o < m.columns; ++o) column.push_back(static_cast<float>(m.column(o, i)));
  const ValueId left =
      s.Add(Op::kBatchMatmul, {s.Floats({1, 1, m.rows, in[2]}, row), x}, {in[0], in[1], m.rows, in[3]});
  return s.Add(Op::kBatchMatmul, {left, s.Floats({1, 1, in[3], m.columns}, column)},
               {in[0], in[1], m.rows, m.columns});
}

// The composite of an image [N,C,H,W] or [N,H,W,C].
Site OfLayout(const char* name, Dims nchw, bool channels_first, const Matrices& m) {
  Site s(name);
  s.attrs.Set("is_nchw_op", channels_first);
  if (channels_first) {
    s.Return(OfImage(s, s.Operand(nchw), m));
  } else {
    const ValueId x = s.Operand({nchw[0], nchw[2], nchw[3], nchw[1]});
    s.Return(s.Transpose(OfImage(s, s.Transpose(x, {0, 3, 1, 2}), m), {0, 2, 3, 1}));
  }
  return s;
}

std::string InLayout(bool channels_first, const std::string& op) {
  return channels_first ? "TRANSPOSE " + op + " TRANSPOSE" : op;
}

double BilinearWeight(int64_t o, int64_t i, int64_t out, int64_t in, bool corners) {
  const auto [a, b] = std::pair(static_cast<double>(in), static_cast<double>(out));
  const double at = corners ? (out > 1 ? static_cast<double>(o) * (a - 1) / (b - 1) : 0.0)
                            : std::max(0.0, (static_cast<double>(o) + 0.5) * a / b - 0.5);
  const double near = std::min(at, a - 1);
  return std::max(0.0, 1 - std::abs(near - static_cast<double>(i)));
}

Site Bilinear(int64_t h, int64_t w, bool corners, bool channels_first, int64_t batch) {
  const auto weight = [corners](int64_t out, int64_t in) {
    return [=](int64_t o, int64_t i) { return BilinearWeight(o, i, out, in, corners); };
  };
  Site s = OfLayout("odml.upsample_bilinear2d", {batch, 2, 3, 4}, channels_first,
                    {h, w, weight(h, 3), weight(w, 4)});
  s.attrs.Set("size", std::vector<int64_t>{h, w});
  s.attrs.Set("align_corners", corners);
  return s;
}

TEST(OneOp, Bilinear) {
  for (const bool first : {false, true}) {
    for (const int64_t batch : {1, 2, -1}) {
      ExpectFusedInF64(Bilinear(6, 12, false, first, batch), InLayout(first, "RESIZE_BILINEAR"));
      ExpectFusedInF64(Bilinear(7, 9, true, first, batch), InLayout(first, "RESIZE_BILINEAR"));
    }
    ExpectFusedInF64(Bilinear(1, 2, true, first, 1), InLayout(first, "RESIZE_BILINEAR"));
  }
  EXPECT_THAT(Bilinear(7, 8, false, true, 1).Ops(), HasSubstr("is no multiple of 3x4"));
}

Site Nearest(int64_t h, int64_t w, bool channels_first) {
  const auto weight = [](int64_t out, int64_t in) {
    return [=](int64_t o, int64_t i) { return o * in / out == i ? 1.0 : 0.0; };
  };
  Site s = OfLayout("tfl.resize_nearest_neighbor", {2, 2, 3, 4}, channels_first,
                    {h, w, weight(h, 3), weight(w, 4)});
  s.attrs.Set("size", std::vector<int64_t>{h, w});
  return s;
}

// PyTorch takes other pixels than JAX where the size is no multiple.
TEST(OneOp, Nearest) {
  for (const bool first : {false, true}) {
    ExpectFusedInF64(Nearest(3, 4, first), InLayout(first, "RESIZE_NEAREST_NEIGHBOR"));
    ExpectFusedInF64(Nearest(9, 20, first), InLayout(first, "RESIZE_NEAREST_NEIGHBOR"));
    for (const auto& [h, w] : {std::pair(5, 8), std::pair(1, 4)})
      EXPECT_THAT(Nearest(h, w, first).Ops(), HasSubstr("is no multiple of 3x4"));
  }
}

Site Mirror(bool channels_first, const char* mode, std::vector<int64_t> paddings) {
  const int64_t edge = std::string(mode) == "REFLECT" ? 1 : 0;
  const auto weight = [edge](int64_t before, int64_t in) {
    return [=](int64_t o, int64_t i) {
      int64_t at = o - before;
      if (at < 0) at = -at - 1 + edge;
      if (at >= in) at = 2 * in - 1 - at - edge;
      return at == i ? 1.0 : 0.0;
    };
  };
  Site s = OfLayout("tfl.mirror_pad", {1, 2, 4, 5}, channels_first,
                    {4 + paddings[2] + paddings[3], 5 + paddings[0] + paddings[1], weight(paddings[2], 4),
                     weight(paddings[0], 5)});
  s.attrs.Set("paddings", paddings);
  s.attrs.Set("mode", mode);
  return s;
}

TEST(OneOp, MirrorPad) {
  for (const bool first : {false, true})
    for (const char* mode : {"REFLECT", "SYMMETRIC"}) {
      ExpectFusedInF64(Mirror(first, mode, {1, 2, 3, 0}), "MIRROR_PAD");
      ExpectFusedInF64(Mirror(first, mode, {0, 4, 1, 1}), "MIRROR_PAD");
    }
  Site s = Mirror(true, "REFLECT", {1, 1, 1, 1});
  s.attrs.Set("mode", "CONSTANT");
  EXPECT_THAT(s.Ops(), HasSubstr("ATTR: is CONSTANT (attr mode)"));
  s.attrs.Set("mode", "REFLECT");
  s.attrs.Set("paddings", std::vector<int64_t>{1, 1});
  EXPECT_THAT(s.Ops(), HasSubstr("ATTR: is not left, right, top and bottom (attr paddings)"));
}

struct Pool {
  int64_t h, w, kernel, stride, padding;
  bool ceil, counts;
};

int64_t PoolOut(const Pool& p, int64_t in) {
  const double free = static_cast<double>(in + 2 * p.padding - p.kernel) / static_cast<double>(p.stride);
  const auto out = static_cast<int64_t>(p.ceil ? std::ceil(free) : std::floor(free)) + 1;
  return p.ceil && (out - 1) * p.stride >= in + p.padding ? out - 1 : out;
}

// Elements of the window that PyTorch divides by, in one dimension.
double Divisor(const Pool& p, int64_t o, int64_t in) {
  const int64_t begin = o * p.stride - p.padding;
  const int64_t end = std::min(begin + p.kernel, in + p.padding);
  return static_cast<double>(p.counts ? end - begin : std::min(end, in) - std::max<int64_t>(begin, 0));
}

Site AveragePool(const Pool& p) {
  Site s("aten.avg_pool2d.default");
  const auto weight = [p](int64_t in) {
    return [=](int64_t o, int64_t i) {
      const int64_t begin = o * p.stride - p.padding;
      return i >= begin && i < begin + p.kernel ? 1 / Divisor(p, o, in) : 0;
    };
  };
  const ValueId x = s.Operand({2, 3, p.h, p.w});
  s.attrs.Set("kernel_size", std::vector<int64_t>{p.kernel, p.kernel});
  s.attrs.Set("stride", std::vector<int64_t>{p.stride, p.stride});
  s.attrs.Set("padding", std::vector<int64_t>{p.padding, p.padding});
  s.attrs.Set("ceil_mode", p.ceil);
  s.attrs.Set("count_include_pad", p.counts);
  s.attrs.Set("divisor_override", "py_None");
  s.Return(OfImage(s, x, {PoolOut(p, p.h), PoolOut(p, p.w), weight(p.h), weight(p.w)}));
  return s;
}

TEST(OneOp, AveragePool) {
  const std::string one = "TRANSPOSE AVERAGE_POOL_2D TRANSPOSE";
  const std::string padded = "TRANSPOSE PAD AVERAGE_POOL_2D TRANSPOSE";
  ExpectFusedInF64(AveragePool({6, 6, 3, 1, 0, false, true}), one);
  ExpectFusedInF64(AveragePool({7, 8, 2, 2, 0, false, false}), one);
  ExpectFusedInF64(AveragePool({6, 9, 3, 1, 1, false, false}), one);  // SAME
  ExpectFusedInF64(AveragePool({6, 6, 3, 2, 1, false, true}), padded);
  ExpectFusedInF64(AveragePool({3, 5, 2, 2, 0, true, true}), one);  // SAME: the last window is cut
  ExpectFusedInF64(AveragePool({4, 6, 3, 2, 1, true, true}), padded);
  ExpectFusedInF64(AveragePool({4, 4, 2, 3, 1, true, true}), padded);  // a window behind the input is dropped
}

// Every small window: what is fused agrees.
TEST(OneOp, AveragePoolOfEachWindow) {
  int fused = 0;
  for (const int64_t in : {3, 4, 5, 6, 7})
    for (const int64_t kernel : {1, 2, 3})
      for (const int64_t stride : {1, 2, 3})
        for (int64_t padding = 0; 2 * padding <= kernel; ++padding)
          for (const bool ceil : {false, true})
            for (const bool counts : {false, true}) {
              const Site s = AveragePool({in, in + 1, kernel, stride, padding, ceil, counts});
              const std::string verified = s.Verified();
              if (verified.find("neither with VALID nor with SAME") != std::string::npos) continue;
              EXPECT_THAT(verified, StartsWith(kAgreesInF64))
                  << in << kernel << stride << padding << ceil << counts;
              ++fused;
            }
  EXPECT_GT(fused, 150);
}

TEST(OneOp, AveragePoolWithADivisorStays) {
  Site s = AveragePool({6, 6, 3, 1, 0, false, true});
  s.attrs.Set("divisor_override", int64_t{4});
  EXPECT_THAT(s.Ops(), HasSubstr("ATTR: has no counterpart in the op (attr divisor_override)"));
}

}  // namespace
}  // namespace fusebox::nn_test
