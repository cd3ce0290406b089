// SPDX-License-Identifier: Apache-2.0
// Kernels that map one operand to one result elementwise. An Op declares
//   static constexpr std::string_view kName;      the builtin
//   static constexpr auto kTypes = kFloats;       supported dtypes
//   template <class T> static T Apply(T x);
//   static constexpr math::Function kFunction;    optional: what maps f32
// An Op with doubles also supports quantized i8, u8 and i16, rounded to nearest, unless the Op has
//   static std::optional<ByteTable> OfBytes(Tensor in, Tensor out);   nullopt: round to nearest
#pragma once

#include <type_traits>

#include <fusebox/kernel.hpp>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/base/simd.h"
#include "plugins/cpu/quantized/map.h"
#include "plugins/math/simd/functions.h"

namespace fusebox::cpu {

using namespace sdk;

// y[i] = f(x[i]) on the host's threads; x and y may be the same memory.
template <class T, class R, class F>
void MapElements(const fbx_host* host, const T* x, R* y, int64_t count, const F& f) {
  ParallelFor(host, static_cast<size_t>(count), 16384, [&](size_t begin, size_t end, uint32_t) {
    constexpr bool kUsual = std::is_same_v<T, float> || sizeof(T) == 1;
    VectorizedFor<std::conditional_t<kUsual, T, int64_t>>([&]() FUSEBOX_INLINE {
#pragma GCC ivdep
      for (size_t i = begin; i < end; ++i) y[i] = f(x[i]);
    });
  });
}

// The same by a function of plugins/math.
inline void MapFunction(const fbx_host* host, math::Function f, const float* x, float* y, int64_t count) {
  ParallelFor(host, static_cast<size_t>(count), 16384,
              [&](size_t begin, size_t end, uint32_t) { math::Map(f, x + begin, y + begin, end - begin); });
}

inline void InferElementwise(const Node& n, Infer& out) {
  Arity(n, 1, 1);
  out.like(0, n.in(0));
}

template <class Op>
struct Elementwise {
  static constexpr std::string_view builtin = Op::kName;
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;
  static constexpr bool kStores = Contains(Op::kTypes, FBX_F64);

  explicit Elementwise(const Node& n) {
    if constexpr (kStores) {
      if (!IsQuantized(n, 0)) return;
      quantized_ = QuantizedMap(n.in(0), n.out(0), kApply);
      if constexpr (requires { Op::OfBytes(n.in(0), n.out(0)); }) {
        if (const auto table = Op::OfBytes(n.in(0), n.out(0))) quantized_ = QuantizedMap(*table);
      }
    }
  }
  static void supports(const Node& n) {
    if (kStores && IsQuantized(n, 0)) return RequireQuantizedMap(n);
    RequireDtype(n, 0, Op::kTypes);
  }
  static void infer(const Node& n, Infer& out) { InferElementwise(n, out); }
  void invoke(const Node& n) const {
    if constexpr (kStores) {
      if (IsQuantized(n, 0)) return quantized_.Apply(n, kApply);
    }
    Dispatch(Op::kTypes, n.in(0).dtype(), [&]<class T>() {
      const T* const x = n.in(0).data<const T>();
      T* const y = n.out(0).data<T>();
      if constexpr (std::is_same_v<T, float> && requires { Op::kFunction; }) {
        MapFunction(n.host(), Op::kFunction, x, y, n.in(0).count());
      } else {
        MapElements(n.host(), x, y, n.in(0).count(),
                    [](T v) FUSEBOX_INLINE { return Op::template Apply<T>(v); });
      }
    });
  }

 private:
  static constexpr auto kApply = []<class T>(T x) FUSEBOX_INLINE { return Op::template Apply<T>(x); };
  QuantizedMap quantized_;
};

}  // namespace fusebox::cpu
