// SPDX-License-Identifier: Apache-2.0
#include "tests/check/models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "host/tflite/tflite.h"

namespace fusebox {
namespace {

constexpr int64_t kDepth = 7;
constexpr double kEpsilon = 1e-3;

Type Rows(int64_t columns) { return {DType::kF32, Shape{-1, columns}}; }

std::shared_ptr<const Quant> Scaled(float scale, int64_t zero_point) {
  auto quant = std::make_shared<Quant>();
  quant->scales = {scale};
  quant->zero_points = {zero_point};
  return quant;
}

void WriteBody(Function& body) {
  const auto op = [&](Op kind, ValueIds operands, const Type& type, Attrs attrs = {}) {
    return body.AddNode(kind, std::move(operands), {type}, std::move(attrs)).results[0];
  };
  Attrs keep;
  keep.Set("keep_dims", true);
  const Type all = Rows(kDepth), one = Rows(1), weights{DType::kF32, {kDepth, kDepth}};
  const ValueId x = body.AddInput(all, "x"), w = body.AddInput(weights, "w");
  const ValueId axis = body.AddConst<int32_t>(DType::kI32, {1}, {1});
  const ValueId epsilon = body.AddConst<float>(DType::kF32, Shape::Scalar(), {kEpsilon});
  const ValueId mean = op(Op::kMean, {op(Op::kMul, {x, x}, all), axis}, one, keep);
  const ValueId scale = op(Op::kRsqrt, {op(Op::kAdd, {mean, epsilon}, one)}, one);
  body.outputs = {op(Op::kFullyConnected, {op(Op::kMul, {x, scale}, all), w, kNoValue}, all)};
}

std::unique_ptr<Module> Norm() {
  auto module = std::make_unique<Module>();
  Function& main = module->Add("main");
  std::vector<float> weights;
  for (int i = 0; i < kDepth * kDepth; ++i) weights.push_back(std::sin(static_cast<float>(i * i + 1)));
  const ValueId x = main.AddInput(Rows(kDepth), "x");
  const ValueId w = main.AddConst<float>(DType::kF32, {kDepth, kDepth}, weights);
  Node& node = main.AddNode(Op::kStablehloComposite, {x, w}, {Rows(kDepth)});
  node.name = "planted.norm";
  node.version = 1;
  node.attrs.Set("epsilon", kEpsilon);
  node.attrs.Set("mode", "rows");
  node.body = "norm_body";
  main.outputs = {node.results[0]};
  WriteBody(module->Add("norm_body"));
  return module;
}

std::unique_ptr<Module> Relu() {
  auto module = std::make_unique<Module>();
  const Type stored{DType::kI8, {3, 40}}, real{DType::kF32, {3, 40}};
  const auto scales = [](Function& f, ValueId v, float scale, int64_t zero) {
    f.value(v).quant = Scaled(scale, zero);
  };
  Function& main = module->Add("main");
  const ValueId x = main.AddInput(stored, "x");
  scales(main, x, 0.05F, -7);
  Node& node = main.AddNode(Op::kStablehloComposite, {x}, {stored});
  node.name = "planted.relu";
  node.version = 1;
  node.body = "relu_body";
  main.outputs = {node.results[0]};
  scales(main, node.results[0], 0.03F, -100);
  Function& body = module->Add("relu_body");
  const ValueId in = body.AddInput(stored, "x");
  scales(body, in, 0.05F, -7);
  const ValueId plain = body.AddNode(Op::kDequantize, {in}, {real}).results[0];
  const ValueId relu = body.AddNode(Op::kRelu, {plain}, {real}).results[0];
  body.outputs = {body.AddNode(Op::kQuantize, {relu}, {stored}).results[0]};
  scales(body, body.outputs[0], 0.03F, -100);
  return module;
}

std::unique_ptr<Module> Chain() {
  auto module = std::make_unique<Module>();
  const Type type{DType::kF32, {2, 5}};
  Function& main = module->Add("main");
  const ValueId x = main.AddInput(type, "x"), y = main.AddInput(type, "y");
  ValueId last = x;
  for (int i = 0; i < 6; ++i)
    last = main.AddNode(i % 2 == 0 ? Op::kAdd : Op::kMul, {last, i % 3 == 0 ? x : y}, {type}).results[0];
  main.outputs = {last};
  return module;
}

}  // namespace

std::string WritePlantedModels() {
  const std::string folder = testing::TempDir() + "fusebox_planted";
  std::filesystem::create_directories(folder);
  const auto write = [&](const Module& module, const char* name) {
    const Status written = tflite::WriteFile(module, folder + "/" + name);
    EXPECT_TRUE(written) << written.error().message;
  };
  write(*Norm(), "norm.tflite");
  write(*Relu(), "relu.tflite");
  write(*Chain(), "sums.tflite");
  return folder;
}

}  // namespace fusebox
