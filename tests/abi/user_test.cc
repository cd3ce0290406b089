// SPDX-License-Identifier: Apache-2.0
// Every callback receives the `user` of its rule, kernel or delegate.
#include <gmock/gmock.h>

#include "host/model.h"
#include "host/session.h"
#include "tests/abi/op_table.h"

namespace fusebox {
namespace {

using ::testing::ElementsAre;

const Type kPair{DType::kF32, {2}};

// main(x) = table.19(... table.1(table.0(x))), composites with an identity as body.
std::unique_ptr<Module> Chain() {
  auto module = std::make_unique<Module>();
  Function& main = module->Add("main");
  Function& body = module->Add("body");
  body.outputs = body.AddNode(Op::kRelu, {body.AddInput(kPair)}, {kPair}).results;
  ValueId x = main.AddInput(kPair, "x");
  for (int i = 0; i < TABLE_OPS; ++i) {
    Node& node = main.AddNode(Op::kStablehloComposite, {x}, {kPair});
    node.name = "table." + std::to_string(i);
    node.version = 1;
    node.body = "body";
    x = node.results[0];
  }
  main.outputs = {x};
  return module;
}

std::vector<float> RunChain(std::vector<Config::Delegate> delegates) {
  table_counts = {};
  static const fbx_entry* const kEntries[] = {&table_entry};
  const auto registry = Registry::Create({.search_default_path = false}, kEntries);
  if (!registry) return ADD_FAILURE() << registry.error().message, std::vector<float>();
  auto model = Model::FromModule(Chain(), {.registry = *registry, .delegates = std::move(delegates)});
  if (!model) return ADD_FAILURE() << model.error().message, std::vector<float>();
  const auto session = Session::Create(*model);
  if (!session) return ADD_FAILURE() << session.error().message, std::vector<float>();
  const float x[] = {1, 2};
  EXPECT_TRUE((*session)->SetInput(0, {kPair, Buffer::Copy(std::as_bytes(std::span(x)))}));
  EXPECT_TRUE((*session)->Run());
  (*session)->ResetState();
  EXPECT_TRUE((*session)->Run());
  const auto y = (*session)->output(0);
  if (!y) return ADD_FAILURE() << y.error().message, std::vector<float>();
  const auto* const values = reinterpret_cast<const float*>(y->data.data());
  return {values, values + 2};
}

TEST(User, ReachesTheCallbacksOfTwentyRulesAndKernels) {
  EXPECT_THAT(RunChain({}), ElementsAre(211, 212));
  EXPECT_EQ(table_counts.strange, 0);
  EXPECT_EQ(table_counts.live, 0);
  EXPECT_EQ(table_counts.invoked, 2 * TABLE_OPS);
  EXPECT_GE(table_counts.reset, TABLE_OPS);
}

TEST(User, ReachesTheCallbacksOfTwoDelegates) {
  EXPECT_THAT(RunChain({{.name = "even"}, {.name = "odd"}}), ElementsAre(211, 212));
  EXPECT_EQ(table_counts.strange, 0);
  EXPECT_EQ(table_counts.live, 0);
  EXPECT_EQ(table_counts.invoked, 0);
  EXPECT_EQ(table_counts.delegated, 2 * TABLE_OPS);
  EXPECT_EQ(table_counts.finished, 2);
}

}  // namespace
}  // namespace fusebox
