// SPDX-License-Identifier: Apache-2.0
// Builds modules with composites.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "host/fusion/fusion.h"
#include "tests/host/fusion/rules.h"

namespace fusebox {

inline const Type kPair{DType::kF32, {2}};

inline std::shared_ptr<Registry> Rules(Config config = {}) {
  static const fbx_entry* const kEntries[] = {&kRules, &kOtherRules};
  config.search_default_path = false;
  auto registry = Registry::Create(config, kEntries);
  EXPECT_TRUE(registry) << registry.error().message;
  return registry ? *registry : nullptr;
}

// A composite with that name; its body is the function of that name.
inline Node& Composite(Function& f, const std::string& name, std::vector<ValueId> operands,
                       const std::string& body, size_t results = 1) {
  Node& node = f.AddNode(Op::kStablehloComposite, std::move(operands), std::vector<Type>(results, kPair));
  node.name = name;
  node.version = 1;
  node.body = body;
  node.location = {"model/" + name, "layer"};
  return node;
}

// body(a, b) = a - b.
inline Function& SubtractBody(Module& module, const std::string& name) {
  Function& body = module.Add(name);
  const ValueId a = body.AddInput(kPair, "a"), b = body.AddInput(kPair, "b");
  body.input_names = {"a", "b"};
  body.outputs = body.AddNode(Op::kSub, {a, b}, {kPair}).results;
  return body;
}

// main(a, b) = composite(a, b); b is optionally a constant.
inline Module OneSite(const std::string& name, bool constant = false) {
  Module module;
  Function& main = module.Add("main");
  const ValueId a = main.AddInput(kPair, "a");
  const ValueId b =
      constant ? main.AddConst<float>(DType::kF32, {2}, {3, 4}, "b") : main.AddInput(kPair, "b");
  main.outputs = Composite(main, name, {a, b}, "body").results;
  SubtractBody(module, "body");
  return module;
}

inline std::vector<SiteReport> FuseAll(Module& module, Registry& registry,
                                       const FusionOptions& options = {}) {
  auto sites = Fuse(module, registry, options);
  EXPECT_TRUE(sites) << sites.error().message;
  const Status sound = Verify(module);
  EXPECT_TRUE(sound) << sound.error().message;
  return sites ? *std::move(sites) : std::vector<SiteReport>();
}

}  // namespace fusebox
