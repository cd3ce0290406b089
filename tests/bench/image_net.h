// SPDX-License-Identifier: Apache-2.0
// Builds nets of images layer by layer, with random weights.
#pragma once

#include "tests/bench/net.h"

namespace fusebox::bench {

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
  // A convolution of the last but one dimension that sees nothing after its element.
  Image& Causal(int64_t out, int64_t window, int dilation, Activation activation = Activation::kNone) {
    const Dims in = net_.dims(x_);
    const int64_t before = (window - 1) * dilation;
    if (before > 0) {
      const ValueId padding =
          f_.AddConst<int32_t>(DType::kI32, {4, 2}, {0, 0, 0, 0, static_cast<int32_t>(before), 0, 0, 0});
      x_ = net_.Node(Op::kPad, {x_, padding}, {in[0], in[1], in[2] + before, in[3]});
    }
    Attrs attrs;
    for (const char* name : {"stride_w", "stride_h", "dilation_h_factor"}) attrs.Set(name, 1);
    attrs.Set("dilation_w_factor", dilation);
    attrs.Set("padding", "VALID");
    SetActivation(attrs, activation);
    const ValueId filter = net_.Constant(source_.Float({out, 1, window, in[3]}, window * in[3]));
    x_ = net_.Node(Op::kConv2D, {x_, filter, net_.Constant(source_.Float({out}, 4))},
                   {in[0], in[1], in[2], out}, std::move(attrs));
    return *this;
  }
  // A transposed convolution that doubles both sizes.
  Image& Grow(int64_t out, int64_t window) {
    const Dims in = net_.dims(x_);
    const Dims result = {in[0], 2 * in[1], 2 * in[2], out};
    Attrs attrs;
    for (const char* name : {"stride_w", "stride_h"}) attrs.Set(name, 2);
    const ValueId size = net_.Integers(std::vector<int32_t>(result.begin(), result.end()));
    const ValueId filter = net_.Constant(source_.Float({out, window, window, in[3]}, window * in[3]));
    x_ = net_.Node(Op::kTransposeConv, {size, filter, x_, net_.Constant(source_.Float({out}, 4))}, result,
                   std::move(attrs));
    return *this;
  }
  Image& Dense(int64_t out, Activation activation = Activation::kNone) {
    const int64_t in = net_.dims(x_).back();
    Attrs attrs;
    SetActivation(attrs, activation);
    x_ = net_.Node(Op::kFullyConnected,
                   {x_, net_.Constant(source_.Float({out, in}, in)), net_.Constant(source_.Float({out}, 4))},
                   {1, out}, std::move(attrs));
    return *this;
  }
  Image& Softmax() {
    Attrs attrs;
    attrs.Set("beta", 1.0);
    x_ = net_.Node(Op::kSoftmax, {x_}, net_.dims(x_), std::move(attrs));
    return *this;
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

  Image& MaxPool() {
    const Dims in = net_.dims(x_);
    Attrs attrs;
    for (const char* name : {"stride_w", "stride_h", "filter_width", "filter_height"}) attrs.Set(name, 2);
    x_ = net_.Node(Op::kMaxPool2D, {x_}, {1, in[1] / 2, in[2] / 2, in[3]}, std::move(attrs));
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
    SetActivation(attrs, activation);
    const auto size = [&](int64_t d) { return (d + stride - 1) / stride; };
    x_ = net_.Node(op, {x_, net_.Constant(filter), net_.Constant(source_.Float({out}, 4))},
                   {in[0], size(in[1]), size(in[2]), out}, std::move(attrs));
    return *this;
  }
  static void SetActivation(Attrs& attrs, Activation activation) {
    if (activation == Activation::kRelu) attrs.Set("fused_activation_function", "RELU");
    if (activation == Activation::kRelu6) attrs.Set("fused_activation_function", "RELU6");
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

}  // namespace fusebox::bench
