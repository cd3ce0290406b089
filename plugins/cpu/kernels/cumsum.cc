// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

// Cumulative sums along one axis; `exclusive` omits the element itself, `reverse` starts at the end.
struct Cumsum {
  static constexpr std::string_view builtin = "CUMSUM";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  explicit Cumsum(const Node& n)
      : exclusive_(n.attrs().b("exclusive", false)), reverse_(n.attrs().b("reverse", false)) {}

  static void supports(const Node& n) { RequireDtype(n, 0, kNumbers); }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    if (n.in(0).rank() == 0) Fail("a scalar has no axis", Operand(0));
    if (n.in(1).has_value() && n.in(0).rank() > 0) Axis(IntScalar(n.in(1), 1), n.in(0).rank());
    out.like(0, n.in(0));
  }

  void invoke(const Node& n) const {
    Dispatch(kNumbers, n.in(0).dtype(), [&]<class T>() { Run<T>(n); });
  }

 private:
  template <class T>
  static T Plus(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a + b;
    else
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                            static_cast<std::make_unsigned_t<T>>(b));
  }

  template <class T>
  void Run(const Node& n) const {
    const Shape shape(n.in(0));
    const int axis = Axis(IntScalar(n.in(1), 1), shape.rank());
    const int64_t length = shape[axis];
    const int64_t inner = CountFrom(shape, axis + 1);
    if (n.in(0).count() == 0) return;
    ParallelFor(n.host(), static_cast<size_t>(CountBefore(shape, axis)), Grain(length * inner),
                [&](size_t begin, size_t end, uint32_t) {
                  for (int64_t outer = static_cast<int64_t>(begin); outer < static_cast<int64_t>(end);
                       ++outer) {
                    const int64_t at = outer * length * inner;
                    RunAxis(n.in(0).data<const T>() + at, n.out(0).data<T>() + at, length, inner);
                  }
                });
  }

  template <class T>
  void RunAxis(const T* x, T* y, int64_t length, int64_t inner) const {
    const int64_t first = reverse_ ? (length - 1) * inner : 0;
    const int64_t step = reverse_ ? -inner : inner;
    x += first;
    y += first;
    if (exclusive_) std::fill_n(y, inner, T(0));
    else std::copy_n(x, inner, y);
    for (int64_t i = 1; i < length; ++i, x += step, y += step) {
      const T* term = exclusive_ ? x : x + step;
      for (int64_t c = 0; c < inner; ++c) y[step + c] = Plus(y[c], term[c]);
    }
  }

  bool exclusive_, reverse_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<Cumsum>};

}  // namespace

constinit const KernelTable kCumsumKernels = kTable;

}  // namespace fusebox::cpu
