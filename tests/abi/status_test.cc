// SPDX-License-Identifier: Apache-2.0
// Tests the table "Status codes" of docs/plugin-errors.md: the effect of each status that a callback returns.
#include <gmock/gmock.h>

#include "fusebox/abi/plugin.h"
#include "host/model.h"
#include "host/session.h"

namespace fusebox::status_test {
namespace {

using ::testing::HasSubstr;

struct Row {
  fbx_status status;
  Code code;
  const char* text;
};
constexpr Row kRows[] = {
    {FBX_NOT_APPLICABLE, Code::kUnsupported, "declined without a reason"},
    {FBX_INVALID, Code::kInvalid, "it returned FBX_INVALID without a reason"},
    {FBX_UNSUPPORTED, Code::kUnsupported, "it returned FBX_UNSUPPORTED without a reason"},
    {FBX_OUT_OF_MEMORY, Code::kOutOfMemory, "out of memory"},
    {FBX_IO, Code::kIo, "it returned FBX_IO without a reason"},
    {FBX_INTERNAL, Code::kInternal, "it returned FBX_INTERNAL without a reason"},
    {FBX_CANCELLED, Code::kInternal, "it ended as cancelled, but the run was not cancelled"},
    {99, Code::kInternal, "unknown status 99"},
};

// What each callback of the plugin below returns.
struct Answers {
  fbx_status rewrite = FBX_OK, supports = FBX_OK, infer = FBX_OK, init = FBX_OK, prepare = FBX_OK,
             invoke = FBX_OK, compile = FBX_OK, run = FBX_OK;
};
Answers answers;

constexpr fbx_str Text(std::string_view text) { return {text.data(), text.size()}; }

fbx_status Rewrite(const fbx_host*, void*, const fbx_composite*, const fbx_builder* b) noexcept {
  const fbx_value x = b->operand(b, 0);
  fbx_value y = FBX_NO_VALUE;
  b->add_node(b, FBX_OP_CUSTOM, Text("s.op"), 0, &x, 1, &y, 1);
  b->set_result(b, 0, y);
  return answers.rewrite;
}

fbx_status Infer(const fbx_host*, void*, const fbx_node* n, const fbx_infer* i) noexcept {
  i->set(i, 0, n->operands[0]->dtype, n->operands[0]->dims, n->operands[0]->rank);
  return answers.infer;
}

// y = x, and 7 in a delegate.
void Fill(const fbx_tensor* y, float value) { std::fill_n(static_cast<float*>(y->data), 2, value); }

constexpr fbx_rule MakeRule() {
  fbx_rule r{};
  r.head = FBX_HEAD(fbx_rule);
  r.id = Text("s.rule");
  r.implements = Text("s.op");
  r.match = [](const fbx_host*, void*, const fbx_composite*) noexcept { return fbx_status{FBX_OK}; };
  r.rewrite = Rewrite;
  return r;
}

constexpr fbx_kernel MakeKernel() {
  fbx_kernel k{};
  k.head = FBX_HEAD(fbx_kernel);
  k.kind = FBX_OP_CUSTOM;
  k.op = Text("s.op");
  k.supports = [](const fbx_host*, void*, const fbx_node*) noexcept { return answers.supports; };
  k.infer = Infer;
  k.init = [](const fbx_host*, void*, const fbx_node*, void**) noexcept { return answers.init; };
  k.prepare = [](const fbx_host*, void*, const void*, const fbx_node*, const fbx_plan*, void**) noexcept {
    return answers.prepare;
  };
  k.invoke = [](const fbx_host*, void*, const void*, void*, const fbx_node* n) noexcept {
    Fill(n->results[0], 3);
    return answers.invoke;
  };
  return k;
}

constexpr fbx_delegate MakeDelegate() {
  fbx_delegate d{};
  d.head = FBX_HEAD(fbx_delegate);
  d.name = Text("s.delegate");
  d.create = [](const fbx_host*, void*, const fbx_attrs*, void**) noexcept { return fbx_status{FBX_OK}; };
  d.destroy = [](void*, void*) noexcept {};
  d.claim = [](const fbx_host*, void*, void*, const fbx_graph* g, const fbx_claim* c) noexcept {
    for (uint32_t i = 0; i < g->node_count; ++i) c->accept(c, i);
    return fbx_status{FBX_OK};
  };
  d.compile = [](const fbx_host*, void*, void*, void*, const fbx_graph*, void**) noexcept {
    return answers.compile;
  };
  d.prepare = [](const fbx_host*, void*, void*, const fbx_call*, const fbx_infer*, const fbx_plan*) noexcept {
    return fbx_status{FBX_OK};
  };
  d.invoke = [](const fbx_host*, void*, void*, const fbx_call* c) noexcept {
    Fill(c->outputs[0], 7);
    return answers.run;
  };
  d.destroy_partition = [](void*, void*) noexcept {};
  return d;
}

constexpr fbx_rule kRule = MakeRule();
constexpr fbx_kernel kKernel = MakeKernel();
constexpr fbx_delegate kDelegate = MakeDelegate();
constexpr const fbx_rule* kRules[] = {&kRule};
constexpr const fbx_kernel* kKernels[] = {&kKernel};
constexpr const fbx_delegate* kDelegates[] = {&kDelegate};
const fbx_plugin kPlugin = {FBX_HEAD(fbx_plugin), Text("s.plugin"), Text("1"), 1, 1, 1, kRules, kKernels,
                            kDelegates,           nullptr,          nullptr};
const fbx_entry kEntry = {FBX_ENTRY_MAGIC,
                          FBX_ABI_MAJOR,
                          FBX_ABI_MINOR,
                          sizeof(fbx_entry),
                          FBX_BUILD_FLAGS,
                          0,
                          Text("test"),
                          [](const fbx_host*, const fbx_plugin** out) noexcept {
                            *out = &kPlugin;
                            return fbx_status{FBX_OK};
                          },
                          nullptr};

const Type kPair{DType::kF32, {2}};

// main(x) = s.op(x), a composite with RELU as body, or the custom op.
std::unique_ptr<Module> Net(Op op) {
  auto module = std::make_unique<Module>();
  Function& main = module->Add("main");
  Node& node = main.AddNode(op, {main.AddInput(kPair, "x")}, {kPair});
  node.name = "s.op";
  node.version = 1;
  main.outputs = node.results;
  if (op == Op::kCustom) return module;
  node.body = "body";
  Function& body = module->Add("body");
  body.outputs = body.AddNode(Op::kRelu, {body.AddInput(kPair)}, {kPair}).results;
  return module;
}

struct Outcome {
  Result<std::shared_ptr<const Model>> model;
  Status run = {};
  float y = 0;
};
// Opens and runs the model with these answers.
Outcome RunNet(Op op, const Answers& now, std::vector<Config::Delegate> delegates = {}) {
  answers = now;
  static const fbx_entry* const kEntries[] = {&kEntry};
  const auto registry = *Registry::Create({.search_default_path = false}, kEntries);
  Outcome done{Model::FromModule(Net(op), {.registry = registry, .delegates = std::move(delegates)})};
  if (!done.model) return done;
  const auto session = Session::Create(*done.model);
  if (!session) return done.run = std::unexpected(session.error()), std::move(done);
  const float x[] = {1, 2};
  EXPECT_TRUE((*session)->SetInput(0, {kPair, Buffer::Copy(std::as_bytes(std::span(x)))}));
  done.run = (*session)->Run();
  if (done.run) done.y = (*session)->output(0)->data.As<float>()[0];
  return done;
}

void ExpectError(const Status& status, const Row& row) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, row.code);
  EXPECT_THAT(status.error().message, HasSubstr(std::string("plugin s.plugin: ") + row.text));
}

TEST(StatusOfARule, LeavesTheBodyUnlessItIsOk) {
  EXPECT_EQ(RunNet(Op::kStablehloComposite, {}).y, 3);
  for (const Row& row : kRows) {
    const Outcome done = RunNet(Op::kStablehloComposite, {.rewrite = row.status});
    ASSERT_TRUE(done.model && done.run);
    EXPECT_EQ(done.y, 1);
    const RuleReport& rule = (*done.model)->fusions()[0].rules[0];
    EXPECT_EQ(rule.outcome, row.status == FBX_NOT_APPLICABLE ? RuleReport::Outcome::kNotApplicable
                                                             : RuleReport::Outcome::kError)
        << row.text;
  }
}

TEST(StatusOfSupports, PassesTheKernelOverUnlessItIsOk) {
  for (const Row& row : kRows) {
    const Outcome done = RunNet(Op::kCustom, {.supports = row.status});
    ASSERT_FALSE(done.model) << row.text;
    EXPECT_THAT(done.model.error().message, HasSubstr("s.op"));
  }
}

TEST(StatusOfAKernel, IsTheErrorOfTheModelOrTheRun) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.text);
    for (const Answers& now : {Answers{.infer = row.status}, Answers{.init = row.status},
                               Answers{.prepare = row.status}, Answers{.invoke = row.status}}) {
      const Outcome done = RunNet(Op::kCustom, now);
      ExpectError(done.model ? done.run : Status(std::unexpected(done.model.error())), row);
    }
  }
}

TEST(StatusOfADelegate, LeavesThePartitionToKernelsUnlessItIsOk) {
  const std::vector<Config::Delegate> delegates = {{.name = "s.delegate"}};
  EXPECT_EQ(RunNet(Op::kCustom, {}, delegates).y, 7);
  for (const Row& row : kRows) {
    EXPECT_EQ(RunNet(Op::kCustom, {.compile = row.status}, delegates).y, 3) << row.text;
    EXPECT_EQ(RunNet(Op::kCustom, {.run = row.status}, delegates).y, 3) << row.text;
  }
}

}  // namespace
}  // namespace fusebox::status_test
