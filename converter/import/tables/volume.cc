// SPDX-License-Identifier: Apache-2.0
// Convolutions and pooling over volumes [batch, depth, height, width, channels].
#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

// TFLite supports only NDHWC; NCDHW ops run between two transposes.
struct Layout {
  bool ncdhw = false;
  ValueId In(Translation& t, ValueId v) const { return ncdhw ? t.Transpose(v, {0, 2, 3, 4, 1}) : v; }
  ValueId Out(Translation& t, ValueId v) const { return ncdhw ? t.Transpose(v, {0, 4, 1, 2, 3}) : v; }
  // Entry for depth, height or width in a list with one entry per dimension.
  int64_t At(const std::vector<int64_t>& values, size_t i) const {
    const size_t at = i + (ncdhw ? 2 : 1);
    return at < values.size() ? values[at] : 1;
  }
};

Result<Layout> LayoutOf(Translation& t) {
  const std::string format = t.attrs().str("data_format", "NDHWC");
  if (format != "NDHWC" && format != "NCDHW") return Unsupported("data_format " + format);
  return Layout{format == "NCDHW"};
}

Result<std::string> PaddingOf(Translation& t) {
  std::string padding = t.attrs().str("padding", "VALID");
  if (padding != "SAME" && padding != "VALID") return Unsupported("padding " + padding);
  return padding;
}

Result<Attrs> ConvAttrs(Translation& t, const Layout& layout) {
  FUSEBOX_ASSIGN(const std::string padding, PaddingOf(t));
  const auto strides = t.attrs().i64s("strides");
  const auto dilations = t.attrs().i64s("dilations");
  Attrs attrs;
  constexpr const char* kStrides[] = {"stride_d", "stride_h", "stride_w"};
  constexpr const char* kDilations[] = {"dilation_d_factor", "dilation_h_factor", "dilation_w_factor"};
  for (size_t i = 0; i < 3; ++i) {
    attrs.Set(kStrides[i], layout.At(strides, i));
    if (const int64_t d = layout.At(dilations, i); d != 1) attrs.Set(kDilations[i], d);
  }
  if (padding != "SAME") attrs.Set("padding", padding);
  return attrs;
}

// The filter layout, [depth, height, width, in, out], is kept.
Status Conv3D(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  FUSEBOX_ASSIGN(const Layout layout, LayoutOf(t));
  FUSEBOX_ASSIGN(Attrs attrs, ConvAttrs(t, layout));
  const ValueId x = layout.In(t, t.in(0));
  return t.Return(layout.Out(t, t.Value(Op::kConv3D, {x, t.in(1), kNoValue}, std::move(attrs))));
}

// The gradient of a convolution (Keras' Conv3DTranspose).
Status ConvTranspose3D(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  FUSEBOX_ASSIGN(const Layout layout, LayoutOf(t));
  FUSEBOX_ASSIGN(Attrs attrs, ConvAttrs(t, layout));
  ValueId size = t.ToI32(t.in(0));
  if (layout.ncdhw) size = t.Value(Op::kGather, {size, t.I32({0, 2, 3, 4, 1})});
  const ValueId x = layout.In(t, t.in(2));
  return t.Return(
      layout.Out(t, t.Value(Op::kConv3DTranspose, {size, t.in(1), x, kNoValue}, std::move(attrs))));
}

struct Windows {
  std::vector<int64_t> sizes, strides;  // depth, height, width
  std::string padding;
};

Attrs PlaneAttrs(const Windows& w, size_t h, int64_t width, int64_t stride_w) {
  Attrs attrs;
  attrs.Set("filter_height", w.sizes[h]);
  attrs.Set("filter_width", width);
  attrs.Set("stride_h", w.strides[h]);
  attrs.Set("stride_w", stride_w);
  if (w.padding != "SAME") attrs.Set("padding", w.padding);
  return attrs;
}

// [batch, depth, rest..], with the depth of `like`, which may be known at run time only.
ValueId WithDepth(Translation& t, ValueId v, ValueId like, const std::vector<int32_t>& rest) {
  const int64_t depth = t.type(like).shape[1];
  std::vector<int32_t> dims = {-1, static_cast<int32_t>(depth)};
  dims.insert(dims.end(), rest.begin(), rest.end());
  if (depth >= 0) return t.Reshape(v, dims);
  const ValueId all = t.Value(Op::kShape, {like}, MakeAttrs("out_type", DType::kI32));
  const ValueId own = t.Value(Op::kSlice, {all, t.I32({1}), t.I32({1})});
  const ValueId shape = t.Value(Op::kConcatenation, {t.I32({-1}), own, t.I32(rest)}, MakeAttrs("axis", 0));
  const Type type{t.type(v).dtype, Shape(std::vector<int64_t>(dims.begin(), dims.end()))};
  return t.Typed(Op::kReshape, {v, shape}, type);
}

// MAX_POOL over a box is one over planes, then over depth. The same holds for the mean, also at borders,
// because the part of the box inside the volume is a box.
Result<ValueId> PoolBox(Translation& t, Op op, ValueId x, const Windows& w) {
  const Shape shape = t.type(x).shape;  // copied: Emit invalidates references
  if (shape.rank() != 5) return Unsupported("its operand's rank is not known to be 5");
  for (size_t i = 2; i < 5; ++i)
    if (shape[i] < 0) return Unsupported("dimension " + std::to_string(i) + " of its operand is not known");
  const auto dim = [&](size_t i) { return static_cast<int32_t>(shape[i]); };
  ValueId y = t.Reshape(x, {-1, dim(2), dim(3), dim(4)});
  y = t.Value(op, {y}, PlaneAttrs(w, 1, w.sizes[2], w.strides[2]));
  const Shape planes = t.type(y).shape;
  if (planes.rank() != 4 || planes[1] < 0 || planes[2] < 0) return Invalid("its window does not fit");
  const auto height = static_cast<int32_t>(planes[1]);
  const auto width = static_cast<int32_t>(planes[2]);
  if (width > 0 && height > INT32_MAX / width) return Unsupported("its planes are too large");
  y = WithDepth(t, y, x, {height * width, dim(4)});
  y = t.Value(op, {y}, PlaneAttrs(w, 0, 1, 1));
  const Shape depths = t.type(y).shape;
  if (depths.rank() != 4 || (shape[1] >= 0 && depths[1] < 0)) return Invalid("its window does not fit");
  return WithDepth(t, y, y, {height, width, dim(4)});
}

template <Op op>
Status Pool(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  FUSEBOX_ASSIGN(const Layout layout, LayoutOf(t));
  Windows w;
  FUSEBOX_ASSIGN(w.padding, PaddingOf(t));
  const auto sizes = t.attrs().i64s("ksize");
  const auto strides = t.attrs().i64s("strides");
  if (sizes.size() == 5 && (sizes[0] != 1 || sizes[layout.ncdhw ? 1 : 4] != 1))
    return Unsupported("a pool over the batch or over channels");
  for (size_t i = 0; i < 3; ++i) {
    w.sizes.push_back(layout.At(sizes, i));
    w.strides.push_back(layout.At(strides, i));
  }
  FUSEBOX_ASSIGN(const ValueId y, PoolBox(t, op, layout.In(t, t.in(0)), w));
  return t.Return(layout.Out(t, y));
}

}  // namespace

std::span<const TranslateRow> VolumeTable() {
  static constexpr TranslateRow kTable[] = {
      {"Conv3D", Conv3D},
      {"Conv3DBackpropInputV2", ConvTranspose3D},
      {"MaxPool3D", Pool<Op::kMaxPool2D>},
      {"AvgPool3D", Pool<Op::kAveragePool2D>},
  };
  return kTable;
}

}  // namespace fusebox::converter
