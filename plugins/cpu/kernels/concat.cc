// SPDX-License-Identifier: Apache-2.0
// Joining and splitting along one axis: CONCATENATION, PACK, SPLIT, SPLIT_V, UNPACK.
#include <vector>

#include "plugins/cpu/base/activation.h"
#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/elements/strings.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/quantized/map.h"

namespace fusebox::cpu {
namespace {

// Piece i of a whole along an axis: in each of `outer` rows, `piece` of the `whole` elements from `offset`
// on.
void MovePiece(const Node& n, Tensor from, Tensor to, int64_t outer, int64_t piece, int64_t from_row,
               int64_t from_offset, int64_t to_row, int64_t to_offset) {
  CopyBox(n.host(), ElementSize(from.dtype()), {outer, piece}, Elements(from, from_offset), {from_row, 1},
          MutableElements(to, to_offset), {to_row, 1});
}

void RequireAllMovable(const Node& n) {
  for (uint32_t i = 0; i < n.in_count(); ++i) RequireMovable(n, i);
}

struct Concatenation {
  static constexpr std::string_view builtin = "CONCATENATION";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    for (uint32_t i = 0; i < n.in_count(); ++i) {
      if (!Rescales(n, i)) {
        RequireMovable(n, i);
        continue;
      }
      RequireQuantized(n, i);
      RequireQuantizedResult(n, i);
    }
    if (FusedActivation(n) != Activation::kNone)
      throw Reject{"ATTR", "a concatenation with an activation is unsupported",
                   "attr fused_activation_function"};
  }

  // Operands with a scale other than the result's are mapped.
  explicit Concatenation(const Node& n) {
    for (uint32_t i = 0; i < n.in_count(); ++i)
      maps_.push_back(Rescales(n, i) ? QuantizedMap(n.in(i), n.out(0), kSame) : QuantizedMap());
  }
  static bool Rescales(const Node& n, uint32_t operand) {
    return n.out_count() > 0 && IsQuantized(n, operand) &&
           !SameQuant(n.in(operand).quant(), n.out(0).quant());
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, UINT32_MAX);
    int rank = -1;
    for (uint32_t i = 0; i < n.in_count(); ++i) {
      if (!n.has_in(i)) Fail("is missing", Operand(i));
      SameDtype(n, 0, i);
      if (n.in(i).rank() >= 0) rank = n.in(i).rank();
    }
    if (rank < 0) return out.unranked(0, n.in(0).dtype());
    const int axis = Axis(n.attrs().i64("axis", 0), rank);
    Shape dims;
    for (int d = 0; d < rank; ++d) dims.push_back(d == axis ? 0 : -1);
    for (uint32_t i = 0; i < n.in_count(); ++i) {
      const Tensor t = n.in(i);
      if (t.rank() >= 0 && t.rank() != rank)
        Fail("has rank " + std::to_string(t.rank()) + ", another has " + std::to_string(rank), Operand(i));
      for (int d = 0; d < rank; ++d) {
        const int64_t dim = t.rank() < 0 ? -1 : t.dim(d);
        if (d != axis) dims[d] = SameDim(dims[d], dim, "dimensions other than the axis");
        else dims[d] = dims[d] < 0 || dim < 0 ? -1 : dims[d] + dim;
      }
    }
    out.set(0, n.in(0).dtype(), dims);
  }

  void invoke(const Node& n) const {
    const Shape dims(n.out(0));
    const int axis = Axis(n.attrs().i64("axis", 0), dims.rank());
    const int64_t outer = CountBefore(dims, axis);
    const int64_t row = CountFrom(dims, axis);
    int64_t offset = 0;
    for (uint32_t i = 0; i < n.in_count(); ++i) {
      const int64_t piece = CountFrom(Shape(n.in(i)), axis);
      if (Rescales(n, i)) {
        for (int64_t o = 0; o < outer; ++o)
          maps_[i].Apply(n.host(), n.in(i), n.out(0), o * piece, o * row + offset, piece, kSame);
      } else {
        MovePiece(n, n.in(i), n.out(0), outer, piece, piece, 0, row, offset);
      }
      offset += piece;
    }
  }

 private:
  static constexpr auto kSame = [](auto x) { return x; };
  std::vector<QuantizedMap> maps_;
};

struct Pack {
  static constexpr std::string_view builtin = "PACK";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireAllMovable(n); }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, UINT32_MAX);
    const int64_t count = n.in_count();
    if (n.attrs().i64("values_count", count) != count)
      Fail("does not match the number of operands", "attr values_count");
    Shape dims;
    bool known = false;
    for (uint32_t i = 0; i < n.in_count(); ++i) {
      if (!n.has_in(i)) Fail("is missing", Operand(i));
      SameDtype(n, 0, i);
      if (n.in(i).rank() < 0) continue;
      const Shape other(n.in(i));
      if (known && other.rank() != dims.rank()) Fail("operands of different ranks", Operand(i));
      if (!known) dims = other;
      for (int d = 0; d < dims.rank(); ++d)
        dims[d] = SameDim(dims[d], other[d], "dimensions of the operands");
      known = true;
    }
    if (!known) return out.unranked(0, n.in(0).dtype());
    const int axis = Axis(n.attrs().i64("axis", 0), dims.rank() + 1);
    Shape packed;
    for (int d = 0; d <= dims.rank(); ++d) packed.push_back(d == axis ? count : dims[d < axis ? d : d - 1]);
    out.set(0, n.in(0).dtype(), packed);
  }
  void invoke(const Node& n) const {
    const Shape dims(n.out(0));
    const int axis = Axis(n.attrs().i64("axis", 0), dims.rank());
    const int64_t outer = CountBefore(dims, axis);
    const int64_t piece = CountFrom(dims, axis + 1);
    for (uint32_t i = 0; i < n.in_count(); ++i)
      MovePiece(n, n.in(i), n.out(0), outer, piece, piece, 0, piece * n.in_count(), piece * i);
  }
};

struct Unpack {
  static constexpr std::string_view builtin = "UNPACK";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 0); }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1, n.out_count());
    const Tensor in = n.in(0);
    const int64_t count = n.out_count();
    if (n.attrs().i64("num", count) != count) Fail("does not match the number of results", "attr num");
    Shape rest;
    if (in.rank() >= 0) {
      const int axis = Axis(n.attrs().i64("axis", 0), in.rank());
      SameDim(in.dim(axis), count, "the dimension and the number of results");
      for (int d = 0; d < in.rank(); ++d)
        if (d != axis) rest.push_back(in.dim(d));
    }
    for (uint32_t i = 0; i < n.out_count(); ++i) {
      if (in.rank() < 0) out.unranked(i, in.dtype());
      else out.set(i, in.dtype(), rest);
    }
  }
  void invoke(const Node& n) const {
    const Shape dims(n.in(0));
    const int axis = Axis(n.attrs().i64("axis", 0), dims.rank());
    const int64_t outer = CountBefore(dims, axis);
    const int64_t piece = CountFrom(dims, axis + 1);
    for (uint32_t i = 0; i < n.out_count(); ++i)
      MovePiece(n, n.in(0), n.out(i), outer, piece, piece * n.out_count(), piece * i, piece, 0);
  }
};

// Results are consecutive pieces of `value` along `axis`; their shapes define the sizes.
void InvokeSplit(const Node& n, Tensor value, int axis) {
  const Shape dims(value);
  const int64_t outer = CountBefore(dims, axis);
  const int64_t row = CountFrom(dims, axis);
  int64_t offset = 0;
  int64_t total = 0;
  for (uint32_t i = 0; i < n.out_count(); ++i) total += n.out(i).dim(axis);
  if (total != dims[axis])
    Fail("pieces of " + std::to_string(total) + " do not add up to " + std::to_string(dims[axis]));
  for (uint32_t i = 0; i < n.out_count(); ++i) {
    const int64_t piece = CountFrom(Shape(n.out(i)), axis);
    MovePiece(n, value, n.out(i), outer, piece, row, offset, piece, 0);
    offset += piece;
  }
}

void SetAllUnknown(const Node& n, Infer& out, Tensor value) {
  for (uint32_t i = 0; i < n.out_count(); ++i) SetUnknownDims(out, value.dtype(), value.rank(), i);
}

struct Split {
  static constexpr std::string_view builtin = "SPLIT";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 1); }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2, n.out_count());
    const int64_t count = n.out_count();
    if (n.attrs().i64("num_splits", count) != count || count == 0)
      Fail("does not match the number of results", "attr num_splits");
    const Tensor value = n.in(1);
    if (!n.in(0).has_value()) out.needs_value(0);
    if (!n.in(0).has_value() || value.rank() < 0) return SetAllUnknown(n, out, value);
    Shape dims(value);
    const int axis = Axis(IntScalar(n.in(0), 0), dims.rank());
    if (dims[axis] >= 0) {
      if (dims[axis] % count != 0)
        Fail("cannot split " + std::to_string(dims[axis]) + " into " + std::to_string(count) + " equal parts",
             Operand(1));
      dims[axis] /= count;
    }
    for (uint32_t i = 0; i < n.out_count(); ++i) out.set(i, value.dtype(), dims);
  }
  void invoke(const Node& n) const { InvokeSplit(n, n.in(1), Axis(IntScalar(n.in(0), 0), n.in(1).rank())); }
};

struct SplitV {
  static constexpr std::string_view builtin = "SPLIT_V";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 0); }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 3, 3, n.out_count());
    const Tensor value = n.in(0);
    const Tensor sizes = n.in(1);
    const int64_t count = n.out_count();
    if (n.attrs().i64("num_splits", count) != count)
      Fail("does not match the number of results", "attr num_splits");
    for (uint32_t i = 1; i < 3; ++i)
      if (!n.in(i).has_value()) out.needs_value(i);
    if (!sizes.has_value() || !n.in(2).has_value() || value.rank() < 0) return SetAllUnknown(n, out, value);
    if (sizes.rank() != 1 || sizes.count() != count) Fail("does not match the number of results", Operand(1));
    Shape dims(value);
    const int axis = Axis(IntScalar(n.in(2), 2), dims.rank());
    const int64_t whole = dims[axis];
    int64_t sum = 0;
    int64_t open = -1;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t size = IntAt(sizes, i);
      if (size < -1 || (size == -1 && open >= 0))
        Fail("sizes must be 0 or more, with at most one -1", Operand(1));
      if (size == -1) open = i;
      else if (__builtin_add_overflow(sum, size, &sum)) Fail("sizes overflow", Operand(1));
    }
    if (whole >= 0 && (open < 0 ? sum != whole : sum > whole))
      Fail("sizes make " + std::to_string(sum) + ", the dimension is " + std::to_string(whole), Operand(1));
    for (int64_t i = 0; i < count; ++i) {
      dims[axis] = i != open ? IntAt(sizes, i) : whole < 0 ? -1 : whole - sum;
      out.set(static_cast<uint32_t>(i), value.dtype(), dims);
    }
  }
  void invoke(const Node& n) const { InvokeSplit(n, n.in(0), Axis(IntScalar(n.in(2), 2), n.in(0).rank())); }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<MovesStrings<Concatenation>>,
                                        &kernel_of<MovesStrings<Pack>>, &kernel_of<MovesStrings<Unpack>>,
                                        &kernel_of<MovesStrings<Split>>, &kernel_of<MovesStrings<SplitV>>};

}  // namespace

constinit const KernelTable kConcatKernels = kTable;

}  // namespace fusebox::cpu
