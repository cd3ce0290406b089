// SPDX-License-Identifier: Apache-2.0
// STABLEHLO_SCATTER: combines elements of a tensor with updates at given indices. Updates outside of the
// tensor are dropped, as in the specification's interpreter. A row of updates whose place is one index, as of
// a KV cache, is combined at once.
#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "plugins/cpu/elements/extremes.h"
#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

using Marks = std::array<bool, 2 * kMaxRank>;

// The options, checked against the operands' ranks; names as in the StableHLO specification.
class ScatterDims {
 public:
  explicit ScatterDims(const Node& n)
      : window(List(n, "update_window_dims")),
        inserted(List(n, "inserted_window_dims")),
        to_operand(List(n, "scatter_dims_to_operand_dims")),
        vector_dim(n.attrs().i64("index_vector_dim", 0)) {
    const Tensor in = n.in(0);
    const Tensor indices = n.in(1);
    const Tensor updates = n.in(2);
    if (vector_dim < 0 || vector_dim > indices.rank())
      Fail("is " + std::to_string(vector_dim) + " for rank " + std::to_string(indices.rank()),
           "attr index_vector_dim");
    const int batch_rank = indices.rank() - (vector_dim < indices.rank() ? 1 : 0);
    if (window.rank() + inserted.rank() != in.rank())
      Fail("windows of rank " + std::to_string(window.rank()) + " with " + std::to_string(inserted.rank()) +
               " inserted dimensions for rank " + std::to_string(in.rank()),
           "attr update_window_dims");
    if (updates.rank() != batch_rank + window.rank())
      Fail("rank " + std::to_string(updates.rank()) + ", expected " +
               std::to_string(batch_rank + window.rank()),
           Operand(2));
    Mark(window, updates.rank(), "attr update_window_dims", &is_window);
    Mark(inserted, in.rank(), "attr inserted_window_dims", &is_inserted);
    Marks unused{};
    Mark(to_operand, in.rank(), "attr scatter_dims_to_operand_dims", &unused);
    CheckSizes(in, indices, updates);
  }

  Shape window, inserted, to_operand;
  int64_t vector_dim;
  Marks is_window{};
  Marks is_inserted{};

 private:
  static Shape List(const Node& n, const char* attr) { return Shape(n.attrs().i64s(attr)); }

  static void Mark(const Shape& dims, int rank, const char* attr, Marks* marks) {
    for (const int64_t d : dims) {
      if (d < 0 || d >= rank)
        Fail("dimension " + std::to_string(d) + " is outside of rank " + std::to_string(rank), attr);
      bool& mark = (*marks)[static_cast<size_t>(d)];
      if (mark) Fail("dimension " + std::to_string(d) + " is duplicated", attr);
      mark = true;
    }
  }

  void CheckSizes(Tensor in, Tensor indices, Tensor updates) const {
    const int64_t length =
        vector_dim < indices.rank() ? indices.dim(static_cast<int>(vector_dim)) : int64_t{1};
    if (length >= 0 && length != to_operand.rank())
      Fail("indices of " + std::to_string(length) + " for " + std::to_string(to_operand.rank()) +
               " dimensions",
           Operand(1));
    int batch = 0;
    for (int d = 0; d < updates.rank(); ++d) {
      if (is_window[static_cast<size_t>(d)]) continue;
      if (batch == vector_dim) ++batch;
      SameDim(updates.dim(d), indices.dim(batch++), "sizes of updates and indices");
    }
    for (int d = 0, k = 0; d < in.rank(); ++d) {
      if (is_inserted[static_cast<size_t>(d)]) continue;
      const int64_t size = updates.dim(static_cast<int>(window[k++]));
      if (in.dim(d) >= 0 && size > in.dim(d))
        Fail("a window of " + std::to_string(size) + " for dimension " + std::to_string(d) + " of " +
                 Text(in.dims()),
             Operand(2));
    }
  }
};

struct Operands {
  Tensor in, indices, updates;
};

// Trailing dimensions that windows cover from their first element: neighbors in both tensors.
struct Rows {
  int rank = 0;
  int64_t length = 1;
};

Rows RowsOf(const Operands& o, const ScatterDims& dims) {
  Marks starts{};
  for (const int64_t d : dims.to_operand) starts[static_cast<size_t>(d)] = true;
  Rows rows;
  for (; rows.rank < dims.window.rank(); ++rows.rank) {
    const int d = o.in.rank() - 1 - rows.rank;
    const int u = o.updates.rank() - 1 - rows.rank;
    if (dims.is_inserted[static_cast<size_t>(d)] || starts[static_cast<size_t>(d)] ||
        dims.window[dims.window.rank() - 1 - rows.rank] != u || o.in.dim(d) != o.updates.dim(u))
      break;
    rows.length *= o.in.dim(d);
  }
  return rows;
}

// Visits rows of the updates in row-major order, with the operand's element that each begins at.
class Places {
 public:
  Places(const Operands& o, const ScatterDims& dims, const Rows& rows)
      : indices_(o.indices), dims_(dims), in_(o.in), strides_(Strides(in_)), walk_(WalkOf(o, dims, rows)) {
    const Shape steps = Strides(Shape(indices_));
    step_ = dims.vector_dim < steps.rank() ? steps[static_cast<int>(dims.vector_dim)] : 0;
    for (int d = 0, k = 0; d < in_.rank(); ++d)
      from_[static_cast<size_t>(d)] =
          dims.is_inserted[static_cast<size_t>(d)] ? -1 : static_cast<int>(dims.window[k++]);
  }
  void Next() { walk_.Next(); }
  // -1: outside.
  int64_t At() const {
    std::array<int64_t, kMaxRank> at{};
    for (int k = 0; k < dims_.to_operand.rank(); ++k)
      at[static_cast<size_t>(dims_.to_operand[k])] = IntAt(indices_, walk_.offset(0) + k * step_);
    int64_t element = 0;
    for (int d = 0; d < in_.rank(); ++d) {
      const int from = from_[static_cast<size_t>(d)];
      const int64_t inside = from < 0 ? 0 : walk_.index(from);
      const int64_t start = at[static_cast<size_t>(d)];
      if (start < -inside || start >= in_[d] - inside) return -1;
      element += (start + inside) * strides_[d];
    }
    return element;
  }

 private:
  static Walk<1> WalkOf(const Operands& o, const ScatterDims& dims, const Rows& rows) {
    Shape updates(o.updates);
    const Shape index = Strides(Shape(o.indices));
    Shape strides;
    int batch = 0;
    for (int d = 0; d < updates.rank(); ++d) {
      if (d >= updates.rank() - rows.rank) updates[d] = 1;
      if (dims.is_window[static_cast<size_t>(d)]) {
        strides.push_back(0);
        continue;
      }
      if (batch == dims.vector_dim) ++batch;
      strides.push_back(index[batch++]);
    }
    return {updates, {strides}};
  }

  Tensor indices_;
  const ScatterDims& dims_;
  Shape in_, strides_;
  Walk<1> walk_;
  int64_t step_ = 0;
  std::array<int, kMaxRank> from_{};
};

// The host reads the function from the op's body: attribute computation.
struct StablehloScatter {
  static constexpr std::string_view builtin = "STABLEHLO_SCATTER";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;

  static bool IsLogical(std::string_view function) { return function == "ALL" || function == "ANY"; }

  static void supports(const Node& n) {
    const std::string_view function = n.attrs().s("computation", "");
    if (function.empty())
      throw Reject{"BODY",
                   "the body is neither one of add, multiply, minimum, maximum, and, or of its two inputs "
                   "nor the second input"};
    if (n.in_count() != 3) throw Reject{"ARITY", "more than one tensor is unsupported"};
    for (const uint32_t i : {0u, 2u}) {
      if (function == "UPDATE") RequireMovable(n, i);
      else if (IsLogical(function)) RequireDtype(n, i, kBool);
      else RequireDtype(n, i, kAllNumbers);
    }
    RequireDtype(n, 1, kIndices);
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 3, 3);
    SameDtype(n, 0, 2);
    if (n.in(0).rank() >= 0 && n.in(1).rank() >= 0 && n.in(2).rank() >= 0) ScatterDims{n};
    out.like(0, n.in(0));
  }

  // A copy of indices or updates in whose memory the result is.
  uint32_t prepare(const Node& n, Plan& plan) const {
    const size_t bytes = n.in(0).bytes();
    return plan.scratch(n.in(1).bytes() == bytes || n.in(2).bytes() == bytes ? bytes : 0);
  }

  void invoke(const Node& n, uint32_t slot) const {
    fbx_tensor tensors[3] = {*n.in(0).abi(), *n.in(1).abi(), *n.in(2).abi()};
    const Operands o{Tensor(&tensors[0]), Tensor(&tensors[1]), Tensor(&tensors[2])};
    const auto size = static_cast<size_t>(o.in.count()) * ElementSize(o.in.dtype());
    if (size == 0) return;
    std::byte* const to = MutableElements(n.out(0));
    for (fbx_tensor* const t : {&tensors[1], &tensors[2]})
      if (t->data == to) t->data = std::memcpy(n.scratch<std::byte>(slot), to, size);
    if (o.in.data<void>() != to) std::memcpy(to, Elements(o.in), size);
    Combine(n, o);
  }

 private:
  static void Combine(const Node& n, const Operands& o) {
    const std::string_view function = n.attrs().s("computation");
    if (function == "UPDATE") {
      return DispatchWidth(ElementSize(o.in.dtype()),
                           [&]<class T>() { Run<T>(n, o, [](T, T b) { return b; }); });
    }
    if (function == "ALL") return Run<bool>(n, o, [](bool a, bool b) { return a && b; });
    if (function == "ANY") return Run<bool>(n, o, [](bool a, bool b) { return a || b; });
    Dispatch(kAllNumbers, o.in.dtype(), [&]<class T>() {
      // Integers wrap; without 1u, 16-bit products would be signed ints.
      using W = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                            std::type_identity<T>>::type;
      if (function == "ADD") return Run<T>(n, o, [](T a, T b) { return static_cast<T>(W(a) + W(b)); });
      if (function == "MUL") return Run<T>(n, o, [](T a, T b) { return static_cast<T>(1u * W(a) * W(b)); });
      if (function == "MINIMUM") return Run<T>(n, o, [](T a, T b) { return SmallerOf(a, b); });
      Run<T>(n, o, [](T a, T b) { return LargerOf(a, b); });
    });
  }

  template <class T, class F>
  static void Run(const Node& n, const Operands& o, const F& f) {
    const ScatterDims dims(n);
    const Rows rows = RowsOf(o, dims);
    T* const to = static_cast<T*>(n.out(0).data<void>());
    const T* from = static_cast<const T*>(o.updates.data<const void>());
    Places places(o, dims, rows);
    for (int64_t left = o.updates.count(); left > 0;
         left -= rows.length, from += rows.length, places.Next()) {
      const int64_t at = places.At();
      for (int64_t i = 0; at >= 0 && i < rows.length; ++i) to[at + i] = f(to[at + i], from[i]);
    }
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<StablehloScatter>};

}  // namespace

constinit const KernelTable kStablehloScatterKernels = kTable;

}  // namespace fusebox::cpu
