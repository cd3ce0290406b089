// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/written_nets.h"

#include <cmath>

#include "tests/bench/image_net.h"
#include "tests/bench/net.h"

namespace fusebox::bench {
namespace {

Module DeepLab() {
  Module module;
  Image image(module, {1, 257, 257, 3});
  image.Conv(16, 3, 2).Inverted(1, 8, 1).Inverted(6, 16, 2).Inverted(6, 16, 1);
  image.Inverted(6, 16, 2).Inverted(6, 16, 1).Inverted(6, 16, 1).Inverted(6, 32, 2);
  for (int i = 0; i < 3; ++i) image.Inverted(6, 32, 1, 2);
  for (int i = 0; i < 3; ++i) image.Inverted(6, 48, 1, 2);
  image.Inverted(6, 80, 1, 2).Inverted(6, 80, 1, 4).Inverted(6, 80, 1, 4).Inverted(6, 160, 1, 4);
  const ValueId features = image.at();
  Net& net = image.net();
  const Dims size = net.dims(features);
  const ValueId wide = image.Conv(256, 1, 1, Activation::kRelu).at();
  Attrs pool;
  pool.Set("filter_height", static_cast<int>(size[1]));
  pool.Set("filter_width", static_cast<int>(size[2]));
  pool.Set("stride_h", static_cast<int>(size[1]));
  pool.Set("stride_w", static_cast<int>(size[2]));
  pool.Set("padding", "VALID");
  image.Set(net.Node(Op::kAveragePool2D, {features}, {1, 1, 1, size[3]}, std::move(pool)));
  image.Conv(256, 1, 1, Activation::kRelu).Resize(size[1], size[2]);
  image.Set(net.Concat({image.at(), wide}, 3));
  image.Conv(256, 1, 1, Activation::kRelu).Conv(21, 1, 1, Activation::kNone).Resize(257, 257);
  image.Output(image.at());
  return module;
}

Module FaceDetection() {
  Module module;
  Image image(module, {1, 192, 192, 3});
  image.Conv(32, 3, 2).Inverted(1, 16, 1).Inverted(6, 24, 2).Inverted(6, 24, 1);
  const ValueId large = image.at();
  image.Inverted(6, 32, 2).Inverted(6, 32, 1).Inverted(6, 32, 1);
  const ValueId middle = image.at();
  image.Inverted(6, 64, 2).Inverted(6, 64, 1).Inverted(6, 96, 1).Inverted(6, 96, 1);
  const auto merge = [&](ValueId with) {
    const Dims size = image.net().dims(with);
    const ValueId deep = image.Conv(size[3], 1, 1, Activation::kNone).Resize(size[1], size[2]).at();
    image.Set(with);
    image.Conv(size[3], 1, 1, Activation::kNone).AddTo(deep).Inverted(2, size[3], 1);
  };
  merge(middle);
  merge(large);
  const ValueId features = image.Depthwise(3).Conv(32, 1).at();
  for (const int64_t channels : {16, 1}) {
    image.Set(features);
    image.Conv(channels, 3, 1, Activation::kNone);
    image.Output(image.net().Reshape(image.at(), {1, 48 * 48, channels}));
  }
  return module;
}

Module UNet() {
  Module module;
  Image image(module, {1, 128, 128, 3});
  std::vector<ValueId> levels;
  for (const int64_t channels : {16, 32, 64}) {
    image.Conv(channels, 3, channels == 16 ? 1 : 2, Activation::kRelu)
        .Conv(channels, 3, 1, Activation::kRelu);
    levels.push_back(image.at());
  }
  for (const size_t level : {1, 0}) {
    const Dims size = image.net().dims(levels[level]);
    image.Resize(size[1], size[2]);
    image.Set(image.net().Concat({image.at(), levels[level]}, 3));
    image.Conv(size[3], 3, 1, Activation::kRelu);
  }
  const ValueId logits = image.Conv(1, 3, 1, Activation::kNone).at();
  image.Output(image.net().Node(Op::kLogistic, {logits}, image.net().dims(logits)));
  return module;
}

Module PoseDetection() {
  Module module;
  Image image(module, {1, 224, 224, 3});
  image.Conv(24, 3, 2, Activation::kRelu).Blaze(5, 24).Blaze(5, 28).Blaze(5, 32, 2).Blaze(5, 36);
  image.Blaze(5, 42).Blaze(5, 48, 2).Blaze(5, 56).Blaze(5, 64).Blaze(5, 72).Blaze(5, 80);
  const ValueId middle = image.Blaze(5, 88).at();
  const ValueId deep = image.Blaze(5, 96, 2).Blaze(5, 96).Blaze(5, 96).Blaze(5, 96).at();
  std::vector<ValueId> boxes, scores;
  for (const auto& [from, anchors] : {std::pair(middle, 2), std::pair(deep, 6)}) {
    const int64_t count = image.net().dims(from)[1] * image.net().dims(from)[2] * anchors;
    image.Set(from);
    scores.push_back(image.net().Reshape(image.Conv(anchors, 1, 1, Activation::kNone).at(), {1, count, 1}));
    image.Set(from);
    boxes.push_back(
        image.net().Reshape(image.Conv(12 * anchors, 1, 1, Activation::kNone).at(), {1, count, 12}));
  }
  image.Output(image.net().Concat(boxes, 1));
  image.Output(image.net().Concat(scores, 1));
  return module;
}

constexpr int64_t kTokens = 128, kInner = 128, kOuter = 512, kHeads = 4;

class Bert {
 public:
  explicit Bert(Function& f) : f_(f), net_(f) {}

  void Write(int layers) {
    ValueId x = net_.Input(DType::kF32, {1, kTokens, kOuter}, "embeddings");
    for (int i = 0; i < layers; ++i) x = Layer(x);
    f_.outputs = {Dense(x, 2)};
  }

 private:
  ValueId Dense(ValueId x, int64_t out, bool relu = false) {
    Dims result = net_.dims(x);
    const Weights weights = source_.Float({out, result.back()}, result.back());
    result.back() = out;
    Attrs attrs;
    attrs.Set("keep_num_dims", true);
    if (relu) attrs.Set("fused_activation_function", "RELU");
    return net_.Node(Op::kFullyConnected, {x, net_.Constant(weights), net_.Constant(source_.Float({out}, 4))},
                     std::move(result), std::move(attrs));
  }
  // A norm without statistics, as MobileBERT has.
  ValueId Norm(ValueId x) {
    const int64_t width = net_.dims(x).back();
    const ValueId scaled = net_.Node(Op::kMul, {x, net_.Constant(source_.Float({width}, 1))}, net_.dims(x));
    return net_.Node(Op::kAdd, {scaled, net_.Constant(source_.Float({width}, 1))}, net_.dims(x));
  }
  ValueId Heads(ValueId x) {
    return net_.Transpose(net_.Reshape(x, {1, kTokens, kHeads, kInner / kHeads}), {0, 2, 1, 3});
  }
  ValueId Attention(ValueId query, ValueId value) {
    const ValueId q = Heads(Dense(query, kInner)), k = Heads(Dense(query, kInner)),
                  v = Heads(Dense(value, kInner));
    ValueId scores = net_.MatMul(q, k, true);
    scores = net_.Node(Op::kMul, {scores, net_.Scalar(0.17f)}, net_.dims(scores));
    Attrs softmax;
    softmax.Set("beta", 1.0);
    const ValueId weights = net_.Node(Op::kSoftmax, {scores}, net_.dims(scores), std::move(softmax));
    return net_.Reshape(net_.Transpose(net_.MatMul(weights, v, false), {0, 2, 1, 3}), {1, kTokens, kInner});
  }
  ValueId Layer(ValueId x) {
    const ValueId inner = Norm(Dense(x, kInner)), shared = Norm(Dense(x, kInner));
    ValueId y = Norm(net_.Add(Dense(Attention(shared, x), kInner), inner));
    for (int i = 0; i < 4; ++i) y = Norm(net_.Add(Dense(Dense(y, kOuter, true), kInner), y));
    return Norm(net_.Add(Dense(y, kOuter), x));
  }

  Function& f_;
  Net net_;
  WeightSource source_;
};

Module MobileBert() {
  Module module;
  Bert(module.Add("main")).Write(2);
  return module;
}

Module WordVectors() {
  Module module;
  Function& f = module.Add("main");
  Net net(f);
  WeightSource source;
  const auto dense = [&](ValueId x, int64_t out, bool relu) {
    Attrs attrs;
    if (relu) attrs.Set("fused_activation_function", "RELU");
    return net.Node(Op::kFullyConnected,
                    {x, net.Constant(source.Float({out, 16}, 16)), net.Constant(source.Float({out}, 16))},
                    {1, out}, std::move(attrs));
  };
  const ValueId words = net.Input(DType::kI32, {1, 256}, "words");
  ValueId x = net.Node(Op::kGather, {net.Constant(source.Float({10003, 16}, 16)), words}, {1, 256, 16});
  x = net.Node(Op::kMean, {x, net.Integers({1})}, {1, 16});
  Attrs softmax;
  softmax.Set("beta", 1.0);
  f.outputs = {net.Node(Op::kSoftmax, {dense(dense(x, 16, true), 2, false)}, {1, 2}, std::move(softmax))};
  return module;
}

// Gated causal convolutions of a waveform whose dilation doubles.
Module WaveNet() {
  constexpr int64_t kLength = 1024, kChannels = 32;
  Module module;
  Image wave(module, {1, 1, kLength, 1});
  wave.Causal(kChannels, 2, 1);
  std::vector<ValueId> skips;
  for (int layer = 0; layer < 10; ++layer) {
    Net& net = wave.net();
    const ValueId before = wave.at();
    const Dims dims = net.dims(before);
    const ValueId filter = net.Node(Op::kTanh, {wave.Causal(kChannels, 2, 1 << layer).at()}, dims);
    wave.Set(before);
    const ValueId gate = net.Node(Op::kLogistic, {wave.Causal(kChannels, 2, 1 << layer).at()}, dims);
    wave.Set(net.Multiply(filter, gate));
    skips.push_back(wave.Causal(kChannels, 1, 1).at());
    wave.AddTo(before);
  }
  wave.Set(skips[0]);
  for (size_t i = 1; i < skips.size(); ++i) wave.AddTo(skips[i]);
  wave.Causal(128, 1, 1, Activation::kRelu).Causal(256, 1, 1);
  wave.Output(wave.at());
  return module;
}

// An encoder and a decoder of transposed convolutions whose channels are joined.
Module Denoiser() {
  Module module;
  Image image(module, {1, 128, 128, 1});
  std::vector<ValueId> levels;
  for (const int64_t channels : {16, 32, 64}) {
    levels.push_back(image.Conv(channels, 3, 1, Activation::kRelu).at());
    image.MaxPool();
  }
  image.Conv(128, 3, 1, Activation::kRelu);
  for (const size_t level : {2, 1, 0}) {
    const int64_t channels = image.net().dims(levels[level])[3];
    image.Grow(channels, 2);
    image.Set(image.net().Concat({image.at(), levels[level]}, 3));
    image.Conv(channels, 3, 1, Activation::kRelu);
  }
  image.Conv(1, 1, 1, Activation::kNone);
  image.Output(image.at());
  return module;
}

Module Letters() {
  Module module;
  Image image(module, {1, 28, 28, 1});
  image.Conv(8, 3, 1, Activation::kRelu).MaxPool().Conv(16, 3, 1, Activation::kRelu).MaxPool();
  image.Set(image.net().Reshape(image.at(), {1, 7 * 7 * 16}));
  image.Output(image.Dense(64, Activation::kRelu).Dense(26).Softmax().at());
  return module;
}

// MobileNetV1 with a quarter of the channels.
Module Mobile() {
  Module module;
  Image image(module, {1, 128, 128, 3});
  image.Conv(8, 3, 2);
  const std::pair<int64_t, int> blocks[] = {{16, 1},  {32, 2},  {32, 1},  {64, 2},  {64, 1},
                                            {128, 2}, {128, 1}, {128, 1}, {128, 1}, {128, 1},
                                            {128, 1}, {256, 2}, {256, 1}};
  for (const auto& [channels, stride] : blocks) image.Depthwise(3, stride).Conv(channels, 1);
  image.Set(image.net().Node(Op::kMean, {image.at(), image.net().Integers({1, 2})}, {1, 256}));
  image.Output(image.Dense(100).Softmax().at());
  return module;
}

}  // namespace

std::span<const WrittenNet> WrittenNets() {
  static constexpr WrittenNet nets[] = {{"deeplabv3", DeepLab},
                                        {"face_detection_full_range", FaceDetection},
                                        {"pose_detection", PoseDetection},
                                        {"unet", UNet},
                                        {"mobilebert", MobileBert},
                                        {"average_word_vector", WordVectors},
                                        {"wavenet", WaveNet},
                                        {"denoiser", Denoiser},
                                        {"letters", Letters},
                                        {"mobile", Mobile}};
  return nets;
}

}  // namespace fusebox::bench
