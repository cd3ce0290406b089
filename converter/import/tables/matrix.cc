// SPDX-License-Identifier: Apache-2.0
// Matrix products, convolutions, pooling, batch normalization.
#include <limits>

#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

Status MatMul(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  ValueId a = t.in(0);
  ValueId b = t.in(1);
  if (!IsFloat(t.in_type(0).dtype))
    return Unsupported("a product of " + std::string(Name(t.in_type(0).dtype)));
  const bool turn_a = t.attrs().b("transpose_a", false);
  const bool turn_b = t.attrs().b("transpose_b", false);
  const auto size = [&](size_t i, bool last) {
    const Shape& shape = t.in_type(i).shape;
    return shape.rank() == 2 ? shape[last ? 1 : 0] : -1;
  };
  // FULLY_CONNECTED would split the values of `a` into rows of another length.
  const int64_t summed = size(0, !turn_a);
  const int64_t rows = size(1, turn_b);
  if (summed >= 0 && rows >= 0 && summed != rows)
    return Invalid(ToString(t.in_type(0)) + " times " + ToString(t.in_type(1)) + ": the sizes differ");
  if (turn_a) a = t.Transpose(a, {1, 0});
  if (!turn_b) b = t.Transpose(b, {1, 0});  // weights of FULLY_CONNECTED are [out, in]
  return t.Return(t.Value(Op::kFullyConnected, {a, b, kNoValue}));
}

Status BatchMatMul(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  if (t.in_type(0).dtype != DType::kNone && !IsFloat(t.in_type(0).dtype))
    return Unsupported("a product of " + std::string(Name(t.in_type(0).dtype)));
  return t.Return(t.Value(Op::kBatchMatmul, {t.in(0), t.in(1)}, t.Flags({"adj_x", "adj_y"})));
}

// TFLite supports only NHWC; NCHW ops run between two transposes.
struct Layout {
  bool nchw = false;
  ValueId In(Translation& t, ValueId v) const { return nchw ? t.Transpose(v, {0, 2, 3, 1}) : v; }
  ValueId Out(Translation& t, ValueId v) const { return nchw ? t.Transpose(v, {0, 3, 1, 2}) : v; }
  int height() const { return nchw ? 2 : 1; }
};

Result<Layout> LayoutOf(Translation& t) {
  const std::string format = t.attrs().str("data_format", "NHWC");
  if (format != "NHWC" && format != "NCHW") return Unsupported("data_format " + format);
  return Layout{format == "NCHW"};
}

int64_t At(const std::vector<int64_t>& values, int i) {
  return i < static_cast<int>(values.size()) ? values[static_cast<size_t>(i)] : 1;
}

ValueId Lowest(Translation& t, DType dtype) {
  return t.Scalar(dtype, dtype == DType::kF64 ? std::numeric_limits<double>::lowest()
                                              : double{std::numeric_limits<float>::lowest()});
}

// Strides, padding and dilations. EXPLICIT padding becomes a PAD of `x`, with the lowest value for MAX_POOL.
Result<Attrs> Window(Translation& t, const Layout& layout, ValueId& x, bool lowest = false) {
  Attrs attrs;
  const auto strides = t.attrs().i64s("strides");
  const auto dilations = t.attrs().i64s("dilations");
  attrs.Set("stride_h", At(strides, layout.height()));
  attrs.Set("stride_w", At(strides, layout.height() + 1));
  if (const int64_t d = At(dilations, layout.height()); d != 1) attrs.Set("dilation_h_factor", d);
  if (const int64_t d = At(dilations, layout.height() + 1); d != 1) attrs.Set("dilation_w_factor", d);
  std::string padding = t.attrs().str("padding", "VALID");
  if (padding == "EXPLICIT") {
    const auto pads = t.attrs().i64s("explicit_paddings");
    if (pads.size() != 8)
      return Invalid("explicit_paddings has " + std::to_string(pads.size()) + " values, expected 8");
    const size_t h = static_cast<size_t>(layout.height()) * 2;
    std::vector<int32_t> amounts = {0, 0};
    for (size_t i = h; i < h + 4; ++i) amounts.push_back(static_cast<int32_t>(pads[i]));
    amounts.insert(amounts.end(), {0, 0});
    const ValueId table = t.Reshape(t.I32(std::move(amounts)), {4, 2});
    x = lowest ? t.Value(Op::kPadV2, {x, table, Lowest(t, t.type(x).dtype)}) : t.Value(Op::kPad, {x, table});
    padding = "VALID";
  }
  if (padding != "SAME" && padding != "VALID") return Unsupported("padding " + padding);
  if (padding != "SAME") attrs.Set("padding", padding);
  return attrs;
}

Result<ValueId> ZeroBias(Translation& t, int64_t channels) {
  if (channels < 0) return Unsupported("the number of output channels is not known");
  const DType dtype = t.in_type(0).dtype;
  if (dtype != DType::kF32 && dtype != DType::kF64)
    return Unsupported("a convolution of " + std::string(Name(dtype)));
  return t.Value(Op::kFill, {t.I32({static_cast<int32_t>(channels)}), t.Scalar(dtype, 0)});
}

Status Conv2D(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  FUSEBOX_ASSIGN(const Layout layout, LayoutOf(t));
  const Shape filter = t.in_type(1).shape;  // copied: Emit invalidates references
  if (filter.rank() != 4) return Unsupported("the filter's rank is not known to be 4");
  ValueId x = layout.In(t, t.in(0));
  FUSEBOX_ASSIGN(Attrs attrs, Window(t, layout, x));
  FUSEBOX_ASSIGN(const ValueId bias, ZeroBias(t, filter[3]));
  const ValueId ohwi = t.Transpose(t.in(1), {3, 0, 1, 2});
  return t.Return(layout.Out(t, t.Value(Op::kConv2D, {x, ohwi, bias}, std::move(attrs))));
}

Status DepthwiseConv2D(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  FUSEBOX_ASSIGN(const Layout layout, LayoutOf(t));
  const Shape filter = t.in_type(1).shape;  // copied: Emit invalidates references
  if (filter.rank() != 4 || !filter.is_static()) return Unsupported("the filter's shape is not known");
  const int64_t channels = filter[2] * filter[3];
  const auto h = static_cast<int32_t>(filter[0]);
  const auto w = static_cast<int32_t>(filter[1]);
  const int64_t multiplier = filter[3];
  ValueId x = layout.In(t, t.in(0));
  FUSEBOX_ASSIGN(Attrs attrs, Window(t, layout, x));
  attrs.Set("depth_multiplier", multiplier);
  FUSEBOX_ASSIGN(const ValueId bias, ZeroBias(t, channels));
  const ValueId flat = t.Reshape(t.in(1), {1, h, w, static_cast<int32_t>(channels)});
  return t.Return(layout.Out(t, t.Value(Op::kDepthwiseConv2D, {x, flat, bias}, std::move(attrs))));
}

// The gradient of a convolution (Keras' Conv2DTranspose). The filter is [height, width, out, in].
Status ConvTranspose2D(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  FUSEBOX_ASSIGN(const Layout layout, LayoutOf(t));
  if (t.in_type(1).shape.rank() != 4) return Unsupported("the filter's rank is not known to be 4");
  const auto dilations = t.attrs().i64s("dilations");
  if (At(dilations, layout.height()) != 1 || At(dilations, layout.height() + 1) != 1)
    return Unsupported("dilations");
  const std::string padding = t.attrs().str("padding", "VALID");
  if (padding != "SAME" && padding != "VALID") return Unsupported("padding " + padding);
  const auto strides = t.attrs().i64s("strides");
  Attrs attrs;
  attrs.Set("stride_h", At(strides, layout.height()));
  attrs.Set("stride_w", At(strides, layout.height() + 1));
  if (padding != "SAME") attrs.Set("padding", padding);
  ValueId size = t.ToI32(t.in(0));
  if (layout.nchw) size = t.Value(Op::kGather, {size, t.I32({0, 2, 3, 1})});
  const ValueId ohwi = t.Transpose(t.in(1), {2, 0, 1, 3});
  const ValueId x = layout.In(t, t.in(2));
  return t.Return(layout.Out(t, t.Value(Op::kTransposeConv, {size, ohwi, x}, std::move(attrs))));
}

template <Op op>
Status Pool(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  FUSEBOX_ASSIGN(const Layout layout, LayoutOf(t));
  ValueId x = layout.In(t, t.in(0));
  // A mean ignores padding, so padding must not become zeros.
  const bool explicit_pads = t.attrs().str("padding", "VALID") == "EXPLICIT";
  if (explicit_pads && op != Op::kMaxPool2D) return Unsupported("padding EXPLICIT of a mean");
  if (explicit_pads && !IsFloat(t.type(x).dtype)) return Unsupported("padding EXPLICIT of integers");
  FUSEBOX_ASSIGN(Attrs attrs, Window(t, layout, x, true));
  const auto size = t.attrs().i64s("ksize");
  if (At(size, 0) != 1 || At(size, layout.nchw ? 1 : 3) != 1)
    return Unsupported("a pool over the batch or over channels");
  attrs.Set("filter_height", At(size, layout.height()));
  attrs.Set("filter_width", At(size, layout.height() + 1));
  return t.Return(layout.Out(t, t.Value(op, {x}, std::move(attrs))));
}

// Window sizes and strides are operands.
Status MaxPoolV2(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  FUSEBOX_ASSIGN(const auto size, t.Ints(1));
  FUSEBOX_ASSIGN(const auto strides, t.Ints(2));
  Node node = t.node();
  node.operands = {t.in(0)};
  node.attrs.Set("ksize", size);
  node.attrs.Set("strides", strides);
  FUSEBOX_ASSIGN(const auto made, t.Of(node, Pool<Op::kMaxPool2D>));
  if (!made.empty()) t.SetResult(0, made[0]);
  return {};
}

Status BiasAdd(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  FUSEBOX_ASSIGN(const Layout layout, LayoutOf(t));
  ValueId bias = t.in(1);
  if (layout.nchw) {
    FUSEBOX_ASSIGN(const int rank, t.Rank(t.in(0)));
    std::vector<int32_t> dims(static_cast<size_t>(std::max(rank - 1, 1)), 1);
    dims[0] = -1;
    if (rank > 2) bias = t.Reshape(bias, std::move(dims));
  }
  return t.Return(t.Value(Op::kAdd, {t.in(0), bias}));
}

// Permutations that move the channels of `format` last and back; empty: already last.
struct ChannelsLast {
  std::vector<int32_t> there, back;
};
Result<ChannelsLast> ChannelsLastOf(const std::string& format) {
  if (format == "NHWC" || format == "NDHWC") return ChannelsLast{};
  if (format == "NCHW") return ChannelsLast{{0, 2, 3, 1}, {0, 3, 1, 2}};
  if (format == "NCDHW") return ChannelsLast{{0, 2, 3, 4, 1}, {0, 4, 1, 2, 3}};
  return Unsupported("data_format " + format);
}

// The unbiased variance: n / (n - 1) times the variance over the n elements per channel.
ValueId Unbiased(Translation& t, ValueId variance, ValueId x, const std::vector<int32_t>& axes) {
  const DType dtype = t.type(variance).dtype;
  const ValueId dims = t.Value(Op::kGather, {t.ShapeOf(x), t.I32(axes)});
  const ValueId count = t.Cast(t.Value(Op::kReduceProd, {dims, t.I32({0})}), dtype);
  const ValueId one = t.Scalar(dtype, 1);
  const ValueId others = t.Value(Op::kMaximum, {t.Value(Op::kSub, {count, one}), one});
  return t.Value(Op::kMul, {variance, t.Value(Op::kDiv, {count, others})});
}

// Returns the statistic that training returns for operand `old`: the batch's statistic or a running average,
// or kNoValue if there is no old value to average with.
ValueId Running(Translation& t, size_t old, ValueId batch) {
  const auto factor = static_cast<float>(t.attrs().f64("exponential_avg_factor", 1));
  if (factor == 1) return batch;
  if (t.in_type(old).shape == Shape{0}) return kNoValue;
  const DType dtype = t.type(batch).dtype;
  return t.Value(Op::kAdd, {t.Value(Op::kMul, {t.in(old), t.Scalar(dtype, 1 - factor)}),
                            t.Value(Op::kMul, {batch, t.Scalar(dtype, factor)})});
}

// In training mode, x determines the moments. Keras saves LayerNormalization like this, with its rows as
// channels.
Status NormalizeByMoments(Translation& t) {
  FUSEBOX_ASSIGN(const int rank, t.Rank(t.in(0)));
  const std::string format = t.attrs().str("data_format", "NHWC");
  FUSEBOX_TRY(ChannelsLastOf(format));
  const DType stored = t.in_type(0).dtype;
  const DType dtype = t.in_type(1).dtype;
  if (stored == DType::kNone || dtype == DType::kNone)
    return Unsupported("the element type of an operand is not known");
  if (rank < 2) return Invalid("its operand has rank " + std::to_string(rank));
  const int channel = format.ends_with('C') ? rank - 1 : 1;
  std::vector<int32_t> axes;
  std::vector<int32_t> spread(static_cast<size_t>(rank), 1);
  for (int i = 0; i < rank; ++i)
    if (i != channel) axes.push_back(i);
  spread[static_cast<size_t>(channel)] = -1;
  const auto mean_of = [&](ValueId v) {
    return t.Value(Op::kMean, {v, t.I32(axes)}, MakeAttrs("keep_dims", true));
  };
  const auto per_channel = [&](ValueId v) { return t.Reshape(v, spread); };
  const auto flat = [&](ValueId v) { return t.Reshape(v, {-1}); };
  const ValueId x = t.Cast(t.in(0), dtype);
  const ValueId mean = mean_of(x);
  const ValueId centerd = t.Value(Op::kSub, {x, mean});
  const ValueId variance = mean_of(t.Value(Op::kSquare, {centerd}));
  const ValueId epsilon = t.Scalar(dtype, t.attrs().f64("epsilon", 1e-4));
  const ValueId root = t.Value(Op::kRsqrt, {t.Value(Op::kAdd, {variance, epsilon})});
  const ValueId scaled = t.Value(Op::kMul, {centerd, t.Value(Op::kMul, {root, per_channel(t.in(1))})});
  t.SetResult(0, t.Cast(t.Value(Op::kAdd, {scaled, per_channel(t.in(2))}), stored));
  t.SetResult(1, Running(t, 3, flat(mean)));
  t.SetResult(2, Running(t, 4, flat(Unbiased(t, variance, x, axes))));
  return {};
}

// y = (x - mean) * gamma / sqrt(variance + epsilon) + beta as one MUL and one ADD per channel, in the
// parameters' dtype: x may be f16 while they are f32.
Status FusedBatchNorm(Translation& t) {
  FUSEBOX_TRY(t.Arity(5));
  if (t.attrs().b("is_training", true)) return NormalizeByMoments(t);
  FUSEBOX_ASSIGN(const ChannelsLast order, ChannelsLastOf(t.attrs().str("data_format", "NHWC")));
  const ValueId gamma = t.in(1);
  const ValueId beta = t.in(2);
  const ValueId mean = t.in(3);
  const ValueId variance = t.in(4);
  const DType stored = t.in_type(0).dtype;
  const DType dtype = t.type(variance).dtype;
  if (stored == DType::kNone || dtype == DType::kNone)
    return Unsupported("the element type of an operand is not known");
  const ValueId epsilon = t.Scalar(dtype, t.attrs().f64("epsilon", 1e-4));
  const ValueId scale =
      t.Value(Op::kMul, {gamma, t.Value(Op::kRsqrt, {t.Value(Op::kAdd, {variance, epsilon})})});
  const ValueId shift = t.Value(Op::kSub, {beta, t.Value(Op::kMul, {mean, scale})});
  ValueId y = t.Cast(t.in(0), dtype);
  if (!order.there.empty()) y = t.Transpose(y, order.there);
  y = t.Value(Op::kAdd, {t.Value(Op::kMul, {y, scale}), shift});
  if (!order.back.empty()) y = t.Transpose(y, order.back);
  t.SetResult(0, t.Cast(y, stored));
  t.SetResult(1, mean);
  t.SetResult(2, variance);
  return {};
}

}  // namespace

std::span<const TranslateRow> MatrixTable() {
  static constexpr TranslateRow kTable[] = {
      {"MatMul", MatMul},
      {"BatchMatMul", BatchMatMul},
      {"BatchMatMulV2", BatchMatMul},
      {"BatchMatMulV3", BatchMatMul},
      {"Conv2D", Conv2D},
      {"DepthwiseConv2dNative", DepthwiseConv2D},
      {"Conv2DBackpropInput", ConvTranspose2D},
      {"MaxPool", Pool<Op::kMaxPool2D>},
      {"MaxPoolV2", MaxPoolV2},
      {"AvgPool", Pool<Op::kAveragePool2D>},
      {"BiasAdd", BiasAdd},
      {"BiasAddV1", BiasAdd},
      {"FusedBatchNorm", FusedBatchNorm},
      {"FusedBatchNormV2", FusedBatchNorm},
      {"FusedBatchNormV3", FusedBatchNorm},
  };
  return kTable;
}

}  // namespace fusebox::converter
