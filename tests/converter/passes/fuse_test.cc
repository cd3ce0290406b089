// SPDX-License-Identifier: Apache-2.0
// What the verification of a fused op runs: a copy of the composite's body.
#include "tests/converter/passes/bench.h"

namespace fusebox::converter {
namespace {

TEST(RunnableCopy, TakesABodyWithoutNames) {
  Bench bench;
  Function& body = bench.Add("body");
  const ValueId x = body.AddInput(F32({2}));
  body.outputs = {Opaque(body, "AddV2", {x, x}, F32({2})), x};
  ASSERT_TRUE(body.input_names.empty() && body.output_names.empty());
  const auto copy = RunnableCopy(bench.module, body, {F32({2})}, *BuiltIn());
  ASSERT_TRUE(copy) << copy.error().message;
  const Status sound = Verify(**copy, Strictness::kWritable);
  EXPECT_TRUE(sound) << sound.error().message;
  EXPECT_EQ(Count(*(*copy)->functions[0], Op::kAdd), 1u);
}

TEST(RunnableCopy, LowersComplexNumbers) {
  Bench bench;
  Function& body = bench.Add("body");
  const ValueId x = body.AddInput(F32({1, 8}));
  const Type none{DType::kNone, Shape()};
  const ValueId spectrum = Opaque(body, "RFFT", {x, body.AddConst<int32_t>(DType::kI32, {1}, {8})}, none);
  body.outputs = {Opaque(body, "ComplexAbs", {spectrum}, none)};
  const auto copy = RunnableCopy(bench.module, body, {F32({1, 8})}, *BuiltIn());
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_EQ(Count(*(*copy)->functions[0], Op::kOpaque), 0u);
}

}  // namespace
}  // namespace fusebox::converter
