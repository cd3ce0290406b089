// SPDX-License-Identifier: Apache-2.0
// Bodies of composites that no rule replaced: delegates see them as part of their caller.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "tests/delegates/models.h"

namespace fusebox::delegates_test {
namespace {

using ::testing::ElementsAre;

// x * 2 (or what `add` adds) as a body, and calls of it by composites in a row.
Node& Call(Function& f, ValueId x, const std::string& body) {
  Node& node = f.AddNode(Op::kStablehloComposite, {x}, {F32({2})});
  node.name = "acme.unknown";
  node.version = 1;
  node.body = body;
  node.location.name = "call" + std::to_string(f.nodes.size());
  return node;
}

Function& AddBody(Module& module, const std::string& name, const std::string& inner = {}) {
  Function& body = module.Add(name);
  const ValueId x = body.AddInput(F32({2}), "x"), c = body.AddConst<float>(DType::kF32, {2}, {2, 3});
  ValueId value = Make(body, Op::kMul, {x, c});
  if (!inner.empty()) value = Call(body, value, inner).results[0];
  body.outputs = {value};
  return body;
}

// ADD, then each call, then MUL.
std::unique_ptr<Module> Calls(const std::vector<std::string>& bodies) {
  auto module = std::make_unique<Module>();
  module->source = "calls.tflite";
  Function& f = module->Add("main");
  const ValueId c = f.AddConst<float>(DType::kF32, {2}, {1, 2});
  ValueId value = Make(f, Op::kAdd, {f.AddInput(F32({2}), "x"), c});
  for (const std::string& body : bodies) value = Call(f, value, body).results[0];
  f.outputs = {Make(f, Op::kMul, {value, c})};
  return module;
}

std::set<std::string> Partitions(const Model& model) {
  std::set<std::string> names;
  for (const auto& row : model.placements())
    if (row.runner.starts_with("toy")) names.insert(row.function + " " + row.runner);
  return names;
}

TEST(Inline, OnePartitionForTheBodiesAndTheirCaller) {
  auto module = Calls({"outer", "inner", "outer"});
  AddBody(*module, "outer", "inner");
  AddBody(*module, "inner");
  const auto model = Open(std::move(module), {ToyThat()});
  EXPECT_THAT(Partitions(*model), ElementsAre("main toy (partition 0)"));
  EXPECT_THAT(Output(*SessionOf(model), {0, 0}), ElementsAre(32, 972));  // 1 * 2^5, 2 * 3^5 * 2
  EXPECT_EQ(model->placements()[2].node, "node 2 MUL (call2/call2/MUL)");
  ASSERT_EQ(model->fusions().size(), 4u);
  for (const SiteReport& site : model->fusions()) EXPECT_EQ(site.why, kNoRule);
}

size_t Composites(const Model& model, const std::string& function = "main") {
  const Function* const f = model.module().Find(function);
  return static_cast<size_t>(
      std::ranges::count_if(f->nodes, [](const auto& n) { return n->is(Op::kStablehloComposite); }));
}

// One generator for both calls, as in the file.
TEST(Inline, StateThatSeveralSitesShareStaysInOneBody) {
  for (const size_t sites : {1u, 2u}) {
    auto module = Calls(std::vector<std::string>(sites, "random"));
    Function& body = module->Add("random");
    const ValueId x = body.AddInput(F32({2}), "x");
    const ValueId shape = body.AddConst<int32_t>(DType::kI32, {1}, {2});
    Node& bits = body.AddNode(Op::kRandomUniform, {shape}, {F32({2})});
    bits.attrs.Set("seed", 7);
    body.outputs = {Make(body, Op::kAdd, {x, bits.results[0]})};
    EXPECT_EQ(Composites(*Open(std::move(module), {})), sites == 1 ? 0u : 2u);
  }
}

TEST(Inline, QuantizationOfTheBodyIsKept) {
  auto module = Calls({"body"});
  Function& body = AddBody(*module, "body");
  auto quant = std::make_shared<Quant>();
  quant->scales = std::vector<float>{0.5F};
  quant->zero_points = std::vector<int64_t>{0};
  body.value(body.inputs[0]).quant = std::move(quant);
  EXPECT_EQ(Composites(*Open(std::move(module), {})), 1u);
}

TEST(Inline, ABodyThatReturnsItsInput) {
  auto module = Calls({"same"});
  Function& same = module->Add("same");
  same.outputs = {same.AddInput(F32({2}), "x")};
  const auto model = Open(std::move(module), {ToyThat()});
  EXPECT_EQ(Composites(*model), 0u);
  EXPECT_THAT(Output(*SessionOf(model), {1, 1}), ElementsAre(2, 6));
}

// 60 functions that each call the next one twice: 2^60 copies.
TEST(Inline, NestedBodiesGrowUpToALimit) {
  auto module = Calls({"f0"});
  for (int i = 0; i < 60; ++i) {
    Function& f = module->Add("f" + std::to_string(i));
    const ValueId x = f.AddInput(F32({2}), "x");
    const std::string next = "f" + std::to_string(i + 1);
    f.outputs = {Call(f, Call(f, x, next).results[0], next).results[0]};
  }
  AddBody(*module, "f60");
  const auto model = Open(std::move(module), {});
  size_t nodes = 0;
  for (const auto& f : model->module().functions) nodes += f->nodes.size();
  EXPECT_LT(nodes, 1u << 18);
}

}  // namespace
}  // namespace fusebox::delegates_test
