// SPDX-License-Identifier: Apache-2.0
// Normalization and attention whose parameters are operands, and functions on classes.
#include <algorithm>
#include <cmath>

#include "converter/import/keras/layers/operation.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;

// keras.config.epsilon()
constexpr double kTiny = 1e-7;

bool IsGiven(const Given* given) {
  const auto* plain = given ? std::get_if<json>(&given->value) : nullptr;
  return given && !(plain && plain->is_null());
}

// An operand that may be missing: kNoValue.
ValueId OptionalFloat(LayerCall& c, size_t position, Names names) {
  const Given* given = FindArgument(c, position, names);
  return IsGiven(given) ? Operand(c, given, DType::kF32) : kNoValue;
}

// A parameter with one size per normalized axis, for broadcasting.
ValueId AcrossAxes(LayerCall& c, ValueId v, const std::vector<int64_t>& axes, int rank) {
  const bool last = axes.size() == 1 && axes[0] == rank - 1;
  if (last || c.emit().rank(v) == rank || !c.emit().ok()) return v;
  std::vector<Extent> shape(static_cast<size_t>(rank), Extent{1});
  if (c.emit().rank(v) != std::ssize(axes)) {
    c.emit().Refuse("a parameter " + ToString(c.emit().type(v)));
    return v;
  }
  for (size_t i = 0; i < axes.size(); ++i)
    shape[static_cast<size_t>(axes[i])] = c.emit().size(v, static_cast<int>(i));
  return c.emit().Reshape(v, shape);
}

// x * rsqrt(spread + epsilon) * factor + shift
ValueId Normalized(LayerCall& c, ValueId x, ValueId spread, double epsilon, ValueId factor, ValueId shift) {
  const ValueId root = c.emit().Op("Rsqrt", {c.emit().Op("AddV2", {spread, c.emit().F32(epsilon)})});
  x = c.emit().Op("Mul", {x, root});
  if (factor != kNoValue) x = c.emit().Op("Mul", {x, factor});
  return shift == kNoValue ? x : c.emit().Op("AddV2", {x, shift});
}

// Keras 3 has parameters of one axis, TensorFlow broadcasts them.
void BatchNorm(LayerCall& c, std::string_view) {
  const ValueId x = FloatArgument(c, 0, {"x"});
  const int rank = c.emit().rank(x);
  const std::vector<int64_t> axes = AxesOf(c, {IntArgument(c, kKeywordOnly, {"axis"}, -1)}, rank);
  const auto placed = [&](ValueId v) { return v == kNoValue ? v : AcrossAxes(c, v, axes, rank); };
  const ValueId mean = placed(FloatArgument(c, 1, {"mean"}));
  const ValueId variance = placed(FloatArgument(c, 2, {"variance"}));
  const ValueId offset = placed(OptionalFloat(c, 3, {"offset"}));
  const ValueId scale = placed(OptionalFloat(c, 4, {"scale"}));
  const double epsilon = NumberArgument(c, kKeywordOnly, {"epsilon", "variance_epsilon"}, 1e-3);
  c.AddOutput(Normalized(c, c.emit().Op("Sub", {x, mean}), variance, epsilon, scale, offset));
}

void LayerNorm(LayerCall& c, std::string_view kind) {
  const ValueId x = FloatArgument(c, 0, {"x"});
  const int rank = c.emit().rank(x);
  std::vector<int64_t> axes =
      AxesOf(c, IntsArgument(c, kKeywordOnly, {"axis"}).value_or(std::vector<int64_t>{-1}), rank);
  std::ranges::sort(axes);
  const bool rms = kind == "rms";
  const ValueId factor = OptionalFloat(c, 1, {"gamma", "scale"});
  const ValueId shift = rms ? kNoValue : OptionalFloat(c, 2, {"beta"});
  const double epsilon = NumberArgument(c, kKeywordOnly, {"epsilon"}, kTiny);
  // With this setting, the variance is about the mean, which is not subtracted.
  const bool keeps_mean = FlagArgument(c, kKeywordOnly, {"rms_scaling"});
  const auto mean = [&](ValueId v) {
    return c.emit().Op("Mean", {v, c.emit().I32s(axes)}, MakeAttrs("keep_dims", true));
  };
  const auto placed = [&](ValueId v) { return v == kNoValue || rms ? v : AcrossAxes(c, v, axes, rank); };
  const ValueId middle = rms ? kNoValue : mean(x);
  const ValueId spread =
      rms ? mean(c.emit().Op("Square", {x})) : mean(c.emit().Op("SquaredDifference", {x, middle}));
  const ValueId centered = rms || keeps_mean ? x : c.emit().Op("Sub", {x, middle});
  c.AddOutput(
      Normalized(c, centered, spread, epsilon, placed(factor), keeps_mean ? kNoValue : placed(shift)));
}

// [batch, time, heads, size] queries, keys and values; the scores are [batch, heads, queries, keys].
void DotProductAttention(LayerCall& c, std::string_view) {
  const ValueId query = FloatArgument(c, 0, {"query"});
  ValueId key = FloatArgument(c, 1, {"key"});
  ValueId value = FloatArgument(c, 2, {"value"});
  for (const ValueId v : {query, key, value})
    if (c.emit().ok() && c.emit().rank(v) != 4) c.emit().Refuse("an operand " + ToString(c.emit().type(v)));
  Ignore(c, {"flash_attention"});  // the same values
  const ValueId bias = OptionalFloat(c, 3, {"bias"});
  const Given* mask = FindArgument(c, 4, {"mask"});
  const bool causal = FlagArgument(c, kKeywordOnly, {"is_causal"});
  const double size = static_cast<double>(c.emit().dim(query, -1));
  const json said = PlainArgument(c, 5, {"scale"});
  if (!PlainArgument(c, kKeywordOnly, {"attn_logits_soft_cap"}).is_null())
    return c.emit().Refuse("attn_logits_soft_cap");
  if (c.emit().ok() && said.is_null() && size < 1) return c.emit().Refuse("heads of unknown size");
  const double scale = NumberArgument(c, 5, {"scale"}, 1 / std::sqrt(size));
  if (c.emit().ok() && c.emit().dim(query, 2) != c.emit().dim(key, 2) && c.emit().dim(key, 2) != 1)
    return c.emit().Refuse("queries of more heads than keys");
  const auto by_head = [&](ValueId v) { return c.emit().Transpose(v, {0, 2, 1, 3}); };
  ValueId scores =
      c.emit().Op("BatchMatMulV2", {by_head(query), by_head(key)}, MakeAttrs("adj_x", false, "adj_y", true));
  scores = c.emit().Op("Mul", {scores, c.emit().F32(scale)});
  if (bias != kNoValue) scores = c.emit().Op("AddV2", {scores, bias});
  ValueId seen = IsGiven(mask) ? Operand(c, mask, DType::kBool) : kNoValue;
  if (causal) {
    const ValueId earlier = CausalMask(c, scores);
    seen = seen == kNoValue ? earlier : c.emit().Op("LogicalAnd", {seen, earlier});
  }
  if (seen != kNoValue) scores = Masked(c, scores, seen);
  c.AddOutput(by_head(c.emit().Op("BatchMatMulV2", {c.emit().Op("Softmax", {scores}), by_head(value)})));
}

// Ones at the classes in the second dimension, or in the only one.
void MultiHot(LayerCall& c, std::string_view) {
  const int64_t depth = IntArgument(c, kKeywordOnly, {"num_classes", "num_tokens"}, 0);
  const int64_t axis = IntArgument(c, kKeywordOnly, {"axis"}, -1);
  const json type = PlainArgument(c, kKeywordOnly, {"dtype"});
  if (FlagArgument(c, kKeywordOnly, {"sparse"})) return c.emit().Refuse("a sparse result");
  if (!type.is_null() && type != "float32") return c.emit().Refuse("its dtype " + type.dump().substr(0, 80));
  if (depth < 1 || axis != -1) return c.emit().Refuse("an unknown number of classes, or an axis");
  const ValueId x = c.emit().dtype(c.in()) == DType::kF32 ? c.emit().Cast(c.in(), DType::kI32) : c.in();
  const ValueId hot = c.emit().Op("OneHot", {x, c.emit().I32(depth), c.emit().F32(1), c.emit().F32(0)},
                                  MakeAttrs("axis", axis));
  c.AddOutput(c.emit().Op("Max", {hot, c.emit().I32s({c.emit().rank(x) > 1 ? 1 : 0})}));
}

// The nearest point of the simplex: with elements sorted from the largest, those that stay positive are the
// first n with 1 + n z_n > sum of z_1 to z_n.
void Sparsemax(LayerCall& c, std::string_view) {
  const ValueId x = FloatArgument(c, 0, {"x"});
  const int rank = c.emit().rank(x);
  const int64_t axis = AxesOf(c, {IntArgument(c, 1, {"axis"}, -1)}, rank)[0];
  if (c.emit().ok() && axis != rank - 1) return c.emit().Refuse("an axis other than the last");
  const int64_t size = c.emit().dim(x, -1);
  if (c.emit().ok() && (size < 1 || size > (1 << 16))) c.emit().Refuse("an axis of unknown size");
  if (!c.emit().ok()) return;
  std::vector<float> numbers;
  for (int64_t i = 1; i <= size; ++i) numbers.push_back(static_cast<float>(i));
  const ValueId places = c.emit().Const({{DType::kF32, {size}}, Buffer::Of<float>(numbers)});
  const ValueId sorted = c.emit().Ops("TopKV2", {x, c.emit().I32(size)}, {}, 2)[0];
  const ValueId sums = c.emit().Op("Cumsum", {sorted, c.emit().I32(-1)});
  const ValueId bound = c.emit().Op("AddV2", {c.emit().Op("Mul", {sorted, places}), c.emit().F32(1)});
  const ValueId stays = c.emit().Cast(c.emit().Op("Greater", {bound, sums}), DType::kF32);
  const auto total = [&](ValueId v) {
    return c.emit().Op("Sum", {v, c.emit().I32s({-1})}, MakeAttrs("keep_dims", true));
  };
  const ValueId over = c.emit().Op("Sub", {total(c.emit().Op("Mul", {sorted, stays})), c.emit().F32(1)});
  const ValueId threshold = c.emit().Op("RealDiv", {over, total(stays)});
  c.AddOutput(c.emit().Op("Relu", {c.emit().Op("Sub", {x, threshold})}));
}

}  // namespace

std::span<const NamedOperation> NetworkOperations() {
  static constexpr NamedOperation kTable[] = {
      {"batchnorm", {"", BatchNorm}},
      {"batchnormalization", {"", BatchNorm}},
      {"layernorm", {"", LayerNorm}},
      {"rmsnorm", {"rms", LayerNorm}},
      {"dotproductattention", {"", DotProductAttention}},
      {"multihot", {"", MultiHot}},
      {"sparsemax", {"", Sparsemax}},
  };
  return kTable;
}

}  // namespace fusebox::keras
