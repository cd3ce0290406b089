// SPDX-License-Identifier: Apache-2.0
// fusebox run --shape
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/tflite/tflite.h"
#include "tests/cli/command.h"

namespace fusebox::cli_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(RunShape, ResizesInputs) {
  const std::string model = WriteAddModel("add.tflite", 10);
  const Finished done = Fusebox({"run", model, "--shape", "x=4,3", "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.Json()["outputs"][0]["shape"], ElementsAre(4, 3));
  const auto refused = [&](const std::string& shape, const std::string& why) {
    const Finished run = Fusebox({"run", model, "--shape", shape});
    EXPECT_EQ(run.status, 2) << shape;
    EXPECT_THAT(run.err, HasSubstr(why));
  };
  refused("y=4,3", "the model has no input y");
  refused("x=4,-3", "expected NAME=DIM,DIM");
  refused("x=4", "input 0 'x', f32[2,3], cannot be resized to f32[4]");
  EXPECT_THAT(Fusebox({"run", model, "--shape", "x=4,3", "--shape", "x_tensor=4,3"}).err,
              HasSubstr("given twice"));
}

TEST(RunShape, ResizesStrings) {
  Module module;
  Function& f = module.Add("main");
  const ValueId x = f.AddInput({DType::kString, {Shape::kUnknown}}, "x");
  Attrs new_shape;
  new_shape.Set("new_shape", std::vector<int64_t>{-1, 1});
  f.outputs =
      f.AddNode(Op::kReshape, {x}, {{DType::kString, {Shape::kUnknown, 1}}}, std::move(new_shape)).results;
  const std::string model = Path("strings.tflite");
  ASSERT_TRUE(tflite::WriteFile(module, model));
  const Finished done = Fusebox({"run", model, "--shape", "x=2", "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.Json()["outputs"][0]["shape"], ElementsAre(2, 1));
}

}  // namespace
}  // namespace fusebox::cli_test
