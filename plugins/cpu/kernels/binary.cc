// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "plugins/cpu/base/activation.h"
#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/elements/broadcast.h"
#include "plugins/cpu/elements/extremes.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/quantized/binary.h"

namespace fusebox::cpu {
namespace {

// Integers wrap (two's complement), like the reference on all supported machines.
template <class T>
FUSEBOX_INLINE inline T Plus(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a + b;
  else
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
}
template <class T>
FUSEBOX_INLINE inline T Minus(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a - b;
  else
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) - static_cast<std::make_unsigned_t<T>>(b));
}
template <class T>
FUSEBOX_INLINE inline T Times(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a * b;
  else
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) * static_cast<std::make_unsigned_t<T>>(b));
}

// Integer division; zero divisors are already rejected, and the lowest value over -1 wraps.
template <class T>
FUSEBOX_INLINE inline T Quotient(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a / b;
  else return b == T(-1) ? Minus(T(0), a) : static_cast<T>(a / b);
}

struct Add {
  static constexpr std::string_view kName = "ADD";
  static constexpr auto kTypes = kNumbers;
  static constexpr bool kActivates = true;
  static constexpr bool kDivides = false;
  template <class T>
  FUSEBOX_INLINE static T Apply(T a, T b) {
    return Plus(a, b);
  }
};
struct Sub {
  static constexpr std::string_view kName = "SUB";
  static constexpr auto kTypes = kNumbers;
  static constexpr bool kActivates = true;
  static constexpr bool kDivides = false;
  template <class T>
  FUSEBOX_INLINE static T Apply(T a, T b) {
    return Minus(a, b);
  }
};
struct Mul {
  static constexpr std::string_view kName = "MUL";
  static constexpr auto kTypes = kNumbers;
  static constexpr bool kActivates = true;
  static constexpr bool kDivides = false;
  template <class T>
  FUSEBOX_INLINE static T Apply(T a, T b) {
    return Times(a, b);
  }
};
struct Div {
  static constexpr std::string_view kName = "DIV";
  static constexpr auto kTypes = kNumbers;
  static constexpr bool kActivates = true;
  static constexpr bool kDivides = true;
  template <class T>
  FUSEBOX_INLINE static T Apply(T a, T b) {
    return Quotient(a, b);
  }
};
struct Maximum {
  static constexpr std::string_view kName = "MAXIMUM";
  static constexpr auto kTypes = kAllNumbers;
  static constexpr bool kActivates = false;
  static constexpr bool kDivides = false;
  template <class T>
  FUSEBOX_INLINE static T Apply(T a, T b) {
    return LargerOf(a, b);
  }
};
struct Minimum {
  static constexpr std::string_view kName = "MINIMUM";
  static constexpr auto kTypes = kAllNumbers;
  static constexpr bool kActivates = false;
  static constexpr bool kDivides = false;
  template <class T>
  FUSEBOX_INLINE static T Apply(T a, T b) {
    return SmallerOf(a, b);
  }
};
struct SquaredDifference {
  static constexpr std::string_view kName = "SQUARED_DIFFERENCE";
  static constexpr auto kTypes = kNumbers;
  static constexpr bool kActivates = false;
  static constexpr bool kDivides = false;
  template <class T>
  FUSEBOX_INLINE static T Apply(T a, T b) {
    const T d = Minus(a, b);
    return Times(d, d);
  }
};
struct FloorDiv {
  static constexpr std::string_view kName = "FLOOR_DIV";
  static constexpr auto kTypes = kNumbers;
  static constexpr bool kActivates = false;
  static constexpr bool kDivides = true;
  template <class T>
  FUSEBOX_INLINE static T Apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      // In double: 1 / 0.1f is just below 10, which a float cannot represent.
      return static_cast<T>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
    } else {
      const T q = Quotient(a, b);
      return b != T(-1) && a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
    }
  }
};
// The result has the divisor's sign.
struct FloorMod {
  static constexpr std::string_view kName = "FLOOR_MOD";
  static constexpr auto kTypes = kNumbers;
  static constexpr bool kActivates = false;
  static constexpr bool kDivides = true;
  template <class T>
  FUSEBOX_INLINE static T Apply(T a, T b) {
    T r;
    if constexpr (std::is_floating_point_v<T>) r = std::fmod(a, b);
    else r = b == T(-1) ? T(0) : static_cast<T>(a % b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
};
// Integers: negative exponents are already rejected.
struct Pow {
  static constexpr std::string_view kName = "POW";
  static constexpr auto kTypes = kNumbers;
  static constexpr bool kActivates = false;
  static constexpr bool kDivides = false;
  template <class T>
  FUSEBOX_INLINE static T Apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::pow(a, b);
    } else {
      T power = 1;
      for (; b > 0; b /= 2) {
        if (b % 2 != 0) power = Times(power, a);
        a = Times(a, a);
      }
      return power;
    }
  }
};
struct Atan2 {
  static constexpr std::string_view kName = "ATAN2";
  static constexpr auto kTypes = kFloats;
  static constexpr bool kActivates = false;
  static constexpr bool kDivides = false;
  template <class T>
  FUSEBOX_INLINE static T Apply(T a, T b) {
    return std::atan2(a, b);
  }
};

template <class Op>
struct Binary {
  static constexpr std::string_view builtin = Op::kName;
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;

  explicit Binary(const Node& n) {
    if constexpr (Op::kActivates) activation_ = FusedActivation(n);
    if (IsQuantized(n, 0)) quantized_ = QuantizedBinary(n, kQuantizedOp, activation_);
  }
  static void supports(const Node& n) {
    if (kQuantizedOp != QuantizedOp::kNone && IsQuantized(n, 0))
      return QuantizedBinary::Supports(n, kQuantizedOp);
    RequireDtype(n, 0, Op::kTypes);
    RequireDtype(n, 1, Op::kTypes);
    if constexpr (Op::kActivates) RequireActivation(n, 0);
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    SameDtype(n, 0, 1);
    if (n.in(0).rank() < 0 || n.in(1).rank() < 0) return out.unranked(0, n.in(0).dtype());
    out.set(0, n.in(0).dtype(), Broadcast(Shape(n.in(0)), Shape(n.in(1))));
  }
  BroadcastPlan prepare(const Node& n, Plan&) const { return PlanBroadcast(Shape(n.in(0)), Shape(n.in(1))); }
  void invoke(const Node& n, const BroadcastPlan& plan) const {
    if (IsQuantized(n, 0)) return quantized_.Run(n, plan);
    constexpr bool kLarger = std::is_same_v<Op, Maximum>;
    constexpr bool kExtreme = kLarger || std::is_same_v<Op, Minimum>;
    if (kExtreme && Contains(kIntegers, n.in(0).dtype())) return RunIntegerExtremes(n, plan, kLarger);
    using Loops = std::conditional_t<kExtreme, decltype(kFloats), decltype(Op::kTypes)>;
    Dispatch(Loops(), n.in(0).dtype(), [&]<class T>() { Run<T>(n, plan); });
  }

 private:
  template <class T>
  void Run(const Node& n, const BroadcastPlan& plan) const {
    const T* x = n.in(0).data<const T>();
    const T* y = n.in(1).data<const T>();
    T* z = n.out(0).data<T>();
    CheckRight<T>(n);
    if constexpr (Op::kActivates && std::is_same_v<T, float>) {
      if (activation_ != Activation::kNone && activation_ != Activation::kTanh) {
        const ActivationRange<T> range(activation_);
        return RunBroadcast(n.host(), plan, x, y, z, [range](T a, T b) FUSEBOX_INLINE {
          return Clamp(Op::template Apply<T>(a, b), range.lowest, range.highest);
        });
      }
    }
    const auto apply = [](T a, T b) FUSEBOX_INLINE { return Op::template Apply<T>(a, b); };
    constexpr bool kCalls = std::is_same_v<Op, FloorDiv> || std::is_same_v<Op, FloorMod> ||
                            std::is_same_v<Op, Pow> || std::is_same_v<Op, Atan2>;
    if constexpr (kCalls || (Op::kDivides && std::is_integral_v<T>))
      RunBroadcastPlainly(n.host(), plan, x, y, z, apply);
    else RunBroadcast(n.host(), plan, x, y, z, apply);
    if constexpr (Op::kActivates) Activate(activation_, z, static_cast<size_t>(n.out(0).count()));
  }

  // Rejects integers for which the op is undefined.
  template <class T>
  static void CheckRight(const Node& n) {
    constexpr bool kPartial = Op::kDivides || std::is_same_v<Op, Pow>;
    if constexpr (kPartial && std::is_integral_v<T>) {
      for (const T b : n.in(1).values<const T>()) {
        if (Op::kDivides && b == T(0)) Fail("integer division by zero", Operand(1));
        if (!Op::kDivides && b < T(0)) Fail("an integer to a negative power", Operand(1));
      }
    }
  }

  static constexpr QuantizedOp kQuantizedOp = QuantizedOpOf(Op::kName);

  Activation activation_ = Activation::kNone;
  QuantizedBinary quantized_;
};

// Adds tensors of equal shape, from the first to the last.
struct AddN {
  static constexpr std::string_view builtin = "ADD_N";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    for (uint32_t i = 0; i < n.in_count(); ++i) RequireDtype(n, i, kNumbers);
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, std::max(1u, n.in_count()), n.in_count());
    bool ranked = false;
    Shape joined;
    for (uint32_t i = 0; i < n.in_count(); ++i) {
      SameDtype(n, 0, i);
      if (n.in(i).rank() < 0) continue;
      const Shape s(n.in(i));
      if (!ranked) joined = s;
      if (s.rank() != joined.rank()) Fail("ranks differ", Operand(i));
      for (int d = 0; d < s.rank(); ++d) joined[d] = SameDim(joined[d], s[d], "sizes");
      ranked = true;
    }
    if (!ranked) return out.unranked(0, n.in(0).dtype());
    out.set(0, n.in(0).dtype(), joined);
  }
  void invoke(const Node& n) const {
    Dispatch(kNumbers, n.in(0).dtype(), [&]<class T>() {
      T* sum = n.out(0).data<T>();
      const size_t count = static_cast<size_t>(n.in(0).count());
      ParallelFor(n.host(), count, 16384, [&](size_t begin, size_t end, uint32_t) {
        std::copy(n.in(0).data<const T>() + begin, n.in(0).data<const T>() + end, sum + begin);
        for (uint32_t k = 1; k < n.in_count(); ++k) {
          const T* x = n.in(k).data<const T>();
          for (size_t i = begin; i < end; ++i) sum[i] = Plus(sum[i], x[i]);
        }
      });
    });
  }
};

constexpr const fbx_kernel* kTable[] = {
    &kernel_of<Binary<Add>>,      &kernel_of<Binary<Sub>>,     &kernel_of<Binary<Mul>>,
    &kernel_of<Binary<Div>>,      &kernel_of<Binary<Maximum>>, &kernel_of<Binary<Minimum>>,
    &kernel_of<Binary<FloorDiv>>, &kernel_of<Binary<Pow>>,     &kernel_of<Binary<SquaredDifference>>,
    &kernel_of<Binary<FloorMod>>, &kernel_of<Binary<Atan2>>,   &kernel_of<AddN>,
};

}  // namespace

constinit const KernelTable kBinaryKernels = kTable;

}  // namespace fusebox::cpu
