// SPDX-License-Identifier: Apache-2.0
// Crops of boxes at another size, and bicubic resizing as matrix products.
#include <algorithm>
#include <array>
#include <cmath>

#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

// Row (or column) coordinates of each box's crop in the image, [boxes, size] as floats, and whether they are
// inside.
struct Places {
  ValueId at, inside;
};

class Crops {
 public:
  explicit Crops(Translation& t) : t_(t) {}

  // Corners are fractions of the distance between the first and the last pixel. A crop of one pixel uses the
  // center.
  Places Along(ValueId boxes, ValueId limit, int32_t axis, int64_t size) {
    const ValueId first = Column(boxes, axis);
    const ValueId last = Column(boxes, axis + 2);
    Places made{};
    if (size > 1) {
      std::vector<float> steps;
      for (int64_t i = 0; i < size; ++i) steps.push_back(static_cast<float>(i));
      const ValueId numbers = t_.Const({{DType::kF32, {1, size}}, Buffer::Of<float>(steps)});
      const ValueId length = Mul(Sub(last, first), limit);
      const ValueId step = t_.Value(Op::kDiv, {length, Number(static_cast<double>(size - 1))});
      made.at = Add(Mul(first, limit), Mul(numbers, step));
    } else {
      made.at = Mul(Mul(Add(first, last), Number(0.5)), limit);
    }
    made.inside = t_.Value(Op::kLogicalAnd, {t_.Value(Op::kGreaterEqual, {made.at, Number(0)}),
                                             t_.Value(Op::kLessEqual, {made.at, limit})});
    return made;
  }
  // Pixel indices of coordinates rounded by `op`, as [boxes, 1, size] or [boxes, size, 1].
  ValueId Pixels(Op op, ValueId at, ValueId limit, bool rows, int64_t size) {
    const ValueId within = t_.Value(Op::kMinimum, {t_.Value(Op::kMaximum, {at, Number(0)}), limit});
    return Spread(t_.Cast(t_.Value(op, {within}), DType::kI32), rows, size, 3);
  }
  ValueId Spread(ValueId x, bool rows, int64_t size, int rank) {
    std::vector<int32_t> dims(static_cast<size_t>(rank), 1);
    dims[0] = -1;
    dims[rows ? 1 : 2] = static_cast<int32_t>(size);
    return t_.Reshape(x, std::move(dims));
  }
  ValueId Column(ValueId boxes, int32_t number) { return t_.Slice(boxes, {0, number}, {-1, 1}); }
  ValueId Between(ValueId a, ValueId b, ValueId share) { return Add(a, Mul(Sub(b, a), share)); }
  ValueId Number(double value) { return t_.Scalar(DType::kF32, value); }
  ValueId Add(ValueId a, ValueId b) { return t_.Value(Op::kAdd, {a, b}); }
  ValueId Sub(ValueId a, ValueId b) { return t_.Value(Op::kSub, {a, b}); }
  ValueId Mul(ValueId a, ValueId b) { return t_.Value(Op::kMul, {a, b}); }

 private:
  Translation& t_;
};

// Pixels are gathered from all images at once, [images * height * width, channels].
Status CropAndResize(Translation& t) {
  FUSEBOX_TRY(t.Arity(4));
  FUSEBOX_ASSIGN(const auto size, t.Ints(3));
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > 4096 || size[1] > 4096)
    return Invalid("its crops have no size");
  const std::string method = t.attrs().str("method", "bilinear");
  if (method != "bilinear" && method != "nearest") return Unsupported("method " + method);
  if (t.in_type(0).dtype == DType::kNone) return Unsupported("the element type of its image is not known");
  Crops c(t);
  const ValueId image = t.Cast(t.in(0), DType::kF32);
  const ValueId shape = t.ShapeOf(image);
  const auto part = [&](int32_t from) { return t.Slice(shape, {from}, {1}); };
  const ValueId height = part(1);
  const ValueId width = part(2);
  const ValueId pixels = t.Value(Op::kReshape, {image, t.Value(Op::kConcatenation, {t.I32({-1}), part(3)})});
  const ValueId last_row = c.Sub(t.Cast(height, DType::kF32), c.Number(1));
  const ValueId last_column = c.Sub(t.Cast(width, DType::kF32), c.Number(1));
  Places y = c.Along(t.in(1), last_row, 0, size[0]);
  Places x = c.Along(t.in(1), last_column, 1, size[1]);
  const ValueId first = t.Reshape(c.Mul(t.ToI32(t.in(2)), c.Mul(height, width)), {-1, 1, 1});
  const auto pixel = [&](ValueId row, ValueId column) {
    return t.Value(Op::kGather, {pixels, c.Add(c.Add(c.Mul(row, width), first), column)});
  };
  ValueId crops = kNoValue;
  if (method == "nearest") {
    const ValueId half = c.Number(0.5);
    crops = pixel(c.Pixels(Op::kFloor, c.Add(y.at, half), last_row, true, size[0]),
                  c.Pixels(Op::kFloor, c.Add(x.at, half), last_column, false, size[1]));
  } else {
    const ValueId top = c.Pixels(Op::kFloor, y.at, last_row, true, size[0]);
    const ValueId bottom = c.Pixels(Op::kCeil, y.at, last_row, true, size[0]);
    const ValueId left = c.Pixels(Op::kFloor, x.at, last_column, false, size[1]);
    const ValueId right = c.Pixels(Op::kCeil, x.at, last_column, false, size[1]);
    const ValueId down = c.Spread(c.Sub(y.at, t.Value(Op::kFloor, {y.at})), true, size[0], 4);
    const ValueId along = c.Spread(c.Sub(x.at, t.Value(Op::kFloor, {x.at})), false, size[1], 4);
    crops = c.Between(c.Between(pixel(top, left), pixel(top, right), along),
                      c.Between(pixel(bottom, left), pixel(bottom, right), along), down);
  }
  const ValueId inside =
      t.Value(Op::kLogicalAnd, {c.Spread(y.inside, true, size[0], 4), c.Spread(x.inside, false, size[1], 4)});
  const ValueId outside = c.Number(t.attrs().f64("extrapolation_value", 0));
  return t.Return(t.Value(Op::kSelectV2, {inside, crops, outside}));
}

// Cubic kernel with slope `a`: the weight at `distance`.
double Cubic(double a, double distance) {
  const double d = distance;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

// One row per result pixel with the weights of `from` pixels. TensorFlow quantizes distances to 1/1024. With
// half-pixel centers, pixels outside of the image have no weight; else the border is repeated.
Tensor BicubicWeights(int64_t from, int64_t to, bool align_corners, bool half_pixel) {
  constexpr double kSteps = 1024;
  const double a = half_pixel ? -0.5 : -0.75;
  const float scale = align_corners && to > 1 ? static_cast<float>(from - 1) / static_cast<float>(to - 1)
                                              : static_cast<float>(from) / static_cast<float>(to);
  std::vector<float> weights(static_cast<size_t>(from * to), 0);
  for (int64_t i = 0; i < to; ++i) {
    const float at =
        half_pixel ? (static_cast<float>(i) + 0.5f) * scale - 0.5f : static_cast<float>(i) * scale;
    const auto base = static_cast<int64_t>(std::floor(at));
    const double beyond =
        std::nearbyint(static_cast<double>(at - static_cast<float>(base)) * kSteps) / kSteps;
    const std::array<double, 4> parts = {Cubic(a, 1 + beyond), Cubic(a, beyond), Cubic(a, 1 - beyond),
                                         Cubic(a, 2 - beyond)};
    double sum = 0;
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t source = base - 1 + k;
      if (!half_pixel || (source >= 0 && source < from)) sum += parts[static_cast<size_t>(k)];
    }
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t source = base - 1 + k;
      if (half_pixel && (source < 0 || source >= from)) continue;
      const double part = parts[static_cast<size_t>(k)] / (half_pixel && sum != 0 ? sum : 1);
      weights[static_cast<size_t>(i * from + std::clamp<int64_t>(source, 0, from - 1))] +=
          static_cast<float>(part);
    }
  }
  return {{DType::kF32, {1, 1, to, from}}, Buffer::Of<float>(weights)};
}

Status ResizeBicubic(Translation& t) {
  FUSEBOX_TRY(t.Arity(2));
  FUSEBOX_ASSIGN(const auto size, t.Ints(1));
  const Shape shape = t.in_type(0).shape;  // copied: Emit invalidates references
  if (shape.rank() != 4 || size.size() != 2) return Unsupported("its operand's rank is not known to be 4");
  for (size_t i = 1; i < 4; ++i)
    if (shape[i] < 1) return Unsupported("dimension " + std::to_string(i) + " of its operand is not known");
  constexpr int64_t kLargest = int64_t{1} << 24;
  for (size_t i = 0; i < 2; ++i)
    if (size[i] < 1 || size[i] > kLargest / shape[i + 1]) return Unsupported("it is too large");
  const bool corners = t.attrs().b("align_corners", false);
  const bool half = t.attrs().b("half_pixel_centers", false);
  const auto dim = [&](size_t i) { return static_cast<int32_t>(shape[i]); };
  const auto resized = [&](size_t i) { return static_cast<int32_t>(size[i]); };
  const ValueId x = t.Cast(t.in(0), DType::kF32);
  const ValueId rows = t.Reshape(x, {-1, 1, dim(1), dim(2) * dim(3)});
  const ValueId down = t.Const(BicubicWeights(shape[1], size[0], corners, half));
  const ValueId tall = t.Reshape(t.Value(Op::kBatchMatmul, {down, rows}), {-1, resized(0), dim(2), dim(3)});
  return t.Return(
      t.Value(Op::kBatchMatmul, {t.Const(BicubicWeights(shape[2], size[1], corners, half)), tall}));
}

}  // namespace

std::span<const TranslateRow> ImageTable() {
  static constexpr TranslateRow kTable[] = {
      {"CropAndResize", CropAndResize},
      {"ResizeBicubic", ResizeBicubic},
  };
  return kTable;
}

}  // namespace fusebox::converter
