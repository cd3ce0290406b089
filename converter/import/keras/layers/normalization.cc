// SPDX-License-Identifier: Apache-2.0
// Normalisation with stored statistics, with those of the input, and with constants.
#include <algorithm>

#include "converter/import/keras/layer_call.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;

std::vector<WeightSpec> ScaleAndShift(const Layer& layer) {
  std::vector<WeightSpec> out;
  if (ConfigFlag(layer, "scale", true)) out.push_back({"gamma", "vars/0"});
  if (ConfigFlag(layer, "center", true)) out.push_back({"beta", "vars/" + std::to_string(out.size())});
  return out;
}

std::vector<WeightSpec> BatchWeights(const Layer& layer) {
  std::vector<WeightSpec> out = ScaleAndShift(layer);
  for (const char* name : {"moving_mean", "moving_variance"})
    out.push_back({name, "vars/" + std::to_string(out.size()), false});
  return out;
}

int Axis(LayerCall& c, int rank) {
  const int64_t axis = c.Int("axis", -1), at = axis < 0 ? axis + rank : axis;
  if (at >= 0 && at < rank) return static_cast<int>(at);
  if (c.e().ok()) c.e().Reject("its axis " + std::to_string(axis) + " does not exist");
  return 0;
}

Tensor Filled(int64_t size, float value) {
  return {{DType::kF32, {size}}, Buffer::Of<float>(std::vector<float>(static_cast<size_t>(size), value))};
}

// A vector where it meets dimension `axis` of rank dimensions.
ValueId AlongAxis(LayerCall& c, ValueId vector, int axis, int rank) {
  if (axis == rank - 1) return vector;
  std::vector<Extent> shape(static_cast<size_t>(rank - axis), Extent{1});
  shape[0] = {c.e().dim(vector, 0)};
  return c.e().Reshape(vector, shape);
}

void BatchNormalization(LayerCall& c) {
  const ValueId x = c.in();
  const int rank = c.e().rank(x), axis = Axis(c, rank);
  const std::vector<int64_t> shape = {c.e().dim(x, axis)};
  const ValueId mean = c.Weight("moving_mean", shape), variance = c.Weight("moving_variance", shape);
  const int64_t channels = c.e().dim(mean, 0);
  if (!c.e().ok()) return;
  const ValueId gamma =
      c.Bool("scale", true) ? c.Weight("gamma", {channels}) : c.Constant(Filled(channels, 1), "gamma");
  const ValueId beta =
      c.Bool("center", true) ? c.Weight("beta", {channels}) : c.Constant(Filled(channels, 0), "beta");
  const double epsilon = c.Float("epsilon", 1e-3);
  if (rank == 4 && axis == 3) {
    return c.Give(c.e().Op("FusedBatchNormV3", {x, gamma, beta, mean, variance},
                           MakeAttrs("is_training", false, "epsilon", epsilon)));
  }
  const ValueId root = c.e().Op("Rsqrt", {c.e().Op("AddV2", {variance, c.e().F32(epsilon)})});
  const ValueId factor = c.e().Op("Mul", {root, gamma});
  const ValueId shift = c.e().Op("Sub", {beta, c.e().Op("Mul", {mean, factor})});
  const ValueId scaled = c.e().Op("Mul", {x, AlongAxis(c, factor, axis, rank)});
  c.Give(c.e().Op("AddV2", {scaled, AlongAxis(c, shift, axis, rank)}));
}

// Of one axis or several next to each other at the end.
void LayerNormalization(LayerCall& c) {
  const ValueId x = c.in();
  const int rank = c.e().rank(x);
  std::vector<int64_t> axes = c.Has("axis") ? c.Ints("axis") : std::vector<int64_t>{-1}, sizes;
  for (int64_t& axis : axes) {
    if (axis < 0) axis += rank;
    if (axis < 1 || axis >= rank) return c.e().Reject("its axis " + std::to_string(axis) + " does not exist");
  }
  std::ranges::sort(axes);
  std::vector<Extent> shape(static_cast<size_t>(rank), Extent{1});
  for (const int64_t axis : axes) {
    sizes.push_back(c.e().dim(x, static_cast<int>(axis)));
    shape[static_cast<size_t>(axis)] = {sizes.back()};
  }
  const Attrs keep = MakeAttrs("keep_dims", true);
  const ValueId mean = c.e().Op("Mean", {x, c.e().I32s(axes)}, keep);
  const ValueId squares = c.e().Op("SquaredDifference", {x, mean});
  const ValueId variance = c.e().Op("Mean", {squares, c.e().I32s(axes)}, keep);
  const ValueId root =
      c.e().Op("Rsqrt", {c.e().Op("AddV2", {variance, c.e().F32(c.Float("epsilon", 1e-3))})});
  // RMS scaling of Keras 3 leaves the mean alone.
  if (c.Bool("rms_scaling", false)) return c.e().Refuse("rms_scaling");
  ValueId y = c.e().Op("Mul", {c.e().Op("Sub", {x, mean}), root});
  const bool last = axes.size() == 1 && axes[0] == rank - 1;
  const auto placed = [&](const char* name) {
    const ValueId weight = c.Weight(name, sizes);
    return last ? weight : c.e().Reshape(weight, shape);
  };
  if (c.Bool("scale", true)) y = c.e().Op("Mul", {y, placed("gamma")});
  if (c.Bool("center", true)) y = c.e().Op("AddV2", {y, placed("beta")});
  c.Give(y);
}

// Channels last: [batch, space..., groups, channels of a group], normalised over space and the group's channels.
void GroupNormalization(LayerCall& c) {
  const ValueId x = c.in();
  const int rank = c.e().rank(x), axis = Axis(c, rank);
  const int64_t channels = c.e().dim(x, axis);
  int64_t groups = c.Int("groups", 32);
  if (groups == -1) groups = channels;
  if (!c.e().ok()) return;
  if (axis != rank - 1) return c.e().Refuse("an axis other than the last");
  if (channels < 1 || groups < 1 || channels % groups != 0)
    return c.e().Reject("its " + std::to_string(groups) + " groups do not divide " +
                        std::to_string(channels) + " channels");
  std::vector<Extent> split, whole;
  std::vector<int64_t> axes;
  for (int i = 0; i + 1 < rank; ++i) {
    whole.push_back(c.e().size(x, i));
    if (i > 0) axes.push_back(i);
  }
  split = whole;
  split.push_back({groups});
  split.push_back({channels / groups});
  whole.push_back({channels});
  axes.push_back(rank);
  const Attrs keep = MakeAttrs("keep_dims", true);
  const ValueId grouped = c.e().Reshape(x, split), mean = c.e().Op("Mean", {grouped, c.e().I32s(axes)}, keep);
  const ValueId squares = c.e().Op("SquaredDifference", {grouped, mean});
  const ValueId variance = c.e().Op("Mean", {squares, c.e().I32s(axes)}, keep);
  const ValueId root =
      c.e().Op("Rsqrt", {c.e().Op("AddV2", {variance, c.e().F32(c.Float("epsilon", 1e-3))})});
  ValueId y = c.e().Reshape(c.e().Op("Mul", {c.e().Op("Sub", {grouped, mean}), root}), whole);
  if (c.Bool("scale", true)) y = c.e().Op("Mul", {y, c.Weight("gamma", {channels})});
  if (c.Bool("center", true)) y = c.e().Op("AddV2", {y, c.Weight("beta", {channels})});
  c.Give(y);
}

void UnitNormalization(LayerCall& c) {
  const ValueId x = c.in();
  const std::vector<int64_t> axes = c.Has("axis") ? c.Ints("axis") : std::vector<int64_t>{-1};
  const ValueId sum =
      c.e().Op("Sum", {c.e().Op("Square", {x}), c.e().I32s(axes)}, MakeAttrs("keep_dims", true));
  c.Give(c.e().Op("Mul", {x, c.e().Op("Rsqrt", {c.e().Op("Maximum", {sum, c.e().F32(1e-12)})})}));
}

// A number, or a number per channel.
ValueId Numbers(LayerCall& c, const char* key, double otherwise) {
  const auto it = c.config().find(key);
  if (it == c.config().end() || it->is_null()) return c.e().F32(otherwise);
  const json* value = &*it;
  if (value->is_object() && value->contains("config") && (*value)["config"].contains("value"))
    value = &(*value)["config"]["value"];
  if (value->is_number()) return c.e().F32(value->get<double>());
  std::vector<float> numbers;
  const std::function<void(const json&)> collect = [&](const json& from) {
    if (from.is_number()) numbers.push_back(from.get<float>());
    if (from.is_array())
      for (const json& item : from) collect(item);
  };
  collect(*value);
  if (numbers.empty()) c.e().Reject(std::string("its configuration has no numbers ") + key);
  const auto count = static_cast<int64_t>(numbers.size());
  return c.e().Const({{DType::kF32, {count}}, Buffer::Of<float>(numbers)});
}

void Rescaling(LayerCall& c) {
  const ValueId x = c.e().Cast(c.in(), DType::kF32);
  const ValueId scaled = c.e().Op("Mul", {x, Numbers(c, "scale", 1)});
  c.Give(c.e().Op("AddV2", {scaled, Numbers(c, "offset", 0)}));
}

std::vector<WeightSpec> NormalizationWeights(const Layer& layer) {
  if (layer.config.contains("mean") && !layer.config["mean"].is_null()) return {};
  return {{"mean", "vars/0", false}, {"variance", "vars/1", false}};
}

// (x - mean) / max(sqrt(variance), tiny). What older versions store besides, how many samples they saw, is of no use.
void Normalization(LayerCall& c) {
  const ValueId x = c.e().Cast(c.in(), DType::kF32);
  const std::vector<int64_t> axes = c.Has("axis") ? c.Ints("axis") : std::vector<int64_t>();
  const int rank = c.e().rank(x);
  if (axes.size() == 1 && axes[0] != -1 && axes[0] != rank - 1)
    return c.e().Refuse("an axis other than the last");
  if (axes.size() > 1) return c.e().Refuse("several axes");
  ValueId mean, variance;
  if (c.Has("mean")) {
    mean = Numbers(c, "mean", 0);
    variance = Numbers(c, "variance", 1);
  } else {
    int64_t known = 1;
    if (!axes.empty()) known = c.e().dim(x, -1);
    std::vector<Extent> flat = {Extent{known}};
    if (!c.e().ok()) return;
    const std::vector<int64_t> shape = axes.empty() ? std::vector<int64_t>{} : std::vector<int64_t>{known};
    mean = c.Constant(c.WeightData(0, shape), "mean");
    variance = c.Constant(c.WeightData(1, shape), "variance");
  }
  const ValueId deviation = c.e().Op("Maximum", {c.e().Op("Sqrt", {variance}), c.e().F32(1e-7)});
  if (c.Bool("invert", false)) return c.Give(c.e().Op("AddV2", {c.e().Op("Mul", {x, deviation}), mean}));
  c.Give(c.e().Op("RealDiv", {c.e().Op("Sub", {x, mean}), deviation}));
}

}  // namespace

std::span<const LayerRow> NormalizationLayers() {
  static constexpr LayerRow kTable[] = {
      {"BatchNormalization", BatchNormalization, BatchWeights},
      {"BatchNormalizationV1", BatchNormalization, BatchWeights},
      {"BatchNormalizationV2", BatchNormalization, BatchWeights},
      {"SyncBatchNormalization", BatchNormalization, BatchWeights},
      {"LayerNormalization", LayerNormalization, ScaleAndShift},
      {"GroupNormalization", GroupNormalization, ScaleAndShift},
      {"UnitNormalization", UnitNormalization},
      {"Rescaling", Rescaling},
      {"Normalization", Normalization, NormalizationWeights},
  };
  return kTable;
}

}  // namespace fusebox::keras
