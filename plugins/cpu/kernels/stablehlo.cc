// SPDX-License-Identifier: Apache-2.0
// StableHLO elementwise ops: STABLEHLO_ADD, _MULTIPLY, _MAXIMUM, _MINIMUM, _AND, _SHIFT_LEFT; and
// STABLEHLO_PAD.
#include <algorithm>
#include <type_traits>

#include "plugins/cpu/elements/broadcast.h"
#include "plugins/cpu/elements/extremes.h"
#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

// Integers wrap: they are computed as unsigned.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>,
                                             std::make_unsigned<T>, std::type_identity<T>>::type;

inline constexpr Types<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>
    kBitTypes;

// Unless the order of values matters, signed integers are computed as unsigned ones.
#define FUSEBOX_CPU_STABLEHLO(Name, kOp, kList, ordered, expression) \
  struct Name {                                                      \
    static constexpr std::string_view kName = kOp;                   \
    static constexpr auto kTypes = kList;                            \
    static constexpr bool kOrdered = ordered;                        \
    template <class T>                                               \
    FUSEBOX_INLINE static T Apply(T a, T b) {                        \
      return expression;                                             \
    }                                                                \
  };

FUSEBOX_CPU_STABLEHLO(Plus, "STABLEHLO_ADD", kAllNumbers, false,
                      static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b)))
// Without 1u, 16-bit products would be signed ints.
FUSEBOX_CPU_STABLEHLO(Times, "STABLEHLO_MULTIPLY", kAllNumbers, false,
                      static_cast<T>(1u * static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b)))
FUSEBOX_CPU_STABLEHLO(Larger, "STABLEHLO_MAXIMUM", kAllNumbers, true, LargerOf(a, b))
FUSEBOX_CPU_STABLEHLO(Smaller, "STABLEHLO_MINIMUM", kAllNumbers, true, SmallerOf(a, b))
FUSEBOX_CPU_STABLEHLO(Both, "STABLEHLO_AND", kBitTypes, false, static_cast<T>(a& b))
// Negative and large counts yield 0.
FUSEBOX_CPU_STABLEHLO(ShiftLeft, "STABLEHLO_SHIFT_LEFT", kIntegers, false,
                      static_cast<Wrapping<T>>(b) >= 8 * sizeof(T)
                          ? T(0)
                          : static_cast<T>(uint64_t(static_cast<Wrapping<T>>(a)) << static_cast<int>(b)))

#undef FUSEBOX_CPU_STABLEHLO

// Operands of equal shape: StableHLO does not broadcast.
template <class Op>
struct OfOneShape {
  static constexpr std::string_view builtin = Op::kName;
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;
  static void supports(const Node& n) {
    RequireDtype(n, 0, Op::kTypes);
    RequireDtype(n, 1, Op::kTypes);
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    SameDtype(n, 0, 1);
    const Tensor x = n.in(0);
    const Tensor y = n.in(1);
    if (x.rank() < 0) return out.like(0, y);
    Shape dims(x);
    if (y.rank() >= 0 && y.rank() != dims.rank())
      Fail("ranks differ: " + std::to_string(dims.rank()) + " and " + std::to_string(y.rank()), Operand(1));
    for (int i = 0; y.rank() >= 0 && i < dims.rank(); ++i) dims[i] = SameDim(dims[i], y.dim(i), "sizes");
    out.set(0, x.dtype(), dims);
  }
  void invoke(const Node& n) const {
    const BroadcastPlan plan = PlanBroadcast(Shape(n.in(0)), Shape(n.in(1)));
    const auto run = [&]<class T>() {
      RunBroadcast(n.host(), plan, static_cast<const T*>(n.in(0).data<const void>()),
                   static_cast<const T*>(n.in(1).data<const void>()), static_cast<T*>(n.out(0).data<void>()),
                   [](T a, T b) FUSEBOX_INLINE { return Op::template Apply<T>(a, b); });
    };
    const fbx_dtype dtype = n.in(0).dtype();
    if constexpr (Contains(Op::kTypes, FBX_F32)) {
      if (Contains(kFloats, dtype)) return Dispatch(kFloats, dtype, run);
    }
    if (Op::kOrdered) return RunIntegerExtremes(n, plan, std::is_same_v<Op, Larger>);
    DispatchWidth(ElementSize(dtype), [&]<class T>() {
      if constexpr (!Op::kOrdered && std::is_integral_v<T>) run.template operator()<T>();
    });
  }
};

// Padding around the tensor and between its elements; negative padding crops.
struct StablehloPad {
  static constexpr std::string_view builtin = "STABLEHLO_PAD";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    RequireMovable(n, 0);
    RequireMovable(n, 1);
  }

  // Along one dimension of `size`: `count` elements from `first` on are placed at `at`, at + step, ...
  struct Placed {
    int64_t size, first, count, at, step;
  };
  static Placed PlacedAlong(const Node& n, int i) {
    const __int128 dim = n.in(0).dim(i);
    const __int128 low = n.attrs().i64s("edge_padding_low")[static_cast<size_t>(i)];
    const __int128 high = n.attrs().i64s("edge_padding_high")[static_cast<size_t>(i)];
    const __int128 between = n.attrs().i64s("interior_padding")[static_cast<size_t>(i)];
    const __int128 step = between + 1;
    const __int128 size = low + high + dim + (dim > 0 ? (dim - 1) * between : 0);
    if (between < 0 || size < 0 || size > INT64_MAX)
      Fail("dimension " + std::to_string(i) + " has an invalid padding");
    const __int128 first = low < 0 ? std::min((-low + step - 1) / step, dim) : 0;
    const __int128 end = low >= size ? 0 : std::min((size - low - 1) / step + 1, dim);
    const auto count = static_cast<int64_t>(std::max<__int128>(end - first, 0));
    return {static_cast<int64_t>(size), static_cast<int64_t>(first), count,
            count > 0 ? static_cast<int64_t>(low + first * step) : 0,
            count > 1 ? static_cast<int64_t>(step) : 0};
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    SameDtype(n, 0, 1);
    const Tensor in = n.in(0);
    if (n.in(1).is_static() && Count(n.in(1).dims()) != 1)
      Fail("expected one value, got shape " + Text(n.in(1).dims()), Operand(1));
    if (in.rank() < 0) return out.unranked(0, in.dtype());
    Shape dims(in);
    for (const char* attr : {"edge_padding_low", "edge_padding_high", "interior_padding"})
      if (n.attrs().i64s(attr).size() != static_cast<size_t>(dims.rank()))
        Fail("has " + std::to_string(n.attrs().i64s(attr).size()) + " values for rank " +
                 std::to_string(dims.rank()),
             std::string("attr ") + attr);
    for (int i = 0; i < dims.rank(); ++i)
      if (dims[i] >= 0) dims[i] = PlacedAlong(n, i).size;
    Count(dims);
    out.set(0, in.dtype(), dims);
  }
  void invoke(const Node& n) const {
    const Shape in = Strides(Shape(n.in(0)));
    const Shape dense = Strides(Shape(n.out(0)));
    const size_t width = ElementSize(n.in(0).dtype());
    if (n.out(0).count() == 0) return;
    FillElements(width, n.in(1).data<const void>(), MutableElements(n.out(0)), n.out(0).count());
    Shape dims, to;
    int64_t from = 0;
    int64_t at = 0;
    for (int i = 0; i < in.rank(); ++i) {
      const Placed axis = PlacedAlong(n, i);
      dims.push_back(axis.count);
      to.push_back(axis.step * dense[i]);
      from += axis.first * in[i];
      at += axis.at * dense[i];
    }
    if (Count(dims) == 0) return;
    CopyBox(n.host(), width, dims, Elements(n.in(0), from), in, MutableElements(n.out(0), at), to);
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<OfOneShape<Plus>>,   &kernel_of<OfOneShape<Times>>,
                                        &kernel_of<OfOneShape<Larger>>, &kernel_of<OfOneShape<Smaller>>,
                                        &kernel_of<OfOneShape<Both>>,   &kernel_of<OfOneShape<ShiftLeft>>,
                                        &kernel_of<StablehloPad>};

}  // namespace

constinit const KernelTable kStablehloKernels = kTable;

}  // namespace fusebox::cpu
