// SPDX-License-Identifier: Apache-2.0
// AVERAGE_POOL_2D and MAX_POOL_2D.
#include "plugins/xnnpack/ops/op.h"
#include "plugins/xnnpack/ops/window.h"

namespace fusebox::xnnpack {
namespace {

constexpr int64_t kImageAxes[] = {1, 2};

struct Pool {
  Window window;
  uint32_t height, width;
};

Pool ReadPool(const Site& site) {
  return {ReadWindow(site), WindowSize(site, "filter_height", 0), WindowSize(site, "filter_width", 0)};
}

void SupportsPool(const Site& site) {
  RequireArity(site, 1, 1);
  RequireValues(site, 0, 0);
  RequireSameQuant(site.in(0), site.out(0));
  RequireRank(site.in(0), 4, Operand(0));
  FusedRange(site);
  const Pool pool = ReadPool(site);
  site.require(pool.height * pool.width > 1, "ATTR", "a window of 1x1");
  PaddingOf(site, pool.window, pool.height, pool.width);
}

void SupportsMax(const Site& site) {
  SupportsPool(site);
  const Pool pool = ReadPool(site);
  site.require(pool.window.stride_height <= pool.height && pool.window.stride_width <= pool.width, "ATTR",
               "a stride that is larger than its window");
}

// One window that is the whole image.
bool IsGlobal(const Site& site, const Pool& pool) {
  const Range range = FusedRange(site);
  return site.in(0).dim(1) == pool.height && site.in(0).dim(2) == pool.width && site.out(0).dim(1) == 1 &&
         site.out(0).dim(2) == 1 && std::isinf(range.min) && std::isinf(range.max);
}

void DefineAverage(const Site& site, Subgraph& graph) {
  const Pool pool = ReadPool(site);
  if (IsGlobal(site, pool)) {
    graph.Check(xnn_define_static_reduce_v2(graph.get(), xnn_reduce_mean, 2, kImageAxes, graph.In(site, 0),
                                            graph.Out(site), XNN_FLAG_KEEP_DIMS));
    return;
  }
  const Range range = FusedRange(site);
  const Padding pad = PaddingOf(site, pool.window, pool.height, pool.width);
  const uint32_t in = graph.FloatIn(site, 0);
  graph.FloatOut(site, [&](uint32_t out) {
    graph.Check(xnn_define_average_pooling_2d(
        graph.get(), pad.top, pad.right, pad.bottom, pad.left, pool.height, pool.width,
        pool.window.stride_height, pool.window.stride_width, range.min, range.max, in, out, pad.flags));
  });
}

void DefineMax(const Site& site, Subgraph& graph) {
  const Pool pool = ReadPool(site);
  const Range range = FusedRange(site);
  const Padding pad = PaddingOf(site, pool.window, pool.height, pool.width);
  graph.Check(xnn_define_max_pooling_2d(graph.get(), pad.top, pad.right, pad.bottom, pad.left, pool.height,
                                        pool.width, pool.window.stride_height, pool.window.stride_width, 1, 1,
                                        range.min, range.max, graph.In(site, 0), graph.Out(site), pad.flags));
}

constexpr Operation kTable[] = {
    {"AVERAGE_POOL_2D", Accept::kAlone, SupportsPool, DefineAverage},
    {"MAX_POOL_2D", Accept::kAlone, SupportsMax, DefineMax},
};

}  // namespace

constinit const OperationTable kPoolOps = kTable;

}  // namespace fusebox::xnnpack
