// SPDX-License-Identifier: Apache-2.0
// Builds functions and runners for these tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "host/run/run.h"
#include "tests/host/run/test_plugin.h"

namespace fusebox::run {

inline std::shared_ptr<Registry> TestRegistry() {
  static const fbx_entry* const kEntries[] = {&kTestPlugin};
  Config config;
  config.search_default_path = false;
  auto registry = Registry::Create(config, kEntries);
  EXPECT_TRUE(registry) << registry.error().message;
  if (!registry) std::abort();  // unrecoverable
  return *registry;
}

inline Type F32(std::vector<int64_t> dims) { return {DType::kF32, Shape(std::move(dims))}; }

inline Tensor Floats(std::vector<float> values) {
  return {F32({static_cast<int64_t>(values.size())}), Buffer::Of<float>(values)};
}

inline std::vector<float> FloatsOf(const Tensor& tensor) {
  const auto values = tensor.data.As<float>();
  return {values.begin(), values.end()};
}

// A custom op of the test plugin with one result.
inline ValueId Custom(Function& f, const std::string& name, std::vector<ValueId> operands, Type result,
                      Attrs attrs = {}) {
  Node& node = f.AddNode(Op::kCustom, std::move(operands), {std::move(result)}, std::move(attrs));
  node.name = name;
  return node.results[0];
}

// A module with a runner for its program.
struct Machine {
  explicit Machine(std::unique_ptr<Module> m, int threads = 1) : module(std::move(m)) {
    const Status verified = Verify(*module);
    EXPECT_TRUE(verified) << verified.error().message;
    auto made = Program::Create(*module, TestRegistry());
    EXPECT_TRUE(made) << made.error().message;
    if (!made) std::abort();  // unrecoverable
    program = *std::move(made);
    runner = *Runner::Create(*program, threads);
  }
  std::vector<Tensor> Run(std::vector<Tensor> inputs, std::string_view function = "main") {
    auto outputs = runner->Run(function, inputs);
    EXPECT_TRUE(outputs) << outputs.error().message;
    return outputs ? *std::move(outputs) : std::vector<Tensor>();
  }
  std::string Error(std::vector<Tensor> inputs) {
    auto outputs = runner->Run("main", inputs);
    return outputs ? "" : outputs.error().message;
  }
  std::unique_ptr<Module> module;
  std::unique_ptr<Program> program;
  std::unique_ptr<Runner> runner;
};

}  // namespace fusebox::run
