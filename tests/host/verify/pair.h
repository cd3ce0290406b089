// SPDX-License-Identifier: Apache-2.0
// A composite's body and its replacement, to verify one against the other.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/verify/verify.h"
#include "tests/host/verify/broken.h"

namespace fusebox::verify {

using Outcome = Verdict::Outcome;

inline std::shared_ptr<Registry> Broken() {
  static const fbx_entry* const kEntries[] = {&kBroken};
  Config config;
  config.search_default_path = false;
  auto registry = Registry::Create(config, kEntries);
  EXPECT_TRUE(registry) << registry.error().message;
  return registry ? *registry : nullptr;
}

inline Type F32(std::vector<int64_t> dims) { return {DType::kF32, Shape(std::move(dims))}; }

// A body and what is to replace it, over operands of the same types.
struct Pair {
  Module module, scratch;
  Function& body = module.Add("body");
  Function& replacement = scratch.Add("replacement");
  std::vector<Tensor> constants;
  std::vector<bool> used = {true};
  fbx_tolerance tolerance{};

  std::pair<ValueId, ValueId> Input(const Type& type) {
    constants.emplace_back();
    return {body.AddInput(type), replacement.AddInput(type)};
  }
  void Replace(const std::string& op, std::vector<ValueId> operands, const std::string& fault,
               const Type& result) {
    Attrs attrs;
    attrs.Set("fault", fault);
    Node& node = replacement.AddNode(Op::kCustom, std::move(operands), {result}, attrs);
    node.name = op;
    replacement.outputs = node.results;
  }
  Verdict Ask(bool all = true) {
    Options options;
    options.all = all;
    auto verdict =
        VerifyFused(module, body, scratch, replacement, constants, used, tolerance, Broken(), options);
    EXPECT_TRUE(verdict) << verdict.error().message;
    return verdict ? *std::move(verdict) : Verdict();
  }
};

}  // namespace fusebox::verify
