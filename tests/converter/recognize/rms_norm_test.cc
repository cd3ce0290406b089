// SPDX-License-Identifier: Apache-2.0
// RMS normalization written out: a composite where a plugin has a rule for it, unchanged anywhere else.
#include <gmock/gmock.h>

#include "tests/converter/passes/rewritten.h"
#include "tests/host/plugin/folder.h"

namespace fusebox::converter {
namespace {

// A plugin without code, whose rule accepts operands of this rank.
std::shared_ptr<Registry> WithRule(const Folder& folder, int rank) {
  const std::string manifest =
      R"({"manifest_version": "1.0", "abi": {"major": 1},
 "plugin": {"id": "acme.norm", "version": "1.0.0", "namespace": "acme"},
 "provides": {"rules": [{"id": "acme.norm", "implements": ["odml.rms_norm"], "emits": [{"custom": "acme.norm"}],
   "rewrite": {"operands": [{"operand": 0, "rank": )" +
      std::to_string(rank) + R"(}, 1], "attributes": {"epsilon": {"from": "epsilon"}}}}]}})";
  Config config;
  config.search_default_path = false;
  config.plugins = {folder.Write("fusebox-plugin.json", manifest)};
  auto made = Registry::Create(config);
  EXPECT_TRUE(made) << made.error().message;
  return made ? *made : nullptr;
}

// x [2,3] normalized over its last dimension; nodes are named as those of a layer.
struct RmsNorm : Rewritten {
  ValueId x = In({2, 3}), scale = Const(Weights({3}), "scale");
  ValueId Named(Op op, std::vector<ValueId> operands, const char* name, Attrs attrs = {}) {
    const ValueId v = Op1(op, std::move(operands), std::move(attrs));
    f.nodes.back()->location.name = f.value(v).name = std::string("net/norm/") + name;
    return v;
  }
  ValueId Const(ValueId v, const char* name) {
    f.value(v).name = std::string("net/norm/") + name;
    return v;
  }
  ValueId Mean(int axis = -1) {
    const ValueId square = Named(Op::kSquare, {x}, "Square");
    return Named(Op::kMean, {square, Const(Ints({axis}), "axis")}, "Mean", With({{"keep_dims", true}}));
  }
  ValueId Inverse(ValueId mean) {
    return Named(Op::kRsqrt, {Named(Op::kAdd, {mean, Const(C(1e-3F), "epsilon")}, "add")}, "Rsqrt");
  }
  ValueId Times(ValueId a, ValueId b, const char* name) { return Named(Op::kMul, {a, b}, name); }
  void Recognize(Registry& registry) {
    Sign(f);
    Context with{module, registry, options, report};
    EXPECT_TRUE(RecognizeComposites(with));
    EXPECT_TRUE(Verify(module));
  }
};

class RmsNorms : public ::testing::Test {
 protected:
  const Folder folder_;
};

TEST_F(RmsNorms, AreCompositesWhateverTheOrderOfTheirFactors) {
  const auto registry = WithRule(folder_, 2);
  for (const bool scaled_first : {false, true}) {
    RmsNorm m;
    const ValueId inverse = m.Inverse(m.Mean());
    m.f.outputs = {scaled_first ? m.Times(m.x, m.Times(m.scale, inverse, "mul"), "mul_1")
                                : m.Times(m.scale, m.Times(inverse, m.x, "mul"), "mul_1")};
    const ValueId out = m.f.outputs[0];
    const std::vector<Tensor> inputs = {Floats({2, 3}, {1, -2, 3, 0, 0.5F, 2})};
    const auto before = m.Compute("main", inputs);
    m.Recognize(*registry);
    ASSERT_EQ(m.f.nodes.size(), 1u) << ToText(m.f);
    const Node& node = *m.f.nodes[0];
    EXPECT_EQ(node.name, "odml.rms_norm");
    EXPECT_EQ(node.operands, (std::vector<ValueId>{m.x, m.scale}));
    EXPECT_FLOAT_EQ(static_cast<float>(node.attrs.f64("epsilon", 0)), 1e-3F);
    EXPECT_EQ(m.f.outputs[0], out);
    EXPECT_EQ(FloatsOf(m.Compute("main", inputs)[0]), FloatsOf(before[0]));  // of the body
    Options options = m.options;
    options.registry = registry;
    Context with{m.module, *registry, options, m.report};
    ASSERT_TRUE(FuseComposites(with));
    EXPECT_EQ(m.f.nodes[0]->name, "acme.norm");
  }
}

TEST_F(RmsNorms, StayAsTheyAreWithoutARuleOrIfItDeclines) {
  const auto declines = WithRule(folder_, 4);
  for (Registry* registry : {BuiltIn().get(), declines.get()}) {
    RmsNorm m;
    m.f.outputs = {m.Times(m.Times(m.x, m.Inverse(m.Mean()), "mul"), m.scale, "mul_1")};
    m.Sign(m.f);
    const auto before = Clone(m.module);
    m.module.signatures.clear();
    m.Recognize(*registry);
    EXPECT_EQ(Count(m.f, Op::kStablehloComposite), registry == declines.get() ? 1u : 0u);
    Context with{m.module, *registry, m.options, m.report};
    ASSERT_TRUE(FuseComposites(with));
    ASSERT_TRUE(InlineComposites(with));
    std::string why;
    EXPECT_TRUE(Equal(*before, m.module, &why)) << why << ToText(m.f);
    ASSERT_EQ(m.f.nodes.size(), before->functions[0]->nodes.size());
    for (size_t i = 0; i < m.f.nodes.size(); ++i) {
      const Node& was = *before->functions[0]->nodes[i];
      EXPECT_EQ(m.f.nodes[i]->location, was.location);
      EXPECT_EQ(m.f.value(m.f.nodes[i]->results[0]).name, before->functions[0]->value(was.results[0]).name);
    }
  }
}

TEST_F(RmsNorms, AreNothingElse) {
  const auto registry = WithRule(folder_, 2);
  const auto composites = [&](const auto& build) {
    RmsNorm m;
    m.f.outputs = build(m);
    m.Recognize(*registry);
    return Count(m.f, Op::kStablehloComposite) == 0 ? m.Notes() : "a composite";
  };
  using Values = std::vector<ValueId>;
  EXPECT_EQ(composites([](RmsNorm& m) {
              return Values{m.Times(m.Times(m.x, m.Inverse(m.Mean(0)), "mul"), m.scale, "mul_1")};
            }),
            "");
  EXPECT_EQ(composites([](RmsNorm& m) {
              return Values{m.Times(m.Times(m.In({2, 3}), m.Inverse(m.Mean()), "mul"), m.scale, "mul_1")};
            }),
            "");
  EXPECT_EQ(composites([](RmsNorm& m) {
              return Values{m.Times(m.Times(m.x, m.Inverse(m.Mean()), "mul"), m.In({2, 3}), "mul_1")};
            }),
            "");
  EXPECT_THAT(composites([](RmsNorm& m) {
                const ValueId mean = m.Mean();
                return Values{m.Times(m.Times(m.x, m.Inverse(mean), "mul"), m.scale, "mul_1"), mean};
              }),
              ::testing::HasSubstr("rms-norm: other nodes read MEAN (net/norm/Mean) as well"));
}

}  // namespace
}  // namespace fusebox::converter
