// SPDX-License-Identifier: Apache-2.0
// Image resizing [b, y, x, c]: RESIZE_NEAREST_NEIGHBOR, RESIZE_BILINEAR.
#include <cmath>
#include <memory>
#include <type_traits>

#include "plugins/cpu/base/simd.h"
#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/kernels.h"
#include "plugins/cpu/quantized/quant.h"

namespace fusebox::cpu {
namespace {

// Mapping from result positions to operand positions.
struct Grid {
  bool align_corners, half_pixel;
  explicit Grid(const Node& n)
      : align_corners(n.attrs().b("align_corners", false)),
        half_pixel(n.attrs().b("half_pixel_centers", false)) {}
  template <class T>
  T Scale(int64_t in, int64_t out) const {
    return align_corners && out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1)
                                    : static_cast<T>(in) / static_cast<T>(out);
  }
};

// Operand 1: [height, width].
Shape NewSize(const Node& n) {
  const Shape size = IntList(n.in(1), 1);
  if (size.rank() != 2 || size[0] < 1 || size[1] < 1 || size[0] > INT32_MAX || size[1] > INT32_MAX)
    Fail("expected a height and a width of 1 or more, got " + Text(size), Operand(1));
  return size;
}

void InferResized(const Node& n, Infer& out) {
  Arity(n, 2, 2);
  const Tensor in = n.in(0);
  if (!n.in(1).has_value()) out.needs_value(1);
  if (in.rank() >= 0 && in.rank() != 4) Fail("expected rank 4, got " + std::to_string(in.rank()), Operand(0));
  if (in.rank() >= 0 && (in.dim(1) == 0 || in.dim(2) == 0)) Fail("an image without pixels", Operand(0));
  Shape dims{-1, -1, -1, -1};
  if (in.rank() >= 0) {
    dims[0] = in.dim(0);
    dims[3] = in.dim(3);
  }
  if (n.in(1).has_value()) {
    const Shape size = NewSize(n);
    dims[1] = size[0];
    dims[2] = size[1];
  }
  out.set(0, in.dtype(), dims);
}

// Calls f(batch, row) for each row of the result.
template <class F>
void ForRows(const Node& n, const Shape& out, const F& f) {
  const Shape size = NewSize(n);
  if (out[1] != size[0] || out[2] != size[1]) Fail("the size differs from the planned one", Operand(1));
  ParallelFor(n.host(), static_cast<size_t>(out[0] * out[1]), Grain(out[2] * out[3]),
              [&](size_t begin, size_t end, uint32_t) {
                for (size_t i = begin; i < end; ++i)
                  f(static_cast<int64_t>(i) / out[1], static_cast<int64_t>(i) % out[1]);
              });
}

struct ResizeNearest {
  static constexpr std::string_view builtin = "RESIZE_NEAREST_NEIGHBOR";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 0); }
  static void infer(const Node& n, Infer& out) { InferResized(n, out); }

  static int64_t Source(const Grid& grid, int64_t at, int64_t in, int64_t out) {
    // Always in float, because its rounding determines the nearest pixel.
    const float position =
        (static_cast<float>(at) + (grid.half_pixel ? 0.5f : 0.0f)) * grid.Scale<float>(in, out);
    const auto nearest =
        static_cast<int64_t>(grid.align_corners ? std::round(position) : std::floor(position));
    return std::max<int64_t>(0, std::min(nearest, in - 1));
  }
  // The offset of each column's source.
  uint32_t prepare(const Node& n, Plan& plan) const {
    return plan.scratch(static_cast<size_t>(Product(std::max<int64_t>(0, n.out(0).dim(2)), sizeof(size_t))));
  }
  void invoke(const Node& n, uint32_t slot) const {
    const Grid grid(n);
    const Shape in(n.in(0));
    const Shape out(n.out(0));
    const size_t pixel = static_cast<size_t>(in[3]) * ElementSize(n.in(0).dtype());
    if (pixel == 0) return;
    auto* const offsets = n.scratch<size_t>(slot);
    for (int64_t x = 0; x < out[2]; ++x)
      offsets[x] = static_cast<size_t>(Source(grid, x, in[2], out[2])) * pixel;
    ForRows(n, out, [&](int64_t b, int64_t y) {
      const std::byte* from = Elements(n.in(0), (b * in[1] + Source(grid, y, in[1], out[1])) * in[2] * in[3]);
      std::byte* to = MutableElements(n.out(0), (b * out[1] + y) * out[2] * out[3]);
      for (int64_t x = 0; x < out[2]; ++x, to += pixel) CopyBytes(to, from + offsets[x], pixel);
    });
  }
};

struct ResizeBilinear {
  static constexpr std::string_view builtin = "RESIZE_BILINEAR";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    if (!IsQuantized(n, 0)) return RequireDtype(n, 0, kFloats);
    RequireQuantized(n, 0);
    RequireSameQuant(n, 0);
  }
  static void infer(const Node& n, Infer& out) {
    const Grid grid(n);
    if (grid.align_corners && grid.half_pixel)
      Fail("cannot be combined with half_pixel_centers", "attr align_corners");
    InferResized(n, out);
  }

  // The taps of the columns.
  uint32_t prepare(const Node& n, Plan& plan) const {
    constexpr size_t kTap = std::max(sizeof(FixedTap), sizeof(RealTap<double>));
    return plan.scratch(static_cast<size_t>(Product(std::max<int64_t>(0, n.out(0).dim(2)), kTap)));
  }
  void invoke(const Node& n, uint32_t slot) const {
    const fbx_dtype dtype = n.in(0).dtype();
    if (dtype == FBX_I8) return Run<int8_t, FixedTap>(n, slot);
    if (dtype == FBX_I16) return Run<int16_t, FixedTap>(n, slot);
    if (dtype == FBX_U8) return Run<uint8_t, RealTap<float>>(n, slot);
    Dispatch(kFloats, dtype, [&]<class T>() { Run<T, RealTap<T>>(n, slot); });
  }

 private:
  // Two neighbors along one axis and their weights.
  template <class T>
  struct RealTap {
    using Weight = T;
    int64_t low, high;
    T low_weight, high_weight;
    RealTap(const Grid& grid, int64_t at, int64_t in, int64_t out) {
      const T scale = grid.Scale<T>(in, out);
      const T position =
          grid.half_pixel ? (static_cast<T>(at) + T(0.5)) * scale - T(0.5) : static_cast<T>(at) * scale;
      low = std::min(std::max<int64_t>(0, static_cast<int64_t>(std::floor(position))), in - 1);
      high = std::min(std::max<int64_t>(0, static_cast<int64_t>(std::ceil(position))), in - 1);
      high_weight = position - static_cast<T>(low);
      low_weight = 1 - high_weight;
    }
    bool is_usual() const { return true; }
    // Bytes: rounds half up.
    template <class E>
    FUSEBOX_INLINE static E Finish(T x) {
      if constexpr (std::is_same_v<E, T>) return x;
      else return static_cast<E>(std::floor(x + T(0.5)));
    }
  };

  // TFLite uses positions in multiples of 1/1024 for i8 and i16, and rounds the scale to the same unit.
  struct FixedTap {
    using Weight = int32_t;
    static constexpr int64_t kOne = 1024;
    int64_t low, high;
    int64_t low_weight, high_weight;
    FixedTap(const Grid& grid, int64_t at, int64_t in, int64_t out) {
      const bool corners = grid.align_corners && out > 1;
      const int64_t from = corners ? in - 1 : in;
      const int64_t to = corners ? out - 1 : out;
      const int64_t scale = (Product(kOne, from) + to / 2) / to;
      const int64_t position = grid.half_pixel ? at * scale + scale / 2 - kOne / 2 : at * scale;
      low = std::min(std::max<int64_t>(position / kOne, 0), in - 1);
      high = std::min(std::max<int64_t>((position + kOne - 1) / kOne, 0), in - 1);
      high_weight = position - low * kOne;
      low_weight = kOne - high_weight;
    }
    // Sums of bytes have 32 bits. The scale is rounded, so that positions may be far outside of the image.
    bool is_usual() const { return high_weight >= -kOne / 2 && high_weight <= kOne + kOne / 2; }
    // Rounds half away from zero.
    template <class E, class W>
    FUSEBOX_INLINE static E Finish(W x) {
      constexpr W kSquare = kOne * kOne;
      return static_cast<E>((x + (x > 0 ? kSquare / 2 : -kSquare / 2)) / kSquare);
    }
  };

  template <class E, class Tap>
  static void Run(const Node& n, uint32_t slot) {
    const Grid grid(n);
    const Shape in(n.in(0));
    const Shape out(n.out(0));
    const int64_t c = in[3];
    Tap* const columns = n.scratch<Tap>(slot);
    for (int64_t x = 0; x < out[2]; ++x) std::construct_at(columns + x, grid, x, in[2], out[2]);
    ForRows(n, out, [&](int64_t b, int64_t row) {
      const Tap y(grid, row, in[1], out[1]);
      const E* top = n.in(0).data<const E>() + (b * in[1] + y.low) * in[2] * c;
      const E* bottom = n.in(0).data<const E>() + (b * in[1] + y.high) * in[2] * c;
      E* to = n.out(0).data<E>() + (b * out[1] + row) * out[2] * c;
      const auto mix = [&]() FUSEBOX_INLINE {
        for (int64_t column = 0; column < out[2]; ++column, to += c) {
          const Tap& x = columns[column];
          const Corners<E> corners{top + x.low * c, top + x.high * c, bottom + x.low * c,
                                   bottom + x.high * c};
          if (sizeof(E) == 1 && x.is_usual() && y.is_usual()) Mix<typename Tap::Weight>(corners, x, y, c, to);
          else
            Mix<std::conditional_t<std::is_integral_v<typename Tap::Weight>, int64_t, typename Tap::Weight>>(
                corners, x, y, c, to);
        }
      };
      if constexpr (sizeof(E) == 1 || std::is_same_v<E, float>) Vectorized(mix);
      else Compactly(mix);
    });
  }

  template <class E>
  struct Corners {
    const E *top_left, *top_right, *bottom_left, *bottom_right;
  };
  template <class W, class E, class Tap>
  FUSEBOX_INLINE static void Mix(const Corners<E>& from, const Tap& x, const Tap& y, int64_t channels,
                                 E* to) {
    const W w11 = static_cast<W>(y.high_weight * x.high_weight);
    const W w10 = static_cast<W>(y.high_weight * x.low_weight);
    const W w01 = static_cast<W>(y.low_weight * x.high_weight);
    const W w00 = static_cast<W>(y.low_weight * x.low_weight);
    const E* tl = from.top_left;
    const E* tr = from.top_right;
    const E* bl = from.bottom_left;
    const E* br = from.bottom_right;
#pragma GCC ivdep
    for (int64_t i = 0; i < channels; ++i)
      to[i] = Tap::template Finish<E>(static_cast<W>(tl[i]) * w00 + static_cast<W>(bl[i]) * w10 +
                                      static_cast<W>(tr[i]) * w01 + static_cast<W>(br[i]) * w11);
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<ResizeNearest>, &kernel_of<ResizeBilinear>};

}  // namespace

constinit const KernelTable kResizeKernels = kTable;

}  // namespace fusebox::cpu
