// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/elements/extremes.h"
#include "plugins/cpu/elements/fold.h"
#include "plugins/cpu/elements/reduce_plan.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/quantized/quant.h"
#include "plugins/cpu/quantized/reduce.h"

namespace fusebox::cpu {
namespace {

// i8, u8 and i16 without a scale are plain integers.
constexpr Types<float, double, int32_t, int64_t, int8_t, uint8_t, int16_t> kSummands;

// An Op folds values into a Total<T> starting with Start; Finish computes the result. Integers wrap. Ops of
// one Folding share its loops.
struct Sum {
  static constexpr std::string_view kName = "SUM";
  static constexpr auto kTypes = kSummands;
  using Folding = Sum;
  template <class T>
  using Total = std::conditional_t<std::is_floating_point_v<T>, T, int64_t>;
  template <class T>
  static constexpr T Start() {
    return T(0);
  }
  template <class T>
  FUSEBOX_INLINE static T Join(T a, T x) {
    if constexpr (std::is_floating_point_v<T>) return a + x;
    else
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                            static_cast<std::make_unsigned_t<T>>(x));
  }
  template <class T, class A>
  static T Finish(A total, int64_t) {
    return static_cast<T>(total);
  }
};

// Integers: the quotient is truncated.
struct Mean : Sum {
  static constexpr std::string_view kName = "MEAN";
  template <class T, class A>
  static T Finish(A total, int64_t count) {
    if constexpr (std::is_floating_point_v<T>) return total / static_cast<T>(count);
    else return static_cast<T>(total / count);
  }
};

struct Prod {
  static constexpr std::string_view kName = "REDUCE_PROD";
  static constexpr auto kTypes = kSummands;
  using Folding = Prod;
  template <class T>
  using Total = T;
  template <class T>
  static constexpr T Start() {
    return T(1);
  }
  template <class T>
  FUSEBOX_INLINE static T Join(T a, T x) {
    if constexpr (std::is_floating_point_v<T>) return a * x;
    else
      return static_cast<T>(1u * static_cast<std::make_unsigned_t<T>>(a) *
                            static_cast<std::make_unsigned_t<T>>(x));
  }
  template <class T, class A>
  static T Finish(A total, int64_t) {
    return total;
  }
};

struct ReduceMax {
  static constexpr std::string_view kName = "REDUCE_MAX";
  static constexpr auto kTypes = kAllNumbers;
  using Folding = ReduceMax;
  template <class T>
  using Total = T;
  template <class T>
  static constexpr T Start() {
    return kLowest<T>;
  }
  template <class T>
  FUSEBOX_INLINE static T Join(T a, T x) {
    return LargerOf(x, a);
  }
  template <class T, class A>
  static T Finish(A total, int64_t) {
    return total;
  }
};

struct ReduceMin : ReduceMax {
  static constexpr std::string_view kName = "REDUCE_MIN";
  using Folding = ReduceMin;
  template <class T>
  static constexpr T Start() {
    return kHighest<T>;
  }
  template <class T>
  FUSEBOX_INLINE static T Join(T a, T x) {
    return SmallerOf(x, a);
  }
};

struct Any {
  static constexpr std::string_view kName = "REDUCE_ANY";
  static constexpr auto kTypes = kBool;
  using Folding = Any;
  template <class T>
  using Total = T;
  template <class T>
  static constexpr T Start() {
    return false;
  }
  template <class T>
  FUSEBOX_INLINE static T Join(T a, T x) {
    return a || x;
  }
  template <class T, class A>
  static T Finish(A total, int64_t) {
    return total;
  }
};

struct All : Any {
  static constexpr std::string_view kName = "REDUCE_ALL";
  using Folding = All;
  template <class T>
  static constexpr T Start() {
    return true;
  }
  template <class T>
  FUSEBOX_INLINE static T Join(T a, T x) {
    return a && x;
  }
};

template <class Op>
struct Reduce {
  static constexpr std::string_view builtin = Op::kName;
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  // Quantized: sums and means are scaled, products use real numbers, extremes compare quantized values.
  static constexpr bool kSums = std::is_base_of_v<Sum, Op>;
  static constexpr bool kMultiplies = std::is_same_v<Prod, Op>;
  static constexpr bool kSelects = std::is_base_of_v<ReduceMax, Op>;

  static void supports(const Node& n) {
    if ((kSums || kMultiplies || kSelects) && IsQuantized(n, 0)) {
      if (!kSelects) return RequireQuantizedMap(n);
      RequireQuantized(n, 0);
      return RequireSameQuant(n, 0);
    }
    RequireDtype(n, 0, Op::kTypes);
    if (n.out_count() > 0 && IsQuantized(n.out(0)))
      throw Reject{"QUANT",
                   std::string(dtype_name(n.in(0).dtype())) + " without a scale to a result with one",
                   "operand 0"};
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    RequireIndex(n);
    const Tensor in = n.in(0);
    const bool keep = n.attrs().b("keep_dims", false);
    if (!n.in(1).has_value()) out.needs_value(1);
    if (in.rank() < 0 || !n.in(1).has_value()) return SetUnknownDims(out, in.dtype(), keep ? in.rank() : -1);
    Shape dims;
    const std::array<bool, kMaxRank> reduced = ReducedDims(n, in.rank());
    for (int i = 0; i < in.rank(); ++i) {
      if (!reduced[static_cast<size_t>(i)]) dims.push_back(in.dim(i));
      else if (keep) dims.push_back(1);
    }
    out.set(0, in.dtype(), dims);
  }

  // Computed axes have no value yet; then invoke builds the plan.
  ReducePlan prepare(const Node& n, Plan&) const {
    return n.in(1).has_value() ? PlanReduce(n) : ReducePlan{};
  }

  void invoke(const Node& n, const ReducePlan& prepared) const {
    const ReducePlan plan = n.in(1).is_const() ? prepared : PlanReduce(n);
    if (std::is_same_v<Op, Mean> && !Contains(kFloats, n.in(0).dtype()) && Folds(plan) == 0 &&
        n.out(0).count() > 0)
      Fail("the mean of no integers");
    if constexpr (kSums || kMultiplies) {
      if (IsQuantized(n, 0))
        return Dispatch(kQuantized, n.in(0).dtype(), [&]<class T>() { RunQuantized<T>(n, plan); });
    }
    if constexpr (kSelects) {
      if (Contains(kIntegers, n.in(0).dtype()))
        return Reduce<ReduceMax>::RunExtremes(n, plan, std::is_same_v<Op, ReduceMax>);
    }
    using Values = std::conditional_t<kSelects, decltype(kFloats), decltype(Op::kTypes)>;
    Dispatch(Values(), n.in(0).dtype(), [&]<class T>() {
      using Total = typename Op::template Total<T>;
      const int64_t folds = Folds(plan);
      Run<T, Total>(n, plan, [folds](Total total) { return Op::template Finish<T>(total, folds); });
    });
  }

  // The smallest integer is the complement of the largest complement: both ops share the loops of one.
  static void RunExtremes(const Node& n, const ReducePlan& plan, bool largest) {
    Dispatch(kIntegers, n.in(0).dtype(), [&]<class T>() {
      const T flip = static_cast<T>(largest ? 0 : -1);
      const auto flipped = [flip](T x) FUSEBOX_INLINE { return static_cast<T>(x ^ flip); };
      Fold<ReduceMax>::Run<T, T>(n, plan, flipped, Finishing<T, T>::By(flipped));
    });
  }

 private:
  using Loops = Fold<typename Op::Folding>;

  static void RequireIndex(const Node& n) {
    if (!Contains(kIndices, n.in(1).dtype()))
      Fail("axes of dtype " + std::string(dtype_name(n.in(1).dtype())), Operand(1));
  }

  template <class T>
  static void RunQuantized(const Node& n, const ReducePlan& plan) {
    const Affine from = AffineOf(n.in(0));
    const Affine to = AffineOf(n.out(0));
    const int64_t folds = Folds(plan);
    if constexpr (kMultiplies) {
      RunProducts(n, plan, QuantizedProd<T>(from, to, folds));
    } else if constexpr (std::is_same_v<Op, Mean>) {
      const QuantizedMean<T> mean(from, to, IsOfImage(n), folds);
      Run<T, int64_t>(n, plan, [&](int64_t total) { return mean(total, folds); });
    } else {
      const QuantizedSum<T> sum(from, to, folds);
      Run<T, int64_t>(n, plan, [&](int64_t total) { return sum(total, folds); });
    }
  }

  template <class T, class Total, class F>
  static void Run(const Node& n, const ReducePlan& plan, const F& finish) {
    Loops::template Run<T, Total>(n, plan, Loaded<Total>(), Finishing<T, Total>::By(finish));
  }

  template <class T>
  static void RunProducts(const Node& n, const ReducePlan& plan, const QuantizedProd<T>& product) {
    const T* in = n.in(0).data<const T>();
    T* out = n.out(0).data<T>();
    const int64_t columns = plan.inner_folded ? 1 : plan.inner;
    ParallelFor(n.host(), static_cast<size_t>(plan.kept_count), Grain(plan.folded_count * plan.inner),
                [&](size_t begin, size_t end, uint32_t) {
                  Walk<1> kept(plan.kept, {plan.kept_strides});
                  kept.Seek(static_cast<int64_t>(begin));
                  for (size_t i = begin; i < end; ++i, kept.Next()) {
                    for (int64_t c = 0; c < columns; ++c)
                      out[static_cast<int64_t>(i) * columns + c] =
                          ProductOf(plan, in + kept.offset(0) + c, product);
                  }
                });
  }

  // In element order: each factor is rounded.
  template <class T>
  static T ProductOf(const ReducePlan& plan, const T* in, const QuantizedProd<T>& product) {
    const int64_t run = plan.inner_folded ? plan.inner : 1;
    if (Folds(plan) == 0) return product.OfNothing();
    Walk<1> folded(plan.folded, {plan.folded_strides});
    folded.Seek(0);
    int32_t total = 0;
    for (int64_t f = 0; f < plan.folded_count; ++f, folded.Next()) {
      const T* x = in + folded.offset(0);
      for (int64_t i = 0; i < run; ++i) total = f + i == 0 ? product.First(x[i]) : product.Next(total, x[i]);
    }
    return product.Finish(total);
  }

  // Over height and width of a batch of images, with keep_dims and non-negative axes.
  static bool IsOfImage(const Node& n) {
    const Tensor axes = n.in(1);
    if (n.in(0).rank() != 4 || axes.count() != 2 || !n.attrs().b("keep_dims", false)) return false;
    const int64_t first = IntAt(axes, 0);
    const int64_t second = IntAt(axes, 1);
    return (first == 1 && second == 2) || (first == 2 && second == 1);
  }
};

constexpr const fbx_kernel* kTable[] = {
    &kernel_of<Reduce<Sum>>,       &kernel_of<Reduce<Mean>>,      &kernel_of<Reduce<Prod>>,
    &kernel_of<Reduce<ReduceMax>>, &kernel_of<Reduce<ReduceMin>>, &kernel_of<Reduce<Any>>,
    &kernel_of<Reduce<All>>,
};

}  // namespace

constinit const KernelTable kReduceKernels = kTable;

}  // namespace fusebox::cpu
