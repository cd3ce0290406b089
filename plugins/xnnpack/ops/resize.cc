// SPDX-License-Identifier: Apache-2.0
// RESIZE_BILINEAR to a constant size.
#include "plugins/xnnpack/ops/op.h"

namespace fusebox::xnnpack {
namespace {

void Supports(const Site& site) {
  RequireArity(site, 2, 2);
  RequireValue(site.in(0), Operand(0));
  RequireValue(site.out(0), "result 0");
  RequireSameQuant(site.in(0), site.out(0));
  RequireRank(site.in(0), 4, Operand(0));
  site.require(!site.constant(0), "CONST", "its operand is constant");
  const std::vector<int64_t> size = Integers(site, 1, "size");
  site.require(size.size() == 2, "SHAPE", "not two sizes", Operand(1));
  for (const int64_t s : size) site.require(s > 0 && s < 1 << 24, "SHAPE", "a size out of range", Operand(1));
  site.require(!site.attrs().b("align_corners", false) || !site.attrs().b("half_pixel_centers", false),
               "ATTR", "align_corners and half_pixel_centers");
}

void Define(const Site& site, Subgraph& graph) {
  const std::vector<int64_t> size = Integers(site, 1, "size");
  uint32_t flags = XNN_FLAG_TENSORFLOW_LEGACY_MODE;
  if (site.attrs().b("align_corners", false)) flags = XNN_FLAG_ALIGN_CORNERS;
  if (site.attrs().b("half_pixel_centers", false)) flags = 0;
  graph.Check(xnn_define_static_resize_bilinear_2d(graph.get(), static_cast<size_t>(size[0]),
                                                   static_cast<size_t>(size[1]), graph.In(site, 0),
                                                   graph.Out(site), flags));
}

constexpr Operation kTable[] = {{"RESIZE_BILINEAR", Accept::kAlone, Supports, Define}};

}  // namespace

constinit const OperationTable kResizeOps = kTable;

}  // namespace fusebox::xnnpack
