// SPDX-License-Identifier: Apache-2.0
// Elementwise comparison and logic with broadcasting: EQUAL ... GREATER_EQUAL, LOGICAL_AND, LOGICAL_OR,
// LOGICAL_NOT, BITWISE_XOR.
#include <functional>
#include <type_traits>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/elements/broadcast.h"
#include "plugins/cpu/elements/strings.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/quantized/elementwise.h"
#include "plugins/cpu/quantized/quant.h"

namespace fusebox::cpu {
namespace {

inline constexpr Types<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                       uint64_t, bool>
    kComparable;
inline constexpr Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, bool> kBits;

// Loops exist for EQUAL and LESS. GREATER exchanges the operands, NOT_EQUAL negates, LESS_EQUAL does both.
enum class Base { kEqual, kLess, kAnd, kOr, kXor };

#define FUSEBOX_CPU_RELATION(Name, kOp, kList, base, exchanged, negated) \
  struct Name {                                                          \
    static constexpr std::string_view kName = kOp;                       \
    static constexpr auto kTypes = kList;                                \
    static constexpr Base kBase = Base::base;                            \
    static constexpr bool kExchanged = exchanged, kNegated = negated;    \
  };

FUSEBOX_CPU_RELATION(Equal, "EQUAL", kComparable, kEqual, false, false)
FUSEBOX_CPU_RELATION(NotEqual, "NOT_EQUAL", kComparable, kEqual, false, true)
FUSEBOX_CPU_RELATION(Less, "LESS", kAllNumbers, kLess, false, false)
FUSEBOX_CPU_RELATION(LessEqual, "LESS_EQUAL", kAllNumbers, kLess, true, true)
FUSEBOX_CPU_RELATION(Greater, "GREATER", kAllNumbers, kLess, true, false)
FUSEBOX_CPU_RELATION(GreaterEqual, "GREATER_EQUAL", kAllNumbers, kLess, false, true)
FUSEBOX_CPU_RELATION(LogicalAnd, "LOGICAL_AND", kBool, kAnd, false, false)
FUSEBOX_CPU_RELATION(LogicalOr, "LOGICAL_OR", kBool, kOr, false, false)
FUSEBOX_CPU_RELATION(BitwiseXor, "BITWISE_XOR", kBits, kXor, false, false)

#undef FUSEBOX_CPU_RELATION

// The operands in the order in which a loop reads them.
struct Pair {
  const Node& n;
  BroadcastPlan plan;
  uint32_t first, second;
  bool negated;

  Pair(const Node& node, bool exchanged, bool negate)
      : n(node), first(exchanged ? 1 : 0), second(exchanged ? 0 : 1), negated(negate) {
    plan = PlanBroadcast(Shape(n.in(first)), Shape(n.in(second)));
  }
  // T has the size of the operands' elements, R the size of the result's. `plainly`: small code.
  template <class T, class R, bool plainly = false, class F>
  void Run(const F& f) const {
    constexpr auto run = plainly ? RunBroadcastPlainly<T, R, F> : RunBroadcast<T, R, F>;
    run(n.host(), plan, static_cast<const T*>(n.in(first).data<const void>()),
        static_cast<const T*>(n.in(second).data<const void>()), static_cast<R*>(n.out(0).data<void>()), f);
  }
};

void Equate(const Pair& pair) {
  const auto run = [&]<class T>() {
    pair.Run<T, bool>([negated = pair.negated](T a, T b) FUSEBOX_INLINE { return (a == b) != negated; });
  };
  const fbx_dtype dtype = pair.n.in(0).dtype();
  if (Contains(kFloats, dtype)) return Dispatch(kFloats, dtype, run);
  DispatchWidth(ElementSize(dtype), [&]<class T>() {
    if constexpr (std::is_integral_v<T>) run.template operator()<T>();
  });
}

void Order(const Pair& pair) {
  Dispatch(kAllNumbers, pair.n.in(0).dtype(), [&]<class T>() {
    if constexpr (std::is_floating_point_v<T>) {  // a NaN is neither less nor not less
      if (pair.negated) return pair.Run<T, bool>([](T a, T b) FUSEBOX_INLINE { return a >= b; });
      pair.Run<T, bool>([](T a, T b) FUSEBOX_INLINE { return a < b; });
    } else {
      pair.Run<T, bool>([negated = pair.negated](T a, T b) FUSEBOX_INLINE { return (a < b) != negated; });
    }
  });
}

// A double represents the product of a float and a quantized value exactly.
template <class F>
void RelateReals(const Pair& pair, const F& related) {
  const Affine x = AffineOf(pair.n.in(pair.first));
  const Affine y = AffineOf(pair.n.in(pair.second));
  Dispatch(kQuantized, pair.n.in(0).dtype(), [&]<class T>() {
    pair.Run<T, bool, true>([x, y, related, negated = pair.negated](T a, T b) FUSEBOX_INLINE {
      return related(double{x.scale} * (a - x.zero), double{y.scale} * (b - y.zero)) != negated;
    });
  });
}

void EquateStrings(const Node& n, bool negated) {
  const Strings x(n.in(0));
  const Strings y(n.in(1));
  const Shape a(n.in(0));
  const Shape b(n.in(1));
  const Shape dims = Broadcast(a, b);
  Walk<2> walk(dims, {BroadcastStrides(a, dims), BroadcastStrides(b, dims)});
  bool* to = n.out(0).data<bool>();
  for (int64_t i = 0; i < Count(dims); ++i, walk.Next())
    to[i] = (x[walk.offset(0)] == y[walk.offset(1)]) != negated;
}

template <class Op>
struct Relation {
  static constexpr std::string_view builtin = Op::kName;
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static constexpr bool kEquates = Op::kBase == Base::kEqual;
  static constexpr bool kRelates = kEquates || Op::kBase == Base::kLess;

  static void supports(const Node& n) {
    if (kEquates && HasStrings(n)) return;
    if (kRelates && IsQuantized(n, 0)) {
      RequireQuantized(n, 0);
      return RequireQuantized(n, 1);
    }
    RequireDtype(n, 0, Op::kTypes);
    RequireDtype(n, 1, Op::kTypes);
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    SameDtype(n, 0, 1);
    const fbx_dtype dtype = Op::kBase == Base::kXor ? n.in(0).dtype() : FBX_BOOL;
    if (n.in(0).rank() < 0 || n.in(1).rank() < 0) return out.unranked(0, dtype);
    out.set(0, dtype, Broadcast(Shape(n.in(0)), Shape(n.in(1))));
  }
  void invoke(const Node& n) const {
    if (kEquates && HasStrings(n)) return EquateStrings(n, Op::kNegated);
    const Pair pair(n, Op::kExchanged, Op::kNegated);
    if constexpr (kRelates) {
      const bool reals = IsQuantized(n, 0) && !SameQuant(n.in(0).quant(), n.in(1).quant());
      if constexpr (kEquates) return reals ? RelateReals(pair, std::equal_to<double>()) : Equate(pair);
      else return reals ? RelateReals(pair, std::less<double>()) : Order(pair);
    } else if constexpr (Op::kBase == Base::kXor) {
      DispatchWidth(ElementSize(n.in(0).dtype()), [&]<class T>() {
        if constexpr (std::is_integral_v<T>)
          pair.Run<T, T>([](T a, T b) FUSEBOX_INLINE { return static_cast<T>(a ^ b); });
      });
    } else if constexpr (Op::kBase == Base::kAnd) {
      pair.Run<bool, bool>([](bool a, bool b) FUSEBOX_INLINE { return a && b; });
    } else {
      pair.Run<bool, bool>([](bool a, bool b) FUSEBOX_INLINE { return a || b; });
    }
  }
};

struct LogicalNot {
  static constexpr std::string_view kName = "LOGICAL_NOT";
  static constexpr auto kTypes = kBool;
  template <class T>
  FUSEBOX_INLINE static T Apply(T x) {
    return !x;
  }
};

constexpr const fbx_kernel* kTable[] = {
    &kernel_of<Relation<Equal>>,         &kernel_of<Relation<NotEqual>>,  &kernel_of<Relation<Less>>,
    &kernel_of<Relation<LessEqual>>,     &kernel_of<Relation<Greater>>,   &kernel_of<Relation<GreaterEqual>>,
    &kernel_of<Relation<LogicalAnd>>,    &kernel_of<Relation<LogicalOr>>, &kernel_of<Relation<BitwiseXor>>,
    &kernel_of<Elementwise<LogicalNot>>,
};

}  // namespace

constinit const KernelTable kCompareKernels = kTable;

}  // namespace fusebox::cpu
