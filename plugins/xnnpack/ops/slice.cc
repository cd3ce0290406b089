// SPDX-License-Identifier: Apache-2.0
// SLICE, STRIDED_SLICE with steps of one, SPLIT, SPLIT_V and UNPACK: each result is a box of the operand.
#include <algorithm>
#include "plugins/xnnpack/ops/op.h"

namespace fusebox::xnnpack {
namespace {

// A size of 0: the whole dim, which may be unknown.
struct Box {
  Dims offsets, sizes;
};

Box Whole(Tensor t) { return {Dims(t.dims().size(), 0), Dims(t.dims().size(), 0)}; }

void RequireOperand(const Site& site, uint32_t operand) {
  RequireValue(site.in(operand), Operand(operand));
  for (uint32_t i = 0; i < site.out_count(); ++i) {
    RequireValue(site.out(i), "result " + std::to_string(i));
    RequireSameQuant(site.in(operand), site.out(i));
  }
  site.require(!site.constant(operand), "CONST", "its operand is constant");
  site.require(site.in(operand).rank() > 0, "RANK", "a scalar");
}

void Restrict(const Site& site, Box& box, Tensor t, size_t dim, int64_t begin, int64_t end) {
  const int64_t size = t.dim(static_cast<int>(dim));
  site.require(size > 0, "SHAPE", "it cuts a dim that is known only when it runs");
  site.require(begin >= 0 && end > begin && end <= size, "SHAPE", "a slice that is empty or outside");
  box.offsets[dim] = static_cast<size_t>(begin);
  box.sizes[dim] = static_cast<size_t>(end - begin);
}

void DefineBox(Subgraph& graph, const Box& box, uint32_t in, uint32_t out) {
  graph.Check(xnn_define_static_slice(graph.get(), box.offsets.size(), box.offsets.data(), box.sizes.data(),
                                      in, out, 0));
}

// A box whose result has dims of size one taken out.
void DefineDropped(const Site& site, Subgraph& graph, const Box& box, uint32_t operand, uint32_t result) {
  const Tensor in = site.in(operand);
  Dims dims = DimsOf(in);
  for (size_t i = 0; i < dims.size(); ++i)
    if (box.sizes[i] != 0) dims[i] = box.sizes[i];
  const uint32_t cut = graph.Temporary(DatatypeOf(in), AffineOf(in), dims);
  DefineBox(graph, box, graph.In(site, operand), cut);
  const Dims to = DimsOf(site.out(result));
  graph.Check(xnn_define_static_reshape(graph.get(), to.size(), to.data(), cut, graph.Out(site, result), 0));
}

Box SliceBox(const Site& site) {
  const Tensor t = site.in(0);
  const auto begin = Integers(site, 1, "begin"), size = Integers(site, 2, "size");
  const auto rank = static_cast<size_t>(t.rank());
  site.require(begin.size() == rank && size.size() == rank, "SHAPE", "begin or size do not fit the rank");
  Box box = Whole(t);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t dim = t.dim(static_cast<int>(i));
    if (begin[i] == 0 && (size[i] == -1 || (dim > 0 && size[i] == dim))) continue;
    Restrict(site, box, t, i, begin[i], size[i] == -1 ? dim : begin[i] + size[i]);
  }
  return box;
}

void SupportsSlice(const Site& site) {
  RequireArity(site, 3, 3);
  RequireOperand(site, 0);
  SliceBox(site);
}

void DefineSlice(const Site& site, Subgraph& graph) {
  DefineBox(graph, SliceBox(site), graph.In(site, 0), graph.Out(site));
}

Box StridedBox(const Site& site) {
  const Tensor t = site.in(0);
  const auto begin = Integers(site, 1, "begin"), end = Integers(site, 2, "end");
  const int64_t begin_mask = site.attrs().i64("begin_mask", 0), end_mask = site.attrs().i64("end_mask", 0);
  const int64_t shrink = site.attrs().i64("shrink_axis_mask", 0);
  Box box = Whole(t);
  for (size_t i = 0; i < begin.size(); ++i) {
    const int64_t dim = t.dim(static_cast<int>(i)), bit = int64_t{1} << i;
    const bool from_start = begin_mask & bit;
    if ((from_start || begin[i] == 0) && (end_mask & bit) && !(shrink & bit)) continue;
    site.require(dim > 0, "SHAPE", "it cuts a dim that is known only when it runs");
    const int64_t first =
        from_start ? 0 : std::clamp(begin[i] < 0 ? begin[i] + dim : begin[i], int64_t{0}, dim);
    int64_t last = end_mask & bit ? dim : std::clamp(end[i] < 0 ? end[i] + dim : end[i], int64_t{0}, dim);
    if (shrink & bit) last = first + 1;
    if (first != 0 || last != dim) Restrict(site, box, t, i, first, last);
  }
  return box;
}

void SupportsStrided(const Site& site) {
  RequireArity(site, 4, 4);
  RequireOperand(site, 0);
  for (const int64_t step : Integers(site, 3, "strides"))
    site.require(step == 1, "ATTR", "a step of " + std::to_string(step), Operand(3));
  for (const char* mask : {"ellipsis_mask", "new_axis_mask"})
    site.require(site.attrs().i64(mask, 0) == 0, "ATTR", std::string(mask) + " is set");
  site.require(!site.attrs().b("offset", false), "ATTR", "end counts from begin", "attr offset");
  const size_t count = Integers(site, 1, "begin").size();
  site.require(count <= static_cast<size_t>(site.in(0).rank()) && Integers(site, 2, "end").size() == count &&
                   Integers(site, 3, "strides").size() == count,
               "SHAPE", "begin, end and strides do not fit");
  StridedBox(site);
  if (site.attrs().i64("shrink_axis_mask", 0) != 0) {
    RequireStatic(site.out(0), "result 0");
    site.require(site.out(0).rank() > 0, "RANK", "a scalar result");
  }
}

void DefineStrided(const Site& site, Subgraph& graph) {
  const Box box = StridedBox(site);
  if (site.attrs().i64("shrink_axis_mask", 0) != 0) return DefineDropped(site, graph, box, 0, 0);
  DefineBox(graph, box, graph.In(site, 0), graph.Out(site));
}

// The boxes along one axis, one per result, by the sizes of the results.
std::vector<Box> SplitBoxes(const Site& site, uint32_t operand, size_t axis) {
  std::vector<Box> boxes;
  int64_t at = 0;
  for (uint32_t i = 0; i < site.out_count(); ++i) {
    const int64_t size = site.out(i).dim(static_cast<int>(axis));
    boxes.push_back(Whole(site.in(operand)));
    Restrict(site, boxes.back(), site.in(operand), axis, at, at + size);
    at += size;
  }
  return boxes;
}

size_t SplitAxis(const Site& site, uint32_t operand, uint32_t axis) {
  const auto values = Integers(site, axis, "axis");
  site.require(values.size() == 1, "SHAPE", "not one axis", Operand(axis));
  return Axis(values[0], site.in(operand).rank());
}

template <uint32_t operand, uint32_t axis>
void SupportsSplit(const Site& site) {
  RequireOperand(site, operand);
  SplitBoxes(site, operand, SplitAxis(site, operand, axis));
}

template <uint32_t operand, uint32_t axis>
void DefineSplit(const Site& site, Subgraph& graph) {
  const auto boxes = SplitBoxes(site, operand, SplitAxis(site, operand, axis));
  for (uint32_t i = 0; i < boxes.size(); ++i)
    DefineBox(graph, boxes[i], graph.In(site, operand), graph.Out(site, i));
}

Box UnpackBox(const Site& site, uint32_t result) {
  Box box = Whole(site.in(0));
  const size_t axis = Axis(site.attrs().i64("axis", 0), site.in(0).rank());
  Restrict(site, box, site.in(0), axis, result, result + 1);
  return box;
}

void SupportsUnpack(const Site& site) {
  RequireArity(site, 1, 1);
  RequireOperand(site, 0);
  RequireStatic(site.in(0), Operand(0));
  site.require(site.in(0).rank() > 1, "RANK", "scalar results");
  for (uint32_t i = 0; i < site.out_count(); ++i) UnpackBox(site, i);
}

void DefineUnpack(const Site& site, Subgraph& graph) {
  for (uint32_t i = 0; i < site.out_count(); ++i) DefineDropped(site, graph, UnpackBox(site, i), 0, i);
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
