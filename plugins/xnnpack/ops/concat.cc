// SPDX-License-Identifier: Apache-2.0
// CONCATENATION and PACK. XNNPACK joins up to five values of equal quantization at a time. Operands with other
// scales are requantized first.
#include "plugins/xnnpack/partition/op.h"
#include "plugins/xnnpack/partition/releases.h"

namespace fusebox::xnnpack {
namespace {

constexpr size_t kMost = 5;

// Joins ids along an axis into `out`.
void Join(Subgraph& graph, const NetworkNode& node, std::vector<uint32_t> ids,
          const std::vector<size_t>& sizes, size_t axis, uint32_t out) {
  const Tensor t = node.out(0);
  if (ids.size() > kMost) {
    const std::vector<uint32_t> first(ids.begin(), ids.begin() + kMost);
    const std::vector<size_t> first_sizes(sizes.begin(), sizes.begin() + kMost);
    std::vector<size_t> rest_sizes(sizes.begin() + kMost, sizes.end());
    Dims dims = DimsOf(t);
    dims[axis] = 0;
    for (const size_t s : first_sizes) dims[axis] += s;
    rest_sizes.insert(rest_sizes.begin(), dims[axis]);
    const uint32_t joined = graph.Temporary(DatatypeOf(t), TensorQuantOf(t), dims);
    Join(graph, node, first, first_sizes, axis, joined);
    std::vector<uint32_t> rest(ids.begin() + kMost, ids.end());
    rest.insert(rest.begin(), joined);
    return Join(graph, node, rest, rest_sizes, axis, out);
  }
  if (ids.size() == 1) return graph.Check(xnn_define_copy(graph.get(), ids[0], out, 0));
  graph.Check(DefineConcatenate(graph.get(), static_cast<int32_t>(axis), ids, out));
}

void SupportsConcat(const NetworkNode& node) {
  RequireArity(node, 1, 64);
  RequireValues(node, 0, node.in_count() - 1);
  const size_t axis = Axis(node.attrs().i64("axis", 0), node.out(0).rank());
  node.require(node.attrs().s("fused_activation_function", "NONE") == "NONE", "ATTR", "a fused activation");
  for (uint32_t i = 0; i < node.in_count(); ++i) {
    RequireSameType(node.in(i), node.out(0));
    RequireRank(node.in(i), node.out(0).rank(), Operand(i));
    node.require(node.in(i).dim(static_cast<int>(axis)) > 0, "SHAPE", "unknown size", Operand(i));
    node.require(!node.constant(i), "CONST", "an operand is constant", Operand(i));
  }
}

void DefineConcat(const NetworkNode& node, Subgraph& graph) {
  const Tensor out = node.out(0);
  const size_t axis = Axis(node.attrs().i64("axis", 0), out.rank());
  std::vector<uint32_t> ids;
  std::vector<size_t> sizes;
  for (uint32_t i = 0; i < node.in_count(); ++i) {
    const Tensor in = node.in(i);
    ids.push_back(graph.In(node, i));
    sizes.push_back(static_cast<size_t>(in.dim(static_cast<int>(axis))));
    if (!Quantized(in) || TensorQuantOf(in) == TensorQuantOf(out)) continue;
    const uint32_t converted = graph.Temporary(DatatypeOf(out), TensorQuantOf(out), DimsOf(in));
    graph.Requantize(ids.back(), converted, DimsOf(in));
    ids.back() = converted;
  }
  Join(graph, node, ids, sizes, axis, graph.Out(node));
}

void SupportsPack(const NetworkNode& node) {
  RequireArity(node, 1, 64);
  RequireValues(node, 0, node.in_count() - 1);
  Axis(node.attrs().i64("axis", 0), node.out(0).rank());
  for (uint32_t i = 0; i < node.in_count(); ++i) {
    RequireSameQuant(node.in(i), node.out(0));
    RequireStatic(node.in(i), Operand(i));
    node.require(!node.constant(i), "CONST", "an operand is constant", Operand(i));
  }
}

void DefinePack(const NetworkNode& node, Subgraph& graph) {
  const Tensor out = node.out(0);
  const size_t axis = Axis(node.attrs().i64("axis", 0), out.rank());
  std::vector<uint32_t> ids;
  for (uint32_t i = 0; i < node.in_count(); ++i) {
    Dims dims = DimsOf(node.in(i));
    dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), 1);
    ids.push_back(graph.Temporary(DatatypeOf(out), TensorQuantOf(out), dims));
    graph.Check(
        xnn_define_static_reshape(graph.get(), dims.size(), dims.data(), graph.In(node, i), ids.back(), 0));
  }
  Join(graph, node, ids, std::vector<size_t>(ids.size(), 1), axis, graph.Out(node));
}

constexpr Operation kTable[] = {
    {"CONCATENATION", Accept::kAlone, SupportsConcat, DefineConcat},
    {"PACK", Accept::kJoin, SupportsPack, DefinePack},
};

}  // namespace

constinit const OperationTable kConcatOps = kTable;

}  // namespace fusebox::xnnpack
