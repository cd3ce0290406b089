// SPDX-License-Identifier: Apache-2.0
// Tensors built from few values: FILL, ZEROS_LIKE, RANGE, ONE_HOT, MATRIX_DIAG, MATRIX_SET_DIAG.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/elements/strings.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

// Requires exactly one element, of any rank.
void RequireOneValue(const Node& n, uint32_t operand) {
  const Tensor t = n.in(operand);
  if (t.is_static() && Count(t.dims()) != 1)
    Fail("expected one value, got shape " + Text(t.dims()), Operand(operand));
}

struct Fill {
  static constexpr std::string_view builtin = "FILL";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 1); }
  static Shape Dims(const Node& n) {
    const Shape dims = IntList(n.in(0), 0);
    if (n.in(0).rank() != 1) Fail("expected a list, got a scalar", Operand(0));
    for (const int64_t d : dims)
      if (d < 0) Fail("a dimension of " + std::to_string(d), Operand(0));
    Count(dims);
    return dims;
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    RequireOneValue(n, 1);
    const Tensor shape = n.in(0);
    const Tensor value = n.in(1);
    if (shape.has_value()) return out.set(0, value.dtype(), Dims(n));
    SetUnknownDimsOfList(n, out, 0, value.dtype());
  }
  void invoke(const Node& n) const {
    const Shape dims = Dims(n);
    CheckPlanned(dims, n.out(0));
    FillElements(ElementSize(n.in(1).dtype()), n.in(1).data<const void>(), MutableElements(n.out(0)),
                 Count(dims));
  }
};

struct ZerosLike {
  static constexpr std::string_view builtin = "ZEROS_LIKE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;
  static void supports(const Node& n) { RequireMovable(n, 0); }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    out.like(0, n.in(0));
  }
  void invoke(const Node& n) const {
    Bits128 zero;
    FillElements(ElementSize(n.in(0).dtype()), ZeroOf(n.in(0), zero), MutableElements(n.out(0)),
                 n.in(0).count());
  }
};

// start, limit, delta -> start, start + delta, ... (limit is exclusive).
struct Range {
  static constexpr std::string_view builtin = "RANGE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireDtype(n, 0, kNumbers); }

  template <class T>
  static int64_t Size(T start, T limit, T delta) {
    if (!(start <= limit ? delta > T(0) || start == limit : delta < T(0)) || delta == T(0))
      Fail("a range from " + std::to_string(start) + " to " + std::to_string(limit) + " by " +
           std::to_string(delta));
    if constexpr (std::is_floating_point_v<T>) {
      // In T, like TFLite: a range to 1 by 0.01f has 100 steps, in double slightly more.
      const T size = std::ceil(std::abs((limit - start) / delta));
      if (!(size < T(0x1p40))) Fail("a range of " + std::to_string(size) + " elements");
      return static_cast<int64_t>(size);
    } else {
      const auto wide = [](T v) { return static_cast<__int128>(v); };
      const __int128 span = start < limit ? wide(limit) - wide(start) : wide(start) - wide(limit);
      const __int128 step = delta < 0 ? -wide(delta) : wide(delta);
      const __int128 size = (span + step - 1) / step;
      if (size >= __int128{1} << 40) Fail("a range of 2^40 elements or more");
      return static_cast<int64_t>(size);
    }
  }
  static int64_t SizeOf(const Node& n) {
    int64_t size = 0;
    Dispatch(kNumbers, n.in(0).dtype(), [&]<class T>() {
      size = Size(*n.in(0).data<const T>(), *n.in(1).data<const T>(), *n.in(2).data<const T>());
    });
    return size;
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 3, 3);
    bool known = true;
    for (uint32_t i = 0; i < 3; ++i) {
      SameDtype(n, 0, i);
      RequireOneValue(n, i);
      if (n.in(i).has_value()) continue;
      out.needs_value(i);
      known = false;
    }
    out.set(0, n.in(0).dtype(), {known ? SizeOf(n) : -1});
  }
  void invoke(const Node& n) const {
    CheckPlanned({SizeOf(n)}, n.out(0));
    Dispatch(kNumbers, n.in(0).dtype(), [&]<class T>() {
      T value = *n.in(0).data<const T>();
      const T delta = *n.in(2).data<const T>();
      const int64_t size = n.out(0).count();
      for (int64_t i = 0; i < size; ++i) {
        n.out(0).data<T>()[i] = value;
        if (i + 1 < size) value += delta;
      }
    });
  }
};

// Operands: indices, depth, on value, off value.
struct OneHot {
  static constexpr std::string_view builtin = "ONE_HOT";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    RequireDtype(n, 0, kIndices);
    RequireMovable(n, 2);
  }
  static int64_t Depth(const Node& n) {
    const int64_t depth = IntScalar(n.in(1), 1);
    if (depth < 0) Fail("a depth of " + std::to_string(depth), Operand(1));
    return depth;
  }
  // -1 is the only negative axis in TFLite.
  static int AxisOf(const Node& n) {
    const int rank = n.in(0).rank() + 1;
    return Axis(n.attrs().i64("axis", 0), rank);
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 4, 4);
    SameDtype(n, 2, 3);
    RequireOneValue(n, 2);
    RequireOneValue(n, 3);
    const Tensor indices = n.in(0);
    if (!n.in(1).has_value()) out.needs_value(1);
    if (indices.rank() < 0) return out.unranked(0, n.in(2).dtype());
    const int axis = AxisOf(n);
    Shape dims;
    for (int i = 0; i <= indices.rank(); ++i) {
      if (i == axis) dims.push_back(n.in(1).has_value() ? Depth(n) : -1);
      else dims.push_back(indices.dim(i < axis ? i : i - 1));
    }
    out.set(0, n.in(2).dtype(), dims);
  }
  void invoke(const Node& n) const {
    const Shape indices(n.in(0));
    const int axis = AxisOf(n);
    const int64_t outer = CountBefore(indices, axis);
    const int64_t inner = CountFrom(indices, axis);
    const int64_t depth = Depth(n);
    if (n.out(0).dim(axis) != depth) Fail("the depth differs from the planned one", Operand(1));
    DispatchWidth(ElementSize(n.in(2).dtype()), [&]<class T>() {
      const T on = *n.in(2).data<const T>();
      const T off = *n.in(3).data<const T>();
      T* out = n.out(0).data<T>();
      std::fill_n(out, outer * depth * inner, off);
      Dispatch(kIndices, n.in(0).dtype(), [&]<class I>() {
        for (int64_t i = 0; i < outer * inner; ++i) {
          const int64_t at = n.in(0).data<const I>()[i];
          if (at >= 0 && at < depth) out[(i / inner * depth + at) * inner + i % inner] = on;
        }
      });
    });
  }
};

// [..., n] -> [..., n, n] with the operand on the diagonal.
struct MatrixDiag {
  static constexpr std::string_view builtin = "MATRIX_DIAG";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 0); }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    const Tensor in = n.in(0);
    if (in.rank() < 0) return out.unranked(0, in.dtype());
    if (in.rank() == 0) Fail("a scalar has no diagonal", Operand(0));
    Shape dims(in);
    dims.push_back(in.dim(-1));
    out.set(0, in.dtype(), dims);
  }
  void invoke(const Node& n) const {
    const Shape dims(n.in(0));
    const int64_t size = dims[dims.rank() - 1];
    const int64_t rows = CountBefore(dims, dims.rank() - 1);
    const size_t width = ElementSize(n.in(0).dtype());
    Bits128 zero;
    FillElements(width, ZeroOf(n.in(0), zero), MutableElements(n.out(0)), rows * size * size);
    CopyBox(n.host(), width, {rows, size}, Elements(n.in(0)), {size, 1}, MutableElements(n.out(0)),
            {size * size, size + 1});
  }
};

// [..., m, n] with its diagonal replaced by [..., min(m, n)].
struct MatrixSetDiag {
  static constexpr std::string_view builtin = "MATRIX_SET_DIAG";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 0); }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    SameDtype(n, 0, 1);
    const Tensor in = n.in(0);
    const Tensor diagonal = n.in(1);
    if (in.rank() >= 0 && in.rank() < 2) Fail("expected matrices, got " + Text(in.dims()), Operand(0));
    if (in.is_static() && diagonal.is_static()) {
      Shape dims(in);
      const int64_t size = std::min(in.dim(-2), in.dim(-1));
      if (diagonal.rank() != in.rank() - 1 || diagonal.dim(-1) != size ||
          !std::equal(dims.begin(), dims.end() - 2, diagonal.dims().begin()))
        Fail("a diagonal of " + Text(diagonal.dims()) + " for matrices of " + Text(in.dims()), Operand(1));
    }
    out.like(0, in);
  }
  void invoke(const Node& n) const {
    const Shape dims(n.in(0));
    const int64_t columns = n.in(0).dim(-1);
    const int64_t size = n.in(1).dim(-1);
    const int64_t matrix = n.in(0).dim(-2) * columns;
    const size_t width = ElementSize(n.in(0).dtype());
    std::memcpy(n.out(0).data<void>(), n.in(0).data<const void>(),
                static_cast<size_t>(n.in(0).count()) * width);
    CopyBox(n.host(), width, {CountBefore(dims, dims.rank() - 2), size}, Elements(n.in(1)), {size, 1},
            MutableElements(n.out(0)), {matrix, columns + 1});
  }
};

constexpr const fbx_kernel* kTable[] = {
    &kernel_of<MovesStrings<Fill>>, &kernel_of<ZerosLike>,    &kernel_of<Range>, &kernel_of<OneHot>,
    &kernel_of<MatrixDiag>,         &kernel_of<MatrixSetDiag>};

}  // namespace

constinit const KernelTable kFillKernels = kTable;

}  // namespace fusebox::cpu
