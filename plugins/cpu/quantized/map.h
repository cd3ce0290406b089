// SPDX-License-Identifier: Apache-2.0
// Functions of one quantized value: i8 and u8 with a table of 256 entries, i16 computed per element.
#pragma once

#include <array>

#include "plugins/cpu/quantized/quant.h"
#include "plugins/math/parallel.h"

namespace fusebox::cpu {

// A function of one byte as a table.
class ByteTable {
 public:
  ByteTable() = default;
  // f maps a real operand value to the real result. It has no state: this code is there once for all.
  ByteTable(Tensor in, Tensor out, double (*f)(double)) {
    const Affine from = AffineOf(in);
    const Affine to = AffineOf(out);
    Fill(in, [&](int32_t quantized) {
      const double y = f(double{from.scale} * (quantized - from.zero));
      return out.dtype() == FBX_U8 ? int32_t{Nearest<uint8_t>(y, to)} : int32_t{Nearest<int8_t>(y, to)};
    });
  }
  // The same as TFLite computes it: in f32, which differs from f64 where a result is halfway between two
  // steps.
  static ByteTable OfFloats(Tensor in, Tensor out, float (*f)(float)) {
    const Affine from = AffineOf(in);
    const Affine to = AffineOf(out);
    const float inverse = 1 / to.scale;
    const bool bytes = out.dtype() == FBX_U8;
    return OfQuantized(in, [&](int32_t quantized) {
      const float y = std::round(f(from.scale * static_cast<float>(quantized - from.zero)) * inverse);
      const float q = (std::isnan(y) ? 0 : y) + static_cast<float>(to.zero);
      return static_cast<int32_t>(Clamp(q, bytes ? 0.0f : -128.0f, bytes ? 255.0f : 127.0f));
    });
  }
  // f maps quantized values to quantized values.
  template <class F>
  static ByteTable OfQuantized(Tensor in, const F& f) {
    ByteTable t;
    t.Fill(in, f);
    return t;
  }

  void Apply(const fbx_host* host, const void* in, void* out, int64_t count) const {
    const auto* x = static_cast<const uint8_t*>(in);
    auto* y = static_cast<uint8_t*>(out);
    ParallelFor(host, static_cast<size_t>(count), 16384,
                [&](size_t begin, size_t end, uint32_t) { LookUp(x + begin, y + begin, end - begin); });
  }
  void Apply(const Node& n) const {
    Apply(n.host(), n.in(0).data<const void>(), n.out(0).data<void>(), n.in(0).count());
  }
  uint8_t operator[](uint8_t x) const { return entries_[x]; }

 private:
  template <class F>
  void Fill(Tensor in, const F& f) {
    for (int32_t i = 0; i < 256; ++i)
      entries_[static_cast<size_t>(i)] =
          static_cast<uint8_t>(f(in.dtype() == FBX_U8 ? i : static_cast<int8_t>(i)));
  }
  void LookUp(const uint8_t* x, uint8_t* y, size_t count) const {
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
      const uint8_t a = entries_[x[i]];
      const uint8_t b = entries_[x[i + 1]];
      const uint8_t c = entries_[x[i + 2]];
      const uint8_t d = entries_[x[i + 3]];
      y[i] = a;
      y[i + 1] = b;
      y[i + 2] = c;
      y[i + 3] = d;
    }
    for (; i < count; ++i) y[i] = entries_[x[i]];
  }
  std::array<uint8_t, 256> entries_{};
};

// The same for i16, computed per element; f maps float to float. In and out may be the same memory.
template <class F>
void MapShorts(const fbx_host* host, Affine from, Affine to, const int16_t* in, int16_t* out, int64_t count,
               const F& f) {
  const float inverse = 1 / to.scale;
  const float zero = static_cast<float>(to.zero);
  ParallelFor(host, static_cast<size_t>(count), 16384, [&](size_t begin, size_t end, uint32_t) {
    Compactly([&]() FUSEBOX_INLINE {
      for (size_t i = begin; i < end; ++i) {
        const float q = f(from.scale * static_cast<float>(in[i] - from.zero)) * inverse + zero;
        const float inside = Clamp(q == q ? q : zero, -32768.0f, 32767.0f);
        out[i] = static_cast<int16_t>(inside + (inside < 0 ? -0.5f : 0.5f));  // halves away from zero
      }
    });
  });
}

// A function of one quantized value, for a node that passed RequireQuantizedMap.
class QuantizedMap {
 public:
  QuantizedMap() = default;
  explicit QuantizedMap(const ByteTable& table) : table_(table) {}
  QuantizedMap(Tensor in, Tensor out, double (*f)(double)) {
    if (in.dtype() != FBX_I16) table_ = ByteTable(in, out, f);
  }
  // f: the same of a float.
  template <class F>
  void Apply(const fbx_host* host, Tensor in, Tensor out, int64_t from, int64_t to, int64_t count,
             const F& f) const {
    if (in.dtype() != FBX_I16)
      return table_.Apply(host, in.data<const uint8_t>() + from, out.data<uint8_t>() + to, count);
    MapShorts(host, AffineOf(in), AffineOf(out), in.data<const int16_t>() + from, out.data<int16_t>() + to,
              count, f);
  }
  template <class F>
  void Apply(const Node& n, const F& f) const {
    Apply(n.host(), n.in(0), n.out(0), 0, 0, n.in(0).count(), f);
  }

 private:
  ByteTable table_;
};

}  // namespace fusebox::cpu
