// SPDX-License-Identifier: Apache-2.0
// SLICE, STRIDED_SLICE with steps of one, SPLIT, SPLIT_V and UNPACK: each result is a box of the operand.
#include <algorithm>
#include "plugins/xnnpack/partition/op.h"

namespace fusebox::xnnpack {
namespace {

// A size of 0 is the whole dim, which may be unknown.
struct Box {
  Dims offsets, sizes;
};

Box Whole(Tensor t) { return {Dims(t.dims().size(), 0), Dims(t.dims().size(), 0)}; }

void RequireOperand(const NetworkNode& node, uint32_t operand) {
  RequireValue(node.in(operand), Operand(operand));
  for (uint32_t i = 0; i < node.out_count(); ++i) {
    RequireValue(node.out(i), "result " + std::to_string(i));
    RequireSameQuant(node.in(operand), node.out(i));
  }
  node.require(!node.constant(operand), "CONST", "its operand is constant");
  node.require(node.in(operand).rank() > 0, "RANK", "a scalar");
}

void Restrict(const NetworkNode& node, Box& box, Tensor t, size_t dim, int64_t begin, int64_t end) {
  const int64_t size = t.dim(static_cast<int>(dim));
  node.require(size > 0, "SHAPE", "slices an unknown dim");
  node.require(begin >= 0 && end > begin && end <= size, "SHAPE", "the slice is empty or out of range");
  box.offsets[dim] = static_cast<size_t>(begin);
  box.sizes[dim] = static_cast<size_t>(end - begin);
}

void DefineBox(Subgraph& graph, const Box& box, uint32_t in, uint32_t out) {
  graph.Check(xnn_define_static_slice(graph.get(), box.offsets.size(), box.offsets.data(), box.sizes.data(),
                                      in, out, 0));
}

// A box whose result drops dims of size one.
void DefineDropped(const NetworkNode& node, Subgraph& graph, const Box& box, uint32_t operand,
                   uint32_t result) {
  const Tensor in = node.in(operand);
  Dims dims = DimsOf(in);
  for (size_t i = 0; i < dims.size(); ++i)
    if (box.sizes[i] != 0) dims[i] = box.sizes[i];
  const uint32_t cut = graph.Temporary(DatatypeOf(in), TensorQuantOf(in), dims);
  DefineBox(graph, box, graph.In(node, operand), cut);
  const Dims to = DimsOf(node.out(result));
  graph.Check(xnn_define_static_reshape(graph.get(), to.size(), to.data(), cut, graph.Out(node, result), 0));
}

Box SliceBox(const NetworkNode& node) {
  const Tensor t = node.in(0);
  const auto begin = Integers(node, 1, "begin");
  const auto size = Integers(node, 2, "size");
  const auto rank = static_cast<size_t>(t.rank());
  node.require(begin.size() == rank && size.size() == rank, "SHAPE", "begin or size do not match the rank");
  Box box = Whole(t);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t dim = t.dim(static_cast<int>(i));
    if (begin[i] == 0 && (size[i] == -1 || (dim > 0 && size[i] == dim))) continue;
    Restrict(node, box, t, i, begin[i], size[i] == -1 ? dim : begin[i] + size[i]);
  }
  return box;
}

void SupportsSlice(const NetworkNode& node) {
  RequireArity(node, 3, 3);
  RequireOperand(node, 0);
  SliceBox(node);
}

void DefineSlice(const NetworkNode& node, Subgraph& graph) {
  DefineBox(graph, SliceBox(node), graph.In(node, 0), graph.Out(node));
}

Box StridedBox(const NetworkNode& node) {
  const Tensor t = node.in(0);
  const auto begin = Integers(node, 1, "begin");
  const auto end = Integers(node, 2, "end");
  const int64_t begin_mask = node.attrs().i64("begin_mask", 0);
  const int64_t end_mask = node.attrs().i64("end_mask", 0);
  const int64_t shrink = node.attrs().i64("shrink_axis_mask", 0);
  Box box = Whole(t);
  for (size_t i = 0; i < begin.size(); ++i) {
    const int64_t dim = t.dim(static_cast<int>(i));
    const int64_t bit = int64_t{1} << i;
    const bool from_start = begin_mask & bit;
    if ((from_start || begin[i] == 0) && (end_mask & bit) && !(shrink & bit)) continue;
    node.require(dim > 0, "SHAPE", "slices an unknown dim");
    const int64_t first =
        from_start ? 0 : std::clamp(begin[i] < 0 ? begin[i] + dim : begin[i], int64_t{0}, dim);
    int64_t last = end_mask & bit ? dim : std::clamp(end[i] < 0 ? end[i] + dim : end[i], int64_t{0}, dim);
    if (shrink & bit) last = first + 1;
    if (first != 0 || last != dim) Restrict(node, box, t, i, first, last);
  }
  return box;
}

void SupportsStrided(const NetworkNode& node) {
  RequireArity(node, 4, 4);
  RequireOperand(node, 0);
  for (const int64_t step : Integers(node, 3, "strides"))
    node.require(step == 1, "ATTR", "a step of " + std::to_string(step), Operand(3));
  for (const char* mask : {"ellipsis_mask", "new_axis_mask"})
    node.require(node.attrs().i64(mask, 0) == 0, "ATTR", std::string(mask) + " is set");
  node.require(!node.attrs().b("offset", false), "ATTR", "end counts from begin", "attr offset");
  const size_t count = Integers(node, 1, "begin").size();
  node.require(count <= static_cast<size_t>(node.in(0).rank()) && Integers(node, 2, "end").size() == count &&
                   Integers(node, 3, "strides").size() == count,
               "SHAPE", "begin, end and strides do not match");
  StridedBox(node);
  if (node.attrs().i64("shrink_axis_mask", 0) != 0) {
    RequireStatic(node.out(0), "result 0");
    node.require(node.out(0).rank() > 0, "RANK", "a scalar result");
  }
}

void DefineStrided(const NetworkNode& node, Subgraph& graph) {
  const Box box = StridedBox(node);
  if (node.attrs().i64("shrink_axis_mask", 0) != 0) return DefineDropped(node, graph, box, 0, 0);
  DefineBox(graph, box, graph.In(node, 0), graph.Out(node));
}

// The boxes along one axis, one per result, from the result sizes.
std::vector<Box> SplitBoxes(const NetworkNode& node, uint32_t operand, size_t axis) {
  std::vector<Box> boxes;
  int64_t at = 0;
  for (uint32_t i = 0; i < node.out_count(); ++i) {
    const int64_t size = node.out(i).dim(static_cast<int>(axis));
    boxes.push_back(Whole(node.in(operand)));
    Restrict(node, boxes.back(), node.in(operand), axis, at, at + size);
    at += size;
  }
  return boxes;
}

size_t SplitAxis(const NetworkNode& node, uint32_t operand, uint32_t axis) {
  const auto values = Integers(node, axis, "axis");
  node.require(values.size() == 1, "SHAPE", "not one axis", Operand(axis));
  return Axis(values[0], node.in(operand).rank());
}

template <uint32_t operand, uint32_t axis>
void SupportsSplit(const NetworkNode& node) {
  RequireOperand(node, operand);
  SplitBoxes(node, operand, SplitAxis(node, operand, axis));
}

template <uint32_t operand, uint32_t axis>
void DefineSplit(const NetworkNode& node, Subgraph& graph) {
  const auto boxes = SplitBoxes(node, operand, SplitAxis(node, operand, axis));
  for (uint32_t i = 0; i < boxes.size(); ++i)
    DefineBox(graph, boxes[i], graph.In(node, operand), graph.Out(node, i));
}

Box UnpackBox(const NetworkNode& node, uint32_t result) {
  Box box = Whole(node.in(0));
  const size_t axis = Axis(node.attrs().i64("axis", 0), node.in(0).rank());
  Restrict(node, box, node.in(0), axis, result, result + 1);
  return box;
}

void SupportsUnpack(const NetworkNode& node) {
  RequireArity(node, 1, 1);
  RequireOperand(node, 0);
  RequireStatic(node.in(0), Operand(0));
  node.require(node.in(0).rank() > 1, "RANK", "scalar results");
  for (uint32_t i = 0; i < node.out_count(); ++i) UnpackBox(node, i);
}

void DefineUnpack(const NetworkNode& node, Subgraph& graph) {
  for (uint32_t i = 0; i < node.out_count(); ++i) DefineDropped(node, graph, UnpackBox(node, i), 0, i);
}

constexpr Operation kTable[] = {
    {"SLICE", Accept::kJoin, SupportsSlice, DefineSlice},
    {"SPLIT", Accept::kJoin, SupportsSplit<1, 0>, DefineSplit<1, 0>},
    {"SPLIT_V", Accept::kJoin, SupportsSplit<0, 2>, DefineSplit<0, 2>},
    {"STRIDED_SLICE", Accept::kJoin, SupportsStrided, DefineStrided},
    {"UNPACK", Accept::kJoin, SupportsUnpack, DefineUnpack},
};

}  // namespace

constinit const OperationTable kSliceOps = kTable;

}  // namespace fusebox::xnnpack
