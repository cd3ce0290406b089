// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/base/activation.h"

#include <cmath>
#include <optional>

#include "plugins/cpu/elements/broadcast.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/quantized/elementwise.h"

namespace fusebox::cpu {
namespace {

struct Relu {
  static constexpr std::string_view kName = "RELU";
  static constexpr int kLow = 0;
  static constexpr int kHigh = 0;  // equal to kLow: no upper bound
};
struct Relu6 {
  static constexpr std::string_view kName = "RELU6";
  static constexpr int kLow = 0;
  static constexpr int kHigh = 6;
};
struct ReluN1To1 {
  static constexpr std::string_view kName = "RELU_N1_TO_1";
  static constexpr int kLow = -1;
  static constexpr int kHigh = 1;
};
struct Relu0To1 {
  static constexpr std::string_view kName = "RELU_0_TO_1";
  static constexpr int kLow = 0;
  static constexpr int kHigh = 1;
};

template <class Range>
struct Clipped {
  static constexpr std::string_view kName = Range::kName;
  static constexpr auto kTypes = kFloats;
  template <class T>
  FUSEBOX_INLINE static T Apply(T x) {
    x = x < T(Range::kLow) ? T(Range::kLow) : x;
    if constexpr (Range::kHigh > Range::kLow) x = x > T(Range::kHigh) ? T(Range::kHigh) : x;
    return x;
  }
};

struct Elu {
  static constexpr std::string_view kName = "ELU";
  static constexpr auto kTypes = kFloats;
  static constexpr auto kFunction = math::Function::kElu;
  static std::optional<ByteTable> OfBytes(Tensor in, Tensor out) {
    return ByteTable::OfFloats(in, out, [](float x) { return x < 0 ? std::exp(x) - 1 : x; });
  }
  template <class T>
  static T Apply(T x) {
    return x < T(0) ? std::expm1(x) : x;
  }
};

struct Tanh {
  static constexpr std::string_view kName = "TANH";
  static constexpr auto kTypes = kFloats;
  static constexpr auto kFunction = math::Function::kTanh;
  static std::optional<ByteTable> OfBytes(Tensor in, Tensor out) {
    return ByteTable::OfFloats(in, out, [](float x) { return std::tanh(x); });
  }
  template <class T>
  static T Apply(T x) {
    return std::tanh(x);
  }
};

struct Logistic {
  static constexpr std::string_view kName = "LOGISTIC";
  static constexpr auto kTypes = kFloats;
  static constexpr auto kFunction = math::Function::kSigmoid;
  static std::optional<ByteTable> OfBytes(Tensor in, Tensor out) {
    return ByteTable::OfFloats(in, out, [](float x) { return 1 / (1 + std::exp(-x)); });
  }
  template <class T>
  static T Apply(T x) {
    return T(1) / (T(1) + std::exp(-x));
  }
};

// HARD_SWISH of bytes in TFLite's 16-bit fixed point. Inputs are quantized values minus the zero point.
class QuantizedHardSwish {
 public:
  QuantizedHardSwish(Affine from, Affine to) {
    const float fine = from.scale / 128;
    result_ = FixedPoint(double{fine / to.scale});
    third_ = FixedPoint(double{fine / (3.0f / 32768)});
  }

  // False: the result's scale is too small for the available bits.
  bool fits() const { return result_.shift <= 0; }

  int32_t operator()(int32_t x) const {
    const int32_t fine = x * 128;
    // Maps [-3, 3] to [-1, 1], saturated. All but one bit are shifted before the product, which avoids
    // overflow.
    const int32_t left = std::max(third_.shift, 0);
    int32_t gate = Product(Shifted(fine, std::max(left - 1, 0)), Upper(third_));
    gate = third_.shift > 0 ? Shifted(gate, 1) : Down(gate, -third_.shift);
    gate = (gate + 32768) / 2;  // to [0, 1]
    return Down(gate * Product(fine, Upper(result_)) / 32768, -result_.shift);
  }

 private:
  static int32_t Narrow(int64_t x) { return static_cast<int32_t>(std::clamp<int64_t>(x, -32768, 32767)); }
  static int32_t Shifted(int32_t x, int32_t left) { return Narrow(int64_t{x} << left); }
  static int32_t Upper(FixedPoint by) { return Narrow((int64_t{by.value} + 32768) >> 16); }
  // The upper 16 bits of twice the product, rounded half away from zero.
  static int32_t Product(int32_t a, int32_t b) {
    const int32_t product = a * b;
    return Narrow((product + (product < 0 ? 1 - 16384 : 16384)) / 32768);
  }
  // Rounds half away from zero.
  static int32_t Down(int32_t x, int32_t right) {
    const int32_t half = right > 0 ? 1 << (right - 1) : 0;
    return x < 0 ? -((-x + half) >> right) : (x + half) >> right;
  }

  FixedPoint result_, third_;
};

struct HardSwish {
  static constexpr std::string_view kName = "HARD_SWISH";
  static constexpr auto kTypes = kFloats;
  static std::optional<ByteTable> OfBytes(Tensor in, Tensor out) {
    const Affine from = AffineOf(in);
    const Affine to = AffineOf(out);
    const QuantizedHardSwish f(from, to);
    if (in.dtype() == FBX_I16 || !f.fits()) return std::nullopt;
    return ByteTable::OfQuantized(in, [&](int32_t x) {
      const int32_t y = f(x - from.zero) + to.zero;
      return out.dtype() == FBX_U8 ? int32_t{ClampTo<uint8_t>(y)} : int32_t{ClampTo<int8_t>(y)};
    });
  }
  template <class T>
  FUSEBOX_INLINE static T Apply(T x) {
    return x * (Clamp(x + T(3), T(0), T(6)) / T(6));  // the factor first: large x would overflow
  }
};

struct LeakyRelu {
  static constexpr std::string_view builtin = "LEAKY_RELU";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;
  explicit LeakyRelu(const Node& n) : alpha_(n.attrs().f64("alpha", 0)) {
    if (!IsQuantized(n, 0)) return;
    from_ = AffineOf(n.in(0));
    to_ = AffineOf(n.out(0));
    above_ = FixedPoint(double{from_.scale / to_.scale});
    below_ = FixedPoint(double{from_.scale * static_cast<float>(alpha_) / to_.scale});
    if (n.in(0).dtype() == FBX_I16) return;
    table_ = ByteTable::OfQuantized(n.in(0), [&](int32_t x) {
      return n.out(0).dtype() == FBX_U8 ? int32_t{OfQuantized<uint8_t>(x)} : int32_t{OfQuantized<int8_t>(x)};
    });
  }
  static void supports(const Node& n) {
    if (IsQuantized(n, 0)) return RequireQuantizedMap(n);
    RequireDtype(n, 0, kFloats);
  }
  static void infer(const Node& n, Infer& out) { InferElementwise(n, out); }
  void invoke(const Node& n) const {
    if (IsQuantized(n, 0)) return InvokeQuantized(n);
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() {
      const T alpha = static_cast<T>(alpha_);
      MapElements(n.host(), n.in(0).data<const T>(), n.out(0).data<T>(), n.in(0).count(),
                  [alpha](T x) FUSEBOX_INLINE { return x > T(0) ? x : x * alpha; });
    });
  }

 private:
  void InvokeQuantized(const Node& n) const {
    if (n.in(0).dtype() != FBX_I16) return table_.Apply(n);
    const LeakyRelu self = *this;
    MapElements(n.host(), n.in(0).data<const int16_t>(), n.out(0).data<int16_t>(), n.in(0).count(),
                [self](int16_t x) FUSEBOX_INLINE { return self.OfQuantized<int16_t>(x); });
  }
  template <class S>
  FUSEBOX_INLINE S OfQuantized(int32_t x) const {
    const int32_t v = x - from_.zero;
    return ClampTo<S>(Scaled(v, v >= 0 ? above_ : below_) + to_.zero);  // one product: no branch
  }

  double alpha_;
  Affine from_, to_;
  FixedPoint above_, below_;
  ByteTable table_;
};

struct Gelu {
  static constexpr std::string_view builtin = "GELU";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;
  explicit Gelu(const Node& n) : approximate_(n.attrs().b("approximate", false)) {
    if (IsQuantized(n, 0))
      quantized_ = QuantizedMap(n.in(0), n.out(0), approximate_ ? Approximate<double> : Exact<double>);
  }
  static void supports(const Node& n) {
    if (IsQuantized(n, 0)) return RequireQuantizedMap(n);
    RequireDtype(n, 0, kFloats);
  }
  static void infer(const Node& n, Infer& out) { InferElementwise(n, out); }
  void invoke(const Node& n) const {
    if (IsQuantized(n, 0)) return quantized_.Apply(n, Either{approximate_});
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() {
      const T* x = n.in(0).data<const T>();
      T* y = n.out(0).data<T>();
      if constexpr (std::is_same_v<T, float>) {
        if (approximate_) return MapFunction(n.host(), math::Function::kGelu, x, y, n.in(0).count());
      }
      MapElements(n.host(), x, y, n.in(0).count(), Either{approximate_});
    });
  }

 private:
  template <class T>
  static T Exact(T x) {
    return T(0.5) * x * std::erfc(-x * T(0.70710678118654752440));
  }
  template <class T>
  static T Approximate(T x) {
    constexpr T kRoot = T(0.79788456080286535588);  // of 2 / pi
    return T(0.5) * x * (T(1) + std::tanh(kRoot * (x + T(0.044715) * x * x * x)));
  }
  struct Either {
    bool approximate;
    template <class T>
    T operator()(T x) const {
      return approximate ? Approximate(x) : Exact(x);
    }
  };
  bool approximate_;
  QuantizedMap quantized_;
};

// alpha broadcasts against the input; usually it is per channel.
struct Prelu {
  static constexpr std::string_view builtin = "PRELU";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;
  static void supports(const Node& n) {
    if (IsQuantized(n, 0)) {
      RequireQuantizedMap(n);
      RequireQuantized(n, 1);
      RequireNoZeroPoint(n.in(0), "operand 0");
      return RequireNoZeroPoint(n.in(1), "operand 1");
    }
    RequireDtype(n, 0, kFloats);
    RequireDtype(n, 1, kFloats);
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    SameDtype(n, 0, 1);
    if (n.in(0).rank() < 0 || n.in(1).rank() < 0) return out.like(0, n.in(0));
    const Shape x(n.in(0));
    const Shape joined = Broadcast(x, Shape(n.in(1)));
    if (joined.rank() != x.rank() || (x.is_static() && !(joined == x)))
      Fail("alpha of shape " + Text(n.in(1).dims()) + " does not broadcast to the input " + Text(x),
           Operand(1));
    out.set(0, n.in(0).dtype(), x);
  }
  BroadcastPlan prepare(const Node& n, Plan&) const { return PlanBroadcast(Shape(n.in(0)), Shape(n.in(1))); }
  void invoke(const Node& n, const BroadcastPlan& plan) const {
    if (IsQuantized(n, 0)) return InvokeQuantized(n, plan);
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() {
      RunBroadcast(n.host(), plan, n.in(0).data<const T>(), n.in(1).data<const T>(), n.out(0).data<T>(),
                   [](T x, T alpha) FUSEBOX_INLINE {
                     const T scaled = x * alpha;  // always, so that the loop has no branch
                     return x >= T(0) ? x : scaled;
                   });
    });
  }
  static void InvokeQuantized(const Node& n, const BroadcastPlan& plan) {
    const Affine x = AffineOf(n.in(0));
    const Affine alpha = AffineOf(n.in(1));
    const Affine y = AffineOf(n.out(0));
    const FixedPoint same(double{x.scale} / y.scale);
    const FixedPoint steeper(double{x.scale * alpha.scale} / y.scale);
    Dispatch(kQuantized, n.in(0).dtype(), [&]<class T>() {
      RunBroadcast(n.host(), plan, n.in(0).data<const T>(), n.in(1).data<const T>(), n.out(0).data<T>(),
                   [=](T a, T b) FUSEBOX_INLINE {
                     const int32_t v = a - x.zero;
                     const int32_t scaled = v >= 0 ? Scaled(v, same) : Scaled(v * (b - alpha.zero), steeper);
                     return ClampTo<T>(scaled + y.zero);
                   });
    });
  }
};

constexpr const fbx_kernel* kTable[] = {
    &kernel_of<Elementwise<Clipped<Relu>>>,
    &kernel_of<Elementwise<Clipped<Relu6>>>,
    &kernel_of<Elementwise<Clipped<ReluN1To1>>>,
    &kernel_of<Elementwise<Clipped<Relu0To1>>>,
    &kernel_of<Elementwise<Elu>>,
    &kernel_of<Elementwise<Tanh>>,
    &kernel_of<Elementwise<Logistic>>,
    &kernel_of<Elementwise<HardSwish>>,
    &kernel_of<LeakyRelu>,
    &kernel_of<Gelu>,
    &kernel_of<Prelu>,
};

}  // namespace

constinit const KernelTable kActivationKernels = kTable;

}  // namespace fusebox::cpu
