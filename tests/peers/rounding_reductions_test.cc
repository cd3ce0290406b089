// SPDX-License-Identifier: Apache-2.0
// Means, sums and products of stored values along axes: scaled and rounded as in stock TFLite.
#include <gtest/gtest.h>

#include "tests/peers/rounding.h"
#include "tests/testing/peer.h"

namespace fusebox::testing {
namespace {

using xnnpack_test::Net, xnnpack_test::Options, xnnpack_test::Q;

Dims Places(Dice& dice, int64_t least, int64_t most, size_t rank) {
  Dims dims;
  for (size_t i = 0; i < rank; ++i) dims.push_back(dice.Int(least, most));
  return dims;
}

struct Axes {
  std::vector<int32_t> named;
  Dims kept, all;  // the result's dims without and with those that are reduced
};

Axes SomeAxes(Dice& dice, const Dims& dims) {
  Axes axes;
  const auto rank = static_cast<int32_t>(dims.size());
  for (int32_t d = 0; d < rank; ++d) {
    const bool gone = dice.Flip();
    if (gone) axes.named.push_back(dice.Int(0, 3) == 0 ? d - rank : d);
    else axes.kept.push_back(dims[static_cast<size_t>(d)]);
    axes.all.push_back(gone ? 1 : dims[static_cast<size_t>(d)]);
  }
  if (axes.named.size() == 2 && dice.Flip()) std::swap(axes.named[0], axes.named[1]);
  return axes;
}

Axes BothOfAnImage(const Dims& dims) { return {{1, 2}, {dims[0], dims[3]}, {dims[0], 1, 1, dims[3]}}; }

std::unique_ptr<Module> Reduction(Op op, DType dtype, const Dims& dims, const Axes& axes, bool keep, Q in,
                                  Q out, std::string& what) {
  Net net;
  const ValueId x = net.Input(dtype, dims, in),
                a = net.Const<int32_t>(DType::kI32, {static_cast<int64_t>(axes.named.size())}, axes.named);
  what = TextOf(dims) + " along " + TextOf({axes.named.begin(), axes.named.end()}) + (keep ? ", kept" : "");
  return net.Take({net.Add(op, {x, a}, dtype, keep ? axes.all : axes.kept, Options("keep_dims", keep), out)});
}

enum class Scales { kSame, kOther, kNone };

int64_t FoldsOf(const Dims& dims, const Axes& axes) {
  return CountOf(dims) / std::max<int64_t>(1, CountOf(axes.all));
}

// Without scales all dims that stay are not kept: stock 2.9 divides 0 by 0 for images with their dims kept,
// and gives zeros.
Family Mean(std::string name, DType dtype, Scales scales, bool image, int64_t most = 15) {
  return {std::move(name), [=](Dice& dice, std::string& what) {
            Dims dims =
                image ? Places(dice, 1, most, 4) : Places(dice, 1, 9, static_cast<size_t>(dice.Int(1, 4)));
            if (most > 15) dims[0] = 1, dims[3] = dice.Int(1, 3);
            const Q in = {scales == Scales::kNone ? 0 : dice.Scale(1e-3, 0.5), dice.Zero(dtype)};
            const Q other = {in.scale * dice.Scale(0.2, 3), dice.Zero(dtype)};
            const bool keep = image || (scales != Scales::kNone && dice.Flip());
            return Reduction(Op::kMean, dtype, dims, image ? BothOfAnImage(dims) : SomeAxes(dice, dims), keep,
                             in, scales == Scales::kOther ? other : in, what);
          }};
}

// Results that stay inside of the type: beyond, stock wraps.
Family Sum(std::string name, DType dtype) {
  return {std::move(name), [=](Dice& dice, std::string& what) {
            const Dims dims = Places(dice, 1, dice.Flip() ? 9 : 40, static_cast<size_t>(dice.Int(1, 3)));
            const Axes axes = SomeAxes(dice, dims);
            const int64_t middle = dtype == DType::kU8 ? 128 : 0;
            const Q in = {dice.Scale(1e-3, 0.5), dice.Zero(dtype)};
            const Q out = {in.scale * static_cast<float>(FoldsOf(dims, axes)) * dice.Scale(2.5, 6),
                           middle + dice.Int(-20, 20)};
            return Reduction(Op::kSum, dtype, dims, axes, dice.Flip(), in, out, what);
          }};
}

// Integers without a scale, whose sums and products wrap.
Family Plain(std::string name, Op op, DType dtype) {
  return {std::move(name), [=](Dice& dice, std::string& what) {
            const Dims dims = Places(dice, 1, 6, static_cast<size_t>(dice.Int(1, 4)));
            return Reduction(op, dtype, dims, SomeAxes(dice, dims), dice.Flip(), {}, {}, what);
          }};
}

// Results not far beyond the type's range: stock wraps what leaves 32 bits.
Family Prod(std::string name, DType dtype) {
  return {std::move(name), [=](Dice& dice, std::string& what) {
            const Dims dims = Places(dice, 1, 4, static_cast<size_t>(dice.Int(1, 2)));
            const Axes axes = SomeAxes(dice, dims);
            const double range = dtype == DType::kI16 ? 32768 : 128,
                         folds = static_cast<double>(FoldsOf(dims, axes));
            const Q in = {dice.Scale(0.2 / range, 3 / range), dice.Zero(dtype)};
            const Q out = {
                static_cast<float>(std::pow(in.scale * range * dice.Scale(0.9, 1.2), folds) / range),
                dice.Zero(dtype)};
            return Reduction(Op::kReduceProd, dtype, dims, axes, dice.Flip(), in, out, what);
          }};
}

std::vector<Family> Families() {
  const auto i8 = DType::kI8, u8 = DType::kU8, i16 = DType::kI16;
  std::vector<Family> all;
  for (const auto& [dtype, type] : {std::pair(i8, "I8"), {u8, "U8"}, {i16, "I16"}}) {
    const std::string of = type;
    for (const auto& [scales, by] : {std::pair(Scales::kSame, "SameScale"), {Scales::kOther, "OtherScale"}}) {
      all.push_back(Mean("Mean" + of + by, dtype, scales, false));
      all.push_back(Mean("MeanOfImage" + of + by, dtype, scales, true));
      all.push_back(Mean("MeanOfLargeImage" + of + by, dtype, scales, true, dtype == i16 ? 60 : 150));
    }
    all.push_back(Mean("Mean" + of + "NoScale", dtype, Scales::kNone, false));
    all.push_back(Plain("Sum" + of + "NoScale", Op::kSum, dtype));
    all.push_back(Plain("Prod" + of + "NoScale", Op::kReduceProd, dtype));
    if (dtype != i16) all.push_back(Sum("Sum" + of, dtype));
    if (dtype != u8) all.push_back(Prod("Prod" + of, dtype));
  }
  return all;
}

class Reductions : public ::testing::TestWithParam<Family> {};

TEST_P(Reductions, AreStocks) {
  FUSEBOX_NEEDS_STOCK();
  ExpectStocksValues(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Rounded, Reductions, ::testing::ValuesIn(Families()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusebox::testing
