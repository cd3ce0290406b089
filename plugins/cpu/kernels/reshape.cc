// SPDX-License-Identifier: Apache-2.0
// RESHAPE, SQUEEZE, EXPAND_DIMS keep the elements; SHAPE and RANK return the shape as a value.
#include <cstring>
#include <optional>

#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/elements/strings.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

struct CopyAll {
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;
  // TFLite copies the bytes even if the result has another scale.
  static void supports(const Node& n) {
    if (ElementSize(n.in(0).dtype()) == 0) RejectDtype(n.in(0).dtype(), 0);
  }
  void invoke(const Node& n) const {
    const size_t bytes = static_cast<size_t>(n.in(0).count()) * ElementSize(n.in(0).dtype());
    if (n.out(0).count() != n.in(0).count())
      Fail("cannot be " + Text(n.out(0).dims()) + ": the operand is " + Text(n.in(0).dims()), Operand(0));
    if (bytes > 0 && n.in(0).data<void>() != n.out(0).data<void>())
      std::memcpy(n.out(0).data<void>(), n.in(0).data<const void>(), bytes);
  }
};

struct Reshape : CopyAll {
  static constexpr std::string_view builtin = "RESHAPE";

  // Requested dims, -1 for the inferred one; nullopt: the shape operand has no value yet.
  static std::optional<Shape> Wanted(const Node& n) {
    if (n.has_in(1) && (n.in(1).rank() == 1 || n.in(1).rank() < 0)) {
      if (!n.in(1).has_value()) return std::nullopt;
      return IntList(n.in(1), 1);
    }
    Shape wanted(n.attrs().i64s("new_shape"));
    if (wanted == Shape{0}) return Shape();  // a scalar in old files
    return wanted;
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 2);
    const Tensor in = n.in(0);
    const std::optional<Shape> wanted = Wanted(n);
    if (!wanted) return SetUnknownDimsOfList(n, out, 1, in.dtype());
    out.set(0, in.dtype(), Resolve(*wanted, in));
  }

  // Ignores zeros: [2, 0, 5] reshaped to [-1, 0] is [10, 0], as in TFLite.
  static int64_t CountWithoutZeros(const Shape& dims) {
    int64_t count = 1;
    for (const int64_t d : dims) count = d > 0 ? Product(count, d) : count;
    return count;
  }

  static Shape Resolve(Shape dims, Tensor in) {
    const int64_t count = Count(in);
    const Shape wanted = dims;
    int stretch = -1;
    int64_t others = 1;
    for (int i = 0; i < dims.rank(); ++i) {
      if (dims[i] < -1) Fail("a new shape with a dimension of " + std::to_string(dims[i]));
      if (dims[i] >= 0) {
        others = Product(others, dims[i]);
      } else if (stretch >= 0) {
        Fail("a new shape with more than one -1");
      } else {
        stretch = i;
      }
    }
    if (count < 0) return dims;
    if (stretch >= 0 && others > 0) dims[stretch] = count / others;
    if (stretch >= 0 && others == 0 && in.is_static())
      dims[stretch] = CountWithoutZeros(Shape(in)) / CountWithoutZeros(wanted);
    if (Count(dims) != count)
      Fail("cannot make " + Text(wanted) + " of " + std::to_string(count) + " elements");
    return dims;
  }
};

struct Squeeze : CopyAll {
  static constexpr std::string_view builtin = "SQUEEZE";
  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    const Tensor in = n.in(0);
    if (in.rank() < 0) return out.unranked(0, in.dtype());
    const Shape dims(in);
    const auto axes = n.attrs().i64s("squeeze_dims");
    if (axes.empty() && !dims.is_static()) return out.unranked(0, in.dtype());
    std::array<bool, kMaxRank> drop{};
    for (const int64_t a : axes) drop[static_cast<size_t>(Axis(a, dims.rank()))] = true;
    Shape kept;
    for (int i = 0; i < dims.rank(); ++i) {
      const bool named = drop[static_cast<size_t>(i)];
      if (named && dims[i] >= 0 && dims[i] != 1)
        Fail("cannot squeeze dimension " + std::to_string(i) + " of " + Text(dims));
      if (!(axes.empty() ? dims[i] == 1 : named)) kept.push_back(dims[i]);
    }
    out.set(0, in.dtype(), kept);
  }
};

struct ExpandDims : CopyAll {
  static constexpr std::string_view builtin = "EXPAND_DIMS";
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    const Tensor in = n.in(0);
    if (!n.in(1).has_value()) out.needs_value(1);
    if (in.rank() < 0) return out.unranked(0, in.dtype());
    const int axis = n.in(1).has_value() ? Axis(IntScalar(n.in(1), 1), in.rank() + 1) : -1;
    Shape dims;
    for (int i = 0; i <= in.rank(); ++i) {
      if (axis < 0) dims.push_back(-1);
      else dims.push_back(i == axis ? 1 : in.dim(i < axis ? i : i - 1));
    }
    out.set(0, in.dtype(), dims);
  }
};

struct ShapeOf {
  static constexpr std::string_view builtin = "SHAPE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    const fbx_dtype dtype = n.attrs().dtype("out_type", FBX_I32);
    if (dtype != FBX_I32 && dtype != FBX_I64)
      Fail("a shape cannot be " + std::string(dtype_name(dtype)), "attr out_type");
    out.set(0, dtype, {n.in(0).rank()});
  }
  void invoke(const Node& n) const {
    Dispatch(kIndices, n.out(0).dtype(), [&]<class T>() {
      for (int i = 0; i < n.in(0).rank(); ++i) n.out(0).data<T>()[i] = static_cast<T>(n.in(0).dim(i));
    });
  }
};

struct Rank {
  static constexpr std::string_view builtin = "RANK";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    out.set(0, FBX_I32, {});
  }
  void invoke(const Node& n) const { *n.out(0).data<int32_t>() = n.in(0).rank(); }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<MovesStrings<Reshape>>, &kernel_of<MovesStrings<Squeeze>>,
                                        &kernel_of<MovesStrings<ExpandDims>>, &kernel_of<ShapeOf>,
                                        &kernel_of<Rank>};

}  // namespace

constinit const KernelTable kReshapeKernels = kTable;

}  // namespace fusebox::cpu
