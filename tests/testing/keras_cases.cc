// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/keras_cases.h"

#include "tests/testing/pipeline.h"

namespace fusebox::testing {

using nlohmann::json;

json LayerEntry(const std::string& class_name, json config, const std::string& name) {
  config["name"] = name;
  config["trainable"] = true;
  return {{"class_name", class_name}, {"config", std::move(config)}};
}

json SequentialConfig(const std::vector<int64_t>& input, const json& layers, const std::string& dtype) {
  json shape = json::array();
  for (const int64_t dim : input) shape.push_back(dim < 0 ? json() : json(dim));
  json all = json::array(
      {LayerEntry("InputLayer", {{"batch_input_shape", shape}, {"dtype", dtype}, {"sparse", false}}, "x")});
  for (const json& layer : layers) all.push_back(layer);
  return {{"class_name", "Sequential"}, {"config", {{"name", "model"}, {"layers", std::move(all)}}}};
}

KerasWeight RandomWeight(const std::string& name, const std::vector<int64_t>& shape) {
  static uint64_t seed = 0;
  Tensor value = Random({DType::kF32, Shape(shape)}, ++seed);
  if (name.find("variance") != std::string::npos) {
    std::vector<float> positive;
    for (const float v : value.data.As<float>()) positive.push_back(v * v + 0.1f);
    value.data = Buffer::Of<float>(positive);
  }
  return {name, std::move(value)};
}

KerasCase OneLayer(const std::string& name, const std::string& class_name, const json& config,
                   const std::vector<int64_t>& input, const WeightShapes& weights, const std::string& dtype) {
  KerasCase out{name, {SequentialConfig(input, json::array({LayerEntry(class_name, config)}), dtype), {}}};
  out.model.weights.push_back({"layer", {}});
  for (const auto& [weight, shape] : weights)
    out.model.weights[0].second.push_back(RandomWeight(weight, shape));
  return out;
}

namespace {

// A functional model: inputs, layers with the names of the layers they read, and one output.
struct Part {
  std::string class_name;
  json config;
  std::string name;
  std::vector<std::vector<std::string>> calls;  // one list of inputs per call
};

json FunctionalConfig(const std::vector<std::pair<std::string, std::vector<int64_t>>>& inputs,
                      const std::vector<Part>& parts, const std::string& output, int call = 0) {
  json layers = json::array(), in = json::array();
  for (const auto& [name, dims] : inputs) {
    json entry = LayerEntry("InputLayer",
                            {{"batch_input_shape", dims}, {"dtype", "float32"}, {"sparse", false}}, name);
    entry["name"] = name;
    entry["inbound_nodes"] = json::array();
    layers.push_back(std::move(entry));
    in.push_back({name, 0, 0});
  }
  for (const Part& part : parts) {
    json entry = LayerEntry(part.class_name, part.config, part.name);
    entry["name"] = part.name;
    entry["inbound_nodes"] = json::array();
    for (const auto& from : part.calls) {
      json node = json::array();
      for (const std::string& name : from) node.push_back({name, 0, 0, json::object()});
      entry["inbound_nodes"].push_back(std::move(node));
    }
    layers.push_back(std::move(entry));
  }
  return {{"class_name", "Model"},
          {"config",
           {{"name", "model"},
            {"layers", std::move(layers)},
            {"input_layers", std::move(in)},
            {"output_layers", json::array({{output, call, 0}})}}}};
}

KerasCase Merge(const std::string& class_name, const json& config, const std::vector<int64_t>& a,
                const std::vector<int64_t>& b) {
  return {
      class_name + " " + config.dump(),
      {FunctionalConfig({{"a", a}, {"b", b}}, {{class_name, config, "layer", {{"a", "b"}}}}, "layer"), {}}};
}

// One layer called twice, and a Sequential with batch normalization called as a layer.
std::vector<KerasCase> NestedCases() {
  KerasCase shared{
      "a layer that is called twice",
      {FunctionalConfig({{"a", {1, 4}}, {"b", {1, 4}}},
                        {{"Dense", {{"units", 3}, {"activation", "tanh"}}, "dense", {{"a"}, {"b"}}},
                         {"Add", json::object(), "add", {}}},
                        "add"),
       {{"dense", {RandomWeight("kernel", {4, 3}), RandomWeight("bias", {3})}}}}};
  shared.model.config["config"]["layers"][3]["inbound_nodes"] =
      json::array({json::array({{"dense", 0, 0, json::object()}, {"dense", 1, 0, json::object()}})});
  const json inner =
      SequentialConfig({1, 4}, json::array({LayerEntry("Dense", {{"units", 3}}, "d"),
                                            LayerEntry("BatchNormalization", {{"axis", {1}}}, "n"),
                                            LayerEntry("Dense", {{"units", 2}}, "e")}))["config"];
  KerasCase nested{"a model as a layer",
                   {SequentialConfig({1, 4}, json::array({LayerEntry("Sequential", inner, "inner"),
                                                          LayerEntry("Dense", {{"units", 2}}, "last")})),
                    {}}};
  // What is trained comes first, over all layers of the inner model.
  nested.model.weights = {
      {"inner",
       {RandomWeight("d/kernel", {4, 3}), RandomWeight("d/bias", {3}), RandomWeight("n/gamma", {3}),
        RandomWeight("n/beta", {3}), RandomWeight("e/kernel", {3, 2}), RandomWeight("e/bias", {2}),
        RandomWeight("n/moving_mean", {3}), RandomWeight("n/moving_variance", {3})}},
      {"last", {RandomWeight("kernel", {2, 2}), RandomWeight("bias", {2})}}};
  return {shared, nested};
}

json Joined(json a, const json& b) {
  a.update(b);
  return a;
}

}  // namespace

std::vector<KerasCase> CommonCases() {
  std::vector<KerasCase> out = {
      OneLayer("Dense", "Dense", {{"units", 3}, {"activation", "relu"}}, {1, 4},
               {{"kernel", {4, 3}}, {"bias", {3}}}),
      OneLayer("Dense without bias", "Dense", {{"units", 3}, {"use_bias", false}}, {1, 4},
               {{"kernel", {4, 3}}}),
      OneLayer("Dense over a sequence", "Dense", {{"units", 3}}, {1, 5, 4},
               {{"kernel", {4, 3}}, {"bias", {3}}}),
      OneLayer("Embedding", "Embedding", {{"input_dim", 5}, {"output_dim", 3}}, {1, 4},
               {{"embeddings", {5, 3}}}, "int32"),
      OneLayer("Flatten", "Flatten", json::object(), {1, 2, 3, 4}),
      OneLayer("Flatten, channels first", "Flatten", {{"data_format", "channels_first"}}, {1, 2, 3, 4}),
      OneLayer("Reshape", "Reshape", {{"target_shape", {3, -1}}}, {1, 2, 6}),
      OneLayer("Permute", "Permute", {{"dims", {2, 1}}}, {1, 2, 6}),
      OneLayer("RepeatVector", "RepeatVector", {{"n", 3}}, {1, 4}),
      OneLayer("Dropout", "Dropout", {{"rate", 0.5}}, {1, 4}),
      OneLayer("GaussianNoise", "GaussianNoise", {{"stddev", 0.5}}, {1, 4}),
      OneLayer("LeakyReLU", "LeakyReLU", {{"alpha", 0.1}}, {1, 9}),
      OneLayer("ReLU", "ReLU", {{"max_value", 0.5}}, {1, 9}),
      OneLayer("ThresholdedReLU", "ThresholdedReLU", {{"theta", 0.3}}, {1, 9}),
      OneLayer("Softmax", "Softmax", {{"axis", -1}}, {1, 9}),
      OneLayer("PReLU", "PReLU", {{"shared_axes", {1}}}, {1, 3, 4}, {{"alpha", {1, 4}}}),
      OneLayer("BatchNormalization", "BatchNormalization", {{"epsilon", 0.01}}, {1, 3, 4},
               {{"gamma", {4}}, {"beta", {4}}, {"moving_mean", {4}}, {"moving_variance", {4}}}),
      OneLayer("BatchNormalization without scale", "BatchNormalization", {{"scale", false}, {"axis", 3}},
               {1, 2, 2, 4}, {{"beta", {4}}, {"moving_mean", {4}}, {"moving_variance", {4}}}),
      OneLayer("LayerNormalization", "LayerNormalization", {{"axis", {-1}}, {"epsilon", 0.001}}, {1, 3, 4},
               {{"gamma", {4}}, {"beta", {4}}}),
      OneLayer("Rescaling", "Rescaling", {{"scale", 0.5}, {"offset", -1.0}}, {1, 4}),
      OneLayer("TimeDistributed", "TimeDistributed", {{"layer", LayerEntry("Dense", {{"units", 2}}, "d")}},
               {1, 3, 4}, {{"kernel", {4, 2}}, {"bias", {2}}}),
  };
  for (const char* activation : {"linear", "relu", "relu6", "sigmoid", "tanh", "softmax", "softplus",
                                 "softsign", "selu", "elu", "hard_sigmoid", "swish", "mish"})
    out.push_back(OneLayer(std::string("Activation ") + activation, "Activation",
                           {{"activation", activation}}, {1, 9}));
  for (const char* op : {"Add", "Multiply", "Average", "Maximum", "Minimum"})
    out.push_back(Merge(op, json::object(), {1, 3, 4}, {1, 3, 4}));
  out.push_back(Merge("Concatenate", {{"axis", -1}}, {1, 3, 4}, {1, 3, 2}));
  out.push_back(Merge("Concatenate", {{"axis", 1}}, {1, 3, 4}, {1, 2, 4}));
  out.push_back(Merge("Dot", {{"axes", {1, 1}}, {"normalize", false}}, {1, 4}, {1, 4}));
  out.push_back(Merge("Dot", {{"axes", 1}, {"normalize", true}}, {1, 4}, {1, 4}));
  for (KerasCase& nested : NestedCases()) out.push_back(std::move(nested));
  return out;
}

std::vector<KerasCase> SpatialCases() {
  const json two = {{"filters", 3}, {"kernel_size", {2, 3}}, {"strides", {1, 1}}};
  const WeightShapes conv = {{"kernel", {2, 3, 2, 3}}, {"bias", {3}}};
  std::vector<KerasCase> out = {
      OneLayer("Conv2D", "Conv2D", Joined(two, {{"padding", "same"}, {"activation", "relu"}}), {1, 5, 6, 2},
               conv),
      OneLayer("Conv2D, strided", "Conv2D", Joined(two, {{"strides", {2, 2}}}), {1, 5, 6, 2}, conv),
      OneLayer("Conv2D, dilated", "Conv2D", Joined(two, {{"dilation_rate", {2, 2}}}), {1, 5, 6, 2}, conv),
      OneLayer("Conv1D", "Conv1D", {{"filters", 3}, {"kernel_size", 3}, {"strides", 2}}, {1, 7, 2},
               {{"kernel", {3, 2, 3}}, {"bias", {3}}}),
      OneLayer("Conv3D", "Conv3D", {{"filters", 2}, {"kernel_size", {2, 2, 3}}, {"strides", {1, 1, 1}}},
               {1, 4, 5, 6, 2}, {{"kernel", {2, 2, 3, 2, 2}}, {"bias", {2}}}),
      OneLayer("Conv3D, same, strided", "Conv3D",
               {{"filters", 2}, {"kernel_size", {3, 2, 2}}, {"strides", {2, 2, 2}}, {"padding", "same"}},
               {1, 5, 4, 5, 1}, {{"kernel", {3, 2, 2, 1, 2}}, {"bias", {2}}}),
      OneLayer("DepthwiseConv2D", "DepthwiseConv2D",
               {{"kernel_size", {2, 2}}, {"strides", {1, 1}}, {"depth_multiplier", 2}, {"padding", "same"}},
               {1, 4, 5, 3}, {{"depthwise_kernel", {2, 2, 3, 2}}, {"bias", {6}}}),
      OneLayer("SeparableConv2D", "SeparableConv2D",
               {{"filters", 4}, {"kernel_size", {2, 2}}, {"strides", {1, 1}}, {"depth_multiplier", 2}},
               {1, 4, 5, 3},
               {{"depthwise_kernel", {2, 2, 3, 2}}, {"pointwise_kernel", {1, 1, 6, 4}}, {"bias", {4}}}),
      OneLayer("ZeroPadding2D", "ZeroPadding2D", {{"padding", {{1, 0}, {2, 1}}}}, {1, 3, 4, 2}),
      OneLayer("Cropping2D", "Cropping2D", {{"cropping", {{1, 0}, {1, 1}}}}, {1, 4, 5, 2}),
      OneLayer("UpSampling2D", "UpSampling2D", {{"size", {2, 3}}}, {1, 2, 3, 2}),
  };
  for (const char* padding : {"valid", "same"}) {
    const json conv = {{"filters", 3}, {"kernel_size", {3, 2}}, {"strides", {2, 2}}, {"padding", padding}};
    out.push_back(OneLayer(std::string("Conv2DTranspose, ") + padding, "Conv2DTranspose", conv, {1, 3, 4, 2},
                           {{"kernel", {3, 2, 3, 2}}, {"bias", {3}}}));
    const json volume = {
        {"filters", 3}, {"kernel_size", {3, 2, 2}}, {"strides", {2, 1, 2}}, {"padding", padding}};
    out.push_back(OneLayer(std::string("Conv3DTranspose, ") + padding, "Conv3DTranspose", volume,
                           {1, 2, 3, 4, 2}, {{"kernel", {3, 2, 2, 3, 2}}, {"bias", {3}}}));
    for (const char* kind : {"Max", "Average"}) {
      const auto pool = [&](const std::string& rank, const json& size, const json& strides,
                            const std::vector<int64_t>& input) {
        const std::string name = kind + ("Pooling" + rank);
        out.push_back(OneLayer(name + ", " + padding, name,
                               {{"pool_size", size}, {"strides", strides}, {"padding", padding}}, input));
      };
      pool("1D", {3}, {2}, {1, 7, 2});
      pool("2D", {2, 3}, {2, 1}, {1, 5, 6, 2});
      pool("3D", {2, 2, 2}, {2, 1, 2}, {1, 4, 5, 6, 2});
    }
  }
  for (const char* kind : {"Max", "Average"}) {
    out.push_back(OneLayer(std::string("Global 1D ") + kind, std::string("Global") + kind + "Pooling1D",
                           json::object(), {1, 5, 3}));
    out.push_back(OneLayer(std::string("Global 2D ") + kind, std::string("Global") + kind + "Pooling2D",
                           json::object(), {1, 4, 5, 3}));
  }
  return out;
}

std::vector<KerasCase> RecurrentCases() {
  const json lstm = {{"units", 3},       {"activation", "tanh"}, {"recurrent_activation", "sigmoid"},
                     {"use_bias", true}, {"implementation", 1},  {"return_sequences", false}};
  const WeightShapes four = {{"kernel", {4, 12}}, {"recurrent_kernel", {3, 12}}, {"bias", {12}}};
  const WeightShapes three = {{"kernel", {4, 9}}, {"recurrent_kernel", {3, 9}}, {"bias", {9}}};
  const WeightShapes one = {{"kernel", {4, 3}}, {"recurrent_kernel", {3, 3}}, {"bias", {3}}};
  const std::vector<int64_t> input = {1, 5, 4};
  std::vector<KerasCase> out = {
      OneLayer("LSTM", "LSTM", lstm, input, four),
      OneLayer("LSTM, sequence", "LSTM", Joined(lstm, {{"return_sequences", true}}), input, four),
      OneLayer("LSTM, backwards", "LSTM", Joined(lstm, {{"go_backwards", true}, {"return_sequences", true}}),
               input, four),
      OneLayer("LSTM, other activations", "LSTM",
               Joined(lstm, {{"activation", "softsign"}, {"recurrent_activation", "hard_sigmoid"}}), input,
               four),
      OneLayer("LSTM, hard sigmoid", "LSTM", Joined(lstm, {{"recurrent_activation", "hard_sigmoid"}}), input,
               four),
      OneLayer("LSTM, hard sigmoid, sequence backwards", "LSTM",
               Joined(lstm, {{"recurrent_activation", "hard_sigmoid"},
                             {"activation", "relu"},
                             {"go_backwards", true},
                             {"return_sequences", true}}),
               input, four),
      OneLayer("LSTM without bias", "LSTM", Joined(lstm, {{"use_bias", false}}), input,
               {{"kernel", {4, 12}}, {"recurrent_kernel", {3, 12}}}),
      OneLayer("GRU, reset before", "GRU", Joined(lstm, {{"reset_after", false}, {"return_sequences", true}}),
               input, three),
      OneLayer("GRU, hard sigmoid", "GRU",
               Joined(lstm, {{"reset_after", false}, {"recurrent_activation", "hard_sigmoid"}}), input,
               three),
      OneLayer("SimpleRNN", "SimpleRNN", Joined(lstm, {{"return_sequences", true}}), input, one),
      OneLayer("SimpleRNN, last step", "SimpleRNN", lstm, input, one),
  };
  WeightShapes both;
  for (const char* side : {"forward_", "backward_"})
    for (const auto& [name, shape] : four) both.push_back({std::string(side) + "l/" + name, shape});
  for (const bool sequence : {false, true})
    for (const char* mode : {"concat", "sum", "mul", "ave"}) {
      const json inner = LayerEntry("LSTM", Joined(lstm, {{"return_sequences", sequence}}), "l");
      out.push_back(OneLayer(std::string("Bidirectional ") + mode + (sequence ? ", sequence" : ""),
                             "Bidirectional", {{"layer", inner}, {"merge_mode", mode}}, input, both));
    }
  // Masks: zeros of the embedding's indices, and steps of a value.
  for (const char* cell : {"LSTM", "GRU", "SimpleRNN"}) {
    const WeightShapes& shapes = cell[0] == 'L' ? four : cell[0] == 'G' ? three : one;
    KerasCase masked = OneLayer(std::string("masked ") + cell, cell, Joined(lstm, {{"reset_after", false}}),
                                {1, 5}, shapes, "int32");
    masked.model.config["config"]["layers"].insert(
        masked.model.config["config"]["layers"].begin() + 1,
        LayerEntry("Embedding", {{"input_dim", 4}, {"output_dim", 4}, {"mask_zero", true}}, "embed"));
    masked.model.weights.push_back({"embed", {RandomWeight("embeddings", {4, 4})}});
    out.push_back(std::move(masked));
  }
  return out;
}

}  // namespace fusebox::testing
