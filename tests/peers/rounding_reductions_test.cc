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

Family Mean(std::string name, DType dtype, Scales scales, bool image) {
  return {std::move(name), [=](Dice& dice, std::string& what) {
            const Dims dims =
                image ? Places(dice, 1, 15, 4) : Places(dice, 1, 9, static_cast<size_t>(dice.Int(1, 4)));
            const Q in = {scales == Scales::kNone ? 0 : dice.Scale(1e-3, 0.5), dice.Zero(dtype)};
            const Q other = {in.scale * dice.Scale(0.2, 3), dice.Zero(dtype)};
            return Reduction(Op::kMean, dtype, dims, image ? BothOfAnImage(dims) : SomeAxes(dice, dims),
                             image || dice.Flip(), in, scales == Scales::kOther ? other : in, what);
          }};
}

std::vector<Family> Families() {
  const auto i8 = DType::kI8, u8 = DType::kU8, i16 = DType::kI16;
  std::vector<Family> all;
  for (const auto& [dtype, type] : {std::pair(i8, "I8"), {u8, "U8"}, {i16, "I16"}}) {
    for (const auto& [scales, by] : {std::pair(Scales::kSame, "SameScale"),
                                     {Scales::kOther, "OtherScale"},
                                     {Scales::kNone, "NoScale"}}) {
      all.push_back(Mean(std::string("Mean") + type + by, dtype, scales, false));
      all.push_back(Mean(std::string("MeanOfImage") + type + by, dtype, scales, true));
    }
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
