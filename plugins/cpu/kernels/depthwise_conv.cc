// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plugins/cpu/activation.h"
#include "plugins/cpu/dispatch.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/simd.h"
#include "plugins/cpu/window.h"

namespace fusebox::cpu {
namespace {

// Output channel c * multiplier + m is the filter of that number over input channel c.
struct DepthwiseConv2D {
  static constexpr std::string_view builtin = "DEPTHWISE_CONV_2D";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  explicit DepthwiseConv2D(const Node& n) : window_(ReadWindowOptions(n)), activation_(FusedActivation(n)) {}

  static void supports(const Node& n) {
    for (uint32_t i = 0; i < 3; ++i) RequireDtype(n, i, kFloats);
    RequireActivation(n, 0);
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 3);
    SameDtype(n, 0, 1);
    RequireRank(n, 0, 4);
    RequireRank(n, 1, 4);
    const WindowOptions w = ReadWindowOptions(n);
    const Tensor in = n.in(0), filter = n.in(1);
    const int64_t channels = DimOrUnknown(in, 3), outs = DimOrUnknown(filter, 3);
    SameDim(DimOrUnknown(filter, 0), 1, "the first dim of the filter and 1");
    for (int i = 1; i < 3; ++i)
      if (DimOrUnknown(filter, i) == 0) Fail("an empty filter " + Text(filter.dims()), Operand(1));
    if (channels >= 0 && outs >= 0 && (channels == 0 || outs % channels != 0))
      Fail(std::to_string(outs) + " filters for " + std::to_string(channels) + " channels", Operand(1));
    CheckBias(n, 2, outs);
    out.set(0, in.dtype(),
            {DimOrUnknown(in, 0), OutputSize(DimOrUnknown(in, 1), DimOrUnknown(filter, 1), w.height, w.same),
             OutputSize(DimOrUnknown(in, 2), DimOrUnknown(filter, 2), w.width, w.same), outs});
  }

  void invoke(const Node& n) const {
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() { Run<T>(n); });
  }

 private:
  template <class T>
  struct Job {
    const T *input, *filter, *bias;
    T* output;
    int64_t in_height, in_width, in_channels, filter_height, filter_width, out_height, out_width,
        out_channels, multiplier;
    int64_t pad_top, pad_left;
  };

  template <class T>
  void Run(const Node& n) const {
    const Tensor in = n.in(0), filter = n.in(1);
    Job<T> job{in.data<const T>(),
               filter.data<const T>(),
               n.has_in(2) ? n.in(2).data<const T>() : nullptr,
               n.out(0).data<T>(),
               in.dim(1),
               in.dim(2),
               in.dim(3),
               filter.dim(1),
               filter.dim(2),
               0,
               0,
               filter.dim(3),
               0,
               0,
               0};
    job.out_height = OutputSize(job.in_height, job.filter_height, window_.height, window_.same);
    job.out_width = OutputSize(job.in_width, job.filter_width, window_.width, window_.same);
    job.multiplier = job.out_channels / job.in_channels;
    job.pad_top = PaddingBefore(job.in_height, job.filter_height, window_.height, window_.same);
    job.pad_left = PaddingBefore(job.in_width, job.filter_width, window_.width, window_.same);
    const int64_t rows = in.dim(0) * job.out_height;
    const int64_t work = job.out_width * job.out_channels * job.filter_height * job.filter_width;
    parallel_for(n.host(), static_cast<size_t>(rows), Grain(work), [&](size_t begin, size_t end, uint32_t) {
      for (int64_t row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row)
        Vectorised([&]() FUSEBOX_INLINE { RunRow(job, row); });
    });
  }

  // One row of output pixels. A pixel's channels are summed up in place, tap by tap.
  template <class T>
  FUSEBOX_INLINE inline void RunRow(const Job<T>& j, int64_t row) const {
    const int64_t image = row / j.out_height, y0 = row % j.out_height * window_.height.stride - j.pad_top;
    const TapRange ys = InsideTaps(y0, j.filter_height, window_.height.dilation, j.in_height);
    for (int64_t ox = 0; ox < j.out_width; ++ox) {
      T* out = j.output + (row * j.out_width + ox) * j.out_channels;
      std::fill_n(out, j.out_channels, T(0));
      const int64_t x0 = ox * window_.width.stride - j.pad_left;
      const TapRange xs = InsideTaps(x0, j.filter_width, window_.width.dilation, j.in_width);
      for (int64_t ky = ys.first; ky < ys.last; ++ky) {
        const int64_t y = y0 + ky * window_.height.dilation;
        for (int64_t kx = xs.first; kx < xs.last; ++kx) {
          const int64_t x = x0 + kx * window_.width.dilation;
          AddTap(j, j.input + ((image * j.in_height + y) * j.in_width + x) * j.in_channels,
                 j.filter + (ky * j.filter_width + kx) * j.out_channels, out);
        }
      }
      if (j.bias) {
        for (int64_t c = 0; c < j.out_channels; ++c) out[c] += j.bias[c];
      }
      Activate(activation_, out, static_cast<size_t>(j.out_channels));
    }
  }

  template <class T>
  FUSEBOX_INLINE static inline void AddTap(const Job<T>& j, const T* __restrict in,
                                           const T* __restrict filter, T* __restrict out) {
    if (j.multiplier == 1) {
      for (int64_t c = 0; c < j.out_channels; ++c) out[c] += in[c] * filter[c];
      return;
    }
    for (int64_t c = 0; c < j.in_channels; ++c) {
      for (int64_t m = 0; m < j.multiplier; ++m)
        out[c * j.multiplier + m] += in[c] * filter[c * j.multiplier + m];
    }
  }

  WindowOptions window_;
  Activation activation_;
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<DepthwiseConv2D>};

}  // namespace

constinit const KernelTable kDepthwiseConvKernels = kTable;

}  // namespace fusebox::cpu
