// SPDX-License-Identifier: Apache-2.0
// SPARSE_TO_DENSE, EMBEDDING_LOOKUP_SPARSE, HASHTABLE_LOOKUP.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/elements/strings.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

void RequireList(const Node& n, uint32_t operand) {
  const int rank = n.in(operand).rank();
  if (rank >= 0 && rank != 1) Fail("expected a list, got rank " + std::to_string(rank), Operand(operand));
}

// A shape operand with non-negative sizes.
Shape Sizes(const Node& n, uint32_t operand) {
  const Shape dims = IntList(n.in(operand), operand);
  for (const int64_t d : dims)
    if (d < 0) Fail("a dimension of " + std::to_string(d), Operand(operand));
  Count(dims);
  return dims;
}

// The flat index, in a tensor of these sizes, of the `depth` indices from element `first` of the operand.
int64_t PlaceAt(const Node& n, uint32_t operand, int64_t first, int64_t depth, const Shape& sizes) {
  int64_t place = 0;
  for (int64_t d = 0; d < depth; ++d) {
    const int64_t at = IntAt(n.in(operand), first + d);
    const int64_t size = sizes[static_cast<int>(d)];
    if (at < 0 || at >= size)
      Fail("index " + std::to_string(at) + " is outside of dimension " + std::to_string(size),
           Operand(operand));
    place = place * size + at;
  }
  return place;
}

// Operands: indices, dense shape, values (one for all, or one each), default value.
struct SparseToDense {
  static constexpr std::string_view builtin = "SPARSE_TO_DENSE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    RequireDtype(n, 0, kIndices);
    RequireDtype(n, 1, kIndices);
    RequireMovable(n, 2);
    RequireMovable(n, 3);
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 4, 4);
    SameDtype(n, 2, 3);
    const Tensor shape = n.in(1);
    if (n.in(0).rank() > 2)
      Fail("expected a scalar, a list or a matrix, got rank " + std::to_string(n.in(0).rank()), Operand(0));
    if (n.in(2).rank() > 1)
      Fail("expected one value or a list, got rank " + std::to_string(n.in(2).rank()), Operand(2));
    if (n.in(3).is_static() && Count(n.in(3).dims()) != 1)
      Fail("expected one value, got shape " + Text(n.in(3).dims()), Operand(3));
    RequireList(n, 1);
    if (shape.has_value()) return out.set(0, n.in(2).dtype(), Sizes(n, 1));
    SetUnknownDimsOfList(n, out, 1, n.in(2).dtype());
  }
  void invoke(const Node& n) const {
    const Shape dims = Sizes(n, 1);
    const Shape where(n.in(0));
    CheckPlanned(dims, n.out(0));
    const bool same = n.in(2).rank() == 0;
    const int64_t depth = where.rank() == 2 ? where[1] : 1;
    // Indices of depth 0 take no memory and are all equal.
    const int64_t places = where.rank() == 0    ? 1
                           : same && depth == 0 ? std::min<int64_t>(where[0], 1)
                                                : where[0];
    if (depth != dims.rank())
      Fail("indices of " + std::to_string(depth) + " for rank " + std::to_string(dims.rank()), Operand(0));
    if (!same) SameDim(n.in(2).dim(0), places, "the numbers of places and of values");
    const size_t width = ElementSize(n.in(2).dtype());
    FillElements(width, n.in(3).data<const void>(), MutableElements(n.out(0)), Count(dims));
    for (int64_t i = 0; i < places; ++i)
      std::memcpy(MutableElements(n.out(0), PlaceAt(n, 0, i * depth, depth, dims)),
                  Elements(n.in(2), same ? 0 : i), width);
  }
};

// Operands: row indices, their coordinates in a sparse tensor, its shape, weights, table. Rows that share all
// coordinates but the last are combined; they are adjacent.
struct EmbeddingLookupSparse {
  static constexpr std::string_view builtin = "EMBEDDING_LOOKUP_SPARSE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    for (uint32_t i = 0; i < 3; ++i) RequireDtype(n, i, kIndices);
    RequireDtype(n, 3, kFloats);
    RequireDtype(n, 4, kFloats);
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 5, 5);
    SameDtype(n, 3, 4);
    const Tensor where = n.in(1);
    const Tensor table = n.in(4);
    for (const uint32_t i : {0u, 2u, 3u}) RequireList(n, i);
    if (where.rank() >= 0 && where.rank() != 2)
      Fail("expected a matrix, got rank " + std::to_string(where.rank()), Operand(1));
    if (table.rank() >= 0 && table.rank() < 2)
      Fail("expected rank 2 or more, got rank " + std::to_string(table.rank()), Operand(4));
    if (!n.in(2).has_value()) out.needs_value(2);
    if (!n.in(2).has_value() || table.rank() < 0) return out.unranked(0, table.dtype());
    out.set(0, table.dtype(), Combined(n));
  }
  void invoke(const Node& n) const {
    const Shape dims = Combined(n);
    const Shape table(n.in(4));
    const Shape sizes = Sizes(n, 2);
    const Shape where(n.in(1));
    CheckPlanned(dims, n.out(0));
    if (where[1] != sizes.rank())
      Fail("indices of " + std::to_string(where[1]) + " for rank " + std::to_string(sizes.rank()),
           Operand(1));
    SameDim(n.in(0).dim(0), where[0], "the numbers of rows and of places");
    SameDim(n.in(3).dim(0), where[0], "the numbers of weights and of places");
    Dispatch(kFloats, n.in(4).dtype(), [&]<class T>() { Run<T>(n, sizes, table[0], CountFrom(table, 1)); });
  }

 private:
  static Shape Combined(const Node& n) {
    const Shape sizes = Sizes(n, 2);
    const Shape table(n.in(4));
    if (sizes.rank() < 1) Fail("the sparse tensor is a scalar", Operand(2));
    Shape dims;
    for (int i = 0; i + 1 < sizes.rank(); ++i) dims.push_back(sizes[i]);
    for (int i = 1; i < table.rank(); ++i) dims.push_back(table[i]);
    Count(dims);
    return dims;
  }

  template <class T>
  static void Run(const Node& n, const Shape& sizes, int64_t rows, int64_t width) {
    const std::string_view combiner = n.attrs().s("combiner", "SUM");
    const T* const weights = n.in(3).data<const T>();
    const T* const table = n.in(4).data<const T>();
    T* const out = n.out(0).data<T>();
    std::fill_n(out, n.out(0).count(), T(0));
    const int64_t count = n.in(0).dim(0);
    const int64_t depth = sizes.rank() - 1;
    int64_t bucket = 0;
    T sum = 0;
    T squares = 0;
    const auto finish = [&](int64_t members) {
      if (members == 0 || combiner == "SUM") return;
      const T by = combiner == "MEAN" ? sum : std::sqrt(squares);
      for (int64_t k = 0; k < width; ++k) out[bucket * width + k] /= by;
    };
    int64_t members = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t next = PlaceAt(n, 1, i * (depth + 1), depth, sizes);
      if (next < bucket) Fail("the places are not in ascending order", Operand(1));
      if (next > bucket) {
        finish(members);
        bucket = next;
        members = 0;
        sum = 0;
        squares = 0;
      }
      const int64_t row = IntAt(n.in(0), i);
      if (row < 0 || row >= rows)
        Fail("index " + std::to_string(row) + " is outside of dimension " + std::to_string(rows), Operand(0));
      ++members;
      sum += weights[i];
      squares += weights[i] * weights[i];
      for (int64_t k = 0; k < width; ++k) out[bucket * width + k] += table[row * width + k] * weights[i];
    }
    finish(members);
  }
};

// Operands: keys to look up, ascending table keys, one row per table key. Results: rows, zeros for missing
// keys; and whether each key was found.
struct HashtableLookup {
  static constexpr std::string_view builtin = "HASHTABLE_LOOKUP";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    RequireDtype(n, 0, Types<int32_t>{});
    RequireDtype(n, 1, Types<int32_t>{});
    if (!HasStrings(n)) RequireMovable(n, 2);
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 3, 3, 2);
    RequireList(n, 0);
    RequireList(n, 1);
    const Tensor wanted = n.in(0);
    const Tensor keys = n.in(1);
    const Tensor table = n.in(2);
    const int64_t count = wanted.rank() == 1 ? wanted.dim(0) : -1;
    out.set(1, FBX_U8, {count});
    if (table.rank() < 0) return out.unranked(0, table.dtype());
    Shape dims(table);
    if (dims.rank() < 1) Fail("the table is a scalar", Operand(2));
    if (keys.rank() == 1) SameDim(keys.dim(0), dims[0], "the numbers of keys and of rows");
    dims[0] = count;
    // Sizes of strings are unknown until they are read.
    if (table.dtype() == FBX_STRING)
      for (int i = 0; i < dims.rank(); ++i) dims[i] = -1;
    out.set(0, table.dtype(), dims);
  }
  void invoke(const Node& n) const {
    Shape dims(n.in(2));
    const int64_t width = CountFrom(dims, 1);
    const int64_t count = n.in(0).dim(0);
    dims[0] = count;
    for (int64_t i = 0; i < count; ++i) n.out(1).data<uint8_t>()[i] = RowOf(n, i) >= 0 ? 1 : 0;
    if (n.in(2).dtype() == FBX_STRING) {
      const Strings strings(n.in(2));
      return StoreStrings(n, 0, dims, [&](int64_t k) {
        const int64_t row = RowOf(n, k / width);
        return row < 0 ? std::string_view() : strings[row * width + k % width];
      });
    }
    const size_t bytes = static_cast<size_t>(width) * ElementSize(n.in(2).dtype());
    for (int64_t i = 0; bytes > 0 && i < count; ++i) {
      const int64_t row = RowOf(n, i);
      std::byte* const to = MutableElements(n.out(0), i * width);
      if (row < 0) std::memset(to, 0, bytes);
      else std::memcpy(to, Elements(n.in(2), row * width), bytes);
    }
  }

 private:
  // -1: not found.
  static int64_t RowOf(const Node& n, int64_t i) {
    const int32_t wanted = n.in(0).data<const int32_t>()[i];
    const auto keys = n.in(1).values<const int32_t>();
    const auto found = std::ranges::lower_bound(keys, wanted);
    return found != keys.end() && *found == wanted ? found - keys.begin() : -1;
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<MovesStrings<SparseToDense>>,
                                        &kernel_of<EmbeddingLookupSparse>, &kernel_of<HashtableLookup>};

}  // namespace

constinit const KernelTable kSparseKernels = kTable;

}  // namespace fusebox::cpu
