// SPDX-License-Identifier: Apache-2.0
// Indexing: GATHER, GATHER_ND, EMBEDDING_LOOKUP, SCATTER_ND. An index out of range is an error.

#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/elements/strings.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/quantized/quant.h"

namespace fusebox::cpu {
namespace {

inline constexpr Types<int16_t, int32_t, int64_t> kGatherIndices;

[[noreturn]] void BadIndex(int64_t index, int64_t dim, uint32_t operand) {
  Fail("index " + std::to_string(index) + " is outside of dimension " + std::to_string(dim),
       Operand(operand));
}

void CheckIndices(Tensor indices, uint32_t operand, int64_t dim) {
  Dispatch(kGatherIndices, indices.dtype(), [&]<class I>() {
    for (const I i : indices.values<const I>())
      if (i < 0 || i >= dim) BadIndex(i, dim, operand);
  });
}

struct Gather {
  static constexpr std::string_view builtin = "GATHER";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    RequireMovable(n, 0);
    // Some files have bools as indices of an empty result, which LiteRT runs.
    if (!n.has_in(1) || n.in(1).dtype() != FBX_BOOL) RequireDtype(n, 1, kGatherIndices);
  }
  struct Axes {
    int axis, batch;
  };
  static Axes AxesOf(const Node& n) {
    const int rank = n.in(0).rank();
    const int index_rank = n.in(1).rank();
    const int axis = Axis(n.attrs().i64("axis", 0), rank);
    int64_t batch = n.attrs().i64("batch_dims", 0);
    if (batch < 0) batch += index_rank;
    if (batch < 0 || batch > axis || batch > index_rank)
      Fail("is " + std::to_string(batch) + " for axis " + std::to_string(axis), "attr batch_dims");
    return {axis, static_cast<int>(batch)};
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    const Tensor in = n.in(0);
    const Tensor indices = n.in(1);
    if (in.rank() < 0 || indices.rank() < 0) return out.unranked(0, in.dtype());
    const auto [axis, batch] = AxesOf(n);
    Shape dims;
    for (int i = 0; i < axis; ++i)
      dims.push_back(i < batch ? SameDim(in.dim(i), indices.dim(i), "batch dimensions") : in.dim(i));
    for (int i = batch; i < indices.rank(); ++i) dims.push_back(indices.dim(i));
    for (int i = axis + 1; i < in.rank(); ++i) dims.push_back(in.dim(i));
    out.set(0, in.dtype(), dims);
  }
  void invoke(const Node& n) const {
    const auto [axis, batch] = AxesOf(n);
    const Shape in(n.in(0));
    const Shape indices(n.in(1));
    const int64_t dim = in[axis];
    const int64_t per_batch = CountFrom(indices, batch);
    const int64_t batches = CountBefore(in, batch);
    const int64_t outer = Count({in.begin() + batch, static_cast<size_t>(axis - batch)});
    const int64_t inner = CountFrom(in, axis + 1);
    const size_t bytes = static_cast<size_t>(inner) * ElementSize(n.in(0).dtype());
    const int64_t rows = batches * outer * per_batch;
    const bool empty = rows == 0 || bytes == 0;
    if (n.in(1).dtype() == FBX_BOOL && !empty) Fail("bools are no indices", Operand(1));
    if (n.in(1).dtype() != FBX_BOOL) CheckIndices(n.in(1), 1, dim);
    if (empty) return;
    Dispatch(kGatherIndices, n.in(1).dtype(), [&]<class I>() {
      const I* index = n.in(1).data<const I>();
      const std::byte* from = Elements(n.in(0));
      std::byte* to = MutableElements(n.out(0));
      ParallelFor(n.host(), static_cast<size_t>(rows), Grain(inner), [&](size_t begin, size_t end, uint32_t) {
        int64_t block = static_cast<int64_t>(begin) / per_batch;
        int64_t k = static_cast<int64_t>(begin) % per_batch;
        for (size_t row = begin; row < end; k = 0, ++block) {
          const I* const of_batch = index + block / outer * per_batch;
          for (; k < per_batch && row < end; ++k, ++row)
            CopyBytes(to + row * bytes, from + static_cast<size_t>(block * dim + of_batch[k]) * bytes, bytes);
        }
      });
    });
  }
};

// indices [..., k] select along the first k dims of `dims`.
struct NdIndices {
  int64_t rows, depth, inner;
};
NdIndices SplitNd(Tensor indices, const Shape& dims) {
  const Shape shape(indices);
  const int64_t depth = shape[shape.rank() - 1];
  return {CountBefore(shape, shape.rank() - 1), depth, CountFrom(dims, static_cast<int>(depth))};
}

// Depth -1: unknown.
int64_t DepthOf(Tensor indices, uint32_t operand, int rank) {
  if (indices.rank() == 0) Fail("indices are a scalar", Operand(operand));
  const int64_t depth = indices.dim(-1);
  if (depth > rank)
    Fail("indices of " + std::to_string(depth) + " for rank " + std::to_string(rank), Operand(operand));
  return depth;
}

template <class I>
int64_t RowAt(const I* index, int64_t depth, const Shape& dims, uint32_t operand) {
  int64_t row = 0;
  for (int64_t d = 0; d < depth; ++d) {
    const int64_t dim = dims[static_cast<int>(d)];
    const int64_t at = index[d];
    if (at < 0 || at >= dim) BadIndex(at, dim, operand);
    row = row * dim + at;
  }
  return row;
}

struct GatherNd {
  static constexpr std::string_view builtin = "GATHER_ND";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    RequireMovable(n, 0);
    RequireDtype(n, 1, kGatherIndices);
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    const Tensor in = n.in(0);
    const Tensor indices = n.in(1);
    if (in.rank() < 0 || indices.rank() < 0) return out.unranked(0, in.dtype());
    const int64_t depth = DepthOf(indices, 1, in.rank());
    if (depth < 0) return out.unranked(0, in.dtype());
    Shape dims;
    for (int i = 0; i + 1 < indices.rank(); ++i) dims.push_back(indices.dim(i));
    for (int i = static_cast<int>(depth); i < in.rank(); ++i) dims.push_back(in.dim(i));
    out.set(0, in.dtype(), dims);
  }
  void invoke(const Node& n) const {
    const Shape in(n.in(0));
    const auto [rows, depth, inner] = SplitNd(n.in(1), in);
    const size_t bytes = static_cast<size_t>(inner) * ElementSize(n.in(0).dtype());
    Dispatch(kGatherIndices, n.in(1).dtype(), [&]<class I>() {
      const I* index = n.in(1).data<const I>();
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t row = RowAt(index + i * depth, depth, in, 1);
        if (bytes > 0)
          CopyBytes(MutableElements(n.out(0)) + static_cast<size_t>(i) * bytes,
                    Elements(n.in(0)) + static_cast<size_t>(row) * bytes, bytes);
      }
    });
  }
};

// Operands: indices, updates, shape. Updates of the same element are added.
struct ScatterNd {
  static constexpr std::string_view builtin = "SCATTER_ND";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    RequireDtype(n, 0, kIndices);
    if (!IsQuantized(n, 1)) return RequireDtype(n, 1, kAllNumbers);
    // Quantized values are added directly, and absent elements are quantized as 0.
    RequireQuantized(n, 1);
    RequireSameQuant(n, 1);
    if (AffineOf(n.in(1)).zero != 0) throw Reject{"QUANT", "updates with a zero point", Operand(1)};
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 3, 3);
    const Tensor indices = n.in(0);
    const Tensor updates = n.in(1);
    const Tensor shape = n.in(2);
    if (!shape.has_value()) return SetUnknownDimsOfList(n, out, 2, updates.dtype());
    const Shape dims = IntList(shape, 2);
    for (const int64_t d : dims)
      if (d < 0) Fail("a dimension of " + std::to_string(d), Operand(2));
    Count(dims);
    if (indices.rank() >= 0 && updates.rank() >= 0) Check(indices, updates, dims);
    out.set(0, updates.dtype(), dims);
  }
  static void Check(Tensor indices, Tensor updates, const Shape& dims) {
    const int64_t depth = DepthOf(indices, 0, dims.rank());
    if (depth < 0) return;
    const int outer = indices.rank() - 1;
    if (updates.rank() != outer + dims.rank() - depth)
      Fail("has rank " + std::to_string(updates.rank()), Operand(1));
    for (int i = 0; i < updates.rank(); ++i)
      SameDim(updates.dim(i), i < outer ? indices.dim(i) : dims[i - outer + static_cast<int>(depth)],
              "dimensions of the updates");
  }
  void invoke(const Node& n) const {
    const Shape dims = IntList(n.in(2), 2);
    CheckPlanned(dims, n.out(0));
    Check(n.in(0), n.in(1), dims);
    const auto [rows, depth, inner] = SplitNd(n.in(0), dims);
    Dispatch(kAllNumbers, n.in(1).dtype(), [&]<class T>() {
      T* out = n.out(0).data<T>();
      std::fill_n(out, Count(dims), T{});
      Dispatch(kIndices, n.in(0).dtype(), [&]<class I>() {
        for (int64_t i = 0; i < rows; ++i) {
          T* to = out + RowAt(n.in(0).data<const I>() + i * depth, depth, dims, 0) * inner;
          const T* from = n.in(1).data<const T>() + i * inner;
          for (int64_t k = 0; k < inner; ++k) to[k] = Sum(to[k], from[k]);
        }
      });
    });
  }
  // Integers wrap.
  template <class T>
  static T Sum(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a + b;
    else
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                            static_cast<std::make_unsigned_t<T>>(b));
  }
};

// Operands: row indices, table.
struct EmbeddingLookup {
  static constexpr std::string_view builtin = "EMBEDDING_LOOKUP";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    RequireDtype(n, 0, kIndices);
    if (!ToFloats(n)) return RequireMovable(n, 1);
    const Tensor table = n.in(1);
    if (!Contains(kBytes, table.dtype()) && table.dtype() != FBX_I4) RejectDtype(table.dtype(), 1);
    RequireScales(table, Operand(1));
    const fbx_quant& q = *table.quant();
    if (q.count > 1 &&
        (q.kind != FBX_QUANT_PER_AXIS || q.axis != 0 || table.rank() < 1 || table.dim(0) != q.count))
      throw Reject{"QUANT", "neither one scale nor one per row", Operand(1)};
  }
  // Rows of a quantized table as floats.
  static bool ToFloats(const Node& n) {
    return IsQuantized(n, 1) && n.out_count() > 0 && n.out(0).dtype() == FBX_F32;
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    const Tensor rows = n.in(0);
    const Tensor table = n.in(1);
    if (rows.rank() >= 0 && rows.rank() != 1)
      Fail("expected a list, got rank " + std::to_string(rows.rank()), Operand(0));
    const fbx_dtype dtype = ToFloats(n) ? FBX_F32 : table.dtype();
    if (table.rank() < 0) return out.unranked(0, dtype);
    Shape dims(table);
    if (dims.rank() < 1) Fail("the table is a scalar", Operand(1));
    dims[0] = rows.rank() < 0 ? -1 : rows.dim(0);
    out.set(0, dtype, dims);
  }
  void invoke(const Node& n) const {
    const Shape table(n.in(1));
    CheckIndices(n.in(0), 0, table[0]);
    const int64_t width = CountFrom(table, 1);
    if (ToFloats(n)) return Floats(n, width);
    const size_t bytes = static_cast<size_t>(width) * ElementSize(n.in(1).dtype());
    for (int64_t i = 0; bytes > 0 && i < n.in(0).count(); ++i)
      CopyBytes(MutableElements(n.out(0)) + static_cast<size_t>(i) * bytes,
                Elements(n.in(1)) + static_cast<size_t>(IntAt(n.in(0), i)) * bytes, bytes);
  }

 private:
  static void Floats(const Node& n, int64_t width) {
    if (n.in(1).dtype() != FBX_I4) {
      return Dispatch(kBytes, n.in(1).dtype(), [&]<class T>() {
        const T* x = n.in(1).data<const T>();
        Scale(n, width, [x](int64_t at) { return int64_t{x[at]}; });
      });
    }
    // Two values per byte, the first in the low half; a row may start within a byte. The sign bit has
    // negative weight.
    const auto* x = n.in(1).data<const uint8_t>();
    Scale(n, width, [x](int64_t at) {
      const int half = at % 2 ? x[at / 2] >> 4 : x[at / 2] & 0xF;
      return int64_t{(half ^ 8) - 8};
    });
  }
  template <class At>
  static void Scale(const Node& n, int64_t width, At at) {
    const fbx_quant& q = *n.in(1).quant();
    float* y = n.out(0).data<float>();
    for (int64_t i = 0; i < n.in(0).count(); ++i) {
      const int64_t row = IntAt(n.in(0), i);
      const int64_t channel = q.count > 1 ? row : 0;
      for (int64_t k = 0; k < width; ++k)
        *y++ = q.scales[channel] * static_cast<float>(at(row * width + k) - q.zero_points[channel]);
    }
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<MovesStrings<Gather>>, &kernel_of<MovesStrings<GatherNd>>,
                                        &kernel_of<ScatterNd>, &kernel_of<EmbeddingLookup>};

}  // namespace

constinit const KernelTable kGatherKernels = kTable;

}  // namespace fusebox::cpu
