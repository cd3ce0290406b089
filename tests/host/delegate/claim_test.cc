// SPDX-License-Identifier: Apache-2.0
// What the host keeps from delegates, and what it makes of a function that they take nodes of.
#include <gmock/gmock.h>

#include <fusebox/abi/plugin.h>

#include "host/delegate/delegate.h"

namespace fusebox::delegate {
namespace {

using ::testing::ElementsAre;

Type F32() { return {DType::kF32, Shape({2})}; }
Type I32(std::vector<int64_t> dims) { return {DType::kI32, Shape(std::move(dims))}; }

// Accepts everything that it is shown, offered or not, and can nothing else.
constexpr fbx_delegate kGreedy = {
    FBX_HEAD(fbx_delegate),
    {"greedy", 6},
    nullptr,
    [](const fbx_host*, void*, const fbx_attrs*, void** self) noexcept {
      return *self = self, fbx_status{FBX_OK};
    },
    [](void*, void*) noexcept {},
    [](const fbx_host*, void*, void*, const fbx_graph* graph, const fbx_claim* claim) noexcept {
      for (uint32_t i = 0; i < graph->node_count; ++i) claim->accept(claim, i);
      return fbx_status{FBX_OK};
    },
    [](const fbx_host*, void*, void*, void*, const fbx_graph*, void**) noexcept {
      return fbx_status{FBX_INTERNAL};
    },
    [](const fbx_host*, void*, void*, const fbx_call*, const fbx_infer*, const fbx_plan*) noexcept {
      return fbx_status{FBX_INTERNAL};
    },
    [](const fbx_host*, void*, void*, const fbx_call*) noexcept { return fbx_status{FBX_INTERNAL}; },
    [](void*, void*) noexcept {},
};
constexpr const fbx_delegate* kDelegates[] = {&kGreedy};
const fbx_plugin kPlugin = [] {
  fbx_plugin plugin{};
  plugin.head = FBX_HEAD(fbx_plugin);
  plugin.id = {"test.greedy", 11};
  plugin.version = {"1.0.0", 5};
  plugin.delegate_count = 1;
  plugin.delegates = kDelegates;
  return plugin;
}();
const fbx_entry kEntry = {FBX_ENTRY_MAGIC,
                          1,
                          0,
                          sizeof(fbx_entry),
                          FBX_BUILD_FLAGS,
                          0,
                          {"test", 4},
                          [](const fbx_host*, const fbx_plugin** out) noexcept {
                            *out = &kPlugin;
                            return fbx_status{FBX_OK};
                          },
                          nullptr};

class Claims : public testing::Test {
 protected:
  Claims() {
    static const fbx_entry* const kEntries[] = {&kEntry};
    Config config;
    config.search_default_path = false;
    registry_ = *Registry::Create(config, kEntries);
    std::vector<std::string> notices;
    const auto refs = registry_->Delegates({}, {}, notices);
    for (const DelegateRef& ref : refs->used) delegates_.push_back(*Instance::Create(ref, calls_));
  }
  std::vector<std::string> Reasons() {
    refused_.resize(main_.nodes.size());
    answers_ = Claim(module_, main_, refused_, delegates_, calls_, notices_);
    std::vector<std::string> reasons;
    for (const Answer& answer : answers_)
      reasons.push_back(answer.delegate >= 0 ? "taken" : answer.why.substr(answer.why.find(": ") + 2));
    return reasons;
  }

  std::shared_ptr<Registry> registry_;
  HostCalls calls_{SerialServices()};
  std::vector<std::unique_ptr<Instance>> delegates_;
  std::vector<std::string> notices_;
  std::vector<Answer> answers_;
  std::vector<std::string> refused_;
  Module module_;
  Function& main_ = module_.Add("main");
};

TEST_F(Claims, DoNotReachControlFlowStateNorShapeArithmetic) {
  const ValueId x = main_.AddInput(F32(), "x");
  const ValueId shape = main_.AddNode(Op::kShape, {x}, {I32({1})}).results[0];
  const ValueId one = main_.AddConst<int32_t>(DType::kI32, {1}, {1});
  const ValueId more = main_.AddNode(Op::kMul, {shape, one}, {I32({1})}).results[0];
  main_.AddNode(Op::kReshape, {x, more}, {F32()});
  main_.AddNode(Op::kRandomUniform, {shape}, {F32()});
  const ValueId handle = main_.AddNode(Op::kVarHandle, {}, {{DType::kResource, Shape({1})}}).results[0];
  main_.AddNode(Op::kReadVariable, {handle}, {F32()});
  const ValueId kept = main_.AddValue(F32(), "kept");
  main_.value(kept).is_variable = true;
  main_.AddNode(Op::kAdd, {x, kept}, {F32()});
  main_.AddNode(Op::kAdd, {x, x}, {F32()});
  const std::string shapes = "shape arithmetic, done while planning",
                    control = "control flow runs on the host";
  EXPECT_THAT(Reasons(), ElementsAre(shapes, shapes, "taken", "random", control, control,
                                     "it works on a variable", "taken"));
}

TEST_F(Claims, LeaveAFunctionWithCallsOfTheRest) {
  const ValueId x = main_.AddInput(F32(), "x");
  const ValueId c = main_.AddConst<float>(DType::kF32, {2}, {1, 2});
  const ValueId a = main_.AddNode(Op::kAdd, {x, c}, {F32()}).results[0];
  const ValueId b = main_.AddNode(Op::kRandomUniform, {a}, {F32()}).results[0];
  const ValueId d = main_.AddNode(Op::kMul, {a, c}, {F32()}).results[0];
  main_.outputs = {main_.AddNode(Op::kSub, {d, b}, {F32()}).results[0], a};
  Reasons();
  const Schedule schedule = Partition(main_, answers_);
  std::vector<std::unique_ptr<Part>> parts;
  const Outlined out = Outline(main_, schedule, delegates_, parts);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_THAT(out.part, ElementsAre(0, -1, 1));
  EXPECT_THAT(out.origin.nodes, ElementsAre(kNoNode, 1, kNoNode));
  EXPECT_THAT(parts[0]->origin.nodes, ElementsAre(0, 2));
  const Function &part = *parts[0]->function, &rest = *out.function;
  ASSERT_EQ(part.inputs.size(), 1u);
  EXPECT_EQ(part.outputs.size(), 2u) << "the sum is read outside, and the product too";
  EXPECT_EQ(rest.nodes[0]->op, Op::kPartition);
  EXPECT_EQ(rest.outputs[1], rest.nodes[0]->results[0]);
  EXPECT_EQ(part.nodes[0]->operands[0], part.inputs[0]);
  const Value& constant = part.value(part.nodes[0]->operands[1]);
  EXPECT_TRUE(constant.data.SameAs(main_.value(c).data)) << "constants are shared, not copied";
}

}  // namespace
}  // namespace fusebox::delegate
