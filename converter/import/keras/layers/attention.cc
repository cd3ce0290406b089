// SPDX-License-Identifier: Apache-2.0
// Attention: dot-product, additive and multi-head.
#include <cmath>

#include "converter/import/keras/layer_call.h"

namespace fusebox::keras {
namespace {

// Zero weight after a softmax, but finite.
constexpr double kFarBelow = -1e9;

}  // namespace

ValueId CausalMask(LayerCall& c, ValueId scores) {
  const int64_t rows = c.emit().dim(scores, -2);
  const int64_t columns = c.emit().dim(scores, -1);
  if (!c.emit().ok()) return kNoValue;
  if (rows < 0 || columns < 0 || rows > (1 << 13) || columns > (1 << 13)) {
    c.emit().Refuse("a causal mask over " + ToString(c.emit().type(scores)) +
                    ", whose sizes must be known and moderate");
    return kNoValue;
  }
  std::vector<uint8_t> seen;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < columns; ++k) seen.push_back(k <= r);
  return c.emit().Const({{DType::kBool, {rows, columns}}, Buffer::Of<uint8_t>(seen)});
}

ValueId Masked(LayerCall& c, ValueId scores, ValueId mask) {
  const ValueId out = c.emit().Op("Sub", {c.emit().F32(1), c.emit().Cast(mask, DType::kF32)});
  return c.emit().Op("AddV2", {scores, c.emit().Op("Mul", {out, c.emit().F32(kFarBelow)})});
}

namespace {

bool Additive(const Layer& layer) { return layer.class_name == "AdditiveAttention"; }
bool Concatenating(const Layer& layer) {
  const auto it = layer.config.find("score_mode");
  return it != layer.config.end() && *it == "concat";
}

std::vector<WeightSpec> AttentionWeights(const Layer& layer) {
  std::vector<WeightSpec> out;
  if (ConfigFlag(layer, "use_scale", Additive(layer))) out.push_back({"scale", "vars/0"});
  if (!Additive(layer) && Concatenating(layer))
    out.push_back({"concat_score_weight", "vars/" + std::to_string(out.size())});
  return out;
}

// Additive scores: sums of tanh over the features of every pair of query and key.
ValueId PairScores(LayerCall& c, ValueId query, ValueId key, ValueId before, ValueId after) {
  const ValueId q = c.emit().Op("ExpandDims", {query, c.emit().I32(2)});
  const ValueId k = c.emit().Op("ExpandDims", {key, c.emit().I32(1)});
  ValueId sum = c.emit().Op("AddV2", {q, k});
  if (before != kNoValue) sum = c.emit().Op("Mul", {sum, before});
  ValueId bent = c.emit().Op("Tanh", {sum});
  if (after != kNoValue) bent = c.emit().Op("Mul", {bent, after});
  return c.emit().Op("Sum", {bent, c.emit().I32s({-1})});
}

ValueId Scores(LayerCall& c, ValueId query, ValueId key) {
  if (Additive(c.layer())) {
    const ValueId scale = c.Bool("use_scale", true) ? c.Weight("scale", {c.emit().dim(query, -1)}) : kNoValue;
    return PairScores(c, query, key, kNoValue, scale);
  }
  const ValueId scale = c.Bool("use_scale", false) ? c.Weight("scale", {}) : kNoValue;
  if (Concatenating(c.layer())) {
    const ValueId scores = PairScores(c, query, key, scale, kNoValue);
    return c.emit().Op("Mul", {scores, c.Weight("concat_score_weight", {})});
  }
  const ValueId scores = c.emit().Op("BatchMatMulV2", {query, key}, MakeAttrs("adj_y", true));
  return scale == kNoValue ? scores : c.emit().Op("Mul", {scores, scale});
}

bool Flag(LayerCall& c, const char* keyword, bool otherwise) {
  const Given* given = c.Keyword(keyword);
  const auto* value = given ? std::get_if<nlohmann::json>(&given->value) : nullptr;
  return value && value->is_boolean() ? value->get<bool>() : otherwise;
}

// Inputs: query, value and an optional key.
void Attention(LayerCall& c) {
  const ValueId query = c.in(0);
  const ValueId value = c.in(1);
  const ValueId key = c.inputs().size() > 2 ? c.in(2) : value;
  ValueId scores = Scores(c, query, key);
  const bool causal = Flag(c, "use_causal_mask", c.Bool("causal", false));
  ValueId query_mask = c.mask(0);
  ValueId value_mask = c.mask(1);
  if (const Given* given = c.Keyword("mask")) {
    const auto* list = std::get_if<std::vector<Given>>(&given->value);
    const auto at = [&](size_t i) {
      const auto* flow = list && i < list->size() ? std::get_if<Flow>(&(*list)[i].value) : nullptr;
      return flow ? flow->value : kNoValue;
    };
    query_mask = at(0);
    value_mask = at(1);
  }
  // All masks are added once: if a query attends to nothing, its keys keep equal weights.
  ValueId seen = causal ? CausalMask(c, scores) : kNoValue;
  if (value_mask != kNoValue) {
    const ValueId keys = c.emit().Op("ExpandDims", {value_mask, c.emit().I32(1)});
    seen = seen == kNoValue ? keys : c.emit().Op("LogicalAnd", {seen, keys});
  }
  if (seen != kNoValue) scores = Masked(c, scores, seen);
  const ValueId weights = c.emit().Op("Softmax", {scores});
  ValueId out = c.emit().Op("BatchMatMulV2", {weights, value});
  if (query_mask != kNoValue) {
    const ValueId kept = c.emit().Op("ExpandDims", {c.emit().Cast(query_mask, DType::kF32), c.emit().I32(2)});
    out = c.emit().Op("Mul", {out, kept});
  }
  c.AddOutput(out, query_mask);
  if (Flag(c, "return_attention_scores", false)) c.AddOutput(weights);
}

std::vector<WeightSpec> HeadWeights(const Layer& layer) {
  std::vector<WeightSpec> out;
  for (const char* part : {"query", "key", "value", "output"}) {
    out.push_back({std::string(part) + "_kernel", std::string(part) + "_dense/vars/0"});
    if (ConfigFlag(layer, "use_bias", true))
      out.push_back({std::string(part) + "_bias", std::string(part) + "_dense/vars/1"});
  }
  return out;
}

// [batch, time, features] -> [batch, time, heads, size]
ValueId ToHeads(LayerCall& c, const std::string& part, ValueId v, int64_t heads, int64_t size) {
  const ValueId kernel = c.Weight(part + "_kernel", {c.emit().dim(v, -1), heads, size});
  const ValueId out = c.emit().Op("Einsum", {v, kernel}, MakeAttrs("equation", "abc,cde->abde"));
  if (!c.Bool("use_bias", true)) return out;
  return c.emit().Op("AddV2", {out, c.Weight(part + "_bias", {heads, size})});
}

Flow Argument(LayerCall& c, size_t position, const char* keyword) {
  const Given* given = position < c.args().size() ? &c.args()[position] : c.Keyword(keyword);
  const auto* flow = given ? std::get_if<Flow>(&given->value) : nullptr;
  return flow ? *flow : Flow{};
}

// All masks combined: [batch, 1, queries, keys].
ValueId HeadMasks(LayerCall& c, ValueId scores, const Flow& query, const Flow& value, const Flow& key) {
  const auto spread = [&](ValueId mask, std::vector<int64_t> axes) {
    for (const int64_t axis : axes) mask = c.emit().Op("ExpandDims", {mask, c.emit().I32(axis)});
    return mask;
  };
  ValueId all = kNoValue;
  const auto require = [&](ValueId mask) {
    mask = c.emit().Cast(mask, DType::kBool);
    all = all == kNoValue ? mask : c.emit().Op("LogicalAnd", {all, mask});
  };
  if (const ValueId given = c.KeywordTensor("attention_mask"); given != kNoValue)
    require(c.emit().rank(given) == 4 ? given : spread(given, {1}));
  if (query.mask != kNoValue) require(spread(query.mask, {1, 3}));
  if (value.mask != kNoValue) require(spread(value.mask, {1, 2}));
  if (key.mask != kNoValue && key.value != value.value) require(spread(key.mask, {1, 2}));
  if (Flag(c, "use_causal_mask", false)) require(CausalMask(c, scores));
  return all == kNoValue ? scores : Masked(c, scores, all);
}

void MultiHeadAttention(LayerCall& c) {
  Flow query = Argument(c, 0, "query");
  Flow value = Argument(c, 1, "value");
  Flow key = Argument(c, 2, "key");
  const auto name_mask = [&](const char* keyword, Flow& flow) {
    if (const ValueId mask = c.KeywordTensor(keyword); mask != kNoValue) flow.mask = mask;
  };
  name_mask("query_mask", query);
  name_mask("value_mask", value);
  name_mask("key_mask", key);
  if (key.value == kNoValue) key = value;
  if (query.value == kNoValue || value.value == kNoValue)
    return c.emit().Reject("it is called without query or value");
  for (const ValueId v : {query.value, value.value, key.value})
    if (c.emit().rank(v) != 3 && c.emit().ok())
      return c.emit().Refuse("an input " + ToString(c.emit().type(v)) + "; three dimensions are supported");
  if (c.Has("attention_axes") && c.Ints("attention_axes") != std::vector<int64_t>{1})
    return c.emit().Refuse("attention_axes other than the time");
  const int64_t heads = c.Int("num_heads");
  const int64_t size = c.Int("key_dim");
  const int64_t value_size = c.Int("value_dim", size);
  if (size < 1) return c.emit().Reject("its key_dim is " + std::to_string(size));
  ValueId q = ToHeads(c, "query", query.value, heads, size);
  const ValueId k = ToHeads(c, "key", key.value, heads, size);
  const ValueId v = ToHeads(c, "value", value.value, heads, value_size);
  q = c.emit().Op("Mul", {q, c.emit().F32(1 / std::sqrt(static_cast<double>(size)))});
  ValueId scores = c.emit().Op("Einsum", {k, q}, MakeAttrs("equation", "aecd,abcd->acbe"));
  scores = HeadMasks(c, scores, query, value, key);
  const ValueId weights = c.emit().Op("Softmax", {scores});
  const ValueId mixed = c.emit().Op("Einsum", {weights, v}, MakeAttrs("equation", "acbe,aecd->abcd"));
  const ValueId kernel = c.Weight("output_kernel", {heads, value_size, -1});
  ValueId out = c.emit().Op("Einsum", {mixed, kernel}, MakeAttrs("equation", "abcd,cde->abe"));
  if (c.Bool("use_bias", true))
    out = c.emit().Op("AddV2", {out, c.Weight("output_bias", {c.emit().dim(kernel, 2)})});
  c.AddOutput(out, query.mask);
  if (Flag(c, "return_attention_scores", false)) c.AddOutput(weights);
}

}  // namespace

std::span<const LayerRow> AttentionLayers() {
  static constexpr LayerRow kTable[] = {
      {"Attention", Attention, AttentionWeights, MaskRule::kOwn},
      {"AdditiveAttention", Attention, AttentionWeights, MaskRule::kOwn},
      {"MultiHeadAttention", MultiHeadAttention, HeadWeights, MaskRule::kOwn},
  };
  return kTable;
}

}  // namespace fusebox::keras
