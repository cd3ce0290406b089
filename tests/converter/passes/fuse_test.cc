// SPDX-License-Identifier: Apache-2.0
// What the proof of a fusion runs: a copy of the composite's body.
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

}  // namespace
}  // namespace fusebox::converter
