// SPDX-License-Identifier: Apache-2.0
#include "tests/cli/page/models.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "host/base/buffer.h"
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

Finished Fusebox(const std::string& arguments) {
  const std::string err = PathOf("stderr.txt");
  const std::string line = "FUSEBOX_PLUGIN_PATH= " FUSEBOX_COMMAND " " + arguments + " >/dev/null 2>" + err;
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, ReadTextFile(err).value_or("")};
}

}  // namespace fusebox::cli::page
