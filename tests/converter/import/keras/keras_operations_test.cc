// SPDX-License-Identifier: Apache-2.0
// Functions called on layers' results, and masks that go through them, against their definition.
#include <gmock/gmock.h>

#include "tests/converter/import/keras/keras_graph.h"
#include "tests/converter/import/keras/keras_run.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Tensor Ints(std::vector<int64_t> dims, const std::vector<int32_t>& values) {
  return {{DType::kI32, Shape(std::move(dims))}, Buffer::Of<int32_t>(values)};
}

Result<Tensors> Run2(const Graph2& graph, const Tensors& inputs, const KerasWeights& weights = {}) {
  return RunModel({graph.Config(), weights}, inputs);
}

Result<Tensors> Run3(const Graph3& graph, const Tensors& inputs,
                     const std::map<std::string, Tensor>& weights = {}) {
  const std::string file = TestDir() + "/model.keras";
  WriteKeras(file, graph.Config(), weights);
  return RunFile(file, inputs);
}

json T(const char* layer) { return Graph3::Tensor(layer); }

TEST(KerasOperations, SoftmaxHasItsAxis) {
  const float e = std::exp(1.0F);
  const std::vector<float> want = {1 / (1 + e), 0.5F, e / (1 + e), 0.5F};
  const Tensor x = Floats({1, 2, 2}, {0, 5, 1, 5});
  for (const int axis : {1, -2}) {
    ExpectNear(Run2(Graph2()
                        .Input("x", {1, 2, 2})
                        .Layer("TFOpLambda", {{"function", "nn.softmax"}}, "y", {"x"}, {{"axis", axis}}),
                    {x}),
               want);
    ExpectNear(
        Run3(Graph3().Input("x", {1, 2, 2}).Operation("Softmax", {{"axis", axis}}, "y", {T("x")}), {x}),
        want);
  }
}

TEST(KerasOperations, ActivationsHaveTheirNumbers) {
  ExpectNear(Run3(Graph3().Input("x", {1, 2}).Operation("Elu", {{"alpha", 2.0}}, "y", {T("x")}),
                  {Floats({1, 2}, {-1, 3})}),
             {2 * (std::exp(-1.0F) - 1), 3});
  ExpectNear(Run2(Graph2()
                      .Input("x", {1, 2})
                      .Layer("TFOpLambda", {{"function", "nn.leaky_relu"}}, "y", {"x"}, {{"alpha", 0.5}}),
                  {Floats({1, 2}, {-1, 3})}),
             {-0.5F, 3});
}

TEST(KerasOperations, SlicesKnowEllipsisAndNewDimensions) {
  const Tensor x = Floats({1, 3, 2}, {1, 2, 3, 4, 5, 6});
  const auto run = [&](const json& spec) {
    return Run2(Graph2()
                    .Input("x", {1, 3, 2})
                    .Layer("SlicingOpLambda", {{"function", "__operators__.getitem"}}, "y", {"x"},
                           {{"slice_spec", spec}}),
                {x});
  };
  const json all = {{"start", nullptr}, {"stop", nullptr}, {"step", nullptr}};
  ExpectNear(run({{{"class_name", "__ellipsis__"}}, 0}), {1, 3, 5});
  ExpectNear(run({{{"class_name", "__ellipsis__"}}, {{"start", 1}, {"stop", nullptr}, {"step", nullptr}}}),
             {2, 4, 6});
  ExpectNear(run({all, -1}), {5, 6});
  const auto widened = run({all, nullptr, 1});
  ASSERT_TRUE(widened) << widened.error().message;
  EXPECT_EQ(ToString(widened->at(0).type), "f32[1,1,2]");
  EXPECT_THAT(run({{{"class_name", "Mystery"}}, 0}).error().message,
              HasSubstr("a slice {\"class_name\":\"Mystery\"}"));
}

TEST(KerasOperations, GetItemOfKeras3) {
  const Tensor x = Floats({1, 3, 2}, {1, 2, 3, 4, 5, 6});
  const json all = {{"class_name", "__slice__"},
                    {"config", {{"start", nullptr}, {"stop", nullptr}, {"step", nullptr}}}};
  const auto run = [&](const json& key) {
    return Run3(Graph3().Input("x", {1, 3, 2}).Operation("GetItem", json::object(), "y", {T("x"), key}), {x});
  };
  ExpectNear(run({all, -1}), {5, 6});
  ExpectNear(run({{{"class_name", "__ellipsis__"}, {"config", json::object()}}, 0}), {1, 3, 5});
  ExpectNear(run({{"class_name", "__tuple__"}, {"items", {all, 1}}}), {3, 4});
}

TEST(KerasOperations, WholeNumbersMeetFractions) {
  const auto run = [](const char* op, double by) {
    return Run3(Graph3().Input("x", {1, 3}, "int32").Operation(op, json::object(), "y", {T("x"), by}),
                {Ints({1, 3}, {100, 200, 255})});
  };
  ExpectNear(run("TrueDivide", 255.0), {100 / 255.F, 200 / 255.F, 1});
  ExpectNear(run("Multiply", 0.5), {50, 100, 127.5F});
  ExpectNear(Run3(Graph3().Input("x", {1, 3}, "int32").Operation("Mean", {{"axis", 1}}, "y", {T("x")}),
                  {Ints({1, 3}, {1, 2, 2})}),
             {5 / 3.F});
}

TEST(KerasOperations, ClipKnowsBothSpellings) {
  const Tensor x = Floats({1, 3}, {-2, 0.5F, 7});
  ExpectNear(Run2(Graph2()
                      .Input("x", {1, 3})
                      .Layer("TFOpLambda", {{"function", "clip_by_value"}}, "y", {"x"},
                             {{"clip_value_min", 0}, {"clip_value_max", 6}}),
                  {x}),
             {0, 0.5F, 6});
  ExpectNear(
      Run3(Graph3().Input("x", {1, 3}).Operation("Clip", {{"x_min", -1.0}, {"x_max", 1.0}}, "y", {T("x")}),
           {x}),
      {-1, 0.5F, 1});
}

// What is not understood must not be left out.
TEST(KerasOperations, ArgumentsAreReadOrRefused) {
  const Tensor x = Floats({1, 2, 2}, {1, 2, 3, 5});
  const auto mean = [&](const json& axis) {
    return Run3(Graph3().Input("x", {1, 2, 2}).Operation("Mean", {{"axis", axis}}, "y", {T("x")}), {x});
  };
  ExpectNear(mean({{"class_name", "__tuple__"}, {"items", {1}}}), {2, 3.5F});
  EXPECT_THAT(mean("last").error().message, HasSubstr("its axis \"last\""));
  const auto computed =
      Run3(Graph3().Input("x", {1, 2, 2}).Operation("Mean", json::object(), "y", {T("x"), T("x")}), {x});
  ASSERT_FALSE(computed);
  EXPECT_THAT(computed.error().message, HasSubstr("an argument that depends on the input"));
  const auto exp = Run2(Graph2()
                            .Input("x", {1, 2, 2})
                            .Layer("TFOpLambda", {{"function", "math.exp"}}, "y", {"x"}, {{"base", 2.0}}),
                        {x});
  ASSERT_FALSE(exp);
  EXPECT_THAT(exp.error().message, HasSubstr("the argument base of exp"));
}

TEST(KerasOperations, ShapesOfTensorFlowsFunctions) {
  const Tensor x = Floats({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const auto run = [&](const char* function, const json& keywords) {
    return Run2(
        Graph2().Input("x", {1, 2, 3}).Layer("TFOpLambda", {{"function", function}}, "y", {"x"}, keywords),
        {x});
  };
  ExpectNear(run("transpose", {{"perm", {0, 2, 1}}}), {1, 4, 2, 5, 3, 6});
  for (const auto& [function, keywords, want] :
       {std::tuple<const char*, json, const char*>{"expand_dims", {{"axis", -1}}, "f32[1,2,3,1]"},
        {"reshape", {{"shape", {-1, 6}}}, "f32[1,6]"},
        {"compat.v1.squeeze", {{"axis", 0}}, "f32[2,3]"},
        {"cast", {{"dtype", "int32"}}, "i32[1,2,3]"}}) {
    const auto got = run(function, keywords);
    ASSERT_TRUE(got) << function << ": " << got.error().message;
    EXPECT_EQ(ToString(got->at(0).type), want) << function;
  }
}

// ---- masks: GlobalAveragePooling1D is the mean of the steps that count.

const json kMasked = {{"input_dim", 4}, {"output_dim", 1}, {"mask_zero", true}};
const json kPlain = {{"input_dim", 4}, {"output_dim", 1}};
const Tensor kTable = Floats({4, 1}, {100, 1, 2, 3});

Result<Tensors> MeanOf(const std::string& layer, const json& config, const json& other,
                       const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  const Graph2 graph = Graph2()
                           .Input("a", {1, 3}, "int32")
                           .Input("b", {1, 3}, "int32")
                           .Layer("Embedding", kMasked, "ea", {"a"})
                           .Layer("Embedding", other, "eb", {"b"})
                           .Layer(layer, config, "joined", {"ea", "eb"})
                           .Layer("GlobalAveragePooling1D", json::object(), "mean", {"joined"});
  return Run2(graph, {Ints({1, 3}, a), Ints({1, 3}, b)},
              {{"ea", {{"embeddings", kTable}}}, {"eb", {{"embeddings", kTable}}}});
}

TEST(KerasMasks, MergedLayersOfKeras2CountWhereAllMasksDo) {
  ExpectNear(MeanOf("Add", json::object(), kPlain, {1, 2, 0}, {3, 3, 3}), {4.5F});
  ExpectNear(MeanOf("Add", json::object(), kMasked, {1, 2, 0}, {3, 0, 3}), {4});
  ExpectNear(MeanOf("Concatenate", {{"axis", -1}}, kPlain, {1, 2, 0}, {3, 1, 3}), {1.5F, 2});
}

TEST(KerasMasks, AreJoinedAlongTheTime) {
  ExpectNear(MeanOf("Concatenate", {{"axis", 1}}, kMasked, {1, 2, 0}, {3, 0, 0}), {2});
}

TEST(KerasMasks, OfKeras3AreOperations) {
  const Graph3 graph =
      Graph3()
          .Input("x", {1, 3}, "int32")
          .Layer("Embedding", kMasked, "e", {T("x")})
          .Operation("NotEqual", json::object(), "not_equal", {T("x"), 0})
          .Layer("GlobalAveragePooling1D", json::object(), "mean", {T("e")}, {{"mask", T("not_equal")}});
  ExpectNear(Run3(graph, {Ints({1, 3}, {1, 2, 0})}, {{"layers/embedding/vars/0", kTable}}), {1.5F});
  const Graph3 masking =
      Graph3()
          .Input("x", {1, 3, 2})
          .Layer("Masking", {{"mask_value", 0.0}}, "m", {T("x")})
          .Operation("NotEqual", json::object(), "not_equal", {T("x"), 0.0})
          .Operation("Any", {{"axis", -1}, {"keepdims", false}}, "any", {T("not_equal")})
          .Layer("GlobalAveragePooling1D", json::object(), "mean", {T("m")}, {{"mask", T("any")}});
  ExpectNear(Run3(masking, {Floats({1, 3, 2}, {1, 2, 0, 0, 3, 0})}), {2, 1});
}

// The first query sees no key: key 0 is masked, the others come later. It sees all of them alike, also key 2,
// which is both.
TEST(KerasMasks, OfAttentionCountOnce) {
  const Graph2 graph = Graph2()
                           .Input("q", {1, 3, 1})
                           .Input("x", {1, 3}, "int32")
                           .Layer("Embedding", kPlain, "v", {"x"})
                           .Layer("Masking", {{"mask_value", 100.0}}, "m", {"v"})
                           .Layer("Attention", {{"use_scale", false}, {"causal", true}}, "a", {"q", "m"});
  const auto run =
      Run2(graph, {Floats({1, 3, 1}, {0, 0, 0}), Ints({1, 3}, {0, 2, 0})}, {{"v", {{"embeddings", kTable}}}});
  // Masked values are zero.
  ExpectNear(run, {2 / 3.F, 2, 2});
}

TEST(KerasMasks, ReachTheLayerOfATimeDistributed) {
  const auto run = [](const json& batch) {
    const Graph2 graph =
        Graph2()
            .Input("x", {batch, 2, 3}, "int32")
            .Layer("Embedding", kMasked, "e", {"x"})
            .Layer("TimeDistributed",
                   {{"layer", LayerEntry("GlobalAveragePooling1D", json::object(), "mean")}}, "each", {"e"})
            .Layer("GlobalAveragePooling1D", json::object(), "all", {"each"});
    return Run2(graph, {Ints({1, 2, 3}, {1, 2, 0, 3, 0, 0})}, {{"e", {{"embeddings", kTable}}}});
  };
  ExpectNear(run(nullptr), {2.25F});
  // A batch of a known size is stepped through without masks.
  ExpectNear(run(1), {(103 / 3.F + 203 / 3.F) / 2});
}

// ---- weights

TEST(KerasWeights, OfKeras3LieInGroupsNamedByClass) {
  const json config = SequentialConfig(
      {1, 2, 2, 1},
      json::array(
          {LayerEntry("Conv2D", {{"filters", 2}, {"kernel_size", 1}, {"strides", 1}, {"use_bias", false}},
                      "a"),
           LayerEntry("DepthwiseConv2D", {{"kernel_size", 1}, {"strides", 1}, {"use_bias", false}}, "b"),
           LayerEntry("Conv2DTranspose",
                      {{"filters", 1}, {"kernel_size", 1}, {"strides", 1}, {"use_bias", false}}, "c"),
           LayerEntry("PReLU", {{"shared_axes", {1, 2}}}, "d")}));
  const std::string file = TestDir() + "/model.keras";
  WriteKeras(file, config,
             {{"layers/conv2d/vars/0", Floats({1, 1, 1, 2}, {1, 10})},
              {"layers/depthwise_conv2d/vars/0", Floats({1, 1, 2, 1}, {2, 3})},
              {"layers/conv2d_transpose/vars/0", Floats({1, 1, 1, 2}, {1, 1})},
              {"layers/p_re_lu/vars/0", Floats({1, 1, 1}, {0.5F})}});
  ExpectNear(RunFile(file, {Floats({1, 2, 2, 1}, {1, 2, -1, 0})}), {32, 64, -16, 0});
}

TEST(KerasWeights, AreSoughtForClassesOfAnyLength) {
  const std::string file = TestDir() + "/model.keras";
  const json layer = LayerEntry("A" + std::string(1 << 20, 'b'), json::object());
  WriteKeras(file, SequentialConfig({1, 2}, json::array({layer})), {{"layers/a/vars/0", Floats({1}, {1})}});
  EXPECT_FALSE(RunFile(file, {Floats({1, 2}, {0, 1})}));
}

TEST(KerasWeights, ThatAreQuantizedAreRefused) {
  const json config = SequentialConfig(
      {1, 2}, json::array({LayerEntry("Embedding", {{"input_dim", 2}, {"output_dim", 1}}, "a")}));
  const std::string file = TestDir() + "/model.keras";
  WriteKeras(
      file, config,
      {{"layers/embedding/vars/0", {{DType::kI8, {2, 1}}, Buffer::Of<int8_t>(std::vector<int8_t>{127, 1})}}});
  const auto run = RunFile(file, {Floats({1, 2}, {0, 1})});
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().message, HasSubstr("is i8: quantized weights are unsupported"));
}

// Of a frozen model Keras 2 stores what a layer in it still trains first.
TEST(KerasWeights, OfAFrozenModelAreTrainedOnesFirst) {
  const auto dense = [](const char* name, bool trainable) {
    json entry = LayerEntry("Dense", {{"units", 1}, {"use_bias", false}}, name);
    entry["config"]["trainable"] = trainable;
    return entry;
  };
  json nested = SequentialConfig({1, 1}, json::array({dense("d1", false), dense("d2", true)}));
  nested["config"]["name"] = "base";
  nested["config"]["trainable"] = false;
  nested["config"]["layers"][1]["config"]["activation"] = "relu";
  const json config = SequentialConfig({1, 1}, json::array({nested, dense("top", true)}));
  // Stored: d2 = 1, d1 = -1. The rectifier behind d1 leaves nothing of a positive input; the other way round
  // -2 would be left.
  ExpectNear(RunModel({config,
                       {{"base", {{"kernel", Floats({1, 1}, {1})}, {"kernel_1", Floats({1, 1}, {-1})}}},
                        {"top", {{"kernel", Floats({1, 1}, {1})}}}}},
                      {Floats({1, 1}, {2})}),
             {0});
}

TEST(KerasWeights, ADepthwiseKernelOfKeras3IsCalledKernel) {
  KerasCase one = OneLayer("", "DepthwiseConv2D", {{"kernel_size", 1}, {"strides", 1}, {"use_bias", false}},
                           {1, 1, 1, 2});
  one.model.weights = {{"layer", {{"kernel", Floats({1, 1, 2, 1}, {2, 3})}}}};
  ExpectNear(RunModel(one.model, {Floats({1, 1, 1, 2}, {1, 1})}), {2, 3});
}

// ---- settings

TEST(KerasSettings, PicturesAreVariedInTrainingOnly) {
  for (const char* layer : {"RandomFlip", "RandomRotation", "RandomZoom", "RandomContrast"})
    ExpectNear(
        RunModel(OneLayer("", layer, json::object(), {1, 1, 2, 1}).model, {Floats({1, 1, 2, 1}, {1, 2})}),
        {1, 2});
}

TEST(KerasSettings, NumbersMayBeArrays) {
  const json six = {{"type", "ndarray"}, {"value", 6.0}};
  ExpectNear(RunModel(OneLayer("", "ReLU", {{"max_value", six}}, {1, 2}).model, {Floats({1, 2}, {-1, 9})}),
             {0, 6});
}

TEST(KerasSettings, NormalizationAlongAnotherAxisIsRefused) {
  const auto run = RunModel(
      OneLayer("", "Normalization", {{"axis", {1}}, {"mean", {1, 2}}, {"variance", {1, 1}}}, {1, 2, 2}).model,
      {Floats({1, 2, 2}, {1, 1, 2, 2})});
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().message, HasSubstr("an axis other than the last"));
}

}  // namespace
}  // namespace fusebox::testing
