// SPDX-License-Identifier: Apache-2.0
#include "plugins/vision/landmarks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "plugins/vision/operands.h"
#include "plugins/vision/pool_options.h"

namespace fusebox::vision {
namespace {

void RejectAttr(std::string_view key, const std::string& why) {
  throw Reject{"ATTR", why, "attr " + std::string(key)};
}

struct MapOptions {
  int64_t dimensions = 3;
  float scale = 1;
};

// Version 2 has no options: the operand has the dimensions, 0 if unknown.
MapOptions MapOptionsOf(const Node& n) {
  MapOptions o;
  if (n.version() >= 2) {
    if (n.in_count() > 0) o.dimensions = n.in(0).rank() > 0 ? std::max<int64_t>(n.in(0).dim(-1), 0) : 0;
    if (o.dimensions != 0 && o.dimensions != 2 && o.dimensions != 3)
      throw Reject{"SHAPE", "has points of " + std::to_string(o.dimensions) + " numbers", common::Subject(0)};
    return o;
  }
  o = {n.attrs().i64("dimensions", 3), static_cast<float>(n.attrs().f64("scale", 1))};
  if (o.dimensions != 2 && o.dimensions != 3) RejectAttr("dimensions", "is " + std::to_string(o.dimensions));
  if (o.scale == 0) RejectAttr("scale", "is 0");
  return o;
}

// The box around points: center, size and angle.
struct Crop {
  double x, y, width, height, angle;
};

// Options of both versions. `subset` are indices of points.
struct CropOptions {
  std::span<const int64_t> subset;
  int64_t left, right;

  explicit CropOptions(const Node& n)
      : subset(n.attrs().i64s(n.version() >= 2 ? "subset_idxs" : "subset")),
        left(n.attrs().i64("left_rotation_idx", -1)),
        right(n.attrs().i64("right_rotation_idx", -1)) {
    if (subset.empty()) RejectAttr(n.version() >= 2 ? "subset_idxs" : "subset", "is empty");
    const int64_t least = std::min({left, right, *std::ranges::min_element(subset)});
    if (least < 0) throw Reject{"ATTR", "an index is " + std::to_string(least)};
    if (n.version() < 2 && n.attrs().i64("dimensions", 0) != 3) RejectAttr("dimensions", "is not 3");
    for (const std::string_view key : Sizes(n)) {
      const double size = n.attrs().f64(key, 0);
      if (!(size > 0) || !std::isfinite(size)) RejectAttr(key, "is not above 0");
    }
    if (n.version() >= 2) return;
    for (const std::string_view key : {"input_hw", "output_hw"}) {
      const auto sizes = n.attrs().i64s(key);
      if (sizes.size() != 2 || sizes[0] < 1 || sizes[1] < 1) RejectAttr(key, "is not two sizes");
    }
  }

  int64_t Most() const { return std::max({left, right, *std::ranges::max_element(subset)}); }

 private:
  static std::span<const std::string_view> Sizes(const Node& n) {
    static constexpr std::string_view first[] = {"landmarks_range", "bbox_size_multiplier"};
    static constexpr std::string_view second[] = {"output_height", "output_width", "scale_x", "scale_y"};
    return n.version() >= 2 ? std::span<const std::string_view>(second) : first;
  }
};

// The box in coordinates that are turned by `turn`; its center is turned back.
Crop CropOf(const float* points, std::span<const int64_t> subset, double turn) {
  const double c = std::cos(turn);
  const double s = std::sin(turn);
  double least[2] = {INFINITY, INFINITY};
  double most[2] = {-INFINITY, -INFINITY};
  for (const int64_t i : subset) {
    const double x = points[3 * i];
    const double y = points[3 * i + 1];
    const double turned[2] = {c * x - s * y, s * x + c * y};
    for (int k = 0; k < 2; ++k) {
      least[k] = std::min(least[k], turned[k]);
      most[k] = std::max(most[k], turned[k]);
    }
  }
  const double x = (least[0] + most[0]) / 2;
  const double y = (least[1] + most[1]) / 2;
  return {.x = c * x + s * y,
          .y = c * y - s * x,
          .width = most[0] - least[0],
          .height = most[1] - least[1],
          .angle = -turn};
}

// [a b c; d e f]: maps (x, y, 1).
using AffineMap = std::array<double, 6>;

// First `inner`, then `outer`.
AffineMap After(const AffineMap& outer, const AffineMap& inner) {
  const auto& [a, b, c, d, e, f] = outer;
  const auto& [p, q, r, s, t, u] = inner;
  return {a * p + b * s, a * q + b * t, a * r + b * u + c, d * p + e * s, d * q + e * t, d * r + e * u + f};
}

AffineMap Turned(const Crop& crop, double x, double y) {
  const double c = std::cos(crop.angle);
  const double s = std::sin(crop.angle);
  return {c, -s, x, s, c, y};
}

AffineMap First(const Node& n, const float* points, const CropOptions& o) {
  const float* left = points + 3 * o.left;
  const float* right = points + 3 * o.right;
  const Crop crop = CropOf(points, o.subset, -std::atan((right[1] - left[1]) / (right[0] - left[0])));
  const auto in = n.attrs().i64s("input_hw");
  const auto out = n.attrs().i64s("output_hw");
  const auto range = n.attrs().f64("landmarks_range");
  const auto grow = n.attrs().f64("bbox_size_multiplier") / range;
  const auto half = [](int64_t size) { return (static_cast<double>(size) - 1) / 2; };
  const AffineMap to_unit = {1 / half(out[1]), 0, -1, 0, 1 / half(out[0]), -1};
  const AffineMap scale = {crop.width * grow, 0, 0, 0, crop.height * grow, 0};
  const AffineMap turn = Turned(crop, crop.x / range * 2 - 1, crop.y / range * 2 - 1);
  const AffineMap to_pixels = {half(in[1]), 0, half(in[1]), 0, half(in[0]), half(in[0])};
  return After(to_pixels, After(turn, After(scale, to_unit)));
}

AffineMap Second(const Node& n, const float* points, const CropOptions& o) {
  const float* left = points + 3 * o.left;
  const float* right = points + 3 * o.right;
  const double angle = std::atan2(right[1] - left[1], right[0] - left[0]);
  const Crop crop = CropOf(points, o.subset, n.attrs().f64("target_rotation_radians", 0) - angle);
  const double height = n.attrs().f64("output_height");
  const double width = n.attrs().f64("output_width");
  const double x = n.attrs().f64("scale_x") * crop.width / width;
  const double y = n.attrs().f64("scale_y") * crop.height / height;
  return After(Turned(crop, crop.x, crop.y), {x, 0, -x * width / 2, 0, y, -y * height / 2});
}

}  // namespace

void LandmarkMap::supports(const Node& n) {
  MapOptionsOf(n);
  RejectUnlessF32(n, 2);
}

void LandmarkMap::infer(const Node& n, Infer& out) {
  RequireArity(n, 2, 1);
  const int64_t dimensions = OrError([&] { return MapOptionsOf(n); }).dimensions;
  if (n.in(0).rank() == 0) throw Error{FBX_INVALID, "is a scalar", common::Subject(0)};
  if (const int64_t last = DimOf(n.in(0), -1); last >= 0 && dimensions > 0 && last % dimensions != 0)
    throw Error{FBX_INVALID,
                "has " + std::to_string(last) + " numbers for points of " + std::to_string(dimensions),
                common::Subject(0)};
  if (n.in(1).is_static() && n.in(1).count() != 16)
    throw Error{FBX_INVALID, common::ShapeText(n.in(1)) + " is not a 4 x 4 matrix", common::Subject(1)};
  out.like(0, n.in(0));
}

void LandmarkMap::invoke(const Node& n) const {
  if (n.in(0).count() == 0) return;
  const MapOptions o = MapOptionsOf(n);
  const float* const m = n.in(1).data<const float>();
  const float* const in = n.in(0).data<const float>();
  float* const out = n.out(0).data<float>();
  for (int64_t i = 0; i < n.in(0).count(); i += o.dimensions) {
    const float x = in[i];
    const float y = in[i + 1];
    out[i] = m[0] * x + m[1] * y + m[3] * o.scale;
    out[i + 1] = m[4] * x + m[5] * y + m[7] * o.scale;
    if (o.dimensions == 3) out[i + 2] = in[i + 2];
  }
}

void LandmarkCrop::supports(const Node& n) {
  CropOptions{n};
  RejectUnlessF32(n, 1);
}

void LandmarkCrop::infer(const Node& n, Infer& out) {
  RequireArity(n, 1, 1);
  const int64_t most = OrError([&] { return CropOptions(n); }).Most();
  if (n.in(0).is_static() && most >= n.in(0).count() / 3)
    throw Error{FBX_INVALID,
                "index " + std::to_string(most) + " of " + std::to_string(n.in(0).count() / 3) + " points",
                common::Subject(0)};
  out.set(0, FBX_F32, {1, 4, 4});
}

void LandmarkCrop::invoke(const Node& n) const {
  const CropOptions o(n);
  const float* const points = n.in(0).data<const float>();
  const AffineMap m = n.version() >= 2 ? Second(n, points, o) : First(n, points, o);
  const double all[16] = {m[0], m[1], 0, m[2], m[3], m[4], 0, m[5], 0, 0, 1, 0, 0, 0, 0, 1};
  for (int i = 0; i < 16; ++i) n.out(0).data<float>()[i] = static_cast<float>(all[i]);
}

}  // namespace fusebox::vision
