// SPDX-License-Identifier: Apache-2.0
// Kernels along the last dimension.
#include <algorithm>
#include <cmath>

#include "plugins/cpu/activation.h"
#include "plugins/cpu/dispatch.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/shape.h"
#include "plugins/cpu/simd.h"

namespace fusebox::cpu {
namespace {

void InferRows(const Node& n, Infer& out) {
  Arity(n, 1, 1);
  if (n.in(0).rank() == 0) Fail("a scalar has no last dimension", Operand(0));
  out.like(0, n.in(0));
}

// f(x, y, length) for every row.
template <class T, class F>
void ForEachRow(const Node& n, const F& f) {
  const int64_t length = n.in(0).dim(-1), count = n.in(0).count();
  if (count == 0) return;
  const T* x = n.in(0).data<const T>();
  T* y = n.out(0).data<T>();
  parallel_for(n.host(), static_cast<size_t>(count / length), Grain(length), [&](size_t begin, size_t end, uint32_t) {
    for (int64_t row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row)
      f(x + row * length, y + row * length, length);
  });
}

template <class T>
T Largest(const T* x, int64_t count) {
  T most = x[0];
  for (int64_t i = 1; i < count; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

struct Softmax {
  static constexpr std::string_view builtin = "SOFTMAX";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;
  explicit Softmax(const Node& n) : beta_(n.attrs().f64("beta", 0)) {}
  static void supports(const Node& n) { RequireDtype(n, 0, kFloats); }
  static void infer(const Node& n, Infer& out) { InferRows(n, out); }
  void invoke(const Node& n) const {
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() {
      ForEachRow<T>(n, [beta = static_cast<T>(beta_)](const T* x, T* y, int64_t length) {
        const T most = Largest(x, length);
        for (int64_t i = 0; i < length; ++i) y[i] = std::exp((x[i] - most) * beta);
        T sum = 0;
        for (int64_t i = 0; i < length; ++i) sum += y[i];
        const T scale = T(1) / sum;
        for (int64_t i = 0; i < length; ++i) y[i] *= scale;
      });
    });
  }

 private:
  double beta_;
};

struct LogSoftmax {
  static constexpr std::string_view builtin = "LOG_SOFTMAX";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;
  static void supports(const Node& n) { RequireDtype(n, 0, kFloats); }
  static void infer(const Node& n, Infer& out) { InferRows(n, out); }
  void invoke(const Node& n) const {
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() {
      ForEachRow<T>(n, [](const T* x, T* y, int64_t length) {
        const T most = Largest(x, length);
        T sum = 0;
        for (int64_t i = 0; i < length; ++i) sum += std::exp(x[i] - most);
        const T log_sum = std::log(sum);
        for (int64_t i = 0; i < length; ++i) y[i] = x[i] - most - log_sum;
      });
    });
  }
};

struct L2Normalization {
  static constexpr std::string_view builtin = "L2_NORMALIZATION";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;
  explicit L2Normalization(const Node& n) : activation_(FusedActivation(n)) {}
  static void supports(const Node& n) {
    RequireDtype(n, 0, kFloats);
    RequireActivation(n, 0);
  }
  static void infer(const Node& n, Infer& out) { InferRows(n, out); }
  void invoke(const Node& n) const {
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() {
      ForEachRow<T>(n, [this](const T* x, T* y, int64_t length) {
        T squares = 0;
        for (int64_t i = 0; i < length; ++i) squares += x[i] * x[i];
        const T norm = std::max(std::sqrt(squares), T(1e-6));
        for (int64_t i = 0; i < length; ++i) y[i] = x[i] / norm;
        Activate(activation_, y, static_cast<size_t>(length));
      });
    });
  }

 private:
  Activation activation_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<Softmax>, &kernel_of<LogSoftmax>, &kernel_of<L2Normalization>};

}  // namespace

constinit const KernelTable kSoftmaxKernels = kTable;

}  // namespace fusebox::cpu
