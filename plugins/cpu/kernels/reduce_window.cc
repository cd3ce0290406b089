// SPDX-License-Identifier: Apache-2.0
// REDUCE_WINDOW: folds the elements under a window that slides over a tensor.
#include <algorithm>
#include <type_traits>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/elements/extremes.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

// Operands: tensor, initial value, window sizes, window strides, window dilations.
struct ReduceWindow {
  static constexpr std::string_view builtin = "REDUCE_WINDOW";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static bool IsLogical(std::string_view function) { return function == "ALL" || function == "ANY"; }

  static void supports(const Node& n) {
    const std::string_view function = n.attrs().s("reduce_function", "UNSUPPORTED");
    const bool known = function == "ADD" || function == "MUL" || function == "MINIMUM" ||
                       function == "MAXIMUM" || IsLogical(function);
    if (!known) throw Reject{"ATTR", std::string(function) + " is unsupported", "attr reduce_function"};
    for (uint32_t i = 0; i < 2; ++i) {
      if (IsLogical(function)) RequireDtype(n, i, kBool);
      else RequireDtype(n, i, kAllNumbers);
    }
    for (uint32_t i = 2; i < 5; ++i) RequireDtype(n, i, kIndices);
  }

  static Shape Values(const Node& n, uint32_t operand) {
    const Shape values = IntList(n.in(operand), operand);
    if (values.rank() != n.in(0).rank())
      Fail("has " + std::to_string(values.rank()) + " values for rank " + std::to_string(n.in(0).rank()),
           Operand(operand));
    for (const int64_t v : values)
      if (v < 1) Fail("a value of " + std::to_string(v), Operand(operand));
    return values;
  }
  static Shape Folded(const Node& n) {
    const Shape window = Values(n, 2);
    const Shape step = Values(n, 3);
    const Shape inner = Values(n, 4);
    Shape dims(n.in(0));
    for (int i = 0; i < dims.rank(); ++i) {
      const int64_t last = Product(window[i] - 1, inner[i]);  // of the window, from its first
      if (dims[i] >= 0) dims[i] = last >= dims[i] ? 0 : (dims[i] - 1 - last) / step[i] + 1;
    }
    return dims;
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 5, 5);
    SameDtype(n, 0, 1);
    const Tensor in = n.in(0);
    if (n.in(1).is_static() && Count(n.in(1).dims()) != 1)
      Fail("expected one value, got shape " + Text(n.in(1).dims()), Operand(1));
    bool known = true;
    for (uint32_t i = 2; i < 5; ++i) {
      if (n.in(i).has_value()) continue;
      out.needs_value(i);
      known = false;
    }
    if (in.rank() < 0 || !known) return SetUnknownDims(out, in.dtype(), in.rank());
    out.set(0, in.dtype(), Folded(n));
  }
  void invoke(const Node& n) const {
    const Shape dims = Folded(n);
    if (dims != Shape(n.out(0))) Fail("the window's values differ from the planned ones", Operand(2));
    const std::string_view function = n.attrs().s("reduce_function");
    if (IsLogical(function)) {
      if (function == "ALL") return Run<bool>(n, dims, [](bool a, bool b) { return a && b; });
      return Run<bool>(n, dims, [](bool a, bool b) { return a || b; });
    }
    Dispatch(kAllNumbers, n.in(0).dtype(), [&]<class T>() {
      // Integers wrap; without 1u, 16-bit products would be signed ints.
      using W = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                            std::type_identity<T>>::type;
      if (function == "ADD") return Run<T>(n, dims, [](T a, T b) { return static_cast<T>(W(a) + W(b)); });
      if (function == "MUL")
        return Run<T>(n, dims, [](T a, T b) { return static_cast<T>(1u * W(a) * W(b)); });
      if (function == "MINIMUM") return Run<T>(n, dims, [](T a, T b) { return SmallerOf(a, b); });
      Run<T>(n, dims, [](T a, T b) { return LargerOf(a, b); });
    });
  }

 private:
  template <class T, class F>
  static void Run(const Node& n, const Shape& dims, const F& fold) {
    const Shape dense = Strides(Shape(n.in(0)));
    const Shape window = Values(n, 2);
    const Shape step = Values(n, 3);
    const Shape inner = Values(n, 4);
    Shape outer_strides = dense;
    Shape inner_strides = dense;
    for (int i = 0; i < dims.rank(); ++i) {
      // The step of a single position is unused and may have any value.
      outer_strides[i] = dims[i] > 1 ? dense[i] * step[i] : 0;
      inner_strides[i] = window[i] > 1 ? dense[i] * inner[i] : 0;
    }
    if (Count(dims) == 0) return;
    const T* x = n.in(0).data<const T>();
    const T start = *n.in(1).data<const T>();
    T* y = n.out(0).data<T>();
    const int64_t members = Count(window);
    ParallelFor(n.host(), static_cast<size_t>(Count(dims)), Grain(members),
                [&](size_t begin, size_t end, uint32_t) {
                  Walk<1> place(dims, {outer_strides});
                  Walk<1> member(window, {inner_strides});
                  place.Seek(static_cast<int64_t>(begin));
                  for (size_t i = begin; i < end; ++i, place.Next()) {
                    T total = start;
                    member.Seek(0);
                    for (int64_t m = 0; m < members; ++m, member.Next())
                      total = fold(total, x[place.offset(0) + member.offset(0)]);
                    y[i] = total;
                  }
                });
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<ReduceWindow>};

}  // namespace

constinit const KernelTable kReduceWindowKernels = kTable;

}  // namespace fusebox::cpu
