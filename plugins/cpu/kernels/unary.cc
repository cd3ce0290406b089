// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <type_traits>

#include "plugins/cpu/kernels.h"
#include "plugins/cpu/quantized/elementwise.h"

namespace fusebox::cpu {
namespace {

// Wraps instead of overflowing.
template <class T>
FUSEBOX_INLINE inline T Negated(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return -x;
  } else {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(U{0} - static_cast<U>(x));
  }
}

struct Exp {
  static constexpr std::string_view kName = "EXP";
  static constexpr auto kTypes = kFloats;
  static constexpr auto kFunction = math::Function::kExp;
  static std::optional<ByteTable> OfBytes(Tensor in, Tensor out) {
    return ByteTable::OfFloats(in, out, [](float x) { return std::exp(x); });
  }
  template <class T>
  static T Apply(T x) {
    return std::exp(x);
  }
};

struct Log {
  static constexpr std::string_view kName = "LOG";
  static constexpr auto kTypes = kFloats;
  template <class T>
  FUSEBOX_INLINE static T Apply(T x) {
    return std::log(x);
  }
};

struct Sqrt {
  static constexpr std::string_view kName = "SQRT";
  static constexpr auto kTypes = kFloats;
  template <class T>
  FUSEBOX_INLINE static T Apply(T x) {
    return std::sqrt(x);
  }
};

struct Rsqrt {
  static constexpr std::string_view kName = "RSQRT";
  static constexpr auto kTypes = kFloats;
  template <class T>
  FUSEBOX_INLINE static T Apply(T x) {
    return T(1) / std::sqrt(x);
  }
};

struct Square {
  static constexpr std::string_view kName = "SQUARE";
  static constexpr auto kTypes = kFloats;
  template <class T>
  FUSEBOX_INLINE static T Apply(T x) {
    return x * x;
  }
};

struct Abs {
  static constexpr std::string_view kName = "ABS";
  static constexpr auto kTypes = kNumbers;
  template <class T>
  FUSEBOX_INLINE static T Apply(T x) {
    if constexpr (std::is_floating_point_v<T>) return std::abs(x);
    return x < 0 ? Negated(x) : x;
  }
};

struct Neg {
  static constexpr std::string_view kName = "NEG";
  static constexpr auto kTypes = kNumbers;
  template <class T>
  FUSEBOX_INLINE static T Apply(T x) {
    return Negated(x);
  }
};

struct Sin {
  static constexpr std::string_view kName = "SIN";
  static constexpr auto kTypes = kFloats;
  template <class T>
  FUSEBOX_INLINE static T Apply(T x) {
    return std::sin(x);
  }
};

struct Cos {
  static constexpr std::string_view kName = "COS";
  static constexpr auto kTypes = kFloats;
  template <class T>
  FUSEBOX_INLINE static T Apply(T x) {
    return std::cos(x);
  }
};

struct Floor {
  static constexpr std::string_view kName = "FLOOR";
  static constexpr auto kTypes = kFloats;
  template <class T>
  FUSEBOX_INLINE static T Apply(T x) {
    return std::floor(x);
  }
};

struct Ceil {
  static constexpr std::string_view kName = "CEIL";
  static constexpr auto kTypes = kFloats;
  template <class T>
  FUSEBOX_INLINE static T Apply(T x) {
    return std::ceil(x);
  }
};

// Rounds half to even.
struct Round {
  static constexpr std::string_view kName = "ROUND";
  static constexpr auto kTypes = kFloats;
  template <class T>
  FUSEBOX_INLINE static T Apply(T x) {
    return std::nearbyint(x);
  }
};

struct Sign {
  static constexpr std::string_view kName = "SIGN";
  static constexpr auto kTypes = kNumbers;
  template <class T>
  FUSEBOX_INLINE static T Apply(T x) {
    const T sign = static_cast<T>(x > 0) - static_cast<T>(x < 0);
    return x != x ? x : sign;
  }
};

constexpr const fbx_kernel* kTable[] = {
    &kernel_of<Elementwise<Exp>>,   &kernel_of<Elementwise<Log>>,  &kernel_of<Elementwise<Sqrt>>,
    &kernel_of<Elementwise<Rsqrt>>, &kernel_of<Elementwise<Abs>>,  &kernel_of<Elementwise<Square>>,
    &kernel_of<Elementwise<Neg>>,   &kernel_of<Elementwise<Sin>>,  &kernel_of<Elementwise<Cos>>,
    &kernel_of<Elementwise<Floor>>, &kernel_of<Elementwise<Ceil>>, &kernel_of<Elementwise<Round>>,
    &kernel_of<Elementwise<Sign>>,
};

}  // namespace

constinit const KernelTable kUnaryKernels = kTable;

}  // namespace fusebox::cpu
