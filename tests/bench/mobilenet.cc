// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/mobilenet.h"

namespace fusebox::bench {
namespace {

struct Stage {
  int64_t expansion, channels, count;
  int stride;
};
constexpr Stage kStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                             {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

ValueId Convolve(Net& net, const MobileLayer& layer, ValueId x) {
  const Dims in = net.dims(x), filter = layer.filter.type.shape.dims();
  Attrs attrs;
  attrs.Set("stride_w", layer.stride);
  attrs.Set("stride_h", layer.stride);
  if (layer.depthwise) attrs.Set("depth_multiplier", 1);
  if (layer.relu6) attrs.Set("fused_activation_function", "RELU6");
  const auto size = [&](int64_t d) { return (d + layer.stride - 1) / layer.stride; };
  return net.Node(layer.depthwise ? Op::kDepthwiseConv2D : Op::kConv2D,
                  {x, net.Constant(layer.filter), net.Constant(layer.bias)},
                  {in[0], size(in[1]), size(in[2]), filter[layer.depthwise ? 3 : 0]}, std::move(attrs));
}

}  // namespace

MobileNet MakeMobileNet() {
  MobileNet net;
  WeightSource source;
  const auto conv = [&](int64_t in, int64_t out, int64_t window, int stride, bool relu6) {
    net.layers.push_back({.relu6 = relu6,
                          .stride = stride,
                          .filter = source.Float({out, window, window, in}, window * window * in),
                          .bias = source.Float({out}, 1)});
  };
  conv(3, 32, 3, 2, true);
  int64_t channels = 32;
  for (const Stage& stage : kStages) {
    for (int64_t i = 0; i < stage.count; ++i) {
      const int64_t wide = channels * stage.expansion;
      const bool sum = i > 0;
      const size_t first = net.layers.size();
      if (stage.expansion > 1) conv(channels, wide, 1, 1, true);
      net.layers.push_back({.depthwise = true,
                            .stride = i == 0 ? stage.stride : 1,
                            .filter = source.Float({1, 3, 3, wide}, 9),
                            .bias = source.Float({wide}, 1)});
      conv(wide, stage.channels, 1, 1, false);
      net.layers[first].begins_sum = net.layers.back().ends_sum = sum;
      channels = stage.channels;
    }
  }
  conv(channels, 1280, 1, 1, true);
  net.classes = source.Float({MobileNet::kClasses, 1280}, 1280);
  net.class_bias = source.Float({MobileNet::kClasses}, 1);
  return net;
}

Module ModuleOf(const MobileNet& spec) {
  Module module;
  Function& f = module.Add("main");
  Net net(f);
  ValueId x = net.Input(DType::kF32, {1, MobileNet::kSide, MobileNet::kSide, 3}, "image"), kept = x;
  for (const MobileLayer& layer : spec.layers) {
    if (layer.begins_sum) kept = x;
    x = Convolve(net, layer, x);
    if (layer.ends_sum) x = net.Add(kept, x);
  }
  x = net.Node(Op::kMean, {x, net.Integers({1, 2})}, {1, net.dims(x)[3]});
  x = net.Node(Op::kFullyConnected, {x, net.Constant(spec.classes), net.Constant(spec.class_bias)},
               {1, MobileNet::kClasses});
  Attrs softmax;
  softmax.Set("beta", 1.0);
  f.outputs.push_back(net.Node(Op::kSoftmax, {x}, net.dims(x), std::move(softmax)));
  return module;
}

}  // namespace fusebox::bench
