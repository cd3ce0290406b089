// SPDX-License-Identifier: Apache-2.0
// CONCATENATION and PACK. XNNPACK joins up to five values of one quantization at a time.
#include "plugins/xnnpack/ops/op.h"

namespace fusebox::xnnpack {
namespace {

constexpr size_t kMost = 5;

// Joins ids along an axis into `out`.
void Join(Subgraph& graph, const Site& site, std::vector<uint32_t> ids, const std::vector<size_t>& sizes,
          size_t axis, uint32_t out) {
  const auto a = static_cast<int32_t>(axis);
  const Tensor t = site.out(0);
  if (ids.size() > kMost) {
    const std::vector<uint32_t> first(ids.begin(), ids.begin() + kMost);
    const std::vector<size_t> first_sizes(sizes.begin(), sizes.begin() + kMost);
    std::vector<size_t> rest_sizes(sizes.begin() + kMost, sizes.end());
    Dims dims = DimsOf(t);
    dims[axis] = 0;
    for (const size_t s : first_sizes) dims[axis] += s;
    rest_sizes.insert(rest_sizes.begin(), dims[axis]);
    const uint32_t joined = graph.Temporary(DatatypeOf(t), AffineOf(t), dims);
    Join(graph, site, first, first_sizes, axis, joined);
    std::vector<uint32_t> rest(ids.begin() + kMost, ids.end());
    rest.insert(rest.begin(), joined);
    return Join(graph, site, rest, rest_sizes, axis, out);
  }
  xnn_subgraph_t g = graph.get();
  switch (ids.size()) {
    case 1: return graph.Check(xnn_define_copy(g, ids[0], out, 0));
    case 2: return graph.Check(xnn_define_concatenate2(g, a, ids[0], ids[1], out, 0));
    case 3: return graph.Check(xnn_define_concatenate3(g, a, ids[0], ids[1], ids[2], out, 0));
    case 4: return graph.Check(xnn_define_concatenate4(g, a, ids[0], ids[1], ids[2], ids[3], out, 0));
    default:
      return graph.Check(xnn_define_concatenate5(g, a, ids[0], ids[1], ids[2], ids[3], ids[4], out, 0));
  }
}

void SupportsConcat(const Site& site) {
  RequireArity(site, 1, 64);
  RequireValues(site, 0, site.in_count() - 1);
  const size_t axis = Axis(site.attrs().i64("axis", 0), site.out(0).rank());
  site.require(site.attrs().s("fused_activation_function", "NONE") == "NONE", "ATTR", "a fused activation");
  for (uint32_t i = 0; i < site.in_count(); ++i) {
    RequireSameType(site.in(i), site.out(0));
    RequireRank(site.in(i), site.out(0).rank(), Operand(i));
    site.require(site.in(i).dim(static_cast<int>(axis)) > 0, "SHAPE",
                 "a size that is known only when it runs", Operand(i));
    site.require(!site.constant(i), "CONST", "an operand is constant", Operand(i));
  }
}

void DefineConcat(const Site& site, Subgraph& graph) {
  const Tensor out = site.out(0);
  const size_t axis = Axis(site.attrs().i64("axis", 0), out.rank());
  std::vector<uint32_t> ids;
  std::vector<size_t> sizes;
  for (uint32_t i = 0; i < site.in_count(); ++i) {
    const Tensor in = site.in(i);
    ids.push_back(graph.In(site, i));
    sizes.push_back(static_cast<size_t>(in.dim(static_cast<int>(axis))));
    if (!Quantized(in) || AffineOf(in) == AffineOf(out)) continue;
    const uint32_t converted = graph.Temporary(DatatypeOf(out), AffineOf(out), DimsOf(in));
    graph.Requantize(ids.back(), AffineOf(in), converted, AffineOf(out), DimsOf(in));
    ids.back() = converted;
  }
  Join(graph, site, ids, sizes, axis, graph.Out(site));
}

void SupportsPack(const Site& site) {
  RequireArity(site, 1, 64);
  RequireValues(site, 0, site.in_count() - 1);
  Axis(site.attrs().i64("axis", 0), site.out(0).rank());
  for (uint32_t i = 0; i < site.in_count(); ++i) {
    RequireSameQuant(site.in(i), site.out(0));
    RequireStatic(site.in(i), Operand(i));
    site.require(!site.constant(i), "CONST", "an operand is constant", Operand(i));
  }
}

void DefinePack(const Site& site, Subgraph& graph) {
  const Tensor out = site.out(0);
  const size_t axis = Axis(site.attrs().i64("axis", 0), out.rank());
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < site.in_count(); ++i) {
    Dims dims = DimsOf(site.in(i));
    dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), 1);
    ids.push_back(graph.Temporary(DatatypeOf(out), AffineOf(out), dims));
    graph.Check(
        xnn_define_static_reshape(graph.get(), dims.size(), dims.data(), graph.In(site, i), ids.back(), 0));
  }
  Join(graph, site, ids, std::vector<size_t>(ids.size(), 1), axis, graph.Out(site));
}

constexpr Operation kTable[] = {
    {"CONCATENATION", Accept::kAlone, SupportsConcat, DefineConcat},
    {"PACK", Accept::kJoin, SupportsPack, DefinePack},
};

}  // namespace

constinit const OperationTable kConcatOps = kTable;

}  // namespace fusebox::xnnpack
