// SPDX-License-Identifier: Apache-2.0
// STABLEHLO_GATHER: slices of one size at given start indices. Start indices are clamped so that the slices
// fit.
#include <algorithm>
#include <array>

#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

// The options, checked against the operands' ranks; names as in the StableHLO specification.
class GatherDims {
 public:
  explicit GatherDims(const Node& n)
      : offset_dims(List(n, "offset_dims")),
        collapsed(List(n, "collapsed_slice_dims")),
        start_map(List(n, "start_index_map")),
        sizes(List(n, "slice_sizes")),
        vector_dim(n.attrs().i64("index_vector_dim", 0)) {
    const Tensor in = n.in(0);
    const Tensor starts = n.in(1);
    if (sizes.rank() != in.rank())
      Fail("has " + std::to_string(sizes.rank()) + " values for rank " + std::to_string(in.rank()),
           "attr slice_sizes");
    if (vector_dim < 0 || vector_dim > starts.rank())
      Fail("is " + std::to_string(vector_dim) + " for rank " + std::to_string(starts.rank()),
           "attr index_vector_dim");
    const int batch_rank = starts.rank() - (vector_dim < starts.rank() ? 1 : 0);
    const int slice_rank = in.rank() - collapsed.rank();
    if (offset_dims.rank() != slice_rank)
      Fail("has " + std::to_string(offset_dims.rank()) + " values for slices of rank " +
               std::to_string(slice_rank),
           "attr offset_dims");
    rank = batch_rank + slice_rank;
    if (rank > kMaxRank) throw Error{FBX_UNSUPPORTED, "more than 8 dimensions"};
    Mark(offset_dims, rank, "attr offset_dims", &is_offset);
    Mark(collapsed, in.rank(), "attr collapsed_slice_dims", &is_collapsed);
    std::array<bool, 2 * kMaxRank> unused{};
    Mark(start_map, in.rank(), "attr start_index_map", &unused);
    CheckSizes(in);
    const int64_t length = vector_dim < starts.rank() ? starts.dim(static_cast<int>(vector_dim)) : int64_t{1};
    if (length >= 0 && length != start_map.rank())
      Fail(
          "indices of " + std::to_string(length) + " for " + std::to_string(start_map.rank()) + " dimensions",
          Operand(1));
  }

  Shape offset_dims, collapsed, start_map, sizes;
  int64_t vector_dim;
  int rank = 0;  // rank of the result
  std::array<bool, 2 * kMaxRank> is_offset{};
  std::array<bool, 2 * kMaxRank> is_collapsed{};

 private:
  static Shape List(const Node& n, const char* attr) { return Shape(n.attrs().i64s(attr)); }

  static void Mark(const Shape& dims, int rank, const char* attr, std::array<bool, 2 * kMaxRank>* marks) {
    for (const int64_t d : dims) {
      if (d < 0 || d >= rank)
        Fail("dimension " + std::to_string(d) + " is outside of rank " + std::to_string(rank), attr);
      bool& mark = (*marks)[static_cast<size_t>(d)];
      if (mark) Fail("dimension " + std::to_string(d) + " is duplicated", attr);
      mark = true;
    }
  }
  void CheckSizes(Tensor in) const {
    for (int d = 0; d < in.rank(); ++d) {
      const bool fits = sizes[d] >= 0 && (in.dim(d) < 0 || sizes[d] <= in.dim(d));
      if (!fits || (is_collapsed[static_cast<size_t>(d)] && sizes[d] != 1))
        Fail("a size of " + std::to_string(sizes[d]) + " for dimension " + std::to_string(d) + " of " +
                 Text(in.dims()),
             "attr slice_sizes");
    }
  }
};

struct StablehloGather {
  static constexpr std::string_view builtin = "STABLEHLO_GATHER";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    RequireMovable(n, 0);
    RequireDtype(n, 1, kIndices);
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    const Tensor in = n.in(0);
    const Tensor starts = n.in(1);
    if (in.rank() < 0 || starts.rank() < 0) return out.unranked(0, in.dtype());
    const GatherDims g(n);
    Shape dims;
    int batch = 0;
    int slice = 0;
    for (int i = 0; i < g.rank; ++i) {
      if (g.is_offset[static_cast<size_t>(i)]) {
        while (g.is_collapsed[static_cast<size_t>(slice)]) ++slice;
        dims.push_back(g.sizes[slice++]);
      } else {
        if (batch == g.vector_dim) ++batch;
        dims.push_back(starts.dim(batch++));
      }
    }
    Count(dims);
    out.set(0, in.dtype(), dims);
  }

  void invoke(const Node& n) const {
    const GatherDims g(n);
    const Shape in(n.in(0));
    const Shape starts(n.in(1));
    const Shape dims(n.out(0));
    const Shape from = Strides(in);
    const Shape dense = Strides(dims);
    // Dims and strides: slices in the tensor and the result, batches in the indices and the result.
    Shape slice, slice_from, slice_to, batch, batch_from, batch_to;
    for (int d = 0; d < in.rank(); ++d) {
      if (g.is_collapsed[static_cast<size_t>(d)]) continue;
      slice.push_back(g.sizes[d]);
      slice_from.push_back(from[d]);
    }
    const Shape index = Strides(starts);
    for (int d = 0; d < starts.rank(); ++d) {
      if (d == g.vector_dim) continue;
      batch.push_back(starts[d]);
      batch_from.push_back(index[d]);
    }
    for (int i = 0; i < dims.rank(); ++i)
      (g.is_offset[static_cast<size_t>(i)] ? slice_to : batch_to).push_back(dense[i]);
    if (n.out(0).count() == 0) return;
    const int64_t step = g.vector_dim < starts.rank() ? index[static_cast<int>(g.vector_dim)] : 0;
    const size_t width = ElementSize(n.in(0).dtype());
    Walk<2> walk(batch, {batch_from, batch_to});
    for (int64_t i = 0; i < Count(batch); ++i, walk.Next()) {
      int64_t origin = 0;
      for (int k = 0; k < g.start_map.rank(); ++k) {
        const auto d = static_cast<int>(g.start_map[k]);
        const int64_t start = IntAt(n.in(1), walk.offset(0) + k * step);
        origin += std::clamp<int64_t>(start, 0, in[d] - g.sizes[d]) * from[d];
      }
      CopyBox(n.host(), width, slice, Elements(n.in(0), origin), slice_from,
              MutableElements(n.out(0), walk.offset(1)), slice_to);
    }
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<StablehloGather>};

}  // namespace

constinit const KernelTable kStablehloGatherKernels = kTable;

}  // namespace fusebox::cpu
