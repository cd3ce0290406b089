// SPDX-License-Identifier: Apache-2.0
// Feature preprocessing: scaling, buckets and category encodings.
#include <algorithm>
#include <functional>

#include "converter/import/keras/layers/encoding.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;

// A number, or one per channel.
ValueId PerChannel(LayerCall& c, const char* key, double otherwise) {
  const auto it = c.config().find(key);
  if (it == c.config().end() || it->is_null()) return c.emit().F32(otherwise);
  const json* value = &*it;
  if (value->is_object() && value->contains("config") && (*value)["config"].contains("value"))
    value = &(*value)["config"]["value"];
  if (value->is_number()) return c.emit().F32(value->get<double>());
  std::vector<float> numbers;
  const std::function<void(const json&)> collect = [&](const json& from) {
    if (from.is_number()) numbers.push_back(from.get<float>());
    if (from.is_array())
      for (const json& item : from) collect(item);
  };
  collect(*value);
  if (numbers.empty()) c.emit().Reject(std::string("its configuration has no numbers ") + key);
  const auto count = static_cast<int64_t>(numbers.size());
  return c.emit().Const({{DType::kF32, {count}}, Buffer::Of<float>(numbers)});
}

void Rescaling(LayerCall& c) {
  const ValueId x = c.emit().Cast(c.in(), DType::kF32);
  const ValueId scaled = c.emit().Op("Mul", {x, PerChannel(c, "scale", 1)});
  c.AddOutput(c.emit().Op("AddV2", {scaled, PerChannel(c, "offset", 0)}));
}

std::vector<WeightSpec> NormalizationWeights(const Layer& layer) {
  if (layer.config.contains("mean") && !layer.config["mean"].is_null()) return {};
  return {{"mean", "vars/0", false}, {"variance", "vars/1", false}};
}

// (x - mean) / max(sqrt(variance), epsilon). Older versions also store a sample count, which is unused.
void Normalization(LayerCall& c) {
  const ValueId x = c.emit().Cast(c.in(), DType::kF32);
  const std::vector<int64_t> axes = c.Has("axis") ? c.Ints("axis") : std::vector<int64_t>();
  const int rank = c.emit().rank(x);
  if (axes.size() == 1 && axes[0] != -1 && axes[0] != rank - 1)
    return c.emit().Refuse("an axis other than the last");
  if (axes.size() > 1) return c.emit().Refuse("several axes");
  ValueId mean;
  ValueId variance;
  if (c.Has("mean")) {
    mean = PerChannel(c, "mean", 0);
    variance = PerChannel(c, "variance", 1);
  } else {
    int64_t known = 1;
    if (!axes.empty()) known = c.emit().dim(x, -1);
    std::vector<Extent> flat = {Extent{known}};
    if (!c.emit().ok()) return;
    const std::vector<int64_t> shape = axes.empty() ? std::vector<int64_t>{} : std::vector<int64_t>{known};
    mean = c.Constant(c.WeightData(0, shape), "mean");
    variance = c.Constant(c.WeightData(1, shape), "variance");
  }
  const ValueId deviation = c.emit().Op("Maximum", {c.emit().Op("Sqrt", {variance}), c.emit().F32(1e-7)});
  if (c.Bool("invert", false))
    return c.AddOutput(c.emit().Op("AddV2", {c.emit().Op("Mul", {x, deviation}), mean}));
  c.AddOutput(c.emit().Op("RealDiv", {c.emit().Op("Sub", {x, mean}), deviation}));
}

void CategoryEncoding(LayerCall& c) {
  const int64_t depth = c.Has("num_tokens") ? c.Int("num_tokens") : c.Int("max_tokens");
  if (c.inputs().size() > 1 || c.Keyword("count_weights"))
    return c.emit().Refuse("weights of what it counts");
  if (depth < 1 || depth > (1 << 24)) return c.emit().Reject("its num_tokens is " + std::to_string(depth));
  c.AddOutput(Encoded(c, c.emit().Cast(c.in(), DType::kI32), depth, c.Str("output_mode", "multi_hot")));
}

// The number of boundaries up to each value.
void Discretization(LayerCall& c) {
  const json given = c.config().value("bin_boundaries", json());
  std::vector<double> boundaries;
  if (given.is_array())
    for (const json& item : given)
      if (item.is_number()) boundaries.push_back(item.get<float>());  // BUCKETIZE stores f32 boundaries
  if (boundaries.empty() || boundaries.size() != given.size() || !std::ranges::is_sorted(boundaries))
    return c.emit().Reject(
        "its bin_boundaries are not ascending numbers; adapt the layer before saving the model");
  const auto depth = static_cast<int64_t>(boundaries.size()) + 1;
  const ValueId x = c.emit().Cast(c.in(), DType::kF32);
  const ValueId bins = c.emit().Op("Bucketize", {x}, MakeAttrs("boundaries", std::move(boundaries)));
  const std::string mode = c.Str("output_mode", "int");
  if (mode == "int") return c.AddOutput(c.emit().Cast(bins, c.keras() < 3 ? DType::kI64 : DType::kI32));
  c.AddOutput(Encoded(c, bins, depth, mode));
}

}  // namespace

ValueId Encoded(LayerCall& c, ValueId numbers, int64_t depth, const std::string& mode) {
  if (c.Bool("sparse", false)) c.emit().Refuse("a sparse result");
  const auto hot = [&](ValueId ids) {
    return c.emit().Op("OneHot", {ids, c.emit().I32(depth), c.emit().F32(1), c.emit().F32(0)});
  };
  const int rank = c.emit().rank(numbers);
  if (rank == 1 || (mode == "one_hot" && c.emit().dim(numbers, -1) != 1)) return hot(numbers);
  if (mode == "one_hot")
    return hot(c.emit().Op("Squeeze", {numbers}, MakeAttrs("squeeze_dims", std::vector<int64_t>{-1})));
  if (mode == "multi_hot" || mode == "binary") return c.emit().Op("Max", {hot(numbers), c.emit().I32s({-2})});
  if (mode == "count") return c.emit().Op("Sum", {hot(numbers), c.emit().I32s({-2})});
  c.emit().Refuse("output_mode " + mode);
  return kNoValue;
}

std::span<const LayerRow> PreprocessingLayers() {
  static constexpr LayerRow kTable[] = {
      {"Rescaling", Rescaling},
      {"Normalization", Normalization, NormalizationWeights},
      {"CategoryEncoding", CategoryEncoding},
      {"Discretization", Discretization},
  };
  return kTable;
}

}  // namespace fusebox::keras
