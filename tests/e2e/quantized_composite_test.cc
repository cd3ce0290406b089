// SPDX-License-Identifier: Apache-2.0
// A matrix product of integers as a composite in a .tflite file: a rule without code transposes its weight,
// which has a scale per channel, and the fused op computes what the body computes, bit for bit.
#include <gtest/gtest.h>

#include <fstream>

#include "host/tflite/tflite.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

constexpr int64_t kDepth = 5, kColumns = 3;

std::shared_ptr<const Quant> Scales(std::vector<float> scales, int32_t axis = 0) {
  Quant quant;
  quant.zero_points = std::vector<int64_t>(scales.size());
  quant.scales = std::move(scales);
  quant.axis = axis;
  return std::make_shared<const Quant>(std::move(quant));
}

// y = x * w: dequantized, multiplied and quantized. All scales are powers of two, so f32 computes it exactly.
void AddBody(Module& module, const Value& x, const Value& w, const Value& y) {
  Function& body = module.Add("body");
  const auto input = [&](const Value& like) {
    const ValueId v = body.AddInput(like.type);
    body.value(v).quant = like.quant;
    return v;
  };
  const auto real = [&](ValueId v) {
    return body.AddNode(Op::kDequantize, {v}, {{DType::kF32, body.value(v).type.shape}}).results[0];
  };
  const ValueId a = input(x), b = input(w);
  const ValueId product =
      body.AddNode(Op::kBatchMatmul, {real(a), real(b)}, {{DType::kF32, y.type.shape}}).results[0];
  body.outputs = body.AddNode(Op::kQuantize, {product}, {y.type}).results;
  body.value(body.outputs[0]).quant = y.quant;
}

std::string WriteModel() {
  Module module;
  Function& main = module.Add("main");
  const ValueId x = main.AddInput({DType::kI8, {2, kDepth}}, "x");
  main.value(x).quant = Scales({0.25f});
  std::vector<int8_t> weights;
  for (int i = 0; i < kDepth * kColumns; ++i) weights.push_back(static_cast<int8_t>(i * 37 % 255 - 127));
  const ValueId w = main.AddConst(DType::kI8, {kDepth, kColumns}, weights, "w");
  main.value(w).quant = Scales({0.5f, 2, 0.125f}, 1);
  Node& node = main.AddNode(Op::kStablehloComposite, {x, w}, {{DType::kI8, {2, kColumns}}});
  node.name = "acme.product";
  node.version = 1;
  node.body = "body";
  main.outputs = node.results;
  main.value(main.outputs[0]).quant = Scales({64});
  AddBody(module, main.value(x), main.value(w), main.value(main.outputs[0]));
  const std::string path = TestDir() + "/product.tflite";
  const Status written = tflite::WriteFile(module, path);
  EXPECT_TRUE(written) << written.error().message;
  return path;
}

std::string WriteManifest() {
  const std::string path = TestDir() + "/fusebox-plugin.json";
  std::ofstream(path) << R"({"manifest_version": "1.0", "abi": {"major": 1},
    "plugin": {"id": "acme.product", "version": "1.0.0", "namespace": "acme"},
    "provides": {"rules": [{"id": "acme.product", "implements": ["acme.product"], "emits": [{"builtin": "FULLY_CONNECTED"}],
      "rewrite": {"operands": [0, {"operand": 1, "transpose": [1, 0], "constant": true}, null]}}]}})";
  return path;
}

TEST(QuantizedComposite, FusesAtLoadAndEqualsItsBody) {
  const std::string path = WriteModel();
  const auto with = Plugins({WriteManifest()}), without = Plugins({});
  ASSERT_TRUE(with) << with.error().message;
  const auto model = Model::Open(path, {.registry = *with});
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_EQ((*model)->fusions().size(), 1u);
  EXPECT_TRUE((*model)->fusions()[0].fused) << (*model)->fusions()[0].why;
  const auto ops = OpsOf((*model)->module());
  EXPECT_EQ(ops.count("FULLY_CONNECTED"), 1u);
  EXPECT_EQ(ops.count("TRANSPOSE"), 0u);
  const auto fused = Open(path, *with), body = Open(path, *without);
  ASSERT_TRUE(fused && body);
  for (int seed = 0; seed < 50; ++seed) {
    std::vector<int8_t> x;
    for (int i = 0; i < 2 * kDepth; ++i) x.push_back(static_cast<int8_t>((seed * 89 + i * 61) % 256 - 128));
    const Tensor input{{DType::kI8, {2, kDepth}}, Buffer::Of<int8_t>(x)};
    const auto ours = Invoke(**fused, {input}), truth = Invoke(**body, {input});
    ASSERT_TRUE(ours && truth);
    EXPECT_EQ(*ours, *truth) << "seed " << seed;
  }
}

}  // namespace
}  // namespace fusebox::testing
