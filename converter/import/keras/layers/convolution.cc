// SPDX-License-Identifier: Apache-2.0
// Convolutions. Kernels are [space..., in, out], depthwise kernels [space..., channels, multiplier],
// transposed kernels [space..., out, in].
#include "converter/import/keras/layers/convolution.h"

#include <algorithm>

#include "converter/import/keras/layers/spatial.h"

namespace fusebox::keras {
namespace {

// Limit on the dilation of a transposed convolution: the zeros between taps take memory.
constexpr int64_t kMostApart = 1 << 10;

std::vector<WeightSpec> WithBias(const Layer& layer, std::vector<WeightSpec> specs) {
  if (ConfigFlag(layer, "use_bias", true)) specs.push_back({"bias", "vars/" + std::to_string(specs.size())});
  return specs;
}
std::vector<WeightSpec> ConvWeights(const Layer& l) { return WithBias(l, {{"kernel", "vars/0"}}); }
std::vector<WeightSpec> DepthwiseWeights(const Layer& l) {
  return WithBias(l, {{"depthwise_kernel", "vars/0"}});
}
std::vector<WeightSpec> SeparableWeights(const Layer& l) {
  return WithBias(l, {{"depthwise_kernel", "vars/0"}, {"pointwise_kernel", "vars/1"}});
}

// Pads `x` at the start for causal convolutions.
Window WindowOf(LayerCall& c, int space, ValueId& x) {
  const auto n = static_cast<size_t>(space);
  Window w{.space = space,
           .kernel = c.Sizes("kernel_size", n),
           .strides = c.Sizes("strides", n),
           .dilations = std::vector<int64_t>(n, 1),
           .padding = ""};
  if (c.Has("dilation_rate")) w.dilations = c.Sizes("dilation_rate", n);
  w.padding = Padding(c, space == 1 ? "causal" : "");
  if (w.padding != "causal") return w;
  w.padding = "VALID";
  const ValueId amounts =
      c.emit().Const({{DType::kI32, {3, 2}},
                      Buffer::Of<int32_t>(std::vector<int32_t>{
                          0, 0, static_cast<int32_t>((w.kernel[0] - 1) * w.dilations[0]), 0, 0, 0})});
  x = c.emit().Op("Pad", {x, amounts});
  return w;
}

void Finish(LayerCall& c, ValueId y, int64_t filters) {
  if (c.Bool("use_bias", true)) y = c.emit().Op("BiasAdd", {y, c.Weight("bias", {filters})});
  // Softmax and similar activations apply to the last axis of the layer's output in its own data format.
  c.AddOutput(c.Activate(ChannelsBack(c, y)));
}

// The kernel in Keras 2 layout. Keras 1 stores [out, in, space...] for channels_first and height 1 for 1D;
// Theano's convolutions flip their kernels.
ValueId Kernel(LayerCall& c, const Window& w, int64_t in, int64_t out) {
  const std::vector<int64_t> shape = w.KernelShape(in, out);
  std::vector<int64_t> axes;
  for (int i = 0; i < w.space; ++i) axes.push_back(i);
  ValueId kernel;
  if (c.keras() == 1 && w.space > 1 && c.ChannelsFirst()) {
    std::vector<int64_t> stored = {out, in};
    std::vector<int64_t> perm;
    stored.insert(stored.end(), w.kernel.begin(), w.kernel.end());
    for (int i = 0; i < w.space; ++i) perm.push_back(i + 2);
    perm.insert(perm.end(), {1, 0});
    kernel = c.emit().Transpose(c.Weight("kernel", stored), perm);
  } else if (c.keras() == 1 && w.space == 1) {
    kernel = c.emit().Op("Squeeze", {c.Weight("kernel", {w.kernel[0], 1, in, out})},
                         MakeAttrs("squeeze_dims", std::vector<int64_t>{1}));
  } else {
    kernel = c.Weight("kernel", shape);
  }
  return c.state().archive.backend() == "theano" ? c.emit().Op("ReverseV2", {kernel, c.emit().I32s(axes)})
                                                 : kernel;
}

void Conv(LayerCall& c) {
  const int space = SpatialRank(c.layer().class_name);
  ValueId x = SpatialInput(c, space);
  const Window w = WindowOf(c, space, x);
  const int64_t channels = c.emit().dim(x, -1);
  const int64_t filters = c.Int("filters");
  const int64_t groups = c.Int("groups", 1);
  if (groups < 1 || groups > (1 << 16) || filters % groups != 0 || (channels >= 0 && channels % groups != 0))
    return c.emit().Reject("its " + std::to_string(groups) + " groups divide neither " +
                           std::to_string(channels) + " channels nor " + std::to_string(filters) +
                           " filters");
  const ValueId kernel = Kernel(c, w, channels < 0 ? -1 : channels / groups, filters);
  const std::string_view op = space == 3 ? "Conv3D" : "Conv2D";
  if (groups == 1) return Finish(c, Convolve(c, op, w, x, kernel), filters);
  const auto n = static_cast<size_t>(groups);
  const Attrs attrs = MakeAttrs("num_split", groups);
  const auto inputs = c.emit().Ops("Split", {c.emit().I32(space + 1), x}, attrs, n);
  const auto kernels = c.emit().Ops("Split", {c.emit().I32(space + 1), kernel}, attrs, n);
  std::vector<ValueId> parts;
  for (size_t i = 0; i < n; ++i) parts.push_back(Convolve(c, op, w, inputs[i], kernels[i]));
  Finish(c, c.emit().Concat(std::move(parts), space + 1), filters);
}

// TensorFlow requires equal strides of a depthwise convolution; TFLite does not.
void Depthwise(LayerCall& c) {
  const int space = SpatialRank(c.layer().class_name);
  ValueId x = SpatialInput(c, space);
  const Window w = WindowOf(c, space, x);
  const int64_t channels = c.emit().dim(x, -1);
  const int64_t multiplier = c.Int("depth_multiplier", 1);
  const ValueId kernel = c.Weight("depthwise_kernel", w.KernelShape(channels, multiplier));
  const ValueId y = Convolve(c, "DepthwiseConv2dNative", w, x, kernel);
  Finish(c, y, c.emit().dim(y, -1));
}

void Separable(LayerCall& c) {
  const int space = SpatialRank(c.layer().class_name);
  ValueId x = SpatialInput(c, space);
  const Window w = WindowOf(c, space, x);
  const int64_t channels = c.emit().dim(x, -1);
  const int64_t multiplier = c.Int("depth_multiplier", 1);
  const int64_t filters = c.Int("filters");
  const ValueId depthwise = c.Weight("depthwise_kernel", w.KernelShape(channels, multiplier));
  const auto n = static_cast<size_t>(space);
  const Window point{.space = space,
                     .kernel = std::vector<int64_t>(n, 1),
                     .strides = std::vector<int64_t>(n, 1),
                     .dilations = std::vector<int64_t>(n, 1),
                     .padding = "VALID"};
  const ValueId pointwise =
      c.Weight("pointwise_kernel", point.KernelShape(channels < 0 ? -1 : channels * multiplier, filters));
  const ValueId spread = Convolve(c, "DepthwiseConv2dNative", w, x, depthwise);
  Finish(c, Convolve(c, "Conv2D", point, spread, pointwise), filters);
}

// Inserts zeros between the kernel's taps, because TFLite has no dilated transposed convolution.
ValueId SpreadTaps(LayerCall& c, Window& w, ValueId kernel) {
  for (int i = 0; i < w.space; ++i) {
    int64_t& taps = w.kernel[static_cast<size_t>(i)];
    int64_t& apart = w.dilations[static_cast<size_t>(i)];
    if (apart == 1) continue;
    std::vector<int32_t> zeros(static_cast<size_t>(w.space + 3) * 2);
    zeros[static_cast<size_t>(i + 1) * 2 + 1] = static_cast<int32_t>(apart - 1);
    kernel = c.emit().Op("ExpandDims", {kernel, c.emit().I32(i + 1)});
    kernel = c.emit().Op(
        "Pad", {kernel, c.emit().Const({{DType::kI32, {w.space + 3, 2}}, Buffer::Of<int32_t>(zeros)})});
    std::vector<Extent> shape;
    for (int k = 0; k < w.space + 2; ++k)
      shape.push_back(k == i ? Extent{taps * apart} : c.emit().size(kernel, k < i ? k : k + 1));
    kernel = c.emit().Slice(c.emit().Reshape(kernel, shape), i, 0, 1 - apart);
    taps = (taps - 1) * apart + 1;
    apart = 1;
  }
  return kernel;
}

// Output size of a transposed convolution: the constant (if known) and its value.
struct Size {
  int64_t known;
  ValueId value;
};

Size TransposedSize(LayerCall& c, const Window& w, size_t i, const Extent& in) {
  const int64_t k = w.kernel[i];
  const int64_t s = w.strides[i];
  int64_t offset = w.padding == "VALID" ? std::max<int64_t>(k - s, 0) : 0;
  if (c.Has("output_padding")) {
    const auto extra = c.Sizes("output_padding", static_cast<size_t>(w.space), 0);
    offset = k - s - (w.padding == "SAME" ? 2 * (k / 2) : 0) + extra[i];
  }
  if (in.size >= 0) return {in.size * s + offset, c.emit().I32(in.size * s + offset)};
  return {Shape::kUnknown,
          c.emit().Op("AddV2",
                      {c.emit().Op("Mul", {c.emit().SizeValue(in), c.emit().I32(s)}), c.emit().I32(offset)})};
}

void Transposed(LayerCall& c) {
  const int space = SpatialRank(c.layer().class_name);
  ValueId x = SpatialInput(c, space);
  Window w = WindowOf(c, space, x);
  const int64_t filters = c.Int("filters");
  const int64_t channels = c.emit().dim(x, -1);
  ValueId kernel = c.Weight("kernel", w.KernelShape(filters, channels));
  if (!c.emit().ok()) return;
  const auto above_one = [](int64_t d) { return d != 1; };
  if (std::ranges::any_of(w.dilations, above_one)) {
    if (std::ranges::any_of(w.strides, above_one))
      return c.emit().Refuse("a transposed convolution with both strides and dilation_rate");
    for (size_t i = 0; i < w.kernel.size(); ++i)
      if (w.dilations[i] > kMostApart || w.kernel[i] > kMostApart)
        return c.emit().Refuse("a dilation_rate of " + std::to_string(w.dilations[i]));
    kernel = SpreadTaps(c, w, kernel);
  }
  std::vector<ValueId> sizes = {c.emit().SizeValue(c.emit().size(x, 0))};
  if (space == 1) sizes.push_back(c.emit().I32(1));
  std::vector<int64_t> dims = {c.emit().dim(x, 0)};
  for (int i = 0; i < space; ++i) {
    const Size out = TransposedSize(c, w, static_cast<size_t>(i), c.emit().size(x, i + 1));
    dims.push_back(out.known);
    sizes.push_back(out.value);
  }
  sizes.push_back(c.emit().I32(filters));
  dims.push_back(filters);
  if (space == 1) {
    x = Widen(c, x);
    kernel = c.emit().Op("ExpandDims", {kernel, c.emit().I32(0)});
  }
  const ValueId shape = c.emit().Op("Pack", sizes);
  ValueId y = c.emit().Op(space == 3 ? "Conv3DBackpropInputV2" : "Conv2DBackpropInput", {shape, kernel, x},
                          w.attrs());
  if (space == 1) y = Narrow(c, y);
  // The size is computed if the batch is unknown; all other dimensions are known.
  if (c.emit().ok()) c.emit().function().value(y).type = {DType::kF32, Shape(dims)};
  Finish(c, y, filters);
}

}  // namespace

Attrs Window::attrs() const {
  return MakeAttrs("strides", WithBatchAndChannel(strides), "dilations", WithBatchAndChannel(dilations),
                   "padding", padding);
}

std::vector<int64_t> Window::KernelShape(int64_t in, int64_t out) const {
  std::vector<int64_t> shape = kernel;
  shape.insert(shape.end(), {in, out});
  return shape;
}

ValueId Convolve(LayerCall& c, std::string_view op, const Window& w, ValueId x, ValueId kernel) {
  if (w.space != 1) return c.emit().Op(op, {x, kernel}, w.attrs());
  const ValueId wide = c.emit().Op("ExpandDims", {kernel, c.emit().I32(0)});
  return Narrow(c, c.emit().Op(op, {Widen(c, x), wide}, w.attrs()));
}

std::span<const LayerRow> ConvolutionLayers() {
  static constexpr LayerRow kTable[] = {
      {"Conv1D", Conv, ConvWeights, MaskRule::kStop},
      {"Conv2D", Conv, ConvWeights, MaskRule::kStop},
      {"Conv3D", Conv, ConvWeights, MaskRule::kStop},
      {"DepthwiseConv1D", Depthwise, DepthwiseWeights, MaskRule::kStop},
      {"DepthwiseConv2D", Depthwise, DepthwiseWeights, MaskRule::kStop},
      {"SeparableConv1D", Separable, SeparableWeights, MaskRule::kStop},
      {"SeparableConv2D", Separable, SeparableWeights, MaskRule::kStop},
      {"Conv1DTranspose", Transposed, ConvWeights, MaskRule::kStop},
      {"Conv2DTranspose", Transposed, ConvWeights, MaskRule::kStop},
      {"Conv3DTranspose", Transposed, ConvWeights, MaskRule::kStop},
  };
  return kTable;
}

}  // namespace fusebox::keras
