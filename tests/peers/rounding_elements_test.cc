// SPDX-License-Identifier: Apache-2.0
// Functions of one stored value, rounded as in stock TFLite.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/peers/rounding.h"
#include "tests/testing/peer.h"

namespace fusebox::testing {
namespace {

using xnnpack_test::Net, xnnpack_test::Q;

// All values of a byte. Stock takes no result whose scale is below the operand's by more than 128.
Family OfBytes(std::string name, Op op, DType dtype, double least_ratio) {
  return {std::move(name), [=](Dice& dice, std::string& what) {
            Net net;
            const Q in = {dice.Scale(1e-4, 2), dice.Zero(dtype)},
                    out = {in.scale * dice.Scale(least_ratio, 4), dice.Zero(dtype)};
            what = "scales " + std::to_string(in.scale) + " and " + std::to_string(out.scale);
            const Dims dims = {2048};
            return net.Take({net.Add(op, {net.Input(dtype, dims, in)}, dtype, dims, {}, out)});
          }};
}

class Elements : public ::testing::TestWithParam<Family> {};

TEST_P(Elements, AreStocks) {
  FUSEBOX_NEEDS_STOCK();
  ExpectStocksValues(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Rounded, Elements,
                         ::testing::Values(OfBytes("HardSwishI8", Op::kHardSwish, DType::kI8, 0.01),
                                           OfBytes("HardSwishU8", Op::kHardSwish, DType::kU8, 0.01)),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusebox::testing
