// SPDX-License-Identifier: Apache-2.0
// PAD and PADV2 by constant amounts, with zeros or one constant value.
#include "plugins/xnnpack/partition/op.h"
#include "plugins/xnnpack/partition/releases.h"

namespace fusebox::xnnpack {
namespace {

struct Padding {
  Dims before, behind;
  float value = 0;
};

Padding ReadPadding(const NetworkNode& node) {
  const std::vector<int64_t> amounts = Integers(node, 1, "padding");
  node.require(amounts.size() == 2 * static_cast<size_t>(node.in(0).rank()), "SHAPE",
               "paddings do not match the rank", Operand(1));
  Padding padding;
  for (size_t i = 0; i < amounts.size(); i += 2) {
    node.require(amounts[i] >= 0 && amounts[i + 1] >= 0, "ATTR", "negative padding", Operand(1));
    padding.before.push_back(static_cast<size_t>(amounts[i]));
    padding.behind.push_back(static_cast<size_t>(amounts[i + 1]));
  }
  if (!node.has_in(2)) return padding;
  const Tensor value = node.in(2);
  node.require(value.is_const() && value.has_value() && value.count() == 1, "NONCONST",
               "padding value is not constant", Operand(2));
  node.require(value.dtype() == FBX_F32 && !Quantized(node.in(0)), "DTYPE", "a quantized padding value",
               Operand(2));
  padding.value = value.data<const float>()[0];
  return padding;
}

void Supports(const NetworkNode& node) {
  RequireArity(node, 2, 3);
  RequireValue(node.in(0), Operand(0));
  RequireValue(node.out(0), "result 0");
  RequireSameQuant(node.in(0), node.out(0));
  node.require(!node.constant(0), "CONST", "its operand is constant");
  node.require(node.in(0).rank() > 0, "RANK", "a scalar");
  ReadPadding(node);
}

// XNNPACK computes the PAD of images and a convolution that reads them as one node, but not for i8 with a
// negative zero point: it compares that with a number that it has extended in another way.
bool JoinsReader(Tensor images) { return images.dtype() != FBX_I8 || TensorQuantOf(images).zero_point >= 0; }

// Joins the last padded dimension with the dimensions behind it: XNNPACK calls a function for each place of a
// padded dimension, to copy the few elements behind.
void JoinRows(Dims& in, Dims& out, Padding& padding) {
  size_t rank = in.size();
  size_t row = 1;
  for (; rank > 1 && padding.before[rank - 1] + padding.behind[rank - 1] == 0; --rank) row *= in[rank - 1];
  for (Dims* const dims : {&in, &out, &padding.before, &padding.behind}) {
    dims->resize(rank);
    dims->back() *= row;
  }
}

void DefineRows(const NetworkNode& node, Subgraph& graph, Padding padding) {
  const auto reshape = [&](const Dims& dims, uint32_t from, uint32_t to) {
    graph.Check(xnn_define_static_reshape(graph.get(), dims.size(), dims.data(), from, to, 0));
  };
  Dims in = DimsOf(node.in(0));
  const Dims result = DimsOf(node.out(0));
  Dims out = result;
  JoinRows(in, out, padding);
  const uint32_t from = graph.Temporary(DatatypeOf(node.in(0)), TensorQuantOf(node.in(0)), in);
  const uint32_t to = graph.Temporary(DatatypeOf(node.out(0)), TensorQuantOf(node.out(0)), out);
  reshape(in, graph.In(node, 0), from);
  graph.Check(DefinePad(graph.get(), padding.before, padding.behind, padding.value, from, to));
  reshape(result, to, graph.Out(node));
}

void Define(const NetworkNode& node, Subgraph& graph) {
  const Padding padding = ReadPadding(node);
  const Tensor in = node.in(0);
  const bool has_rows =
      padding.before.back() + padding.behind.back() == 0 && in.is_static() && in.count() > 0;
  if (has_rows && !JoinsReader(in)) return DefineRows(node, graph, padding);
  graph.Check(DefinePad(graph.get(), padding.before, padding.behind, padding.value, graph.In(node, 0),
                        graph.Out(node)));
}

constexpr Operation kTable[] = {
    {"PAD", Accept::kAlone, Supports, Define, Joins::kReader},
    {"PADV2", Accept::kAlone, Supports, Define, Joins::kReader},
};

}  // namespace

constinit const OperationTable kPadOps = kTable;

}  // namespace fusebox::xnnpack
