// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <limits>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/half.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/base/simd.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/quantized/byte_code.h"
#include "plugins/cpu/quantized/elementwise.h"
#include "plugins/cpu/quantized/map.h"

namespace fusebox::cpu {
namespace {

constexpr Types<int8_t, uint8_t, int16_t, int32_t> kAnyQuantized;

// Here i32 is a quantized type as well.
bool HasScale(const Tensor& t) {
  return IsQuantized(t) || (t.dtype() == FBX_I32 && t.quant() && t.quant()->kind != FBX_QUANT_NONE);
}

// Throws Reject unless the tensor has scales, per tensor or per axis.
void RequireStated(const Tensor& t, const std::string& subject) {
  const fbx_quant* q = t.quant();
  if (!q || (q->kind != FBX_QUANT_PER_TENSOR && q->kind != FBX_QUANT_PER_AXIS))
    throw Reject{"QUANT", "neither a scale for the tensor nor one per channel", subject};
  const bool per_axis = q->kind == FBX_QUANT_PER_AXIS;
  if (q->count == 0 || !q->scales || (!per_axis && q->count != 1)) throw Reject{"QUANT", "no scale", subject};
  if (!per_axis || t.rank() < 0) return;
  if (q->axis < 0 || q->axis >= t.rank())
    throw Reject{"QUANT", "a channel axis outside of the rank", subject};
  if (t.dim(q->axis) >= 0 && t.dim(q->axis) != q->count)
    throw Reject{"QUANT", "not one scale per channel", subject};
}

// Calls f(scale, zero point, first element, count) for runs of elements with one scale.
template <class F>
void ForEachRun(const Node& n, const Tensor& t, const F& f) {
  const fbx_quant& q = *t.quant();
  const Shape shape(t);
  const bool per_axis = q.kind == FBX_QUANT_PER_AXIS && q.count > 1;
  const int64_t run = per_axis ? CountFrom(shape, q.axis + 1) : t.count();
  if (t.count() == 0) return;
  for (int64_t i = 0; i < t.count() / run; ++i) {
    const int64_t channel = per_axis ? i % q.count : 0;
    const int64_t zero = q.zero_points ? q.zero_points[channel] : 0;
    ParallelFor(n.host(), static_cast<size_t>(run), 16384, [&](size_t begin, size_t end, uint32_t) {
      f(q.scales[channel], zero, i * run + static_cast<int64_t>(begin), static_cast<int64_t>(end - begin));
    });
  }
}

// Rounds half away from zero, saturates; NaN becomes the zero point. In double, because rounding the quotient
// to float first could produce a false tie.
template <class S>
S Quantized(double x, float scale, int64_t zero) {
  constexpr double kLow = std::numeric_limits<S>::lowest();
  constexpr double kHigh = std::numeric_limits<S>::max();
  const double q = std::round(x / scale) + static_cast<double>(zero);
  if (std::isnan(q)) return static_cast<S>(zero);
  return static_cast<S>(q < kLow ? kLow : q > kHigh ? kHigh : q);
}

struct Quantize {
  static constexpr std::string_view builtin = "QUANTIZE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  // Requantization between quantized types.
  explicit Quantize(const Node& n) {
    if (!HasScale(n.in(0))) return;
    from_ = AffineOf(n.in(0));
    to_ = AffineOf(n.out(0));
    scale_ = FixedPoint(double{from_.scale} / to_.scale);
  }
  static void supports(const Node& n) {
    if (HasScale(n.in(0))) {
      RequireOneScale(n.in(0), "operand 0");
      if (n.out_count() > 0) RequireOneScale(n.out(0), "result 0");
      return;
    }
    RequireDtype(n, 0, kFloats);
    if (n.out_count() == 0) return;
    if (!Contains(kAnyQuantized, n.out(0).dtype()))
      throw Reject{"DTYPE", "a result of dtype " + std::string(dtype_name(n.out(0).dtype())), "result 0"};
    RequireStated(n.out(0), "result 0");
  }

  // The result's dtype exists only in the result tensor.
  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    const fbx_dtype dtype = n.out(0).dtype();
    if (!Contains(kAnyQuantized, dtype))
      Fail("cannot quantize to " + std::string(dtype_name(dtype)), "result 0");
    out.like(0, n.in(0), dtype);
  }

  void invoke(const Node& n) const {
    if (HasScale(n.in(0))) return Requantize(n);
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() {
      Dispatch(kAnyQuantized, n.out(0).dtype(), [&]<class S>() {
        const T* x = n.in(0).data<const T>();
        S* y = n.out(0).data<S>();
        ForEachRun(n, n.out(0), [&](float scale, int64_t zero, int64_t first, int64_t count) {
          if constexpr (std::is_same_v<T, float> && sizeof(S) == 1) {
            BestByteKernels().quantize(x + first, static_cast<size_t>(count), scale,
                                       static_cast<int32_t>(zero), std::is_signed_v<S>,
                                       reinterpret_cast<uint8_t*>(y + first));
          } else {
            for (int64_t i = first; i < first + count; ++i) y[i] = Quantized<S>(x[i], scale, zero);
          }
        });
      });
    });
  }

 private:
  static void RequireOneScale(Tensor t, const std::string& subject) {
    if (!Contains(kAnyQuantized, t.dtype()))
      throw Reject{"DTYPE", "quantized " + std::string(dtype_name(t.dtype())) + " is unsupported", subject};
    if (!HasScale(t)) throw Reject{"QUANT", "no scale", subject};
    RequireScales(t, subject);
    if (t.quant()->count != 1) throw Reject{"QUANT", "one scale per channel", subject};
  }

  void Requantize(const Node& n) const {
    Dispatch(kAnyQuantized, n.in(0).dtype(), [&]<class F>() {
      Dispatch(kAnyQuantized, n.out(0).dtype(), [&]<class T>() { Requantize<F, T>(n); });
    });
  }
  template <class From, class To>
  void Requantize(const Node& n) const {
    static constexpr int64_t kLow{std::numeric_limits<To>::lowest()};
    static constexpr int64_t kHigh{std::numeric_limits<To>::max()};
    const Quantize c = *this;
    const auto of = [c](int32_t x) FUSEBOX_INLINE {
      const int64_t v = std::clamp<int64_t>(int64_t{x} - c.from_.zero, INT32_MIN, INT32_MAX);
      const int64_t y = int64_t{c.scale_.Times(static_cast<int32_t>(v))} + c.to_.zero;
      return static_cast<To>(std::clamp(y, kLow, kHigh));
    };
    if constexpr (sizeof(From) == 1 && sizeof(To) == 1) ByteTable::OfQuantized(n.in(0), of).Apply(n);
    else
      MapElements(n.host(), n.in(0).data<const From>(), n.out(0).data<To>(), n.in(0).count(),
                  [of](From x) FUSEBOX_INLINE { return of(x); });
  }

  Affine from_, to_;
  FixedPoint scale_;
};

struct Dequantize {
  static constexpr std::string_view builtin = "DEQUANTIZE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n) {
    if (n.in(0).dtype() == FBX_F16) return;
    if (!Contains(kAnyQuantized, n.in(0).dtype()) && n.in(0).dtype() != FBX_I4)
      RejectDtype(n.in(0).dtype(), 0);
    RequireStated(n.in(0), "operand 0");
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    out.like(0, n.in(0), FBX_F32);
  }

  void invoke(const Node& n) const {
    float* y = n.out(0).data<float>();
    if (n.in(0).dtype() == FBX_F16) return FromHalf(n, y);
    if (n.in(0).dtype() == FBX_I4) return FromNibbles(n, y);
    Dispatch(kAnyQuantized, n.in(0).dtype(), [&]<class S>() {
      const S* x = n.in(0).data<const S>();
      ForEachRun(n, n.in(0), [&](float scale, int64_t zero, int64_t first, int64_t count) {
        if (sizeof(S) == 4 || zero < INT16_MIN || zero > INT16_MAX) {
          for (int64_t i = first; i < first + count; ++i) y[i] = scale * static_cast<float>(x[i] - zero);
          return;
        }
        Vectorized([from = x + first, to = y + first, less = static_cast<int32_t>(zero), scale, count]()
                       FUSEBOX_INLINE {
#pragma GCC ivdep
                         for (int64_t i = 0; i < count; ++i)
                           to[i] = scale * static_cast<float>(from[i] - less);
                       });
      });
    });
  }

 private:
  // Two values per byte, the first in the low half; a channel may start within a byte.
  static void FromNibbles(const Node& n, float* y) {
    const uint8_t* bytes = n.in(0).data<const uint8_t>();
    ForEachRun(n, n.in(0), [&](float scale, int64_t zero, int64_t first, int64_t count) {
      for (int64_t i = first; i < first + count; ++i) {
        const int64_t nibble = bytes[i / 2] >> (i % 2 * 4) & 15;
        y[i] = scale * static_cast<float>((nibble ^ 8) - 8 - zero);
      }
    });
  }
  static void FromHalf(const Node& n, float* y) {
    const uint16_t* x = n.in(0).data<const uint16_t>();
    ParallelFor(n.host(), static_cast<size_t>(n.in(0).count()), 16384,
                [&](size_t begin, size_t end, uint32_t) {
                  Vectorized([&]() FUSEBOX_INLINE {
                    for (size_t i = begin; i < end; ++i) y[i] = FloatFromHalf(x[i]);
                  });
                });
  }
};

// x rounded to `num_bits` steps: the range from min to max, shifted so that zero is a step, the first or last
// one if zero is outside.
struct FakeQuant {
  static constexpr std::string_view builtin = "FAKE_QUANT";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;

  explicit FakeQuant(const Node& n) {
    const Attrs attrs = n.attrs();
    const double least = attrs.f64("min", 0);
    const double most = attrs.f64("max", 0);
    const int64_t bits = attrs.i64("num_bits", 0);
    if (!(least < most) || !std::isfinite(most - least))
      Fail("a range from " + std::to_string(least) + " to " + std::to_string(most), "attr min");
    if (bits < 2 || bits > 16) Fail("is " + std::to_string(bits), "attr num_bits");
    const double first = attrs.b("narrow_range", false) ? 1 : 0;
    const double last = std::ldexp(1, static_cast<int>(bits)) - 1;
    step_ = (most - least) / (last - first);
    // TensorFlow Lite computes the zero point in f32, which decides where f64 is at a tie.
    const auto low = static_cast<float>(least);
    const float step = (static_cast<float>(most) - low) / static_cast<float>(last - first);
    const double zero = std::clamp<double>(std::round(static_cast<float>(first) - low / step), first, last);
    low_ = (first - zero) * step_;
    high_ = (last - zero) * step_;
  }
  static void supports(const Node& n) { RequireDtype(n, 0, kFloats); }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    out.like(0, n.in(0));
  }
  void invoke(const Node& n) const {
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() {
      const T low = static_cast<T>(low_);
      const T high = static_cast<T>(high_);
      const T step = static_cast<T>(step_);
      MapElements(n.host(), n.in(0).data<const T>(), n.out(0).data<T>(), n.in(0).count(),
                  [=](T x) FUSEBOX_INLINE {
                    const T inside = x < low ? low : x > high ? high : x;  // propagates NaN
                    return std::round((inside - low) / step) * step + low;
                  });
    });
  }

 private:
  double step_, low_, high_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<Quantize>, &kernel_of<Dequantize>, &kernel_of<FakeQuant>};

}  // namespace

constinit const KernelTable kQuantizeKernels = kTable;

}  // namespace fusebox::cpu
