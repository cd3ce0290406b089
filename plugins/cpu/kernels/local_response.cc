// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

// x / (bias + alpha * sum of squares of the channels within `radius`) ^ beta.
struct LocalResponseNormalization {
  static constexpr std::string_view builtin = "LOCAL_RESPONSE_NORMALIZATION";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  explicit LocalResponseNormalization(const Node& n)
      : radius_(n.attrs().i64("radius", 0)),
        bias_(n.attrs().f64("bias", 0)),
        alpha_(n.attrs().f64("alpha", 0)),
        beta_(n.attrs().f64("beta", 0)) {
    if (radius_ < 0) Fail("is " + std::to_string(radius_), "attr radius");
  }

  static void supports(const Node& n) { RequireDtype(n, 0, kFloats); }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    if (n.in(0).rank() == 0) Fail("a scalar has no channels", Operand(0));
    out.like(0, n.in(0));
  }

  void invoke(const Node& n) const {
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() { Run<T>(n); });
  }

 private:
  template <class T>
  void Run(const Node& n) const {
    const int64_t channels = n.in(0).dim(-1);
    if (n.in(0).count() == 0) return;
    ParallelFor(n.host(), static_cast<size_t>(n.in(0).count() / channels), Grain(channels),
                [&](size_t begin, size_t end, uint32_t) {
                  for (size_t i = begin; i < end; ++i) {
                    const auto at = static_cast<int64_t>(i) * channels;
                    RunPixel(n.in(0).data<const T>() + at, n.out(0).data<T>() + at, channels);
                  }
                });
  }

  template <class T>
  void RunPixel(const T* x, T* y, int64_t channels) const {
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t first = c - std::min(c, radius_);
      const int64_t last = c + std::min(channels - 1 - c, radius_);
      T squares = 0;
      for (int64_t i = first; i <= last; ++i) squares += x[i] * x[i];
      y[c] =
          x[c] * std::pow(static_cast<T>(bias_) + static_cast<T>(alpha_) * squares, static_cast<T>(-beta_));
    }
  }

  int64_t radius_;
  double bias_, alpha_, beta_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<LocalResponseNormalization>};

}  // namespace

constinit const KernelTable kLocalResponseKernels = kTable;

}  // namespace fusebox::cpu
