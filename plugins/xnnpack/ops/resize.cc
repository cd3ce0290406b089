// SPDX-License-Identifier: Apache-2.0
// RESIZE_BILINEAR to a constant size.
#include "plugins/xnnpack/partition/op.h"

namespace fusebox::xnnpack {
namespace {

void Supports(const NetworkNode& node) {
  RequireArity(node, 2, 2);
  RequireValue(node.in(0), Operand(0));
  RequireValue(node.out(0), "result 0");
  RequireSameQuant(node.in(0), node.out(0));
  RequireRank(node.in(0), 4, Operand(0));
  node.require(!node.constant(0), "CONST", "its operand is constant");
  const std::vector<int64_t> size = Integers(node, 1, "size");
  node.require(size.size() == 2, "SHAPE", "not two sizes", Operand(1));
  for (const int64_t s : size) node.require(s > 0 && s < 1 << 24, "SHAPE", "a size out of range", Operand(1));
  node.require(!node.attrs().b("align_corners", false) || !node.attrs().b("half_pixel_centers", false),
               "ATTR", "align_corners and half_pixel_centers");
}

void Define(const NetworkNode& node, Subgraph& graph) {
  const std::vector<int64_t> size = Integers(node, 1, "size");
  uint32_t flags = XNN_FLAG_TENSORFLOW_LEGACY_MODE;
  if (node.attrs().b("align_corners", false)) flags = XNN_FLAG_ALIGN_CORNERS;
  if (node.attrs().b("half_pixel_centers", false)) flags = 0;
  graph.Check(xnn_define_static_resize_bilinear_2d(graph.get(), static_cast<size_t>(size[0]),
                                                   static_cast<size_t>(size[1]), graph.In(node, 0),
                                                   graph.Out(node), flags));
}

constexpr Operation kTable[] = {{"RESIZE_BILINEAR", Accept::kAlone, Supports, Define}};

}  // namespace

constinit const OperationTable kResizeOps = kTable;

}  // namespace fusebox::xnnpack
