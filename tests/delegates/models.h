// SPDX-License-Identifier: Apache-2.0
// A model that a toy delegate mostly supports.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "host/model.h"
#include "host/session.h"
#include "tests/delegates/toy/toy.h"

namespace fusebox::delegates_test {

inline std::shared_ptr<Registry> ToyRegistry() {
  static const fbx_entry* const kEntries[] = {&fusebox_toy_entry_v1};
  Config config;
  config.search_default_path = false;
  return *Registry::Create(config, kEntries);
}

inline Type F32(std::vector<int64_t> dims) { return {DType::kF32, Shape(std::move(dims))}; }

inline ValueId Make(Function& f, Op op, std::vector<ValueId> operands, int64_t n = 2) {
  Node& node = f.AddNode(op, std::move(operands), {F32({n})});
  node.location.name = std::string(Name(op));
  return node.results[0];
}

// y = ((x + c) * x - x) * c: ADD, MUL, SUB, MUL; c = {1, 2}.
inline std::unique_ptr<Module> Chain(int64_t n = 2) {
  auto module = std::make_unique<Module>();
  module->source = "chain.tflite";
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(F32({n}), "x");
  const ValueId c = f.AddConst<float>(DType::kF32, {2}, {1, 2});
  const ValueId sum = Make(f, Op::kAdd, {x, c}, n);
  const ValueId product = Make(f, Op::kMul, {sum, x}, n);
  const ValueId difference = Make(f, Op::kSub, {product, x}, n);
  f.outputs = {Make(f, Op::kMul, {difference, c}, n)};
  return module;
}

inline Config::Delegate ToyThat(const std::string& lie = {}) {
  Config::Delegate toy{"toy"};
  if (!lie.empty()) toy.options.Set("lie", lie);
  return toy;
}

inline std::shared_ptr<const Model> Open(std::unique_ptr<Module> module,
                                         std::vector<Config::Delegate> delegates) {
  auto model =
      Model::FromModule(std::move(module), {.registry = ToyRegistry(), .delegates = std::move(delegates)});
  EXPECT_TRUE(model) << model.error().message;
  return model ? *model : nullptr;
}

inline std::vector<float> Output(Session& session, const std::vector<float>& x) {
  const Tensor input{F32({static_cast<int64_t>(x.size())}), Buffer::Of<float>(x)};
  EXPECT_TRUE(session.SetInput(0, input));
  const Status status = session.Run();
  EXPECT_TRUE(status) << status.error().message;
  if (!status) return {};
  const auto values = session.output(0)->data.As<float>();
  return {values.begin(), values.end()};
}

inline std::unique_ptr<Session> SessionOf(const std::shared_ptr<const Model>& model) {
  return *Session::Create(model);
}

}  // namespace fusebox::delegates_test
