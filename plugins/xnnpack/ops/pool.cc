// SPDX-License-Identifier: Apache-2.0
// AVERAGE_POOL_2D and MAX_POOL_2D.
#include "plugins/xnnpack/ops/window.h"
#include "plugins/xnnpack/partition/op.h"

namespace fusebox::xnnpack {
namespace {

constexpr int64_t kImageAxes[] = {1, 2};

struct Pool {
  Window window;
  uint32_t height, width;
};

// Rejects windows larger than the image: XNNPACK keeps an address for each tap of each result.
Pool ReadPool(const NetworkNode& node) {
  const Pool pool{ReadWindow(node), WindowSize(node, "filter_height", 0),
                  WindowSize(node, "filter_width", 0)};
  const auto fits = [&](int axis, uint32_t size) {
    const int64_t dim = node.in(0).dim(axis);
    return dim < 0 || size <= dim;
  };
  node.require(fits(1, pool.height) && fits(2, pool.width), "ATTR", "a window larger than the image");
  return pool;
}

void SupportsPool(const NetworkNode& node) {
  RequireArity(node, 1, 1);
  RequireValues(node, 0, 0);
  RequireSameQuant(node.in(0), node.out(0));
  RequireRank(node.in(0), 4, Operand(0));
  FusedRange(node);
  const Pool pool = ReadPool(node);
  node.require(pool.height * pool.width > 1, "ATTR", "a window of 1x1");
  PaddingOf(node, pool.window, pool.height, pool.width);
}

void SupportsMax(const NetworkNode& node) {
  SupportsPool(node);
  const Pool pool = ReadPool(node);
  node.require(pool.window.stride_height <= pool.height && pool.window.stride_width <= pool.width, "ATTR",
               "a stride is larger than its window");
}

// One window covers the whole image.
bool IsGlobal(const NetworkNode& node, const Pool& pool) {
  const Range range = FusedRange(node);
  return node.in(0).dim(1) == pool.height && node.in(0).dim(2) == pool.width && node.out(0).dim(1) == 1 &&
         node.out(0).dim(2) == 1 && std::isinf(range.min) && std::isinf(range.max);
}

void DefineAverage(const NetworkNode& node, Subgraph& graph) {
  const Pool pool = ReadPool(node);
  if (IsGlobal(node, pool)) {
    graph.Check(xnn_define_static_reduce_v2(graph.get(), xnn_reduce_mean, 2, kImageAxes, graph.In(node, 0),
                                            graph.Out(node), XNN_FLAG_KEEP_DIMS));
    return;
  }
  const Range range = FusedRange(node);
  const Padding pad = PaddingOf(node, pool.window, pool.height, pool.width);
  const uint32_t in = graph.FloatIn(node, 0);
  graph.FloatOut(node, [&](uint32_t out) {
    graph.Check(xnn_define_average_pooling_2d(
        graph.get(), pad.top, pad.right, pad.bottom, pad.left, pool.height, pool.width,
        pool.window.stride_height, pool.window.stride_width, range.min, range.max, in, out, pad.flags));
  });
}

void DefineMax(const NetworkNode& node, Subgraph& graph) {
  const Pool pool = ReadPool(node);
  const Range range = FusedRange(node);
  const Padding pad = PaddingOf(node, pool.window, pool.height, pool.width);
  graph.Check(xnn_define_max_pooling_2d(graph.get(), pad.top, pad.right, pad.bottom, pad.left, pool.height,
                                        pool.width, pool.window.stride_height, pool.window.stride_width, 1, 1,
                                        range.min, range.max, graph.In(node, 0), graph.Out(node), pad.flags));
}

constexpr Operation kTable[] = {
    {"AVERAGE_POOL_2D", Accept::kAlone, SupportsPool, DefineAverage},
    {"MAX_POOL_2D", Accept::kAlone, SupportsMax, DefineMax},
};

}  // namespace

constinit const OperationTable kPoolOps = kTable;

}  // namespace fusebox::xnnpack
