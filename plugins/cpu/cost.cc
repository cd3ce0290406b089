// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/cost.h"

#include <algorithm>
#include <cmath>

#include <fusebox/detail/cost_adapter.hpp>

#include "plugins/cpu/products/panels.h"

namespace fusebox::cpu {
namespace {

using namespace math;

double RoundUp(double value, double step) { return std::ceil(value / step) * step; }

double Lanes(Isa isa) {
  switch (isa) {
    case Isa::kAvx512:
    case Isa::kAvx512Vnni: return 16;
    case Isa::kAvx2:
    case Isa::kAvx2Vnni: return 8;
    default: return 4;
  }
}

constexpr double kGroup = 4;  // panels
constexpr double kTileRows = 6;
constexpr double kShortRow = 32;  // of SOFTMAX: rows below are computed together

// Products of a row with weights as they are stored, for few rows or few columns.
Work WorkOfDots(const ProductShape& p) {
  Work work{};
  work[kF32Dot] = p.groups * p.rows * p.columns * p.depth;
  work[kF32Result] = p.groups * p.rows * p.columns;
  work[kF32Tile] = work[kF32Result] / kGroup;
  return work;
}

bool HasDots(const ProductShape& p) {
  if (p.segments == 0 && p.rows < static_cast<double>(kLeastPanelRows)) return true;
  const double together = p.depth / std::max(1.0, p.taps);
  return DotsPay(static_cast<int64_t>(p.columns), static_cast<int64_t>(p.depth),
                 static_cast<int64_t>(together));
}

}  // namespace

Work WorkOf(const ProductShape& p, Isa isa) {
  const double columns = RoundUp(p.columns, Lanes(isa));
  const double tiles = p.groups * std::ceil(p.rows / kTileRows) * std::ceil(columns / (kGroup * Lanes(isa)));
  Work work{};
  if (p.bytes) {
    work[kI8Product] = p.groups * p.rows * columns * RoundUp(p.depth, 4);
    work[kI8Tile] = tiles;
    work[kI8Weight] = p.groups * columns * p.depth;
    work[kI8Result] = p.groups * p.rows * p.columns;
    if (p.segments > 0) work[kI8Element] = p.groups * p.rows * p.depth;
    work[kAddress] = p.groups * p.rows * p.segments;
  } else if (HasDots(p)) {
    work = WorkOfDots(p);
  } else {
    work[kF32Product] = p.groups * p.rows * columns * p.depth;
    work[kF32Tile] = tiles;
    work[kF32Weight] = p.groups * columns * p.depth;
    work[kF32Result] = p.groups * p.rows * p.columns;
  }
  if (!p.bytes && p.segments > 0) work[kAddress] = p.groups * p.rows;
  work[kNode] = 1;
  return work;
}

Work WorkOf(const TapsShape& t, Isa isa) {
  const double channels = RoundUp(t.channels, Lanes(isa));
  Work work{};
  const bool near = t.taps <= kNearTaps;
  work[t.bytes ? (near ? kI8Tap : kI8FarTap) : (near ? kF32Tap : kF32FarTap)] = t.pixels * t.taps * channels;
  work[t.bytes ? kI8Result : kF32Result] = t.pixels * t.channels;
  work[kPixel] = t.pixels * channels / Lanes(isa);
  if (t.channels > t.inputs) work[t.bytes ? kI8Element : kF32Element] = t.pixels * t.channels;
  work[kNode] = 1;
  return work;
}

Work WorkOf(const TransposedShape& t, Isa isa) {
  Work work = WorkOf(ProductShape{.rows = std::max(t.inputs, static_cast<double>(kLeastPanelRows)),
                                  .columns = t.taps * t.results,
                                  .depth = t.channels,
                                  .bytes = t.bytes},
                     isa);
  work[kF32Result] += work[kI8Result];  // sums of 32 bits
  work[kI8Result] = t.bytes ? t.outputs * t.results : 0;
  work[kF32Element] += 2 * t.inputs * t.taps * t.results + t.outputs * t.results;
  work[kAddress] += t.inputs * std::sqrt(t.taps);
  return work;
}

Work WorkOf(const ElementsShape& e, Isa) {
  Work work{};
  work[e.bytes ? kI8Element : kF32Element] = e.moved;
  work[kFunction] = e.functions;
  if (e.functions >= kShortRow * e.rows) work[kRow] = e.rows;
  work[kNode] = 1;
  return work;
}

namespace {

double CostOf(const Node& n) {
  const Rates* const rates = KernelRates();
  const auto shape = rates != nullptr ? ShapeOf(n) : std::nullopt;
  if (!shape) return FBX_NO_COST;
  return std::visit([&](const auto& s) { return Time(WorkOf(s, BestIsa()), *rates); }, *shape);
}

double KernelCost(const fbx_host* host, const fbx_kernel*, const fbx_node* node) noexcept {
  return detail::guarded_cost([&] { return CostOf(Node(host, node)); });
}

constexpr fbx_cost kCostTable{
    .head = FBX_HEAD(fbx_cost), .kernel = KernelCost, .node = nullptr, .border = nullptr};

}  // namespace

const void* CostService::table() noexcept { return &kCostTable; }

}  // namespace fusebox::cpu
