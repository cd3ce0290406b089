// SPDX-License-Identifier: Apache-2.0
// Runs passes on a module one by one, and computes its outputs on the host.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converter/passes/pass.h"
#include "converter/passes/rewrite.h"
#include "host/run/run.h"

namespace fusebox::converter {

inline std::shared_ptr<Registry> BuiltIn() {
  static const std::shared_ptr<Registry> registry = [] {
    Config config;
    config.search_default_path = false;
    auto made = Registry::Create(config);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : nullptr;
  }();
  return registry;
}

inline Type F32(std::vector<int64_t> dims) { return {DType::kF32, Shape(std::move(dims))}; }
inline Type I32(std::vector<int64_t> dims) { return {DType::kI32, Shape(std::move(dims))}; }

inline Tensor Floats(std::vector<int64_t> dims, const std::vector<float>& values) {
  return {F32(std::move(dims)), Buffer::Of<float>(values)};
}
inline std::vector<float> FloatsOf(const Tensor& tensor) {
  const auto values = tensor.data.As<float>();
  return {values.begin(), values.end()};
}

inline Attrs Ref(const char* key, const std::string& function, const char* key2 = nullptr,
                 const std::string& function2 = {}) {
  Attrs attrs;
  attrs.Set(key, FunctionRef{function});
  if (key2) attrs.Set(key2, FunctionRef{function2});
  return attrs;
}

struct Bench {
  Module module;
  Options options;
  Report report;
  Context context{module, *BuiltIn(), options, report};

  // Adds a function; after Sign() it is a signature of the same name with inputs i0, i1.. and outputs o0,
  // o1..
  Function& Add(const std::string& name) { return module.Add(name); }
  void Sign(const Function& f) {
    Signature s{f.name, f.name, {}, {}};
    for (size_t i = 0; i < f.inputs.size(); ++i) s.input_names.push_back("i" + std::to_string(i));
    for (size_t i = 0; i < f.outputs.size(); ++i) s.output_names.push_back("o" + std::to_string(i));
    module.signatures.push_back(std::move(s));
  }
  // Runs the pass; returns the error text or "".
  std::string Run(Status (*pass)(Context&)) {
    const Status status = pass(context);
    if (!status) return status.error().message;
    const Status sound = Verify(module);
    EXPECT_TRUE(sound) << sound.error().message << "\n" << ToText(module);
    return "";
  }
  std::vector<Tensor> Compute(const std::string& function, const std::vector<Tensor>& inputs) {
    const auto program = run::Program::Create(module, BuiltIn());
    EXPECT_TRUE(program) << program.error().message << "\n" << ToText(module);
    if (!program) return {};
    const auto runner = run::Runner::Create(**program, 1);
    auto outputs = (*runner)->Run(function, inputs);
    EXPECT_TRUE(outputs) << outputs.error().message << "\n" << ToText(module);
    return outputs ? *std::move(outputs) : std::vector<Tensor>();
  }
  std::string Notes() const {
    std::string all;
    for (const std::string& note : report.notes) all += note + "\n";
    return all;
  }
};

inline size_t Count(const Function& f, Op op) {
  size_t count = 0;
  for (const auto& node : f.nodes) count += node->is(op);
  return count;
}
inline ValueId Opaque(Function& f, const std::string& name, std::vector<ValueId> operands, Type type,
                      Attrs attrs = {}) {
  Node& node = f.AddNode(Op::kOpaque, std::move(operands), {std::move(type)}, std::move(attrs));
  node.name = name;
  node.location.name = "n/" + name;
  return node.results[0];
}
inline ValueId Handle(Function& f, const std::string& name) {
  Attrs attrs;
  attrs.Set("shared_name", name);
  return f.AddNode(Op::kVarHandle, {}, {{DType::kResource, Shape::Scalar()}}, std::move(attrs)).results[0];
}

}  // namespace fusebox::converter
