// SPDX-License-Identifier: Apache-2.0
// Which declared shapes of a .tflite file its conversion believes.
#include <gmock/gmock.h>

#include "tests/converter/import/tflite/file.h"

namespace fusebox::converter {
namespace {

using ::testing::ElementsAre;

// x / its number of rows, which an older tool wrote down as 1 behind an input that is open.
TEST(FromTflite, DoesNotBelieveShapesThatOpsContradict) {
  File file;
  Function& f = file.Add("main");
  const ValueId x = f.AddInput(F32({-1, 2}));
  const ValueId y = f.AddNode(Op::kRelu, {x}, {F32({1, 2})}).results[0];
  Attrs i32, cast;
  i32.Set("out_type", DType::kI32);
  const ValueId shape = f.AddNode(Op::kShape, {y}, {I32({2})}, i32).results[0];
  const ValueId zero = f.AddConst<int32_t>(DType::kI32, {1}, {0}),
                one = f.AddConst<int32_t>(DType::kI32, {1}, {1});
  const ValueId rows = f.AddNode(Op::kSlice, {shape, zero, one}, {I32({1})}).results[0];
  cast.Set("in_data_type", DType::kI32);
  cast.Set("out_data_type", DType::kF32);
  const ValueId count = f.AddNode(Op::kCast, {rows}, {F32({1})}, cast).results[0];
  f.outputs = f.AddNode(Op::kDiv, {y, count}, {F32({1, 2})}).results;
  file.Sign(f);
  const auto converted = file.Convert();
  ASSERT_TRUE(converted) << converted.error().message;
  Bench bench;
  const auto program = run::Program::Create(*converted->module, BuiltIn());
  ASSERT_TRUE(program) << program.error().message;
  const auto runner = run::Runner::Create(**program, 1);
  const auto outputs = (*runner)->Run(converted->module->functions[0]->name,
                                      std::vector{Floats({3, 2}, {3, 6, 9, 12, 15, 18})});
  ASSERT_TRUE(outputs) << outputs.error().message;
  EXPECT_THAT(FloatsOf((*outputs)[0]), ElementsAre(1, 2, 3, 4, 5, 6));
}

// Before files said whether a tensor has a rank, one without had no dimensions.
TEST(FromTflite, TakesAScalarFromAnOldFileForAnUnknownRank) {
  File file;
  Function& f = file.Add("main");
  const ValueId x = f.AddInput(F32({4})), shape = f.AddInput(I32({2}));
  f.outputs = f.AddNode(Op::kReshape, {x, shape}, {F32({})}).results;
  file.Sign(f);
  const auto converted = file.Convert();
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_FALSE(converted->module->functions[0]
                   ->value(converted->module->functions[0]->outputs[0])
                   .type.shape.is_static());
}

// b = x * 1 and a = x + 0 become one value.
// Nothing but the file says how many bits there are.
TEST(FromTflite, KeepsTheShapeOfRandomBits) {
  File file;
  Function& f = file.Add("main");
  const ValueId state = f.AddInput({DType::kU64, {2}});
  Attrs philox;
  philox.Set("algorithm", "PHILOX");
  f.outputs =
      f.AddNode(Op::kStablehloRngBitGenerator, {state}, {{DType::kU64, {2}}, I32({3, 5})}, philox).results;
  file.Sign(f);
  const auto converted = file.Convert();
  ASSERT_TRUE(converted) << converted.error().message;
  const Function& main = *converted->module->functions[0];
  EXPECT_EQ(ToString(main.value(main.outputs[1]).type), "i32[3,5]");
}

}  // namespace
}  // namespace fusebox::converter
