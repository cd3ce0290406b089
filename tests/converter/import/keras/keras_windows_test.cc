// SPDX-License-Identifier: Apache-2.0
// .keras files that were saved on Windows, against the same model with the names that other systems give.
#include <gmock/gmock.h>
#include <hdf5.h>

#include "tests/converter/import/files.h"
#include "tests/converter/import/keras/keras_graph.h"
#include "tests/converter/import/keras/keras_run.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Weights = std::map<std::string, Tensor>;

// Weights of one group: "<group>/vars/0", ...
void Put(Weights& weights, const std::string& group, const std::vector<std::vector<int64_t>>& shapes) {
  for (size_t i = 0; i < shapes.size(); ++i)
    weights[group + "/vars/" + std::to_string(i)] = RandomWeight("w", shapes[i]).value;
}

// The file runs alike whatever its names are joined by, and not just because weights do not matter.
void ExpectAlike(const json& config, const Weights& weights, const Tensor& x) {
  const std::string file = TestDir() + "/model.keras";
  WriteKeras(file, config, weights);
  const auto want = RunFile(file, {x});
  ASSERT_TRUE(want) << want.error().message;
  for (const bool last_only : {false, true}) {
    SCOPED_TRACE(last_only);
    const Weights named = NamedOnWindows(weights, last_only);
    ASSERT_NE(named.begin()->first, weights.begin()->first);
    WriteKeras(file, config, named, "2.15.0");
    const auto got = RunFile(file, {x});
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(Values(got->at(0)), Values(want->at(0)));
  }
}

TEST(KerasWindows, LayersAreCountedAsElsewhere) {
  const json config = SequentialConfig(
      {1, 6, 4},
      json::array({LayerEntry("Conv1D", {{"filters", 3}, {"kernel_size", 2}, {"strides", 1}}, "c"),
                   LayerEntry("LSTM", {{"units", 3}}, "l"), LayerEntry("Dense", {{"units", 3}}, "z"),
                   LayerEntry("Dense", {{"units", 3}}, "y"), LayerEntry("Dense", {{"units", 3}}, "a")}));
  for (const std::string container : {"layers/", "_layer_checkpoint_dependencies/"}) {
    Weights weights;
    Put(weights, container + "conv1d", {{2, 4, 3}, {3}});
    Put(weights, container + "lstm/cell", {{3, 12}, {3, 12}, {12}});
    for (const char* dense : {"dense", "dense_1", "dense_2"}) Put(weights, container + dense, {{3, 3}, {3}});
    Put(weights, "optimizer", {{1}, {2}});
    ExpectAlike(config, weights, Random({DType::kF32, {1, 6, 4}}, 5));
  }
}

TEST(KerasWindows, DependenciesAreCountedTwice) {
  Weights weights;
  Put(weights, "_layer_checkpoint_dependencies/dense", {{4, 4}, {4}});
  Put(weights, "_layer_checkpoint_dependencies/dense_2", {{4, 4}, {4}});
  ExpectAlike(SequentialConfig({1, 4}, json::array({LayerEntry("Dense", {{"units", 4}}, "a"),
                                                    LayerEntry("Dense", {{"units", 4}}, "b")})),
              weights, Random({DType::kF32, {1, 4}}, 5));
}

TEST(KerasWindows, AttentionHasLayersOfItsOwn) {
  const json config = Graph3()
                          .Input("x", {1, 5, 4})
                          .Layer("MultiHeadAttention", {{"num_heads", 2}, {"key_dim", 3}}, "a",
                                 {Graph3::Tensor("x"), Graph3::Tensor("x")})
                          .Config();
  // Keras 2.15 and Keras 3 write the underscore.
  for (const std::string mark : {"", "_"}) {
    Weights weights;
    for (const char* part : {"query", "key", "value"})
      Put(weights, "layers/multi_head_attention/" + mark + part + "_dense", {{4, 2, 3}, {2, 3}});
    Put(weights, "layers/multi_head_attention/" + mark + "output_dense", {{2, 3, 4}, {4}});
    ExpectAlike(config, weights, Random({DType::kF32, {1, 5, 4}}, 5));
  }
}

TEST(KerasWindows, LayersThatWrapOthersAndModelsInModels) {
  json both = LayerEntry("LSTM", {{"units", 2}, {"return_sequences", true}}, "l");
  json inner = SequentialConfig(
      {1, 5, 4}, json::array({LayerEntry("Bidirectional", {{"layer", both}, {"merge_mode", "concat"}}, "b"),
                              LayerEntry("Dense", {{"units", 3}}, "d")}))["config"];
  const json config = SequentialConfig(
      {1, 5, 4}, json::array({LayerEntry("Sequential", inner, "inner"),
                              LayerEntry("TimeDistributed",
                                         {{"layer", LayerEntry("Dense", {{"units", 2}}, "e")}}, "t")}));
  Weights weights;
  for (const char* way : {"forward_layer", "backward_layer"})
    Put(weights, std::string("layers/sequential/layers/bidirectional/") + way + "/cell",
        {{4, 8}, {2, 8}, {8}});
  Put(weights, "layers/sequential/layers/dense", {{4, 3}, {3}});
  Put(weights, "layers/time_distributed/layer", {{3, 2}, {2}});
  ExpectAlike(config, weights, Random({DType::kF32, {1, 5, 4}}, 5));
}

// What is really not there is told with every path at which it was looked for.
TEST(KerasWindows, MissingWeightsAreNamed) {
  const std::string file = TestDir() + "/model.keras";
  const auto refusal = [&](const json& config, const Weights& weights) {
    WriteKeras(file, config, weights);
    const auto run = RunFile(file, {});
    return run ? "runs" : run.error().message;
  };
  const json dense = SequentialConfig({1, 4}, json::array({LayerEntry("Dense", {{"units", 3}}, "d")}));
  const Weights kernel = {{"layers/dense/vars/0", RandomWeight("w", {4, 3}).value}};
  const std::string missing =
      "layer d (Dense): the file has no weight bias of it (looked for layers/dense/vars/1)";
  EXPECT_THAT(refusal(dense, kernel), HasSubstr(missing));
  EXPECT_THAT(refusal(dense, NamedOnWindows(kernel)), HasSubstr(missing));
  EXPECT_THAT(refusal(dense, {{"other", RandomWeight("w", {1}).value}}),
              AllOf(HasSubstr("the file has no weight kernel of it (looked for layers/dense/vars/0)"),
                    Not(HasSubstr("_vars"))));
  const json attention = Graph3()
                             .Input("x", {1, 5, 4})
                             .Layer("MultiHeadAttention", {{"num_heads", 2}, {"key_dim", 3}}, "a",
                                    {Graph3::Tensor("x"), Graph3::Tensor("x")})
                             .Config();
  EXPECT_THAT(refusal(attention, kernel), HasSubstr("no weight query_kernel of it (looked for "
                                                    "layers/multi_head_attention/query_dense/vars/0 and "
                                                    "layers/multi_head_attention/_query_dense/vars/0)"));
}

// A circle of groups ends.
TEST(KerasWindows, GroupsMayHoldThemselves) {
  const std::string file = TestDir() + "/model.keras";
  Weights weights;
  Put(weights, "layers/dense", {{4, 3}, {3}});
  const json config = SequentialConfig({1, 4}, json::array({LayerEntry("Dense", {{"units", 3}}, "d")}));
  WriteKeras(file, config, NamedOnWindows(weights));
  const std::string inner = file + ".weights";
  const hid_t h5 = H5Fopen(inner.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  for (const char* again : {"layers\\dense/a", "layers\\dense/b\\c"})
    ASSERT_GE(H5Lcreate_hard(h5, "/", h5, again, H5P_DEFAULT, H5P_DEFAULT), 0);
  H5Fclose(h5);
  WriteZip(file, {{"config.json", config.dump()}, {"model.weights.h5", ReadAll(inner)}});
  EXPECT_TRUE(RunFile(file, {Random({DType::kF32, {1, 4}}, 5)}));
}

}  // namespace
}  // namespace fusebox::testing
