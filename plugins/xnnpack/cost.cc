// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/cost.h"

#include <fusebox/abi/ext/cost.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "plugins/xnnpack/ops/narrow.h"

namespace fusebox::xnnpack {
namespace {

using namespace math;

// Rows and columns that a product computes at once.
struct Tile {
  double rows, columns;
};

Tile TileOfFloats(Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
    case Isa::kAvx512Vnni: return {7, 32};
    case Isa::kAvx2:
    case Isa::kAvx2Vnni: return {5, 16};
    case Isa::kSse4: return {4, 8};
    default: return {6, 8};
  }
}

Tile TileOfBytes(Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
    case Isa::kAvx512Vnni: return {7, 16};
    case Isa::kAvx2:
    case Isa::kAvx2Vnni: return {3, 8};
    case Isa::kSse4: return {3, 4};
    default: return {4, 16};
  }
}

constexpr double kByteDepth = 8;  // bytes of a tap that are multiplied at once

constexpr Tile kNarrow{4, 2};  // of floats, in SSE2 or NEON

double RoundUp(double value, double step) { return std::ceil(value / step) * step; }

// Depthwise kernels exist for these numbers of taps. More are computed as matrix products of one column.
double TapsOfKernel(double taps, bool bytes) {
  for (const double most : {4.0, 9.0, 25.0})
    if (taps <= most && !(bytes && most < 9)) return most;
  return 0;
}

}  // namespace

Work WorkOf(const ProductShape& p, Isa isa) {
  const Tile tile = p.bytes ? TileOfBytes(isa) : TileOfFloats(isa);
  Work work{};
  work[kNode] = 1;
  work[p.bytes ? kI8Result : kF32Result] = p.groups * p.rows * p.columns;
  work[kAddress] = p.groups * p.rows * p.taps;
  if (p.narrow) {
    work[kF32Dot] = RoundUp(p.rows, kNarrow.rows) * RoundUp(p.columns, kNarrow.columns) * RoundUp(p.depth, 4);
    work[kF32Tile] = std::ceil(p.rows / kNarrow.rows) * std::ceil(p.columns / kNarrow.columns);
    return work;
  }
  const double taps = std::max(1.0, p.taps);
  const double rows = p.rows == 1 ? 1 : RoundUp(p.rows, tile.rows);
  const double columns = RoundUp(p.columns, tile.columns);
  work[!p.bytes        ? kF32Product
       : p.is_unsigned ? kU8Product
                       : kI8Product] =
      p.groups * rows * columns * taps * RoundUp(p.depth / taps, p.bytes ? kByteDepth : 1);
  work[p.bytes ? kI8Tile : kF32Tile] = p.groups * std::ceil(rows / tile.rows) * columns / tile.columns;
  work[p.bytes ? kI8Weight : kF32Weight] = p.groups * columns * p.depth;
  return work;
}

Work WorkOf(const TapsShape& t, Isa isa) {
  const double taps = TapsOfKernel(t.taps, t.bytes);
  if (taps == 0)
    return WorkOf(ProductShape{.rows = t.pixels,
                               .columns = std::max(1.0, t.channels / t.inputs),
                               .depth = t.taps,
                               .groups = t.inputs,
                               .taps = t.taps,
                               .bytes = t.bytes},
                  isa);
  const double vector = TileOfFloats(isa).columns / 2;
  const double channels = RoundUp(t.channels, vector);
  Work work{};
  const bool near = taps <= kNearTaps;
  work[t.bytes ? (near ? kI8Tap : kI8FarTap) : (near ? kF32Tap : kF32FarTap)] = t.pixels * taps * channels;
  work[t.bytes ? kI8Result : kF32Result] = t.pixels * t.channels;
  work[kPixel] = t.pixels * channels / vector;
  work[kAddress] = t.pixels * taps;
  work[kNode] = 1;
  return work;
}

Work WorkOf(const TransposedShape& t, Isa isa) {
  Work work = WorkOf(ProductShape{.rows = t.outputs,
                                  .columns = t.results,
                                  .depth = t.channels * t.taps / t.steps,
                                  .taps = std::max(1.0, t.taps / t.steps),
                                  .bytes = t.bytes,
                                  .is_unsigned = t.is_unsigned},
                     isa);
  work[kStridePixel] = t.outputs;
  if (t.bytes) return work;
  work[kF32Dot] = t.outputs * RoundUp(t.results, kNarrow.columns) * t.channels * t.taps / t.steps;
  work[kF32Product] = work[kF32Tile] = work[kF32Weight] = 0;
  return work;
}

Work WorkOf(const ElementsShape& e, Isa) {
  Work work{};
  work[e.bytes ? kI8Element : kF32Element] = e.moved;
  work[kFunction] = e.functions;
  work[kRow] = e.rows;
  work[kNode] = 1;
  return work;
}

std::optional<NodeShape> DefinedShapeOf(const sdk::Node& n) {
  auto shape = ShapeOf(n);
  auto* const p = shape ? std::get_if<ProductShape>(&*shape) : nullptr;
  if (p == nullptr || p->bytes || p->groups > 1) return shape;
  const auto columns = static_cast<int64_t>(p->columns);
  if (n.in(1).rank() == 2) {
    p->narrow = columns < KernelColumns() &&
                !IsBetterAsConvolution(columns, static_cast<int64_t>(p->rows * p->depth));
    return shape;
  }
  if (p->segments == 0) {
    p->narrow = IsBetterAsProduct(columns);
    return shape;
  }
  if (n.attrs().i64("dilation_w_factor", 1) > 1) return shape;
  const int64_t width = n.in(1).dim(2);
  const int64_t stride = n.attrs().i64("stride_w", 1);
  const auto pixels = static_cast<double>(PixelsAtOnce(n.out(0).dim(3), n.out(0).dim(2), width, stride));
  const double wide = static_cast<double>(width) + static_cast<double>(stride) * (pixels - 1);
  p->rows /= pixels;
  p->columns *= pixels;
  p->depth *= wide / static_cast<double>(width);
  p->taps = p->segments * wide;
  return shape;
}

double CostOf(const sdk::Node& n) {
  const Rates* const rates = XnnpackRates();
  const auto shape = rates != nullptr ? DefinedShapeOf(n) : std::nullopt;
  if (!shape) return FBX_NO_COST;
  return std::visit([&](const auto& s) { return Time(WorkOf(s, BestIsa()), *rates); }, *shape);
}

double BorderCost(uint64_t bytes) {
  Work work{};
  work[kBorder] = 1;
  work[kBorderByte] = static_cast<double>(bytes);
  return XnnpackRates() == nullptr ? FBX_NO_COST : Time(work, *XnnpackRates());
}

void RejectSlow(const sdk::GraphNode& n) {
  // XNNPACK has no depthwise code for larger windows: it computes a matrix product of one column per channel.
  constexpr int64_t kMostTaps = 25;
  constexpr int64_t kFewChannels = 4;
  if (XnnpackRates() != nullptr || n.op() != "DEPTHWISE_CONV_2D") return;
  const int64_t taps = n.in(1).dim(1) * n.in(1).dim(2);
  n.require(taps <= kMostTaps || n.in(0).dim(3) <= kFewChannels, "SIZE",
            "a window of " + std::to_string(taps) + " pixels, which is slow in XNNPACK");
}

}  // namespace fusebox::xnnpack
