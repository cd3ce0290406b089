// SPDX-License-Identifier: Apache-2.0
// Frozen graphs: binary and text files, inputs and outputs, and files that are something else.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>

#include "converter/words.h"
#include "models/saved_model/saved_model_builder.h"
#include "tests/converter/import/saved_model/v1.h"

namespace fusebox::converter {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace fusebox::models;
using namespace fusebox::test_models;

// scores = relu(x * w + 1), classes = argmax; `keep` has a default.
struct Net : V1Graph {
  Net() {
    const std::string x = Placeholder("x", tf::DT_FLOAT, {-1, 2});
    const std::string w =
        Op("Identity", {Const(models::Floats({2, 2}, std::vector<float>{1, 2, 3, -4}), "w")}, tf::DT_INVALID,
           {}, "w/read");
    const std::string product = Op("MatMul", {x, w}, tf::DT_INVALID, {}, "product");
    const std::string sum = Op("Add", {product, Const(Float(1))}, tf::DT_INVALID, {}, "sum");
    const std::string scores = Op("Relu", {sum}, tf::DT_INVALID, {}, "scores");
    Op("ArgMax", {scores, Const(Int(1))}, tf::DT_INT64, {Attr("output_type", tf::DT_INT64)}, "classes");
  }
};

Conversion From(const std::string& path, const Names& inputs = {}, const Names& outputs = {}) {
  Conversion conversion = FromFrozenGraph(path);
  conversion.options.registry = BuiltIn();
  conversion.options.inputs = inputs;
  conversion.options.outputs = outputs;
  return conversion;
}

std::string Text(const tf::GraphDef& graph) {
  std::string text;
  EXPECT_TRUE(google::protobuf::TextFormat::PrintToString(graph, &text));
  return text;
}

std::string WhyNot(const std::string& bytes, const std::string& name = "frozen.pb") {
  const std::string path = testing::FreshDir() + "/" + name;
  testing::WriteAll(path, bytes);
  const auto converted = From(path).Convert();
  return converted ? "" : converted.error().message;
}

TEST(FrozenGraph, TakesPlaceholdersAndWhatNobodyReads) {
  const std::string path = testing::FreshDir() + "/frozen.pb";
  ASSERT_TRUE(WriteFrozenGraph(path, Net().graph()));
  const auto converted = From(path).Convert();
  ASSERT_TRUE(converted) << converted.error().message;
  const Signature& signature = converted->module->signatures.at(0);
  EXPECT_EQ(signature.key, "serving_default");
  EXPECT_THAT(signature.input_names, ElementsAre("x"));
  EXPECT_THAT(signature.output_names, ElementsAre("classes"));
  EXPECT_THAT(converted->report.notes, Contains(HasSubstr("outputs: classes")));
  EXPECT_TRUE(converted->report.refused.empty());
}

TEST(FrozenGraph, ComputesWhatIsBetweenTheNamedTensors) {
  const auto whole = ConvertFrozen(Net().graph(), {"x:0"}, {"scores", "classes:0"});
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_THAT(whole->module->signatures[0].output_names, ElementsAre("scores", "classes"));
  const auto out = Compute(*whole, {fusebox::converter::Floats({1, 2}, {1, 2})});
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_THAT(FloatsOf((*out)[0]), ElementsAre(8, 0));
  EXPECT_EQ((*out)[1].data.As<int64_t>()[0], 0);

  const auto cut = ConvertFrozen(Net().graph(), {"product"}, {"scores"});
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_EQ(Count(*cut, Op::kFullyConnected), 0);
  const auto part = Compute(*cut, {fusebox::converter::Floats({1, 2}, {5, -5})});
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_THAT(FloatsOf((*part)[0]), ElementsAre(6, 0));
}

// loss = mean(scores), with the gradient of the sum and a step of training.
TEST(FrozenGraph, LeavesGradientsAndTrainingOut) {
  Net net;
  net.Op("Mean", {"scores", net.Const(Ints({0, 1}))}, tf::DT_INVALID, {}, "loss");
  const std::string shape = net.Op("Shape", {"product"}, tf::DT_INT32, {}, "gradients/shape");
  const std::string args =
      net.Op("BroadcastGradientArgs", {shape, net.Const(Ints({2}))}, tf::DT_INT32, {}, "gradients/args");
  const std::string sum = net.Op("Sum", {"scores", args}, tf::DT_INVALID, {}, "gradients/sum");
  net.Op("ReluGrad", {sum, "scores"}, tf::DT_INVALID, {}, "gradients/relu");
  const auto converted = ConvertFrozen(net.graph(), {}, {});
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(converted->module->signatures[0].output_names, ElementsAre("classes", "loss"));
  EXPECT_THAT(converted->report.notes, Contains(HasSubstr("left out: 3 nodes of gradients and training")));
  const auto named = ConvertFrozen(net.graph(), {}, {"gradients/relu"});
  ASSERT_FALSE(named);
  EXPECT_THAT(named.error().message,
              HasSubstr("it trains the model; name the outputs of inference (--outputs)"));
}

TEST(FrozenGraph, DecodersOfSequencesAreNamedWithAWayOut) {
  V1Graph g;
  const std::string x = g.Placeholder("x", tf::DT_FLOAT, {5, 1, 4});
  g.Op("CTCGreedyDecoder", {g.Op("Softmax", {x}, tf::DT_INVALID, {}, "logits"), g.Const(Ints({5}))},
       tf::DT_INVALID, {}, "decoded");
  EXPECT_TRUE(ConvertFrozen(g.graph(), {}, {"logits"}));
  const auto whole = ConvertFrozen(g.graph(), {}, {});
  ASSERT_FALSE(whole);
  EXPECT_THAT(whole.error().message, HasSubstr("name the tensor that it reads as the output (--outputs)"));
}

// Programs read tensors by number.
TEST(FrozenGraph, KeepsTheOrderOfItsInputsAndOutputs) {
  V1Graph g;
  const std::string alpha = g.Placeholder("alpha", tf::DT_FLOAT, {1}),
                    beta = g.Placeholder("beta", tf::DT_FLOAT, {1});
  g.Op("Sub", {beta, alpha}, tf::DT_INVALID, {}, "boxes");
  g.Op("AddV2", {alpha, beta}, tf::DT_INVALID, {}, "scores");
  const auto ordered = ConvertFrozen(g.graph(), {"beta", "alpha"}, {"scores", "boxes"});
  ASSERT_TRUE(ordered) << ordered.error().message;
  EXPECT_THAT(ordered->module->signatures[0].input_names, ElementsAre("beta", "alpha"));
  const auto out =
      Compute(*ordered, {fusebox::converter::Floats({1}, {3}), fusebox::converter::Floats({1}, {1})});
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_THAT(FloatsOf((*out)[0]), ElementsAre(4));
  EXPECT_THAT(FloatsOf((*out)[1]), ElementsAre(2)) << "beta - alpha";
  const auto sorted = ConvertFrozen(g.graph(), {}, {});
  ASSERT_TRUE(sorted) << sorted.error().message;
  EXPECT_THAT(sorted->module->signatures[0].input_names, ElementsAre("alpha", "beta"));
  EXPECT_THAT(sorted->module->signatures[0].output_names, ElementsAre("boxes", "scores"));
}

// TFLite reads an unknown rank as a scalar, which a transposition does not accept.
TEST(FrozenGraph, NeedsTheShapeOfAnInputThatCannotBeAScalar) {
  for (const std::string op : {"Transpose", "Mul"}) {
    V1Graph g;
    const std::string x = g.Placeholder("x", tf::DT_FLOAT, fusebox::Shape());
    const std::string other = op == "Mul" ? g.Const(models::Float(2)) : g.Const(Ints({1, 0}));
    g.Op(op, {x, other}, tf::DT_INVALID, {}, "y");
    const auto converted = ConvertFrozen(g.graph(), {}, {});
    EXPECT_EQ(converted.has_value(), op == "Mul");
    if (!converted) {
      EXPECT_THAT(converted.error().message, HasSubstr("set --shape x=..."));
    }
  }
}

TEST(FrozenGraph, IsToldFromASavedModelByItsContent) {
  V1Graph g;
  g.Op("Neg", {g.Placeholder("x", tf::DT_FLOAT, {2})}, tf::DT_INVALID, {}, "y");
  const std::string dir = testing::FreshDir();
  ASSERT_TRUE(WriteFrozenGraph(dir + "/saved_model.pb", g.graph()));
  auto folder = FromSavedModel(dir).Convert();
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().message, HasSubstr("is a frozen graph, not a SavedModel; convert the file"));
  EXPECT_TRUE(From(dir + "/saved_model.pb").Convert());
}

// The speech models of TensorFlow's tutorial read WAV files.
TEST(FrozenGraph, IsCutBehindAnAudioDecoder) {
  V1Graph g;
  const std::string wav = g.Placeholder("wav", tf::DT_STRING, {});
  const std::string audio = g.Op("DecodeWav", {wav}, tf::DT_FLOAT, {}, "decoded");
  g.Op("Neg", {audio}, tf::DT_INVALID, {Attr("T", tf::DT_FLOAT)}, "y");
  const auto whole = ConvertFrozen(g.graph(), {}, {});
  ASSERT_FALSE(whole);
  EXPECT_THAT(whole.error().message,
              HasSubstr("name its results as the inputs of a frozen graph (--inputs)"));
  const std::string path = testing::FreshDir() + "/frozen.pb";
  ASSERT_TRUE(WriteFrozenGraph(path, g.graph()));
  Conversion conversion = From(path, {"decoded"}, {"y"});
  conversion.options.shapes["decoded"] = fusebox::Shape{16, 1};
  const auto converted = conversion.Convert();
  EXPECT_TRUE(converted) << converted.error().message;
}

// Old graphs store no shapes of their placeholders.
TEST(FrozenGraph, ReadsTheShapeOfAnInputFromItsProducts) {
  for (const std::string op : {"MatMul", "Conv2D"}) {
    V1Graph g;
    const std::string x = g.Placeholder("x", tf::DT_FLOAT, fusebox::Shape());
    const bool product = op == "MatMul";
    const std::vector<float> weights(6, 1);
    const std::string w =
        g.Const(models::Floats(product ? fusebox::Shape{3, 2} : fusebox::Shape{1, 1, 3, 2}, weights));
    const std::vector<Attr> window = {Attr("strides", std::vector<int64_t>{1, 1, 1, 1}),
                                      Attr("padding", "SAME")};
    g.Op(op, {x, w}, tf::DT_INVALID, product ? std::vector<Attr>() : window, "y");
    const auto converted = ConvertFrozen(g.graph(), {}, {});
    ASSERT_TRUE(converted) << converted.error().message;
    const Function& f = *converted->module->functions[0];
    const fusebox::Shape taken = product ? fusebox::Shape{-1, 3} : fusebox::Shape{-1, -1, -1, 3};
    EXPECT_EQ(f.value(f.inputs[0]).type.shape, taken);
    EXPECT_THAT(converted->report.notes, Contains(HasSubstr("input x has no shape in the file")));
  }
}

TEST(FrozenGraph, IsCutAtAnyOutputOfANode) {
  V1Graph g;
  const std::string x = g.Placeholder("x", tf::DT_FLOAT, {4});
  const std::string split = g.Op("Split", {g.Const(Int(0)), x}, tf::DT_FLOAT,
                                 {Attr("num_split", 2), Attr("T", tf::DT_FLOAT)}, "parts");
  g.Op("Neg", {g.Output(split, 1, tf::DT_FLOAT)}, tf::DT_INVALID, {}, "y");
  const std::string path = testing::FreshDir() + "/frozen.pb";
  ASSERT_TRUE(WriteFrozenGraph(path, g.graph()));
  Conversion conversion = From(path, {"parts:1"}, {"y"});
  auto converted = conversion.Convert();
  ASSERT_FALSE(converted);
  EXPECT_THAT(converted.error().message, HasSubstr("set --shape parts:1="));
  conversion.options.shapes["parts:1"] = fusebox::Shape{2};
  converted = conversion.Convert();
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(converted->module->signatures[0].input_names, ElementsAre("parts:1"));
  const auto out = Compute(*converted, {fusebox::converter::Floats({2}, {1, 2})});
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_THAT(FloatsOf((*out)[0]), ElementsAre(-1, -2));
}

TEST(FrozenGraph, TakesShapesOfTheUser) {
  V1Graph g;
  g.Op("Neg", {g.Placeholder("x", tf::DT_FLOAT, fusebox::Shape())}, tf::DT_INVALID, {}, "y");
  const std::string path = testing::FreshDir() + "/frozen.pb";
  ASSERT_TRUE(WriteFrozenGraph(path, g.graph()));
  Conversion conversion = From(path);
  conversion.options.shapes["x"] = fusebox::Shape{3, 2};
  const auto converted = conversion.Convert();
  ASSERT_TRUE(converted) << converted.error().message;
  const Function& f = *converted->module->functions[0];
  EXPECT_EQ(f.value(f.outputs[0]).type.shape, (fusebox::Shape{3, 2}));
}

// Graphs before version 24 write an unknown shape like that of a scalar.
TEST(FrozenGraph, KnowsShapesOfOldGraphs) {
  for (const int producer : {0, 21, 24, 134}) {
    V1Graph g;
    g.Op("Neg", {g.Placeholder("x", tf::DT_FLOAT, kScalar)}, tf::DT_INVALID, {}, "y");
    g.graph().mutable_versions()->set_producer(producer);
    const std::string path = testing::FreshDir() + "/frozen.pb";
    ASSERT_TRUE(WriteFrozenGraph(path, g.graph()));
    Conversion conversion = From(path);
    conversion.options.shapes["x"] = fusebox::Shape{3};
    EXPECT_EQ(conversion.Convert().has_value(), producer < 24) << producer;
  }
}

TEST(FrozenGraph, MayBeText) {
  const std::string dir = testing::FreshDir();
  std::string text = Text(Net().graph());
  text += "versions { producer: 134 bad_consumers: 1 }\nsome_new_field { a: [1, 2] }\n";
  for (const char* name : {"frozen.pbtxt", "frozen.pb"}) {
    testing::WriteAll(dir + "/" + name, text);
    const auto converted = From(dir + "/" + name, {}, {"scores"}).Convert();
    ASSERT_TRUE(converted) << converted.error().message;
    const auto out = Compute(*converted, {fusebox::converter::Floats({1, 2}, {1, 2})});
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_THAT(FloatsOf((*out)[0]), ElementsAre(8, 0));
  }
  EXPECT_THAT(WhyNot("node {\n  name: \"x\"\n  op: 7\n}\n"), HasSubstr("line 3"));
}

TEST(FrozenGraph, IsFoundByItsName) {
  const std::string dir = testing::FreshDir();
  ASSERT_TRUE(WriteFrozenGraph(dir + "/a.pb", Net().graph()));
  ASSERT_TRUE(WriteFrozenGraph(dir + "/saved_model.pb", Net().graph()));
  for (const char* name : {"/a.pb", "/saved_model.pb"}) {
    auto conversion = FromPath(dir + name);
    ASSERT_TRUE(conversion) << conversion.error().message;
    conversion->options.registry = BuiltIn();
    EXPECT_TRUE(conversion->Convert()) << name;
  }
  // The file of a SavedModel stands for its folder.
  SavedModelBuilder model;
  FunctionBuilder& f = model.AddFunction("f");
  f.Return({f.Op("Neg", {f.Arg("x", tf::DT_FLOAT, {2})}, {2})});
  model.AddSignature("serving_default", f, {"x"}, {"y"});
  ASSERT_TRUE(model.Write(dir + "/saved"));
  auto conversion = FromPath(dir + "/saved/saved_model.pb");
  ASSERT_TRUE(conversion) << conversion.error().message;
  conversion->options.registry = BuiltIn();
  EXPECT_TRUE(conversion->Convert());
}

TEST(FrozenGraph, OfASavedModelHasEndpointsToo) {
  const std::string dir = testing::FreshDir();
  ASSERT_TRUE(WriteV1SavedModel(dir, Net().graph(), {"x"}, {"classes"}));
  Conversion conversion = FromSavedModel(dir);
  conversion.options.registry = BuiltIn();
  conversion.options.outputs = {"scores"};
  auto converted = conversion.Convert();
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(converted->module->signatures[0].output_names, ElementsAre("scores"));
  conversion.options.signatures = {"serving_default"};
  converted = conversion.Convert();
  ASSERT_FALSE(converted);
  EXPECT_THAT(converted.error().message, HasSubstr("select either"));
}

TEST(FrozenGraph, NamesTensorsThatAreMissing) {
  const auto why = [](const Names& inputs, const Names& outputs) {
    const auto converted = ConvertFrozen(Net().graph(), inputs, outputs);
    return converted ? "" : converted.error().message;
  };
  EXPECT_THAT(why({"y"}, {}), HasSubstr("input y: no such node"));
  EXPECT_THAT(why({}, {"score"}), HasSubstr("output score: no such node; similar: scores"));
  EXPECT_THAT(why({}, {"scores:3"}), HasSubstr("has 1 outputs"));
  EXPECT_THAT(why({}, {"scores:x"}), HasSubstr("is not an edge"));
  EXPECT_THAT(why({}, {"^scores"}), HasSubstr("no such node"));
  EXPECT_THAT(why({"x", "x:0"}, {"scores"}), HasSubstr("given twice"));
  EXPECT_THAT(why({"sum"}, {"product"}), HasSubstr("op Placeholder (x): it is not an input"));
}

TEST(FrozenGraph, IsRefusedWithItsReason) {
  EXPECT_THAT(WhyNot(""), HasSubstr("the file is empty"));
  EXPECT_THAT(WhyNot("hello"), HasSubstr("text form"));
  EXPECT_THAT(WhyNot(std::string("\x0a\xff\x01\x02", 4)), HasSubstr("not a GraphDef"));
  EXPECT_THAT(WhyNot("version https://git-lfs.github.com/spec/v1\noid sha256:4665a5ea\nsize 12345\n"),
              HasSubstr("git lfs pull"));
  tf::SavedModel saved;
  saved.set_saved_model_schema_version(1);
  *saved.add_meta_graphs()->mutable_graph_def() = Net().graph();
  EXPECT_THAT(WhyNot(saved.SerializeAsString()), HasSubstr("name it saved_model.pb"));
  saved.mutable_meta_graphs(0)->mutable_meta_info_def()->set_tensorflow_version("1.15");
  EXPECT_THAT(WhyNot(saved.meta_graphs(0).SerializeAsString()), HasSubstr("graph of a checkpoint"));
  tf::GraphDef twice = Net().graph();
  *twice.add_node() = twice.node(0);
  EXPECT_THAT(WhyNot(twice.SerializeAsString()), HasSubstr("node 'x' is defined twice"));

  for (const char* op : {"VariableV2", "VarHandleOp"}) {
    V1Graph g;
    const std::string v =
        g.Op(op, {}, tf::DT_FLOAT, {Attr("dtype", tf::DT_FLOAT), Attr("shape", fusebox::Shape{2})}, "v");
    const std::string value = op == std::string("VariableV2")
                                  ? v
                                  : g.Op("ReadVariableOp", {v}, tf::DT_FLOAT, {Attr("dtype", tf::DT_FLOAT)});
    g.Op("Mul", {g.Placeholder("x", tf::DT_FLOAT, {2}), value}, tf::DT_INVALID, {}, "y");
    EXPECT_THAT(WhyNot(g.graph().SerializeAsString()), HasSubstr("the graph is not frozen: variable 'v'"));
  }
}

TEST(FrozenGraph, CallsFunctionsOfItsLibrary) {
  V1Graph g;
  const std::string x = g.Placeholder("x", tf::DT_FLOAT, {2});
  g.Op("twice", {x}, tf::DT_FLOAT, {}, "direct");
  tf::FunctionDef& f = *g.graph().mutable_library()->add_function();
  f.mutable_signature()->set_name("twice");
  f.mutable_signature()->add_input_arg()->set_name("v");
  f.mutable_signature()->mutable_input_arg(0)->set_type(tf::DT_FLOAT);
  f.mutable_signature()->add_output_arg()->set_name("sum");
  f.mutable_signature()->mutable_output_arg(0)->set_type(tf::DT_FLOAT);
  tf::NodeDef& add = *f.add_node_def();
  add.set_name("add");
  add.set_op("Add");
  add.add_input("v");
  add.add_input("v");
  (*add.mutable_attr())["T"].set_type(tf::DT_FLOAT);
  (*f.mutable_ret())["sum"] = "add:z:0";
  const auto converted = ConvertFrozen(g.graph(), {}, {"direct"});
  ASSERT_TRUE(converted) << converted.error().message;
  const auto out = Compute(*converted, {fusebox::converter::Floats({2}, {1, 2})});
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_THAT(FloatsOf((*out)[0]), ElementsAre(2, 4));
}

}  // namespace
}  // namespace fusebox::converter
