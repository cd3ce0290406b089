// SPDX-License-Identifier: Apache-2.0
// Writes nets with the structure of public f32 models and random weights, for net_bench.
//
//   write_nets DIR [twins]
//
// deeplabv3: MobileNetV2 with half the channels, 257x257, dilated depthwise convolutions, an image-wide pool
// and RESIZE_BILINEAR. face_detection_full_range: an encoder of 192x192 with a decoder, whose sizes grow
// again. pose_detection: 5x5 depthwise convolutions and sums whose channels are padded. unet: 3x3
// convolutions of few channels, down to one. mobilebert: two layers of bottlenecks over 128 tokens.
// average_word_vector: the mean of the embeddings of 256 words. twins: chains of 20, 21 and 22 equal
// convolutions instead, so 5 % and 10 % slower than the first one, for same.py.
#include <cmath>
#include <cstdio>

#include "host/tflite/tflite.h"
#include "tests/bench/net.h"

namespace fusebox::bench {
namespace {

enum class Activation { kNone, kRelu, kRelu6 };

class Image {
 public:
  Image(Module& module, Dims input) : f_(module.Add("main")), net_(f_) {
    x_ = net_.Input(DType::kF32, std::move(input), "image");
  }
  Net& net() { return net_; }
  ValueId at() const { return x_; }
  int64_t channels() const { return net_.dims(x_).back(); }
  void Set(ValueId x) { x_ = x; }
  void Output(ValueId x) { f_.outputs.push_back(x); }

  Image& Conv(int64_t out, int64_t window, int stride = 1, Activation activation = Activation::kRelu6) {
    const Weights filter = source_.Float({out, window, window, channels()}, window * window * channels());
    return Convolve(Op::kConv2D, filter, out, stride, 1, activation);
  }
  Image& Depthwise(int64_t window, int stride = 1, int dilation = 1,
                   Activation activation = Activation::kRelu6) {
    const Weights filter = source_.Float({1, window, window, channels()}, window * window);
    return Convolve(Op::kDepthwiseConv2D, filter, channels(), stride, dilation, activation);
  }
  Image& Resize(int64_t height, int64_t width) {
    Attrs attrs;
    attrs.Set("align_corners", true);
    x_ = net_.Node(Op::kResizeBilinear,
                   {x_, net_.Integers({static_cast<int32_t>(height), static_cast<int32_t>(width)})},
                   {1, height, width, channels()}, std::move(attrs));
    return *this;
  }
  Image& AddTo(ValueId other) {
    x_ = net_.Add(x_, other);
    return *this;
  }
  // A block of MobileNetV2.
  Image& Inverted(int64_t expansion, int64_t out, int stride, int dilation = 1) {
    const ValueId before = x_;
    const bool sum = stride == 1 && out == channels();
    if (expansion > 1) Conv(expansion * channels(), 1);
    Depthwise(3, stride, dilation).Conv(out, 1, 1, Activation::kNone);
    return sum ? AddTo(before) : *this;
  }
  // A block of BlazeFace: channels are padded for the sum.
  Image& Blaze(int64_t window, int64_t out, int stride = 1) {
    ValueId kept = x_;
    const int64_t in = channels();
    Depthwise(window, stride, 1, Activation::kNone).Conv(out, 1, 1, Activation::kNone);
    const ValueId sums = x_;
    x_ = kept;
    if (stride > 1) MaxPool();
    if (out > in) PadChannels(out - in);
    x_ = net_.Add(sums, x_);
    x_ = net_.Node(Op::kRelu, {x_}, net_.dims(x_));
    return *this;
  }

 private:
  Image& Convolve(Op op, const Weights& filter, int64_t out, int stride, int dilation,
                  Activation activation) {
    const Dims in = net_.dims(x_);
    Attrs attrs;
    attrs.Set("stride_w", stride);
    attrs.Set("stride_h", stride);
    attrs.Set("dilation_w_factor", dilation);
    attrs.Set("dilation_h_factor", dilation);
    if (op == Op::kDepthwiseConv2D) attrs.Set("depth_multiplier", 1);
    if (activation == Activation::kRelu) attrs.Set("fused_activation_function", "RELU");
    if (activation == Activation::kRelu6) attrs.Set("fused_activation_function", "RELU6");
    const auto size = [&](int64_t d) { return (d + stride - 1) / stride; };
    x_ = net_.Node(op, {x_, net_.Constant(filter), net_.Constant(source_.Float({out}, 4))},
                   {in[0], size(in[1]), size(in[2]), out}, std::move(attrs));
    return *this;
  }
  void MaxPool() {
    const Dims in = net_.dims(x_);
    Attrs attrs;
    for (const char* name : {"stride_w", "stride_h", "filter_width", "filter_height"}) attrs.Set(name, 2);
    x_ = net_.Node(Op::kMaxPool2D, {x_}, {1, in[1] / 2, in[2] / 2, in[3]}, std::move(attrs));
  }
  void PadChannels(int64_t count) {
    Dims result = net_.dims(x_);
    result[3] += count;
    const ValueId padding =
        f_.AddConst<int32_t>(DType::kI32, {4, 2}, {0, 0, 0, 0, 0, 0, 0, static_cast<int32_t>(count)});
    x_ = net_.Node(Op::kPad, {x_, padding}, std::move(result));
  }

  Function& f_;
  Net net_;
  WeightSource source_;
  ValueId x_ = kNoValue;
};

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

Module Chain(int64_t size, int64_t channels, int layers) {
  Module module;
  Image image(module, {1, size, size, channels});
  for (int i = 0; i < layers; ++i) image.Conv(channels, 3);
  image.Output(image.at());
  return module;
}

bool Write(const Module& module, const std::string& path) {
  const Status written = tflite::WriteFile(module, path);
  if (!written) std::fprintf(stderr, "%s\n", written.error().message.c_str());
  return written.has_value();
}

int WriteTwins(const std::string& dir) {
  for (const int layers : {20, 21, 22}) {
    const std::string end = "_" + std::to_string(layers) + ".tflite";
    if (!Write(Chain(4, 16, layers), dir + "/small" + end)) return 1;
    if (!Write(Chain(24, 32, layers), dir + "/medium" + end)) return 1;
  }
  return 0;
}

int Main(const std::string& dir) {
  const std::pair<const char*, Module (*)()> nets[] = {{"deeplabv3", DeepLab},
                                                       {"face_detection_full_range", FaceDetection},
                                                       {"pose_detection", PoseDetection},
                                                       {"unet", UNet},
                                                       {"mobilebert", MobileBert},
                                                       {"average_word_vector", WordVectors}};
  for (const auto& [name, make] : nets)
    if (!Write(make(), dir + "/" + name + ".tflite")) return 1;
  return 0;
}

}  // namespace
}  // namespace fusebox::bench

int main(int argc, char** argv) {
  if (argc == 2) return fusebox::bench::Main(argv[1]);
  if (argc == 3 && std::string(argv[2]) == "twins") return fusebox::bench::WriteTwins(argv[1]);
  std::fprintf(stderr, "usage: write_nets DIR [twins]\n");
  return 2;
}
