// SPDX-License-Identifier: Apache-2.0
// Elementwise comparison and logic with broadcasting: EQUAL ... GREATER_EQUAL, LOGICAL_AND, LOGICAL_OR,
// LOGICAL_NOT, BITWISE_XOR.
#include "plugins/cpu/broadcast.h"
#include "plugins/cpu/dispatch.h"
#include "plugins/cpu/elementwise.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/quant.h"
#include "plugins/cpu/strings.h"

namespace fusebox::cpu {
namespace {

inline constexpr Types<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                       uint64_t, bool>
    kComparable;
inline constexpr Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, bool> kBits;

#define FUSEBOX_CPU_RELATION(Name, kOp, kList, kSame, expression) \
  struct Name {                                                   \
    static constexpr std::string_view kName = kOp;                \
    static constexpr auto kTypes = kList;                         \
    static constexpr bool kKeepsType = kSame;                     \
    template <class T>                                            \
    FUSEBOX_INLINE static auto Apply(T a, T b) {                  \
      return expression;                                          \
    }                                                             \
  };

FUSEBOX_CPU_RELATION(Equal, "EQUAL", kComparable, false, a == b)
FUSEBOX_CPU_RELATION(NotEqual, "NOT_EQUAL", kComparable, false, a != b)
FUSEBOX_CPU_RELATION(Less, "LESS", kAllNumbers, false, a < b)
FUSEBOX_CPU_RELATION(LessEqual, "LESS_EQUAL", kAllNumbers, false, a <= b)
FUSEBOX_CPU_RELATION(Greater, "GREATER", kAllNumbers, false, a > b)
FUSEBOX_CPU_RELATION(GreaterEqual, "GREATER_EQUAL", kAllNumbers, false, a >= b)
FUSEBOX_CPU_RELATION(LogicalAnd, "LOGICAL_AND", kBool, false, a&& b)
FUSEBOX_CPU_RELATION(LogicalOr, "LOGICAL_OR", kBool, false, a || b)
FUSEBOX_CPU_RELATION(BitwiseXor, "BITWISE_XOR", kBits, true, static_cast<T>(a ^ b))

#undef FUSEBOX_CPU_RELATION

template <class Op>
struct Relation {
  static constexpr std::string_view builtin = Op::kName;
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static constexpr bool kRelates = Contains(Op::kTypes, FBX_F64);
  static constexpr bool kEquates = kRelates && Contains(Op::kTypes, FBX_BOOL);

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
    const fbx_dtype dtype = Op::kKeepsType ? n.in(0).dtype() : FBX_BOOL;
    if (n.in(0).rank() < 0 || n.in(1).rank() < 0) return out.unranked(0, dtype);
    out.set(0, dtype, Broadcast(Shape(n.in(0)), Shape(n.in(1))));
  }
  void invoke(const Node& n) const {
    if constexpr (kEquates) {
      if (HasStrings(n)) return EquateStrings(n);
    }
    const BroadcastPlan plan = PlanBroadcast(Shape(n.in(0)), Shape(n.in(1)));
    if constexpr (kRelates) {
      if (IsQuantized(n, 0) && !SameQuant(n.in(0).quant(), n.in(1).quant())) return RelateReals(n, plan);
    }
    Dispatch(Op::kTypes, n.in(0).dtype(), [&]<class T>() {
      using R = std::conditional_t<Op::kKeepsType, T, bool>;
      RunBroadcast(n.host(), plan, n.in(0).data<const T>(), n.in(1).data<const T>(), n.out(0).data<R>(),
                   [](T a, T b) FUSEBOX_INLINE { return static_cast<R>(Op::template Apply<T>(a, b)); });
    });
  }

 private:
  static void EquateStrings(const Node& n) {
    const Strings x(n.in(0)), y(n.in(1));
    const Shape a(n.in(0)), b(n.in(1)), dims = Broadcast(a, b);
    Walk<2> walk(dims, {BroadcastStrides(a, dims), BroadcastStrides(b, dims)});
    bool* to = n.out(0).data<bool>();
    for (int64_t i = 0; i < Count(dims); ++i, walk.Next())
      to[i] = Op::Apply(x[walk.offset(0)], y[walk.offset(1)]);
  }
  // A double represents the product of a float and a quantized value exactly.
  static void RelateReals(const Node& n, const BroadcastPlan& plan) {
    const Affine x = AffineOf(n.in(0)), y = AffineOf(n.in(1));
    Dispatch(kQuantized, n.in(0).dtype(), [&]<class T>() {
      RunBroadcast(n.host(), plan, n.in(0).data<const T>(), n.in(1).data<const T>(), n.out(0).data<bool>(),
                   [x, y](T a, T b) FUSEBOX_INLINE {
                     return Op::template Apply<double>(double{x.scale} * (a - x.zero),
                                                       double{y.scale} * (b - y.zero));
                   });
    });
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
