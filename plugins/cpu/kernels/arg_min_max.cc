// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

constexpr Types<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, bool> kComparable;

struct Greater {
  static constexpr std::string_view kName = "ARG_MAX";
  template <class T>
  static bool Beats(T a, T b) {
    return a > b;
  }
};
struct Less {
  static constexpr std::string_view kName = "ARG_MIN";
  template <class T>
  static bool Beats(T a, T b) {
    return a < b;
  }
};

// The index of the first extreme element along an axis, which is removed.
template <class Op>
struct ArgExtreme {
  static constexpr std::string_view builtin = Op::kName;
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n) {
    // A positive scale preserves the order of quantized values.
    if (!Contains(kComparable, n.in(0).dtype())) RejectDtype(n.in(0).dtype(), 0);
    if (!Contains(kIndices, n.attrs().dtype("output_type", FBX_F32)))
      throw Reject{"ATTR",
                   "an index of dtype " + std::string(dtype_name(n.attrs().dtype("output_type", FBX_F32))),
                   "attr output_type"};
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    const fbx_dtype dtype = n.attrs().dtype("output_type", FBX_F32);
    if (!Contains(kIndices, dtype))
      Fail("an index of dtype " + std::string(dtype_name(dtype)), "attr output_type");
    const int rank = n.in(0).rank();
    if (rank == 0) Fail("a scalar has no axis", Operand(0));
    if (!n.in(1).has_value()) out.needs_value(1);
    if (rank < 0) return out.unranked(0, dtype);
    const bool known = n.in(1).has_value();
    const int axis = known ? Axis(IntScalar(n.in(1), 1), rank) : 0;
    if (known && n.in(0).dim(axis) == 0)
      Fail("axis " + std::to_string(axis) + " has no elements", Operand(0));
    Shape dims;
    for (int i = 0; i < rank; ++i)
      if (i != axis) dims.push_back(known ? n.in(0).dim(i) : -1);
    out.set(0, dtype, dims);
  }

  void invoke(const Node& n) const {
    Dispatch(kComparable, n.in(0).dtype(), [&]<class T>() {
      if (n.out(0).dtype() == FBX_I32) Run<T, int32_t>(n);
      else Run<T, int64_t>(n);
    });
  }

 private:
  template <class T, class Index>
  static void Run(const Node& n) {
    const Shape shape(n.in(0));
    const int axis = Axis(IntScalar(n.in(1), 1), shape.rank());
    const int64_t length = shape[axis];
    const int64_t inner = CountFrom(shape, axis + 1);
    if (n.out(0).count() == 0) return;
    ParallelFor(n.host(), static_cast<size_t>(n.out(0).count()), Grain(length),
                [&](size_t begin, size_t end, uint32_t) {
                  for (int64_t i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i) {
                    const T* x = n.in(0).data<const T>() + i / inner * length * inner + i % inner;
                    int64_t best = 0;
                    for (int64_t k = 1; k < length; ++k)
                      if (Op::Beats(x[k * inner], x[best * inner])) best = k;
                    n.out(0).data<Index>()[i] = static_cast<Index>(best);
                  }
                });
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<ArgExtreme<Greater>>, &kernel_of<ArgExtreme<Less>>};

}  // namespace

constinit const KernelTable kArgMinMaxKernels = kTable;

}  // namespace fusebox::cpu
