// SPDX-License-Identifier: Apache-2.0
// Normalization with stored statistics and with statistics of the input.
#include <algorithm>

#include "converter/import/keras/layer_call.h"

namespace fusebox::keras {
namespace {

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
  const int64_t axis = c.Int("axis", -1);
  const int64_t at = axis < 0 ? axis + rank : axis;
  if (at >= 0 && at < rank) return static_cast<int>(at);
  if (c.emit().ok()) c.emit().Reject("its axis " + std::to_string(axis) + " does not exist");
  return 0;
}

Tensor Filled(int64_t size, float value) {
  return {{DType::kF32, {size}}, Buffer::Of<float>(std::vector<float>(static_cast<size_t>(size), value))};
}

// Reshapes a vector for broadcasting along dimension `axis`.
ValueId AlongAxis(LayerCall& c, ValueId vector, int axis, int rank) {
  if (axis == rank - 1) return vector;
  std::vector<Extent> shape(static_cast<size_t>(rank - axis), Extent{1});
  shape[0] = {c.emit().dim(vector, 0)};
  return c.emit().Reshape(vector, shape);
}

void BatchNormalization(LayerCall& c) {
  const ValueId x = c.in();
  const int rank = c.emit().rank(x);
  const int axis = Axis(c, rank);
  const std::vector<int64_t> shape = {c.emit().dim(x, axis)};
  const ValueId mean = c.Weight("moving_mean", shape);
  const ValueId variance = c.Weight("moving_variance", shape);
  const int64_t channels = c.emit().dim(mean, 0);
  if (!c.emit().ok()) return;
  const ValueId gamma =
      c.Bool("scale", true) ? c.Weight("gamma", {channels}) : c.Constant(Filled(channels, 1), "gamma");
  const ValueId beta =
      c.Bool("center", true) ? c.Weight("beta", {channels}) : c.Constant(Filled(channels, 0), "beta");
  const double epsilon = c.Float("epsilon", 1e-3);
  if (rank == 4 && axis == 3) {
    return c.AddOutput(c.emit().Op("FusedBatchNormV3", {x, gamma, beta, mean, variance},
                                   MakeAttrs("is_training", false, "epsilon", epsilon)));
  }
  const ValueId root = c.emit().Op("Rsqrt", {c.emit().Op("AddV2", {variance, c.emit().F32(epsilon)})});
  const ValueId factor = c.emit().Op("Mul", {root, gamma});
  const ValueId shift = c.emit().Op("Sub", {beta, c.emit().Op("Mul", {mean, factor})});
  const ValueId scaled = c.emit().Op("Mul", {x, AlongAxis(c, factor, axis, rank)});
  c.AddOutput(c.emit().Op("AddV2", {scaled, AlongAxis(c, shift, axis, rank)}));
}

// Over the last axis, or several last axes.
void LayerNormalization(LayerCall& c) {
  const ValueId x = c.in();
  const int rank = c.emit().rank(x);
  std::vector<int64_t> axes = c.Has("axis") ? c.Ints("axis") : std::vector<int64_t>{-1};
  std::vector<int64_t> sizes;
  for (int64_t& axis : axes) {
    if (axis < 0) axis += rank;
    if (axis < 1 || axis >= rank)
      return c.emit().Reject("its axis " + std::to_string(axis) + " does not exist");
  }
  std::ranges::sort(axes);
  std::vector<Extent> shape(static_cast<size_t>(rank), Extent{1});
  for (const int64_t axis : axes) {
    sizes.push_back(c.emit().dim(x, static_cast<int>(axis)));
    shape[static_cast<size_t>(axis)] = {sizes.back()};
  }
  const Attrs keep = MakeAttrs("keep_dims", true);
  const ValueId mean = c.emit().Op("Mean", {x, c.emit().I32s(axes)}, keep);
  const ValueId squares = c.emit().Op("SquaredDifference", {x, mean});
  const ValueId variance = c.emit().Op("Mean", {squares, c.emit().I32s(axes)}, keep);
  const ValueId root =
      c.emit().Op("Rsqrt", {c.emit().Op("AddV2", {variance, c.emit().F32(c.Float("epsilon", 1e-3))})});
  // Keras 3 rms_scaling does not subtract the mean.
  if (c.Bool("rms_scaling", false)) return c.emit().Refuse("rms_scaling");
  ValueId y = c.emit().Op("Mul", {c.emit().Op("Sub", {x, mean}), root});
  const bool last = axes.size() == 1 && axes[0] == rank - 1;
  const auto placed = [&](const char* name) {
    const ValueId weight = c.Weight(name, sizes);
    return last ? weight : c.emit().Reshape(weight, shape);
  };
  if (c.Bool("scale", true)) y = c.emit().Op("Mul", {y, placed("gamma")});
  if (c.Bool("center", true)) y = c.emit().Op("AddV2", {y, placed("beta")});
  c.AddOutput(y);
}

// With channels last, reshapes to [batch, space..., groups, channels per group] and normalizes over space and
// the group's channels. Another axis is moved there and back.
void GroupNormalization(LayerCall& c) {
  ValueId x = c.in();
  const int rank = c.emit().rank(x);
  const int axis = Axis(c, rank);
  std::vector<int64_t> to;
  std::vector<int64_t> back(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i)
    if (i != axis) to.push_back(i);
  to.push_back(axis);
  for (size_t i = 0; i < to.size() && c.emit().ok(); ++i)
    back[static_cast<size_t>(to[i])] = static_cast<int64_t>(i);
  const bool moved = axis != rank - 1;
  if (moved) x = c.emit().Transpose(x, to);
  const int64_t channels = c.emit().dim(x, rank - 1);
  int64_t groups = c.Int("groups", 32);
  if (groups == -1) groups = channels;
  if (!c.emit().ok()) return;
  if (channels < 1 || groups < 1 || channels % groups != 0)
    return c.emit().Reject("its " + std::to_string(groups) + " groups do not divide " +
                           std::to_string(channels) + " channels");
  std::vector<Extent> split;
  std::vector<Extent> whole;
  std::vector<int64_t> axes;
  for (int i = 0; i + 1 < rank; ++i) {
    whole.push_back(c.emit().size(x, i));
    if (i > 0) axes.push_back(i);
  }
  split = whole;
  split.push_back({groups});
  split.push_back({channels / groups});
  whole.push_back({channels});
  axes.push_back(rank);
  const Attrs keep = MakeAttrs("keep_dims", true);
  const ValueId grouped = c.emit().Reshape(x, split);
  const ValueId mean = c.emit().Op("Mean", {grouped, c.emit().I32s(axes)}, keep);
  const ValueId squares = c.emit().Op("SquaredDifference", {grouped, mean});
  const ValueId variance = c.emit().Op("Mean", {squares, c.emit().I32s(axes)}, keep);
  const ValueId root =
      c.emit().Op("Rsqrt", {c.emit().Op("AddV2", {variance, c.emit().F32(c.Float("epsilon", 1e-3))})});
  ValueId y = c.emit().Reshape(c.emit().Op("Mul", {c.emit().Op("Sub", {grouped, mean}), root}), whole);
  if (c.Bool("scale", true)) y = c.emit().Op("Mul", {y, c.Weight("gamma", {channels})});
  if (c.Bool("center", true)) y = c.emit().Op("AddV2", {y, c.Weight("beta", {channels})});
  c.AddOutput(moved ? c.emit().Transpose(y, back) : y);
}

std::vector<WeightSpec> RmsWeights(const Layer&) { return {{"scale", "vars/0"}}; }

// x / sqrt(mean(x^2)) along the last axis, without a mean.
void RmsNormalization(LayerCall& c) {
  const ValueId x = c.in();
  const int rank = c.emit().rank(x);
  const int axis = Axis(c, rank);
  if (axis != rank - 1) return c.emit().Refuse("an axis other than the last");
  const ValueId squares =
      c.emit().Op("Mean", {c.emit().Op("Square", {x}), c.emit().I32s({-1})}, MakeAttrs("keep_dims", true));
  const ValueId root =
      c.emit().Op("Rsqrt", {c.emit().Op("AddV2", {squares, c.emit().F32(c.Float("epsilon", 1e-6))})});
  c.AddOutput(c.emit().Op("Mul", {c.emit().Op("Mul", {x, root}), c.Weight("scale", {c.emit().dim(x, -1)})}));
}

void UnitNormalization(LayerCall& c) {
  const ValueId x = c.in();
  const std::vector<int64_t> axes = c.Has("axis") ? c.Ints("axis") : std::vector<int64_t>{-1};
  const ValueId sum =
      c.emit().Op("Sum", {c.emit().Op("Square", {x}), c.emit().I32s(axes)}, MakeAttrs("keep_dims", true));
  c.AddOutput(
      c.emit().Op("Mul", {x, c.emit().Op("Rsqrt", {c.emit().Op("Maximum", {sum, c.emit().F32(1e-12)})})}));
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
      {"RMSNormalization", RmsNormalization, RmsWeights},
  };
  return kTable;
}

}  // namespace fusebox::keras
