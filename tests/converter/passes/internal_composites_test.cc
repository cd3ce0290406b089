// SPDX-License-Identifier: Apache-2.0
// Source ops that stay composites until patterns were matched: erf.
#include <gmock/gmock.h>

#include <cmath>

#include "converter/import/tables/composites.h"
#include "tests/converter/passes/rewritten.h"

namespace fusebox::converter {
namespace {

using ::testing::IsEmpty;

struct WithErf : Rewritten {
  ValueId x = In({2, 3});
  ValueId Erf(ValueId v) { return Opaque(f, "Erf", {v}, Type{}); }
  void End(std::vector<ValueId> outputs) {
    f.outputs = std::move(outputs);
    Sign(f);
  }
};

constexpr const char* kLowered =
    "MUL SQUARE MUL ADD MUL ADD MUL ADD MUL ADD MUL ADD MUL ADD MUL ADD MUL ADD MUL ADD MUL ADD MUL DIV";

TEST(InternalComposites, ErfIsOneUntilItIsLowered) {
  WithErf m;
  m.End({m.Erf(m.x)});
  for (const auto pass : {TranslateOps, FoldToFixpoint, FuseComposites, InlineComposites}) {
    ASSERT_EQ(m.Bench::Run(pass), "");
    ASSERT_EQ(m.f.nodes.size(), 1u);
    EXPECT_TRUE(IsInternal(*m.f.nodes[0]));
  }
  EXPECT_EQ(m.f.value(m.f.outputs[0]).type, F32({2, 3}));
  EXPECT_THAT(m.report.sites, IsEmpty()) << "nothing for reports";
  const std::string name = m.f.value(m.f.outputs[0]).name;
  ASSERT_EQ(m.Bench::Run(Optimize), "");
  EXPECT_EQ(m.Ops(), kLowered);
  EXPECT_EQ(m.module.functions.size(), 1u) << "the body is gone";
  for (const auto& node : m.f.nodes) {
    EXPECT_EQ(node->location.name, "n/Erf");
    EXPECT_EQ(m.f.value(node->results[0]).name, name);
    for (const ValueId v : node->operands)
      EXPECT_EQ(m.f.value(v).name, m.f.value(v).is_const() || v == m.x ? "" : name);
  }
}

TEST(InternalComposites, AreLoweredWhereOtherCompositesAreKept) {
  WithErf m;
  m.options.composites = Composites::kKeep;
  m.End({m.Erf(m.x)});
  ASSERT_EQ(m.Bench::Run(RunPasses), "");
  EXPECT_EQ(m.Ops(), kLowered);
}

TEST(InternalComposites, OfConstantsFold) {
  WithErf m;
  m.End({m.Op1(Op::kAdd, {m.x, m.C(0)}), m.Erf(m.C({2}, {0, 1}))});
  ASSERT_EQ(m.Bench::Run(FoldToFixpoint), "");
  EXPECT_EQ(m.Ops(), "ADD");
  const auto values = m.f.value(m.f.outputs[1]).data.As<float>();
  EXPECT_EQ(values[0], 0);
  EXPECT_NEAR(values[1], std::erf(1.0), 1e-6);
}

TEST(InternalComposites, ErfIsRelativelyExact) {
  std::vector<float> x = {0, -0.0F, 1e-30F, 1e-20F, INFINITY, 1e30F, NAN, 3.4e38F};
  for (float size = 1e-12F; size < 20; size *= 1.003F) {
    x.push_back(size);
    x.push_back(-size);
  }
  WithErf m;
  const Type type = F32({static_cast<int64_t>(x.size())});
  m.End({m.Op1(Op::kAdd, {m.x, m.C(0)}), m.Erf(m.f.AddConst(type, Buffer::Of<float>(x)))});
  ASSERT_EQ(m.Bench::Run(FoldToFixpoint), "");
  const auto values = m.f.value(m.f.outputs[1]).data.As<float>();
  ASSERT_EQ(values.size(), x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double right = std::erf(double{x[i]});
    if (std::isnan(x[i])) {
      EXPECT_TRUE(std::isnan(values[i]));
    } else {
      EXPECT_LE(std::abs(values[i] - right), 5e-7 * std::abs(right)) << "erf(" << x[i] << ")";
    }
    EXPECT_FALSE(std::abs(values[i]) > 1) << "erf(" << x[i] << ")";
    EXPECT_EQ(std::signbit(values[i]), std::signbit(x[i]));
  }
}

TEST(InternalComposites, UnreadOnesAreRemoved) {
  WithErf m;
  m.Erf(m.Op1(Op::kExp, {m.x}));
  m.End({m.Op1(Op::kAdd, {m.x, m.C(1)})});
  ASSERT_EQ(m.Bench::Run(FoldToFixpoint), "");
  EXPECT_EQ(m.Ops(), "ADD");
}

TEST(InternalComposites, AreNotInTheBodyThatAProofRuns) {
  WithErf m;
  m.End({m.Erf(m.x)});
  const auto copy = RunnableCopy(m.module, m.f, {F32({2, 3})}, *BuiltIn());
  ASSERT_TRUE(copy) << copy.error().message;
  const Function& body = *(*copy)->functions[0];
  EXPECT_EQ(Count(body, Op::kStablehloComposite), 0u);
  EXPECT_EQ(Count(body, Op::kDiv), 1u);
}

}  // namespace
}  // namespace fusebox::converter
