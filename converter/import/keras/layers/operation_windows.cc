// SPDX-License-Identifier: Apache-2.0
// Pooling and convolutions whose kernel is an operand.
#include <algorithm>

#include "converter/import/keras/layers/convolution.h"
#include "converter/import/keras/layers/operation.h"
#include "converter/import/keras/layers/spatial.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;

// TensorFlow lists batch and channels, too; one number is for all dimensions.
json SpatialSizes(LayerCall& c, Names names, int space) {
  json said = PlainArgument(c, kKeywordOnly, names);
  if (!said.is_array() || static_cast<int>(said.size()) != space + 2) return said;
  if (said.front() != 1 || said.back() != 1) c.emit().Refuse("windows over batch or channels");
  return json(std::vector<json>(said.begin() + 1, said.end() - 1));
}

int SpaceOf(LayerCall& c) {
  const int space = c.emit().rank(c.in()) - 2;
  if (c.emit().ok() && (space < 1 || space > 3))
    c.emit().Refuse("an input " + ToString(c.emit().type(c.in())) + ", which should have 3 to 5 dimensions");
  return space;
}

// The function's settings as the configuration of a layer.
Layer LayerOf(LayerCall& c, const std::string& class_name, int space) {
  std::string padding = TextArgument(c, kKeywordOnly, {"padding"}, "valid");
  std::ranges::transform(padding, padding.begin(),
                         [](unsigned char l) { return static_cast<char>(std::tolower(l)); });
  const std::string format = TextArgument(c, kKeywordOnly, {"data_format"}, "channels_last");
  Layer layer;
  layer.class_name = class_name + std::to_string(space) + "D";
  layer.name = c.layer().name;
  layer.path = c.layer().path;
  layer.config = {{"padding", padding},
                  {"data_format", format.starts_with("NC")  ? "channels_first"
                                  : format.starts_with("N") ? "channels_last"
                                                            : format},
                  {"strides", SpatialSizes(c, {"strides", "stride"}, space)}};
  return layer;
}

void Pooling(LayerCall& c, std::string_view kind) {
  const int space = SpaceOf(c);
  if (!c.emit().ok()) return;
  Layer layer = LayerOf(c, std::string(kind) + "Pooling", space);
  layer.config["pool_size"] = SpatialSizes(c, {"pool_size", "ksize"}, space);
  for (const Flow& flow : BuildLayer(c.state(), c.emit(), layer, {Given{Flow{c.in(), kNoValue}}}))
    c.AddOutput(flow.value);
}

// A convolution by TensorFlow's op, which depends on the number of dimensions.
struct Convolution {
  Layer layer;
  LayerCall call;
  Window window;
  ValueId x;

  Convolution(LayerCall& c, int space)
      : layer(LayerOf(c, "Conv", space)),
        call(c.state(), c.emit(), layer, {Given{Flow{FloatArgument(c, 0, {"inputs", "input"}), kNoValue}}}),
        x(SpatialInput(call, space)) {
    layer.config["dilation_rate"] = SpatialSizes(c, {"dilation_rate", "dilations"}, space);
    const auto n = static_cast<size_t>(space);
    window = {
        .space = space,
        .kernel = {},
        .strides = call.Has("strides") ? call.Sizes("strides", n) : std::vector<int64_t>(n, 1),
        .dilations = call.Has("dilation_rate") ? call.Sizes("dilation_rate", n) : std::vector<int64_t>(n, 1),
        .padding = Padding(call)};
  }

  ValueId Apply(std::string_view op, ValueId kernel) {
    Emitter& emit = call.emit();
    window.kernel.clear();
    if (emit.rank(kernel) != window.space + 2 && emit.ok())
      emit.Reject("its kernel is " + ToString(emit.type(kernel)));
    for (int i = 0; i < window.space; ++i) window.kernel.push_back(emit.dim(kernel, i));
    if (!emit.ok()) return kNoValue;
    x = Convolve(call, op, window, x, kernel);
    return x;
  }
  ValueId Result() { return ChannelsBack(call, x); }
};

std::string_view OpFor(int space, std::string_view kind) {
  if (kind == "Depthwise") return space == 3 ? "" : "DepthwiseConv2dNative";
  return space == 3 ? "Conv3D" : "Conv2D";
}

void Convolved(LayerCall& c, std::string_view kind) {
  const int space = SpaceOf(c);
  if (!c.emit().ok()) return;
  const std::string_view op = OpFor(space, kind);
  if (op.empty()) return c.emit().Refuse("three dimensions");
  Convolution made(c, space);
  const ValueId kernel = FloatArgument(c, 1, {"kernel", "filters", "filter"});
  const bool grouped = c.emit().ok() && c.emit().dim(kernel, -2) != c.emit().dim(made.x, -1);
  if (grouped) return c.emit().Refuse("a kernel " + ToString(c.emit().type(kernel)) + " of groups");
  made.Apply(op, kernel);
  c.AddOutput(made.Result());
}

void Separable(LayerCall& c, std::string_view) {
  const int space = SpaceOf(c);
  if (!c.emit().ok()) return;
  if (space == 3) return c.emit().Refuse("three dimensions");
  Convolution made(c, space);
  made.Apply("DepthwiseConv2dNative", FloatArgument(c, 1, {"depthwise_kernel", "depthwise_filter"}));
  made.window.strides.assign(static_cast<size_t>(space), 1);
  made.window.dilations = made.window.strides;
  made.Apply("Conv2D", FloatArgument(c, 2, {"pointwise_kernel", "pointwise_filter"}));
  c.AddOutput(made.Result());
}

}  // namespace

std::span<const NamedOperation> WindowOperations() {
  static constexpr NamedOperation kTable[] = {
      {"maxpool", {"Max", Pooling}},
      {"maxpool1d", {"Max", Pooling}},
      {"maxpool2d", {"Max", Pooling}},
      {"maxpool3d", {"Max", Pooling}},
      {"averagepool", {"Average", Pooling}},
      {"avgpool", {"Average", Pooling}},
      {"avgpool1d", {"Average", Pooling}},
      {"avgpool2d", {"Average", Pooling}},
      {"avgpool3d", {"Average", Pooling}},
      {"conv", {"", Convolved}},
      {"conv1d", {"", Convolved}},
      {"conv2d", {"", Convolved}},
      {"conv3d", {"", Convolved}},
      {"convolution", {"", Convolved}},
      {"depthwiseconv", {"Depthwise", Convolved}},
      {"depthwiseconv2d", {"Depthwise", Convolved}},
      {"separableconv", {"", Separable}},
      {"separableconv2d", {"", Separable}},
  };
  return kTable;
}

}  // namespace fusebox::keras
