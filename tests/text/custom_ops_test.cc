// SPDX-License-Identifier: Apache-2.0
// TensorFlow ops without a translation become custom ops if a plugin has a kernel of their name.
#include "tests/converter/passes/bench.h"
#include "tests/text/text_run.h"

namespace fusebox::converter {
namespace {

using ::testing::HasSubstr;

struct Source {
  Bench bench;
  Function& f = bench.Add("main");

  ValueId Op(const std::string& op, std::vector<ValueId> operands, Attrs attrs = {}) {
    Node& node = f.AddNode(fusebox::Op::kOpaque, std::move(operands), {Type()}, std::move(attrs));
    node.name = op;
    node.location.name = op + "_node";
    return node.results[0];
  }
  std::string Converted(std::vector<ValueId> outputs) {
    f.outputs = std::move(outputs);
    bench.Sign(f);
    Context context{bench.module, *testing::StringsPlugin(), bench.options, bench.report};
    const Status done = RunPasses(context);
    return done ? "" : done.error().message;
  }
};

const Type kTexts{DType::kString, {-1, 2}};

TEST(CustomOps, KeepTheirNameAndAttributes) {
  Source source;
  const ValueId text = source.f.AddInput(kTexts);
  const ValueId lower = source.Op("StringLower", {text}, MakeAttrs("encoding", "utf-8"));
  ASSERT_EQ(source.Converted({source.Op("StringToNumber", {lower}, MakeAttrs("out_type", DType::kI64))}), "");
  const Function& f = *source.bench.module.Find("main");
  ASSERT_EQ(f.nodes.size(), 2u) << ToText(f);
  EXPECT_TRUE(f.nodes[0]->is(fusebox::Op::kCustom));
  EXPECT_EQ(f.nodes[0]->name, "StringLower");
  EXPECT_EQ(f.nodes[0]->attrs.str("encoding", ""), "utf-8");
  EXPECT_EQ(f.nodes[0]->location.name, "StringLower_node");
  EXPECT_EQ(f.value(f.outputs[0]).type, (Type{DType::kI64, {-1, 2}}));
}

TEST(CustomOps, HaveAShapeByTheirConstants) {
  Source source;
  const ValueId text = source.f.AddInput(kTexts);
  const ValueId axis = source.f.AddConst<int32_t>(DType::kI32, {1}, {-1});
  const ValueId joined =
      source.Op("ReduceJoin", {text, axis}, MakeAttrs("keep_dims", true, "separator", "-"));
  const Attrs hash = MakeAttrs("num_buckets", 7, "key", std::vector<int64_t>{1, 2});
  ASSERT_EQ(source.Converted({source.Op("StringToHashBucketStrong", {joined}, hash)}), "");
  const Function& f = *source.bench.module.Find("main");
  EXPECT_EQ(f.value(f.outputs[0]).type, (Type{DType::kI64, {-1, 1}}));
}

TEST(CustomOps, WithoutReadersAreNotMade) {
  Source source;
  const ValueId text = source.f.AddInput(kTexts);
  source.Op("StringJoin", {text, text});
  ASSERT_EQ(source.Converted({source.Op("StringLength", {text})}), "");
  EXPECT_EQ(source.bench.module.Find("main")->nodes.size(), 1u) << ToText(*source.bench.module.Find("main"));
}

TEST(CustomOps, ThatTheKernelDeclinesAreReported) {
  Source source;
  const ValueId text = source.f.AddInput(kTexts);
  const auto why =
      source.Converted({source.Op("StaticRegexReplace", {text}, MakeAttrs("pattern", "(", "rewrite", ""))});
  EXPECT_THAT(why, HasSubstr("op StaticRegexReplace (StaticRegexReplace_node)"));
  EXPECT_THAT(why, HasSubstr("the pattern is invalid: missing ): ("));
}

TEST(CustomOps, OfNoPluginAreReported) {
  Source source;
  const ValueId text = source.f.AddInput(kTexts);
  EXPECT_THAT(
      source.Converted({source.Op("StringFormat", {text})}),
      HasSubstr("op StringFormat (StringFormat_node): no plugin here has a kernel for this string op"));
}

// Without types of its operands, an op waits for the next round.
TEST(CustomOps, FollowOpsThatAreTranslatedLater) {
  Source source;
  const ValueId text = source.f.AddInput(kTexts);
  const ValueId axis = source.f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {0});
  const ValueId joined = source.Op("ConcatV2", {text, text, source.Op("Identity", {axis})});
  ASSERT_EQ(source.Converted({source.Op("StringLower", {joined})}), "");
  EXPECT_EQ(source.bench.module.Find("main")->nodes.back()->name, "StringLower");
}

}  // namespace
}  // namespace fusebox::converter
