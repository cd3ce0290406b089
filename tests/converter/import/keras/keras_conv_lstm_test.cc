// SPDX-License-Identifier: Apache-2.0
// ConvLSTM layers of Keras files beside their definition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/tflite/tflite.h"
#include "tests/converter/import/keras/keras_run.h"
#include "tests/testing/conv_lstm.h"

namespace fusebox::testing {
namespace {

using ::testing::HasSubstr;

// Not verified at conversion, which would keep the body of an op that differs.
Result<Tensors> RunFused(const std::string& file, const Tensors& inputs, bool fuses) {
  converter::Options options;
  options.registry = Rnn();
  options.verify = converter::Verification::kOff;
  FUSEBOX_ASSIGN(const Written written, Convert(file, options, "fused"));
  FUSEBOX_ASSIGN(const auto module, tflite::ReadFile(written.path));
  EXPECT_EQ(OpsOf(*module)["fusebox.conv_lstm"], fuses ? 1 : 0);
  FUSEBOX_ASSIGN(const auto session, Open(written.path, Rnn()));
  return Invoke(*session, inputs);
}

class KerasConvLstm : public ::testing::TestWithParam<ConvLstmForm> {};

TEST_P(KerasConvLstm, ComputesItsDefinition) {
  const ConvLstm& layer = GetParam().layer;
  const KerasCase one = ConvLstmCase("", layer);
  const Tensors inputs = ConvLstmInputs(layer, 7);
  const Tensors want = ComputeConvLstm(layer, one.model, inputs, ConvLstmMask(layer));
  const std::string file = TestDir() + "/model.h5";
  WriteH5(file, one.model);
  const auto loop = RunFile(file, inputs), fused = RunFused(file, inputs, layer.activation != "softsign");
  for (const auto* got : {&loop, &fused}) {
    ASSERT_TRUE(*got) << got->error().message;
    EXPECT_EQ(Difference(**got, want, 1e-5, 1e-5), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, KerasConvLstm, ::testing::ValuesIn(ConvLstmForms()),
                         [](const auto& info) { return info.param.name; });

// Two layers, one of them backwards.
TEST(KerasConvLstmWrapped, BidirectionalReversesTheBackwardLayer) {
  for (const bool first : {false, true}) {
    const ConvLstm forward{.channels_first = first}, backward{.channels_first = first, .go_backwards = true};
    KerasCase one = ConvLstmCase("", forward);
    KerasCase other = ConvLstmCase("", backward);
    const nlohmann::json inner = LayerEntry("ConvLSTM2D", ConvLstmConfig(forward), "l");
    const auto dims = forward.InputShape().dims();
    KerasFixture both =
        OneLayer("", "Bidirectional", {{"layer", inner}, {"merge_mode", "sum"}}, {dims.begin(), dims.end()})
            .model;
    for (const auto& [side, from] : {std::pair{"forward_", &one}, {"backward_", &other}})
      for (const KerasWeight& weight : from->model.weights[0].second)
        both.weights[0].second.push_back({std::string(side) + "l/" + weight.name, weight.value});
    const Tensors inputs = ConvLstmInputs(forward, 3);
    const auto a = Values(ComputeConvLstm(forward, one.model, inputs)[0]),
               b = Values(ComputeConvLstm(backward, other.model, inputs)[0]);
    std::vector<float> want(a);
    const size_t step = a.size() / static_cast<size_t>(forward.batch * forward.steps);
    for (size_t i = 0; i < want.size(); ++i) {
      const auto steps = static_cast<size_t>(forward.steps);
      const size_t t = i / step % steps;
      want[i] += b[i + (steps - 1 - t) * step - t * step];
    }
    ExpectNear(RunModel(both, inputs), want);
  }
}

TEST(KerasConvLstmFiles, OfKeras3HasItsWeightsInTheCell) {
  const ConvLstm layer{.recurrent_activation = "sigmoid"};
  const KerasCase one = ConvLstmCase("", layer);
  nlohmann::json config = one.model.config;
  config["config"]["layers"][0]["config"]["batch_shape"] =
      config["config"]["layers"][0]["config"]["batch_input_shape"];
  // As Keras 3 and Keras 2.15 name the groups.
  for (const auto& [container, version] :
       {std::pair("layers", "3.3.3"), std::pair("_layer_checkpoint_dependencies", "2.15.0")}) {
    std::map<std::string, Tensor> weights;
    int number = 0;
    for (const KerasWeight& weight : one.model.weights[0].second)
      weights[std::string(container) + "/conv_lstm2d/cell/vars/" + std::to_string(number++)] = weight.value;
    const std::string file = TestDir() + "/model.keras";
    WriteKeras(file, config, weights, version);
    const Tensors inputs = ConvLstmInputs(layer, 3);
    const auto got = RunFile(file, inputs);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(Difference(*got, ComputeConvLstm(layer, one.model, inputs), 1e-5, 1e-5), "");
  }
}

// Batch, time and the spatial sizes are known only at run time.
TEST(KerasConvLstmFiles, RunWithAnySize) {
  const ConvLstm layer{.return_state = true};
  KerasCase one = ConvLstmCase("", layer);
  auto& shape = one.model.config["config"]["layers"][0]["config"]["batch_input_shape"];
  for (const int d : {0, 1, 2, 3}) shape[static_cast<size_t>(d)] = nullptr;
  for (const ConvLstm& now : {layer, ConvLstm{.size = {2, 7}, .batch = 3, .steps = 5, .return_state = true},
                              ConvLstm{.batch = 1, .steps = 1, .return_state = true}}) {
    const Tensors inputs = ConvLstmInputs(now, 3);
    for (const auto composites : {converter::Composites::kInline, converter::Composites::kFuse}) {
      const std::string file = TestDir() + "/model.h5";
      WriteH5(file, one.model);
      const auto got = RunFile(file, inputs, composites);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(Difference(*got, ComputeConvLstm(now, one.model, inputs), 1e-5, 1e-5), "");
    }
  }
}

TEST(KerasConvLstmFiles, StatefulLayersKeepTheirStates) {
  const ConvLstm layer{.sequences = false};
  KerasCase one = ConvLstmCase("", layer);
  one.model.config["config"]["layers"][1]["config"]["stateful"] = true;
  const std::string file = TestDir() + "/model.h5";
  WriteH5(file, one.model);
  const Tensors x = ConvLstmInputs(layer, 3);
  ConvLstm next = layer;
  next.states = next.return_state = true;
  const Shape state = layer.StateShape();
  const std::vector<float> zeros(static_cast<size_t>(*state.element_count()));
  Tensors first = ComputeConvLstm(next, one.model, {x[0], Floats(state, zeros), Floats(state, zeros)});
  Tensors second = ComputeConvLstm(next, one.model, {x[0], first[1], first[2]});
  for (const auto composites : {converter::Composites::kInline, converter::Composites::kFuse}) {
    converter::Options options;
    options.registry = Rnn();
    options.composites = composites;
    const auto written = Convert(file, options, "out");
    ASSERT_TRUE(written) << written.error().message;
    const auto session = Open(written->path, Rnn());
    ASSERT_TRUE(session) << session.error().message;
    for (const Tensors& want : {first, second}) {
      const auto got = Invoke(**session, x);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(Difference(*got, {want[0]}, 1e-5, 1e-5), "");
    }
  }
}

std::string RefusalOf(const KerasFixture& model) {
  const auto ran = RunModel(model, {});
  return ran ? "" : ran.error().message;
}

TEST(KerasConvLstmRefusals, NameTheLayerAndTheReason) {
  const auto refusal = [](const ConvLstm& layer, const auto& change) {
    KerasCase one = ConvLstmCase("", layer);
    change(one.model);
    return RefusalOf(one.model);
  };
  const auto config = [](KerasFixture& model) -> nlohmann::json& {
    return model.config["config"]["layers"][1]["config"];
  };
  EXPECT_THAT(refusal({}, [&](auto& m) { m.version = "1.2.2"; }), HasSubstr("a ConvLSTM of Keras 1"));
  EXPECT_THAT(refusal({.size = {2, 4}, .kernel = {3, 2}, .same = false}, [](auto&) {}),
              HasSubstr("its kernel is larger than its input"));
  EXPECT_THAT(refusal({}, [&](auto& m) { config(m)["padding"] = "causal"; }), HasSubstr("padding causal"));
  EXPECT_THAT(refusal({}, [&](auto& m) { config(m)["filters"] = 3; }), HasSubstr("expected [3,2,3,12]"));
  EXPECT_THAT(refusal({.channels_first = true}, [&](auto& m) { config(m)["activation"] = "softmax"; }),
              HasSubstr("softmax over"));
  EXPECT_THAT(refusal({.strides = {2, 2}, .mask = 4}, [](auto&) {}), HasSubstr("does not fit its states"));
  const auto open = [](int dim) {
    return [dim](KerasFixture& m) {
      m.config["config"]["layers"][0]["config"]["batch_input_shape"][static_cast<size_t>(dim)] = nullptr;
    };
  };
  EXPECT_THAT(refusal({.strides = {2, 2}}, open(2)), HasSubstr("the size of its state is unknown"));
  EXPECT_THAT(refusal({}, open(4)), HasSubstr("number of features is unknown"));
  EXPECT_THAT(refusal({.size = {5}, .kernel = {3}, .strides = {1}, .dilations = {1}},
                      [](auto& m) { m.config["config"]["layers"][1]["class_name"] = "ConvLSTM2D"; }),
              HasSubstr("expected 5 dimensions"));
}

}  // namespace
}  // namespace fusebox::testing
