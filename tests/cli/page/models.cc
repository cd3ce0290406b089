// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/page/models.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "host/base/buffer.h"
#include "host/fusion/fusion.h"
#include "host/graph/npy.h"
#include "host/tflite/tflite.h"

namespace fusebox::cli::page {
namespace {

const Type kVector{DType::kF32, {1, 8}};
const Type kCount{DType::kI32, Shape::Scalar()};

ValueId Add(Function& f, Op op, ValueIds operands, const Type& type, const std::string& name) {
  const ValueId result = f.AddNode(op, std::move(operands), {type}).results[0];
  f.value(result).name = name;
  return result;
}

void AddBody(Module& module) {
  Function& body = module.Add("gelu_body");
  const ValueId x = body.AddInput(kVector, "in");
  const ValueId t = Add(body, Op::kTanh, {x}, kVector, "tanh");
  body.outputs = {Add(body, Op::kMul, {x, t}, kVector, "product")};
}

void AddLoop(Module& module) {
  Function& condition = module.Add("loop_cond");
  const ValueId i = condition.AddInput(kCount, "i");
  condition.AddInput(kVector, "state");
  const ValueId limit = condition.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {3}, "limit");
  condition.outputs = {Add(condition, Op::kLess, {i, limit}, {DType::kBool, Shape::Scalar()}, "go_on")};
  Function& body = module.Add("loop_body");
  const ValueId j = body.AddInput(kCount, "i"), state = body.AddInput(kVector, "state");
  const ValueId one = body.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {1}, "one");
  body.outputs = {Add(body, Op::kAdd, {j, one}, kCount, "next"),
                  Add(body, Op::kTanh, {state}, kVector, "new_state")};
}

ValueId AddComposite(Function& main, ValueId x) {
  Node& node = main.AddNode(Op::kStablehloComposite, {x}, {kVector});
  node.name = "acme.gelu";
  node.version = 1;
  node.body = "gelu_body";
  main.value(node.results[0]).name = "gelu";
  return node.results[0];
}

}  // namespace

std::unique_ptr<Module> SmallModel() {
  auto module = std::make_unique<Module>();
  module->Add("main");
  AddBody(*module);
  AddLoop(*module);
  Function& main = *module->functions[0];
  const ValueId x = main.AddInput(kVector, "x");
  std::vector<float> weights(64);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 9) / 9 - 0.4f;
  const ValueId w = main.AddConst<float>(DType::kF32, {8, 8}, weights, "weights");
  const ValueId b = main.AddConst<float>(DType::kF32, {8}, std::vector<float>(8, 0.5f), "bias");
  const ValueId y = Add(main, Op::kFullyConnected, {x, w, b}, kVector, "dense");
  const ValueId g = AddComposite(main, y);
  const ValueId zero = main.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {0}, "zero");
  Node& loop = main.AddNode(Op::kWhile, {zero, g}, {kCount, kVector});
  loop.attrs.Set("cond_subgraph_index", FunctionRef{"loop_cond"});
  loop.attrs.Set("body_subgraph_index", FunctionRef{"loop_body"});
  const ValueIds results = loop.results;
  main.value(results[0]).name = "count";
  main.value(results[1]).name = "state";
  main.outputs = {Add(main, Op::kAdd, {results[1], y}, kVector, kHostile)};
  module->signatures.push_back({"serving_default", "main", {"x"}, {"y"}});
  return module;
}

namespace {

// y = custom(x), which a rule of a plugin once put in the place of the body.
ValueId AddFused(Function& main, ValueId x) {
  Node& node = main.AddNode(Op::kCustom, {x}, {kVector});
  node.name = "acme.GELU";
  node.attrs.Set("axes", std::vector<int64_t>{0, 1});
  node.body = "gelu_body";
  node.fused = std::make_shared<const Provenance>(Provenance{"acme", "1.2.3", "acme.gelu_rule", "acme.gelu"});
  main.value(node.results[0]).name = "fused";
  return node.results[0];
}

// Weights with a scale per row, and no bias.
ValueId AddQuantized(Function& main, ValueId x) {
  const Type bytes{DType::kI8, {1, 8}}, rows{DType::kI8, {10, 8}}, wide{DType::kI8, {1, 10}};
  const auto one = std::make_shared<const Quant>(Quant{.scales = {0.5f}, .zero_points = {3}});
  const ValueId q = Add(main, Op::kQuantize, {x}, bytes, "quantized");
  main.value(q).quant = one;
  const ValueId w = main.AddConst<int8_t>(DType::kI8, rows.shape, std::vector<int8_t>(80, 7), "rows");
  main.value(w).quant = std::make_shared<const Quant>(
      Quant{.scales = std::vector<float>(10, 0.25f), .zero_points = std::vector<int64_t>(10)});
  const ValueId y = Add(main, Op::kFullyConnected, {q, w, kNoValue}, wide, "product");
  main.value(y).quant = one;
  return Add(main, Op::kDequantize, {y}, {DType::kF32, {1, 10}}, "real");
}

// A step of a network whose state is a variable tensor.
ValueId AddRecurrent(Function& main, ValueId x) {
  const ValueId w = main.AddConst<float>(DType::kF32, {8, 8}, std::vector<float>(64, 0.1f), "input_weights");
  const ValueId b = main.AddConst<float>(DType::kF32, {8}, {NAN, 0, 0, 0, 0, 0, 0, 1}, "odd");
  const ValueId state = main.AddValue(kVector, "state");
  main.value(state).is_variable = true;
  const ValueId y = main.AddNode(Op::kRnn, {x, w, w, b, state}, {kVector, kVector}).results[0];
  main.value(y).name = std::string(90, 'r') + "/step";
  return y;
}

}  // namespace

std::unique_ptr<Module> ForeignModel() {
  auto module = std::make_unique<Module>();
  module->Add("main");
  AddBody(*module);
  Function& main = *module->functions[0];
  const ValueId x = main.AddInput(kVector, "x");
  const ValueId fused = AddFused(main, x);
  const ValueId words = main.AddConst(Tensor{{DType::kString, {2}}, PackStrings({"yes", "no"})}, "words");
  main.outputs = {AddQuantized(main, fused), AddRecurrent(main, fused), words};
  Function& other = module->Add("other");
  other.outputs = {Add(other, Op::kTanh, {other.AddInput(kVector, "z")}, kVector, "t")};
  module->signatures = {{"serving_default", "main", {"x"}, {"y", "step", "words"}},
                        {"other", "other", {"z"}, {"t"}}};
  module->metadata.push_back({"acme_notes", Buffer::Of<char>(std::vector<char>(3000, 'n'))});
  module->description = "made by hand";
  RecordFused(*module);
  return module;
}

std::unique_ptr<Module> ChainModel(int nodes) {
  auto module = std::make_unique<Module>();
  Function& main = module->Add("main");
  std::vector<ValueId> values = {main.AddInput(kVector, "x")};
  for (int i = 0; i < nodes; ++i) {
    const ValueId other = values[values.size() > 6 ? values.size() - 6 : 0];
    values.push_back(Add(main, Op::kAdd, {values.back(), other}, kVector,
                         "block_" + std::to_string(i / 10) + "/add_" + std::to_string(i)));
  }
  main.outputs = {values.back()};
  return module;
}

std::string PathOf(const std::string& name) {
  const std::string folder = testing::TempDir() + "fusebox_page_" + std::to_string(getpid()) + "/";
  std::filesystem::create_directories(folder);
  return folder + name;
}

void Write(const Module& module, const std::string& path) {
  const Status written = tflite::WriteFile(module, path);
  ASSERT_TRUE(written) << written.error().message;
}

Finished Fusebox(const std::string& arguments, const std::string& output) {
  const std::string err = PathOf("stderr.txt");
  const std::string line =
      "FUSEBOX_PLUGIN_PATH= " FUSEBOX_COMMAND " " + arguments + " >" + output + " 2>" + err;
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, ReadTextFile(err).value_or("")};
}

}  // namespace fusebox::cli::page
