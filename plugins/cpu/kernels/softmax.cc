// SPDX-License-Identifier: Apache-2.0
// Kernels over the last dimension.
#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "plugins/cpu/base/activation.h"
#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/base/simd.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/quantized/quant.h"
#include "plugins/math/simd/functions.h"

namespace fusebox::cpu {
namespace {

void InferRows(const Node& n, Infer& out) {
  Arity(n, 1, 1);
  if (n.in(0).rank() == 0) Fail("a scalar has no last dimension", Operand(0));
  out.like(0, n.in(0));
}

void RequireFloatsOrBytes(const Node& n) {
  if (IsQuantized(n, 0)) RequireQuantizedMap(n);
  else RequireDtype(n, 0, kFloats);
}

// Calls f(x, y, length) for every row.
template <class T, class R = T, class F>
void ForEachRow(const Node& n, const F& f) {
  const int64_t length = n.in(0).dim(-1);
  const int64_t count = n.in(0).count();
  if (count == 0) return;
  const T* x = n.in(0).data<const T>();
  R* y = n.out(0).data<R>();
  ParallelFor(n.host(), static_cast<size_t>(count / length), Grain(length),
              [&](size_t begin, size_t end, uint32_t) {
                VectorizedFor<std::conditional_t<sizeof(T) == 2, int64_t, T>>([&]() FUSEBOX_INLINE {
                  for (int64_t row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row)
                    f(x + row * length, y + row * length, length);
                });
              });
}

template <class T>
FUSEBOX_INLINE inline T Largest(const T* x, int64_t count) {
  T most = x[0];
  for (int64_t i = 1; i < count; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

// The sum of f(0) ... f(count - 1) in eight partial sums: faster and more accurate.
template <class T, class F>
FUSEBOX_INLINE inline T SumOf(int64_t count, const F& f) {
  constexpr int64_t kParts = 8;
  if (count < kParts) {
    T p[kParts] = {};
    for (int64_t i = 0; i < count; ++i) p[i] = f(i);
    return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
  }
  T parts[kParts] = {};
  int64_t i = 0;
  for (; i + kParts <= count; i += kParts) {
    for (int64_t p = 0; p < kParts; ++p) parts[p] += f(i + p);
  }
  for (int64_t p = 0; i < count; ++i, ++p) parts[p] += f(i);
  for (int64_t width = kParts / 2; width > 0; width /= 2) {
    for (int64_t p = 0; p < width; ++p) parts[p] += parts[p + width];
  }
  return parts[0];
}

// Rows of fewer elements are computed together, so that a loop over elements is long.
constexpr int64_t kShortRow = 32;
constexpr int64_t kPart = 512;
constexpr int64_t kJoinedRows = kPart / kShortRow;

template <class T>
void Exponentials(T* y, int64_t count) {
  if constexpr (std::is_same_v<T, float>) {
    math::Map(math::Function::kExp, y, y, static_cast<size_t>(count));
  } else {
    for (int64_t i = 0; i < count; ++i) y[i] = std::exp(y[i]);
  }
}

// exp((x - most of its row) * beta) for `rows` rows. x and y may be the same memory.
template <class T>
FUSEBOX_INLINE inline void Powers(const T* x, T* y, int64_t rows, int64_t length, T beta, T* most) {
  for (int64_t r = 0; r < rows; ++r) {
    most[r] = Largest(x + r * length, length);
    for (int64_t i = r * length; i < (r + 1) * length; ++i) y[i] = (x[i] - most[r]) * beta;
  }
  Exponentials(y, rows * length);
}

// The sum of exp(x - most) of one row, in parts whose powers fit into `powers`.
template <class T>
T SumOfPowers(const T* x, int64_t length, T most, T* powers) {
  T sum = 0;
  for (int64_t begin = 0; begin < length; begin += kPart) {
    const int64_t count = std::min(kPart, length - begin);
    for (int64_t i = 0; i < count; ++i) powers[i] = x[begin + i] - most;
    Exponentials(powers, count);
    sum += SumOf<T>(count, [powers](int64_t i) FUSEBOX_INLINE { return powers[i]; });
  }
  return sum;
}

// Calls f(x, y, rows, length) for one long row or some short ones.
template <class T, class F>
void ForEachRows(const Node& n, const F& f) {
  const int64_t length = n.in(0).dim(-1);
  const int64_t count = n.in(0).count();
  if (count == 0) return;
  const T* x = n.in(0).data<const T>();
  T* y = n.out(0).data<T>();
  const int64_t most = length < kShortRow ? kJoinedRows : 1;
  ParallelFor(
      n.host(), static_cast<size_t>(count / length), Grain(length), [&](size_t begin, size_t end, uint32_t) {
        VectorizedFor<T>([&]() FUSEBOX_INLINE {
          for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); row += most)
            f(x + row * length, y + row * length, std::min(most, static_cast<int64_t>(end) - row), length);
        });
      });
}

// exp of minus all distances between two bytes.
template <class T>
std::array<T, 256> PowersOfBytes(T step) {
  std::array<T, 256> powers;
  for (int d = 0; d < 256; ++d) powers[static_cast<size_t>(d)] = std::exp(-step * static_cast<T>(d));
  return powers;
}

struct Softmax {
  static constexpr std::string_view builtin = "SOFTMAX";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;
  explicit Softmax(const Node& n) : beta_(n.attrs().f64("beta", 0)) {
    if (IsQuantized(n, 0) && n.in(0).dtype() != FBX_I16) powers_ = PowersOfBytes(Step(n));
  }
  static void supports(const Node& n) {
    if (Widens(n)) {
      RequireQuantized(n, 0);
      return RequireQuantized(n.out(0), "result 0");
    }
    RequireFloatsOrBytes(n);
  }
  static void infer(const Node& n, Infer& out) {
    InferRows(n, out);
    if (!Widens(n)) return;
    out.like(0, n.in(0), FBX_I16);
  }
  void invoke(const Node& n) const {
    if (IsQuantized(n, 0)) return InvokeQuantized(n);
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() {
      ForEachRows<T>(
          n, [beta = static_cast<T>(beta_)](const T* x, T* y, int64_t rows, int64_t length) FUSEBOX_INLINE {
            T most[kJoinedRows];
            Powers(x, y, rows, length, beta, most);
            for (; rows > 0; --rows, y += length) {
              const T scale = T(1) / SumOf<T>(length, [y](int64_t i) FUSEBOX_INLINE { return y[i]; });
              for (int64_t i = 0; i < length; ++i) y[i] *= scale;
            }
          });
    });
  }

 private:
  // Byte distances from the maximum are bytes, so one table holds all exponentials.
  void InvokeQuantized(const Node& n) const {
    if (n.in(0).dtype() == FBX_I16)
      return Rows<int16_t, int16_t>(
          n, [step = Step(n)](int32_t d) FUSEBOX_INLINE { return std::exp(-step * static_cast<float>(d)); });
    const float* const powers = powers_.data();
    const auto look_up = [powers](int32_t d) FUSEBOX_INLINE { return powers[d]; };
    if (Widens(n)) return Rows<int8_t, int16_t>(n, look_up);
    Dispatch(kBytes, n.in(0).dtype(), [&]<class T>() { Rows<T, T>(n, look_up); });
  }

  // i8 to i16.
  static bool Widens(const Node& n) {
    return n.in(0).dtype() == FBX_I8 && IsQuantized(n, 0) && n.out_count() > 0 && n.out(0).dtype() == FBX_I16;
  }

  template <class T, class R, class F>
  static void Rows(const Node& n, const F& power) {
    const Affine to = AffineOf(n.out(0));
    ForEachRow<T, R>(n, [&](const T* x, R* y, int64_t length) {
      const int32_t most{Largest(x, length)};
      const float sum = SumOf<float>(length, [&](int64_t i) FUSEBOX_INLINE { return power(most - x[i]); });
      const float scale = 1.0f / (sum * to.scale);
      for (int64_t i = 0; i < length; ++i) {
        const float q = std::min(power(most - x[i]) * scale, 65536.0f);  // positive
        y[i] = ClampTo<R>(static_cast<int32_t>(q + 0.5f) + to.zero);  // NOLINT(bugprone-incorrect-roundings)
      }
    });
  }

  float Step(const Node& n) const { return static_cast<float>(double{AffineOf(n.in(0)).scale} * beta_); }

  double beta_;
  std::array<float, 256> powers_;  // of bytes
};

struct LogSoftmax {
  static constexpr std::string_view builtin = "LOG_SOFTMAX";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;
  explicit LogSoftmax(const Node& n) {
    if (IsQuantized(n, 0) && n.in(0).dtype() != FBX_I16)
      powers_ = PowersOfBytes(double{AffineOf(n.in(0)).scale});
  }
  static void supports(const Node& n) { RequireFloatsOrBytes(n); }
  static void infer(const Node& n, Infer& out) { InferRows(n, out); }
  void invoke(const Node& n) const {
    if (IsQuantized(n, 0)) return InvokeQuantized(n);
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() {
      ForEachRows<T>(n, [](const T* x, T* y, int64_t rows, int64_t length) FUSEBOX_INLINE {
        T most[kJoinedRows], powers[kPart];
        const bool joined = length < kShortRow;
        if (joined) Powers(x, powers, rows, length, T(1), most);
        for (int64_t r = 0; r < rows; ++r, x += length, y += length) {
          if (!joined) most[r] = Largest(x, length);
          const T* const of_row = powers + r * length;
          const T sum = joined ? SumOf<T>(length, [of_row](int64_t i) FUSEBOX_INLINE { return of_row[i]; })
                               : SumOfPowers(x, length, most[r], powers);
          const T log_sum = std::log(sum);
          for (int64_t i = 0; i < length; ++i) y[i] = x[i] - most[r] - log_sum;
        }
      });
    });
  }

 private:
  void InvokeQuantized(const Node& n) const {
    const Affine from = AffineOf(n.in(0));
    const Affine to = AffineOf(n.out(0));
    const double scale = from.scale;
    if (n.in(0).dtype() == FBX_I16)
      return Rows<int16_t>(n, to, scale, [scale](int32_t d) { return std::exp(-scale * d); });
    const double* const powers = powers_.data();
    const auto look_up = [powers](int32_t d) FUSEBOX_INLINE { return powers[d]; };
    Dispatch(kBytes, n.in(0).dtype(), [&]<class T>() { Rows<T>(n, to, scale, look_up); });
  }
  template <class T, class F>
  static void Rows(const Node& n, Affine to, double scale, const F& power) {
    ForEachRow<T>(n, [&](const T* x, T* y, int64_t length) FUSEBOX_INLINE {
      const int32_t most = Largest(x, length);
      const double log_sum =
          std::log(SumOf<double>(length, [&](int64_t i) FUSEBOX_INLINE { return power(most - x[i]); }));
      for (int64_t i = 0; i < length; ++i) y[i] = Nearest<T>(scale * (x[i] - most) - log_sum, to);
    });
  }

  std::array<double, 256> powers_;  // of bytes
};

struct L2Normalization {
  static constexpr std::string_view builtin = "L2_NORMALIZATION";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;
  explicit L2Normalization(const Node& n) : activation_(FusedActivation(n)) {}
  static void supports(const Node& n) {
    RequireFloatsOrBytes(n);
    if (IsQuantized(n, 0)) RequireQuantizedActivation(n);
    else RequireActivation(n, 0);
  }
  static void infer(const Node& n, Infer& out) { InferRows(n, out); }
  void invoke(const Node& n) const {
    if (IsQuantized(n, 0)) return InvokeQuantized(n);
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() {
      ForEachRow<T>(n, [this](const T* x, T* y, int64_t length) FUSEBOX_INLINE {
        const T norm = std::max(
            std::sqrt(SumOf<T>(length, [x](int64_t i) FUSEBOX_INLINE { return x[i] * x[i]; })), T(1e-6));
        for (int64_t i = 0; i < length; ++i) y[i] = x[i] / norm;
        Activate(activation_, y, static_cast<size_t>(length));
      });
    });
  }

 private:
  // The operand's scale cancels out.
  void InvokeQuantized(const Node& n) const {
    const Affine from = AffineOf(n.in(0));
    const Affine to = AffineOf(n.out(0));
    const QuantizedRange range(activation_, n.out(0));
    Dispatch(kQuantized, n.in(0).dtype(), [&]<class T>() {
      ForEachRow<T>(n, [&](const T* x, T* y, int64_t length) {
        const double norm = std::max(std::sqrt(SumOf<double>(length,
                                                             [&](int64_t i) {
                                                               const double v = x[i] - from.zero;
                                                               return v * v;
                                                             })),
                                     1e-6);
        for (int64_t i = 0; i < length; ++i)
          y[i] = static_cast<T>(range(Nearest<T>((x[i] - from.zero) / norm, to)));
      });
    });
  }

  Activation activation_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<Softmax>, &kernel_of<LogSoftmax>,
                                        &kernel_of<L2Normalization>};

}  // namespace

constinit const KernelTable kSoftmaxKernels = kTable;

}  // namespace fusebox::cpu
