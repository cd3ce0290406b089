// SPDX-License-Identifier: Apache-2.0
// A third party's fused op, with nothing changed here: the model of TensorFlow's guide and
// samples/hello_plugin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "host/tflite/tflite.h"
#include "models/saved_model/op_table.h"
#include "models/saved_model/saved_model_builder.h"
#include "samples/models/models.h"
#include "tests/converter/import/files.h"
#include "tests/testing/models/v1_graph.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::SizeIs;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

constexpr char kOp[] = "my_custom_fused_op";

// The manifest with no library beside it.
std::string ManifestAlone() {
  const std::string dir = TestDir() + "/plugins/com.acme.my_op";
  std::filesystem::create_directories(dir);
  std::filesystem::copy_file(FUSEBOX_HELLO_PLUGIN "/fusebox-plugin.json", dir + "/fusebox-plugin.json",
                             std::filesystem::copy_options::overwrite_existing);
  return dir;
}

Result<Written> ConvertWith(const std::string& sample, const std::vector<std::string>& plugins,
                            FusionOptions::KeepBodies bodies = FusionOptions::KeepBodies::kCustom) {
  FUSEBOX_ASSIGN(const std::string dir, Sample(sample));
  converter::Options options;
  FUSEBOX_ASSIGN(options.registry, Plugins(plugins));
  options.keep_bodies = bodies;
  return Convert(dir, options, plugins.empty() ? "alone" : "plugin");
}

const Node* FindOp(const Module& module) {
  for (const auto& function : module.functions) {
    for (const auto& node : function->nodes) {
      if (node->is(Op::kCustom) && node->name == kOp) return node.get();
    }
  }
  return nullptr;
}

TEST(ThirdParty, TheCompositeBecomesACustomOpOfItsNameWithNoPlugin) {
  const auto written = ConvertWith("custom_fused", {});
  ASSERT_OK(written);
  const auto module = tflite::ReadFile(written->path);
  ASSERT_OK(module);
  EXPECT_EQ(OpsOf(**module), (std::map<std::string, int>{{"CONV_2D", 2}, {kOp, 1}}));
  const Node* const node = FindOp(**module);
  ASSERT_TRUE(node);
  EXPECT_EQ(ToString(node->attrs), "{example_option=10}");
}

TEST(ThirdParty, TheKernelOfAPluginRunsIt) {
  for (const std::vector<std::string>& at_conversion : {std::vector<std::string>{}, {FUSEBOX_HELLO_PLUGIN}}) {
    const auto written = ConvertWith("custom_fused", at_conversion);
    ASSERT_OK(written);
    auto with = Open(written->path, *Plugins({FUSEBOX_HELLO_PLUGIN}));
    ASSERT_OK(with);
    const auto outputs = Invoke(**with, RandomInputs(**with, 1));
    ASSERT_OK(outputs);
    // The same seed with a real body computes what the kernel should.
    const auto body = ConvertWith("custom_fused_body", {});
    ASSERT_OK(body);
    auto plain = Open(body->path, *Plugins({}));
    ASSERT_OK(plain);
    const auto expected = Invoke(**plain, RandomInputs(**plain, 1));
    ASSERT_OK(expected);
    EXPECT_EQ(Difference(*outputs, *expected), "");
  }
}

TEST(ThirdParty, TheKernelReceivesTheOptionsOfTheUsersFile) {
  const auto written = ConvertWith("custom_fused", {});
  ASSERT_OK(written);
  const auto subnormal_results = [&](const std::string& denormals) -> Result<int> {
    const std::string path = TestDir() + "/fusebox.json";
    WriteAll(path, R"({"options": {"com.acme.my_op": {"denormals": ")" + denormals + "\"}}}\n");
    FUSEBOX_ASSIGN(Config config, ReadConfig(path));
    config.search_default_path = false;
    config.plugins = {FUSEBOX_HELLO_PLUGIN};
    FUSEBOX_ASSIGN(auto registry, Registry::Create(config));
    FUSEBOX_ASSIGN(auto session, Open(written->path, registry));
    Tensor image = Random(session->inputs()[0].type, 1);
    std::vector<float> values(image.data.As<float>().begin(), image.data.As<float>().end());
    for (float& value : values) value *= 1e-20f;
    FUSEBOX_ASSIGN(const Tensors outputs, Invoke(*session, {Floats(image.type.shape, values)}));
    int count = 0;
    for (const float value : outputs[1].data.As<float>()) count += std::fpclassify(value) == FP_SUBNORMAL;
    return count;
  };
  const auto kept = subnormal_results("keep"), flushed = subnormal_results("flush");
  ASSERT_OK(kept);
  ASSERT_OK(flushed);
  EXPECT_GT(*kept, 100);
  EXPECT_EQ(*flushed, 0);
  const auto wrong = subnormal_results("squash");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("denormals"));
}

// Nodes of custom ops in frozen graphs list their outputs in an attribute.
TEST(ThirdParty, AllOutputsOfAnOpInAFrozenGraphAreRead) {
  test_models::V1Graph g;
  const std::string a = g.Placeholder("a", tf::DT_FLOAT, {2}), b = g.Placeholder("b", tf::DT_FLOAT, {2});
  const std::vector<tf::DataType> types(2, tf::DT_FLOAT);
  const std::string op = g.Op(kOp, {a, b}, tf::DT_FLOAT,
                              {models::Attr("_output_types", types), models::Attr("example_option", 10)});
  g.graph().mutable_node(g.graph().node_size() - 1)->mutable_attr()->erase("T");
  g.Op("Neg", {g.Output(op, 1, tf::DT_FLOAT)}, tf::DT_INVALID, {}, "y");
  const std::string path = TestDir() + "/frozen.pb";
  ASSERT_OK(test_models::WriteFrozenGraph(path, g.graph()));
  converter::Options options;
  options.registry = *Plugins({FUSEBOX_HELLO_PLUGIN});
  const auto written = Convert(path, options, "frozen");
  ASSERT_OK(written);
  const auto session = Open(written->path, options.registry);
  ASSERT_OK(session);
  const auto y = Invoke(**session, {Floats({2}, {1, 2}), Floats({2}, {3, 5})});
  ASSERT_OK(y);
  EXPECT_THAT((*y)[0].data.As<float>(), ::testing::ElementsAre(-3, -10));
}

// y = the second output of the op, by its name.
tf::SavedModel ReadsTheProduct(bool defined) {
  models::DefineOp("my_custom_fused_op(a: float, b: float) -> (sum: float, product: float)");
  models::SavedModelBuilder model;
  models::FunctionBuilder& f = model.AddFunction("multiply");
  const models::Ref a = f.Arg("a", tf::DT_FLOAT, {2}), b = f.Arg("b", tf::DT_FLOAT, {2});
  f.Return({f.Ops(kOp, {a, b}, {{2}, {2}}, {models::Attr("example_option", 10)})[1]});
  model.AddSignature("serving_default", f, {"a", "b"}, {"y"});
  tf::SavedModel proto = model.ToProto();
  if (!defined) proto.mutable_meta_graphs(0)->mutable_meta_info_def()->clear_stripped_op_list();
  return proto;
}

TEST(ThirdParty, ANamedOutputNeedsTheDefinitionOfTheOp) {
  converter::Options options;
  options.registry = *Plugins({FUSEBOX_HELLO_PLUGIN});
  const std::string dir = TestDir() + "/model";
  ASSERT_OK(models::WriteSavedModel(dir, ReadsTheProduct(true), models::BundleWriter()));
  const auto written = Convert(dir, options, "defined");
  ASSERT_OK(written);
  const auto session = Open(written->path, options.registry);
  ASSERT_OK(session);
  const auto y = Invoke(**session, {Floats({2}, {1, 2}), Floats({2}, {3, 5})});
  ASSERT_OK(y);
  EXPECT_THAT((*y)[0].data.As<float>(), ::testing::ElementsAre(3, 10));

  ASSERT_OK(models::WriteSavedModel(dir, ReadsTheProduct(false), models::BundleWriter()));
  const auto unknown = Convert(dir, options, "undefined");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message,
              HasSubstr("op my_custom_fused_op (my_custom_fused_op): function multiply"));
  EXPECT_THAT(unknown.error().message,
              HasSubstr(" reads its output \"product\", but the file does not define this op "
                        "(the position of the output is unknown); convert a SavedModel that keeps its op "
                        "definitions (stripped_op_list)"));
}

TEST(ThirdParty, WithoutItsLibraryTheOpIsRefusedByNameWithThePlugin) {
  const std::string alone = ManifestAlone();
  const auto written = ConvertWith("custom_fused", {FUSEBOX_HELLO_PLUGIN});
  ASSERT_OK(written);
  // The file knows who made it, whether or not a manifest is there at run time.
  for (const std::vector<std::string>& plugins : {std::vector<std::string>{alone}, {}}) {
    const auto model = Model::Open(written->path, {.registry = *Plugins(plugins)});
    ASSERT_FALSE(model);
    for (const char* part : {kOp, "com.acme.my_op", "1.0.0", "searched"})
      EXPECT_THAT(model.error().message, HasSubstr(part));
  }
}

TEST(ThirdParty, TheManifestAloneNamesThePluginThatAFileNeeds) {
  const std::string alone = ManifestAlone();
  const auto written = ConvertWith("custom_fused", {});
  ASSERT_OK(written);
  const auto model = Model::Open(written->path, {.registry = *Plugins({alone})});
  ASSERT_FALSE(model);
  for (const char* part : {kOp, "com.acme.my_op", "1.0.0", "my_op.so", "searched", alone.c_str()})
    EXPECT_THAT(model.error().message, HasSubstr(part));
  const auto nothing = Model::Open(written->path, {.registry = *Plugins({})});
  ASSERT_FALSE(nothing);
  EXPECT_THAT(nothing.error().message, HasSubstr(kOp));
  EXPECT_THAT(nothing.error().message, HasSubstr("searched"));
  EXPECT_THAT(nothing.error().message, Not(HasSubstr("fused by plugin  ")));
}

TEST(ThirdParty, TheCommandEndsWithTwoWithoutTheLibrary) {
  const auto written = ConvertWith("custom_fused", {FUSEBOX_HELLO_PLUGIN});
  ASSERT_OK(written);
  const auto command = Fusebox({"run", written->path});
  EXPECT_EQ(command.status, 2);
  for (const char* part : {kOp, "com.acme.my_op", "1.0.0", "searched"})
    EXPECT_THAT(command.err, HasSubstr(part));
  // A library that is named and cannot be opened is the loader's own message.
  const auto named = Fusebox({"run", written->path, "--plugin", ManifestAlone()});
  EXPECT_EQ(named.status, 2);
  EXPECT_THAT(named.err, HasSubstr("my_op.so"));
  EXPECT_THAT(named.err, HasSubstr("No such file"));
  EXPECT_EQ(Fusebox({"run", written->path, "--plugin", FUSEBOX_HELLO_PLUGIN}).status, 0);
}

TEST(ThirdParty, AKeptBodyRunsWithOneNotice) {
  const auto written = ConvertWith("custom_fused_body", {FUSEBOX_HELLO_PLUGIN});
  ASSERT_OK(written);
  const auto module = tflite::ReadFile(written->path);
  ASSERT_OK(module);
  EXPECT_THAT(OpsOf(**module), Contains(Key(kOp)));
  const auto model = Model::Open(written->path, {.registry = *Plugins({})});
  ASSERT_OK(model);
  EXPECT_THAT((*model)->notices(), SizeIs(1));
  EXPECT_THAT((*model)->notices(), Contains(HasSubstr(kOp)));
  auto session = Session::Create(*model);
  ASSERT_OK(session);
  const auto outputs = Invoke(**session, RandomInputs(**session, 1));
  ASSERT_OK(outputs);
  // The body itself, inlined.
  converter::Options options;
  options.registry = *Plugins({});
  options.composites = converter::Composites::kInline;
  const auto inlined = Convert(*Sample("custom_fused_body"), options, "inline");
  ASSERT_OK(inlined);
  auto plain = Open(inlined->path, options.registry);
  ASSERT_OK(plain);
  const auto expected = Invoke(**plain, RandomInputs(**plain, 1));
  ASSERT_OK(expected);
  EXPECT_EQ(Difference(*outputs, *expected), "");

  const auto bare =
      ConvertWith("custom_fused_body", {FUSEBOX_HELLO_PLUGIN}, FusionOptions::KeepBodies::kNone);
  ASSERT_OK(bare);
  EXPECT_FALSE(Model::Open(bare->path, {.registry = *Plugins({})}));
}

}  // namespace
}  // namespace fusebox::testing
