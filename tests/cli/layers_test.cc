// SPDX-License-Identifier: Apache-2.0
// fusebox compare --layers and --with: the node at which two models begin to differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "host/tflite/tflite.h"
#include "tests/cli/command.h"

namespace fusebox::cli_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string Written(const Module& module, const std::string& name) {
  const Status written = tflite::WriteFile(module, Path(name));
  EXPECT_TRUE(written) << written.error().message;
  return Path(name);
}

// x f32[1,4] through `count` layers y = 0.9 x + i. Layer `changed` adds 0.25 more.
std::unique_ptr<Module> Chain(int count, int changed, bool named = true) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const Type type{DType::kF32, {1, 4}};
  ValueId x = f.AddInput(type, "x");
  for (int i = 0; i < count; ++i) {
    const float bias = static_cast<float>(i) + (i == changed ? 0.25F : 0);
    const ValueId factor = f.AddConst<float>(DType::kF32, {1}, {0.9F});
    const ValueId addend = f.AddConst<float>(DType::kF32, {1}, {bias});
    x = f.AddNode(Op::kMul, {x, factor}, {type}).results[0];
    x = f.AddNode(Op::kAdd, {x, addend}, {type}).results[0];
    if (named) f.value(x).name = "layer" + std::to_string(i);
  }
  f.outputs = {x};
  return module;
}

TEST(Layers, TheFirstDifferenceIsNamed) {
  const std::string a = Written(*Chain(6, -1), "a.tflite"), b = Written(*Chain(6, 3), "b.tflite");
  const Finished done = Fusebox({"compare", a, b, "--layers"});
  EXPECT_EQ(done.status, 1) << done.err;
  EXPECT_THAT(done.out, HasSubstr("first difference: node 7 ADD layer3: [0,"));
  EXPECT_THAT(done.out, HasSubstr("all layers would be equal with --atol 0.25"));
  EXPECT_EQ(Fusebox({"compare", a, b, "--layers", "--atol", "0.26"}).status, 0);
}

TEST(Layers, MatchByPositionWithoutNames) {
  const Finished done = Fusebox({"compare", Written(*Chain(4, -1), "a.tflite"),
                                 Written(*Chain(4, 2, false), "b.tflite"), "--layers", "--json"});
  EXPECT_EQ(done.status, 1) << done.err;
  const json layers = done.Json()["layers"];
  ASSERT_EQ(layers.size(), 8u);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(layers[i]["matched_by"], "position") << i;
    EXPECT_EQ(layers[i]["equal"], i < 5) << i;
  }
  EXPECT_NEAR(layers[5]["max_absolute"].get<double>(), 0.25, 1e-6);
}

TEST(Layers, OneNameOfSeveralValuesMeansThatOfTheSameShape) {
  const auto build = [](bool stored) {
    Module module;
    Function& f = module.Add("main");
    const Type type{DType::kF32, {1, 4}}, weights{DType::kF32, {3, 4}};
    const ValueId x = f.AddInput(type, "x");
    ValueId w = f.AddConst<uint16_t>(DType::kF16, {3, 4}, std::vector<uint16_t>(12, 0x3c00));
    if (stored) {
      w = f.AddNode(Op::kDequantize, {w}, {weights}).results[0];
      f.value(w).name = "dense";
    } else {
      w = f.AddConst<float>(DType::kF32, {3, 4}, std::vector<float>(12, 1));
    }
    const ValueId y = f.AddNode(Op::kFullyConnected, {x, w, kNoValue}, {{DType::kF32, {1, 3}}}).results[0];
    f.value(y).name = "dense";
    f.outputs = {y};
    return Written(module, stored ? "half.tflite" : "float.tflite");
  };
  const std::string half = build(true), full = build(false);
  const json report = Fusebox({"compare", half, full, "--layers", "--json"}).Json();
  EXPECT_EQ(report["layers"][0]["compared"], false);
  EXPECT_EQ(report["layers"][1]["matched_by"], "name");
  EXPECT_EQ(report["layers"][1]["equal"], true);
}

TEST(Layers, WhatOneModelLacksIsNotCompared) {
  const Finished done = Fusebox({"compare", Written(*Chain(4, -1), "a.tflite"),
                                 Written(*Chain(2, -1), "b.tflite"), "--layers", "--json"});
  const json layers = done.Json()["layers"];
  EXPECT_EQ(layers[3]["equal"], true);
  EXPECT_EQ(layers[5]["compared"], false);
}

TEST(Layers, QuantizedValuesCompareAsRealNumbers) {
  const auto build = [](bool quantized) {
    Module module;
    Function& f = module.Add("main");
    const Type type{DType::kF32, {1, 4}}, bytes{DType::kI8, {1, 4}};
    const ValueId x = f.AddInput(type, "x");
    ValueId y = x;
    if (quantized) {
      y = f.AddNode(Op::kQuantize, {x}, {bytes}).results[0];
      f.value(y).quant = std::make_shared<Quant>(Quant{.scales = {1.0F / 64}, .zero_points = {3}});
      f.value(y).name = "rounded";
      y = f.AddNode(Op::kDequantize, {y}, {type}).results[0];
    } else {
      y = f.AddNode(Op::kAbs, {f.AddNode(Op::kAbs, {x}, {type}).results[0]}, {type}).results[0];
      y = f.AddNode(Op::kMul, {x, f.AddConst<float>(DType::kF32, {1}, {1})}, {type}).results[0];
      f.value(y).name = "rounded";
    }
    f.outputs = {y};
    return Written(module, quantized ? "int8.tflite" : "float.tflite");
  };
  const std::string quantized = build(true), real = build(false);
  const json layers = Fusebox({"compare", quantized, real, "--layers", "--json"}).Json()["layers"];
  EXPECT_EQ(layers[0]["matched_by"], "name");
  EXPECT_LE(layers[0]["max_absolute"].get<double>(), 0.5 / 64 + 1e-6);
  EXPECT_GT(layers[0]["error"].get<double>(), 0);
}

TEST(Compare, WeightsOfEightBitsAreRealNumbersInDoublePrecision) {
  Module module;
  Function& f = module.Add("main");
  const ValueId x = f.AddInput({DType::kF32, {2, 3}}, "x");
  const ValueId weights =
      f.AddConst<int8_t>(DType::kI8, {4, 3}, {100, -50, 3, 127, 1, -127, 9, 90, -90, -8, 64, 2});
  f.value(weights).quant =
      std::make_shared<Quant>(Quant{.scales = {0.5F, 0.01F, 0.25F, 2}, .zero_points = {0, 0, 0, 0}});
  f.outputs = f.AddNode(Op::kFullyConnected, {x, weights, kNoValue}, {{DType::kF32, {2, 4}}}).results;
  const std::string model = Written(module, "hybrid.tflite");
  const Finished done =
      Fusebox({"compare", model, "--with", "f64", "--runs", "5", "--json", "--atol", "1", "--rtol", "0"});
  ASSERT_EQ(done.status, 0) << done.out << done.err;
  EXPECT_GT(done.Json()["outputs"][0]["max_absolute"].get<double>(), 0) << "the kernel quantizes x";
}

TEST(Compare, OneModelWithAnotherDelegateOrInDoublePrecision) {
  const std::string model = Written(*Chain(8, -1), "chain.tflite");
  const std::string plugin = PluginFolder("fusebox.xnnpack");
  Finished done = Fusebox({"compare", model, "--with", "none", "--plugin", plugin, "--layers"});
  EXPECT_EQ(done.status, 0) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("no layer differs"));
  done = Fusebox({"compare", model, "--with", "f64", "--layers", "--json", "--atol", "0", "--rtol", "0"});
  EXPECT_EQ(done.status, 1) << done.err;
  const json layers = done.Json()["layers"];
  ASSERT_EQ(layers.size(), 16u);
  for (const json& layer : layers) {
    EXPECT_TRUE(layer["compared"]);
    EXPECT_LT(layer["max_absolute"].get<double>(), 1e-5);
  }
  EXPECT_GT(layers[15]["max_absolute"].get<double>(), 0) << "f32 rounds";
}

TEST(Compare, NeedsASecondModelOrWith) {
  const std::string model = WriteAddModel("add.tflite", 1);
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{"compare", model}, {"compare", model, model, "--with", "none"}}) {
    const Finished done = Fusebox(line);
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.err, HasSubstr("needs two models, or one model and --with"));
  }
}

// Changes one weight of node `from`, or of the first one after it that has a filter of its own.
bool ChangeWeight(Module& module, size_t from, size_t which, size_t* changed) {
  Function& f = *module.functions.front();
  if (std::ranges::any_of(f.nodes, [](const auto& node) { return node->is(Op::kCustom); })) return false;
  const Uses uses(f);
  for (size_t n = from; n < f.nodes.size(); ++n) {
    const Node& node = *f.nodes[n];
    if (!node.is(Op::kConv2D) && !node.is(Op::kDepthwiseConv2D) && !node.is(Op::kFullyConnected)) continue;
    Value& filter = f.value(node.operands[1]);
    const DType dtype = filter.type.dtype;
    const bool bytes = dtype == DType::kI8 || dtype == DType::kU8;
    if (!filter.is_const() || uses.readers(node.operands[1]).size() != 1 || (!bytes && dtype != DType::kF32))
      continue;
    std::vector<std::byte> data(filter.data.bytes().begin(), filter.data.bytes().end());
    const size_t middle = data.size() * (which + 1) / 10 / 4 * 4;
    if (bytes) data[middle] ^= std::byte{0x40};
    else *reinterpret_cast<float*>(&data[middle]) += 8;
    filter.data = Buffer::Copy(data);
    *changed = n;
    return true;
  }
  return false;
}

TEST(Layers, AChangedWeightOfEachPublicNetIsFound) {
  const char* const models = std::getenv("FUSEBOX_MODELS");
  if (models == nullptr) GTEST_SKIP() << "FUSEBOX_MODELS is not set";
  const std::string folder = std::string(models) + "/tflite";
  size_t nets = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (nets == 8) break;
    if (entry.path().extension() != ".tflite" || entry.file_size() > 4'000'000) continue;
    // A weight that meets only zeros, or results that are clamped, changes nothing: then the next one.
    json first;
    size_t changed = 0, which = 0;
    for (; which < 3 && first.is_null(); ++which) {
      auto module = tflite::ReadFile(entry.path());
      if (!module || (*module)->functions.size() != 1 || !ChangeWeight(**module, 57, which, &changed)) break;
      const Finished done =
          Fusebox({"compare", entry.path(), Written(**module, "changed.tflite"), "--layers", "--json"});
      ASSERT_LE(done.status, 1) << entry.path() << done.err;
      const json layers = done.Json()["layers"];
      for (const json& layer : layers)
        if (first.is_null() && layer["compared"] && !layer["equal"]) first = layer;
      EXPECT_EQ(first.is_null(), done.status == 0);
    }
    if (first.is_null()) continue;
    ++nets;
    EXPECT_EQ(first["node"], changed) << entry.path();
  }
  EXPECT_EQ(nets, 8u);
}

}  // namespace
}  // namespace fusebox::cli_test
