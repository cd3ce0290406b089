// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "plugins/cpu/base/activation.h"
#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/elements/extremes.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/quantized/quant.h"
#include "plugins/cpu/windows/pool_code.h"
#include "plugins/cpu/windows/window.h"

namespace fusebox::cpu {
namespace {

struct Average {
  static constexpr std::string_view kName = "AVERAGE_POOL_2D";
  static constexpr bool kOfQuantized = true;  // also quantized values
  template <class T>
  using Total = std::conditional_t<std::is_floating_point_v<T>, T, int64_t>;
  template <class T>
  static constexpr T kStart = T(0);
  template <class T>
  static T Join(T sum, T x) {
    return sum + x;
  }
  // Padding does not count.
  template <class T>
  static T Finish(T sum, int64_t taps) {
    if (taps == 0) return T(0);
    // Integers round half away from zero.
    if constexpr (std::is_integral_v<T>) return (sum > 0 ? sum + taps / 2 : sum - taps / 2) / taps;
    else return sum / static_cast<T>(taps);
  }
};

struct Max {
  static constexpr std::string_view kName = "MAX_POOL_2D";
  static constexpr bool kOfQuantized = true;
  template <class T>
  using Total = T;
  template <class T>
  static constexpr T kStart = kLowest<T>;
  template <class T>
  static T Join(T most, T x) {
    return LargerOf(x, most);
  }
  template <class T>
  static T Finish(T most, int64_t) {
    return most;
  }
};

// Root mean square.
struct Norm {
  static constexpr std::string_view kName = "L2_POOL_2D";
  static constexpr bool kOfQuantized = false;
  template <class T>
  using Total = T;
  template <class T>
  static constexpr T kStart = T(0);
  template <class T>
  static T Join(T sum, T x) {
    return sum + x * x;
  }
  template <class T>
  static T Finish(T sum, int64_t taps) {
    return taps == 0 ? T(0) : std::sqrt(sum / static_cast<T>(taps));
  }
};

template <class Op>
struct Pool {
  static constexpr std::string_view builtin = Op::kName;
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  explicit Pool(const Node& n) : options_(n), activation_(FusedActivation(n)) {}

  static void supports(const Node& n) {
    if (Op::kOfQuantized && IsQuantized(n, 0)) {
      RequireQuantized(n, 0);
      RequireSameQuant(n, 0);
      return RequireQuantizedActivation(n);
    }
    RequireDtype(n, 0, kFloats);
    RequireActivation(n, 0);
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    RequireRank(n, 0, 4);
    const Options o(n);
    const Tensor in = n.in(0);
    out.set(0, in.dtype(),
            {DimOrUnknown(in, 0),
             OutputSize(DimOrUnknown(in, 1), o.filter_height, o.window.height, o.window.same),
             OutputSize(DimOrUnknown(in, 2), o.filter_width, o.window.width, o.window.same),
             DimOrUnknown(in, 3)});
  }

  void invoke(const Node& n) const {
    if constexpr (Op::kOfQuantized) {
      if (IsQuantized(n, 0)) return RunQuantized(n);
    }
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() {
      Run<T>(n,
             [this](T* pixels, int64_t count) { Activate(activation_, pixels, static_cast<size_t>(count)); });
    });
  }

 private:
  struct Options {
    WindowOptions window;
    int64_t filter_height, filter_width;
    explicit Options(const Node& n)
        : window(ReadWindowOptions(n)),
          filter_height(n.attrs().i64("filter_height", 0)),
          filter_width(n.attrs().i64("filter_width", 0)) {
      for (const int64_t f : {filter_height, filter_width})
        if (f < 1 || f > INT32_MAX) Fail("a filter of " + std::to_string(f), "attr filter");
    }
  };

  void RunQuantized(const Node& n) const {
    const QuantizedRange range(activation_, n.in(0));
    Dispatch(kQuantized, n.in(0).dtype(), [&]<class T>() {
      const bool whole =
          range.lowest <= std::numeric_limits<T>::lowest() && range.highest >= std::numeric_limits<T>::max();
      Run<T>(n, [range, whole](T* pixels, int64_t count) {
        for (int64_t i = 0; !whole && i < count; ++i) pixels[i] = static_cast<T>(range(pixels[i]));
      });
    });
  }

  template <class T, class F>
  void Run(const Node& n, const F& activate) const {
    const Tensor in = n.in(0);
    const Tensor out = n.out(0);
    const WindowOptions& w = options_.window;
    const int64_t in_height = in.dim(1);
    const int64_t in_width = in.dim(2);
    const int64_t channels = in.dim(3);
    const int64_t out_height = out.dim(1);
    const int64_t out_width = out.dim(2);
    const int64_t pad_top = PaddingBefore(in_height, options_.filter_height, w.height, w.same);
    const int64_t pad_left = PaddingBefore(in_width, options_.filter_width, w.width, w.same);
    const size_t rows = static_cast<size_t>(in.dim(0) * out_height);
    const int64_t work = out_width * channels * options_.filter_height * options_.filter_width;
    ParallelFor(n.host(), rows, Grain(work), [&](size_t begin, size_t end, uint32_t) {
      for (int64_t row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
        const T* image = in.data<const T>() + row / out_height * in_height * in_width * channels;
        const int64_t y0 = row % out_height * w.height.stride - pad_top;
        const TapRange ys = InsideTaps(y0, options_.filter_height, 1, in_height);
        for (int64_t ox = 0; ox < out_width; ++ox) {
          const int64_t x0 = ox * w.width.stride - pad_left;
          const TapRange xs = InsideTaps(x0, options_.filter_width, 1, in_width);
          T* pixel = out.data<T>() + (row * out_width + ox) * channels;
          const T* first = image + ((y0 + ys.first) * in_width + x0 + xs.first) * channels;
          PoolPixel<T>({first, ys.last - ys.first, xs.last - xs.first, in_width * channels, channels, pixel});
        }
        activate(out.data<T>() + row * out_width * channels, out_width * channels);
      }
    });
  }

  template <class T>
  static void PoolPixel(const PoolWindow& w) {
    constexpr bool kAverages = std::is_same_v<Op, Average>;
    constexpr bool kBytes = sizeof(T) == 1;
    const int64_t taps = w.height * w.width;
    if constexpr (!std::is_same_v<Op, Norm> && (kBytes || std::is_same_v<T, float>)) {
      const PoolCode& code = BestPoolCode();
      if (taps > 0 && (!kAverages || taps <= kMostPoolTaps)) {
        constexpr uint8_t kFlip = std::is_signed_v<T> ? 0x80 : 0;
        if constexpr (kBytes) return (kAverages ? code.average_bytes : code.max_bytes)(w, kFlip);
        else return (kAverages ? code.average_floats : code.max_floats)(w);
      }
    }
    for (int64_t c = 0; c < w.channels; ++c) PoolChannel<T>(w, c);
  }

  template <class T>
  static void PoolChannel(const PoolWindow& w, int64_t channel) {
    auto total = Op::template kStart<typename Op::template Total<T>>;
    const T* line = static_cast<const T*>(w.first) + channel;
    for (int64_t y = 0; y < w.height; ++y, line += w.row)
      for (int64_t x = 0; x < w.width; ++x)
        total = Op::template Join<decltype(total)>(total, line[x * w.channels]);
    static_cast<T*>(w.pixel)[channel] =
        static_cast<T>(Op::template Finish<decltype(total)>(total, w.height * w.width));
  }

  Options options_;
  Activation activation_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<Pool<Average>>, &kernel_of<Pool<Max>>,
                                        &kernel_of<Pool<Norm>>};

}  // namespace

constinit const KernelTable kPoolKernels = kTable;

}  // namespace fusebox::cpu
