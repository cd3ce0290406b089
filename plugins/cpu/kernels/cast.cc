// SPDX-License-Identifier: Apache-2.0
// CAST between numbers. Float to integer truncates and saturates, NaN becomes 0; integer to integer wraps; to
// bool, nonzero is true. Floats of 16 bits are cast as f32, and integers of 4 bits are read as 8.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <type_traits>

#include "plugins/cpu/base/half.h"
#include "plugins/cpu/base/simd.h"
#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

// An IEEE half as stored.
struct Half {
  uint16_t bits;

  static Half From(float x) {
    const uint32_t u = std::bit_cast<uint32_t>(x);
    const uint32_t sign = u >> 16 & 0x8000u;
    const uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu))};
    if (magnitude >= 0x477ff000u)
      return {static_cast<uint16_t>(sign | 0x7c00u)};  // 65520 and above round to infinity
    uint32_t rounded;
    if (magnitude < 0x38800000u) {
      // Subnormal: adding a number whose last bit is the half's last bit makes the FPU round to even.
      const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
      rounded = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f);
    } else {
      const uint32_t rebased = magnitude - 0x38000000u;  // exponent bias 127 -> 15
      rounded = (rebased + 0xfffu + (rebased >> 13 & 1u)) >> 13;
    }
    return {static_cast<uint16_t>(sign | rounded)};
  }

  float ToFloat() const { return FloatFromHalf(bits); }
};

// The upper half of a float.
struct Brain {
  uint16_t bits;

  static Brain From(float x) {
    const uint32_t u = std::bit_cast<uint32_t>(x);
    if (x != x) return {static_cast<uint16_t>(u >> 16 | 0x40u)};
    return {static_cast<uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16)};  // ties to even
  }
  float ToFloat() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

// The type by way of which a type is cast.
fbx_dtype Wide(fbx_dtype dtype) {
  switch (dtype) {
    case FBX_F16:
    case FBX_BF16: return FBX_F32;
    case FBX_I4: return FBX_I8;
    case FBX_U4: return FBX_U8;
    default: return dtype;
  }
}

// Elements `begin` on of a tensor, as Wide(dtype).
void Widen(fbx_dtype dtype, const void* from, size_t begin, size_t count, void* to) {
  const auto floats = [&]<class H>(const H* x) {
    std::transform(x, x + count, static_cast<float*>(to), [](H h) { return h.ToFloat(); });
  };
  if (dtype == FBX_F16) return floats(static_cast<const Half*>(from) + begin);
  if (dtype == FBX_BF16) return floats(static_cast<const Brain*>(from) + begin);
  const int flip = dtype == FBX_I4 ? 8 : 0;  // the weight of the sign bit
  for (size_t i = 0; i < count; ++i) {
    const int pair = static_cast<const uint8_t*>(from)[(begin + i) / 2];
    const int bits = (begin + i) % 2 != 0 ? pair >> 4 : pair & 15;
    static_cast<uint8_t*>(to)[i] = static_cast<uint8_t>((bits ^ flip) - flip);
  }
}

void Narrow(fbx_dtype dtype, const float* from, size_t count, void* to) {
  if (dtype == FBX_F16) std::transform(from, from + count, static_cast<Half*>(to), Half::From);
  else std::transform(from, from + count, static_cast<Brain*>(to), Brain::From);
}

template <class To, class From>
FUSEBOX_INLINE inline To Convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && sizeof(To) < sizeof(int32_t)) {
    // Through 32 bits, which vectors convert to.
    constexpr From least = std::numeric_limits<To>::min();
    constexpr From most = std::numeric_limits<To>::max();
    const From number = x == x ? x : From(0);
    const From above = number < least ? least : number;
    return static_cast<To>(static_cast<int32_t>(above > most ? most : above));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Both bounds are exact in the float type: a power of two, or zero.
    constexpr From above = From(2) * static_cast<From>(uint64_t{1} << (std::numeric_limits<To>::digits - 1));
    constexpr From below = static_cast<From>(std::numeric_limits<To>::min());
    const To inside = static_cast<To>(x > below && x < above ? x : From(0));
    const To at_least = x <= below ? std::numeric_limits<To>::min() : inside;
    return x >= above ? std::numeric_limits<To>::max() : at_least;
  } else {
    return static_cast<To>(x);
  }
}

constexpr Types<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, bool>
    kCastable;

void ConvertAll(fbx_dtype from_dtype, const void* from, fbx_dtype to_dtype, void* to, size_t count) {
  Dispatch(kCastable, from_dtype, [&]<class From>() {
    Dispatch(kCastable, to_dtype, [&]<class To>() {
      // Only usual pairs of types: the code of each is there twice.
      constexpr bool kUsual = (std::is_same_v<From, float> && sizeof(To) <= 4) ||
                              (std::is_same_v<To, float> && sizeof(From) <= 4);
      const auto convert = [from, to, count]() FUSEBOX_INLINE {
        const From* const x = static_cast<const From*>(from);  // stores of bytes may alias the captures
        To* const y = static_cast<To*>(to);
        for (size_t i = 0, n = count; i < n; ++i) y[i] = Convert<To>(x[i]);
      };
      if constexpr (kUsual) Vectorized(convert);
      else Compactly(convert);
    });
  });
}

struct Cast {
  static constexpr std::string_view builtin = "CAST";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n) {
    if (!Contains(kCastable, Wide(n.in(0).dtype()))) RejectDtype(n.in(0).dtype(), 0);
    const fbx_dtype to = Target(n);
    if (!Contains(kCastable, Wide(to)) || to == FBX_I4 || to == FBX_U4)
      throw Reject{"DTYPE", "a cast to " + std::string(dtype_name(to)) + " is unsupported", "result 0"};
  }

  // Many files have no options, or defaults that contradict the tensors. Then the tensor's type applies.
  static fbx_dtype Target(const Node& n) {
    const fbx_dtype declared = n.out_count() > 0 ? n.out(0).dtype() : FBX_DTYPE_NONE;
    const bool says = n.attrs().has("out_data_type");
    const fbx_dtype option = n.attrs().dtype("out_data_type", FBX_DTYPE_NONE);
    const bool plausible = n.attrs().dtype("in_data_type", n.in(0).dtype()) == n.in(0).dtype();
    if (declared != FBX_DTYPE_NONE && (!says || !plausible)) return declared;
    if (!says) Fail("is missing", "attr out_data_type");
    return option;
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    const Tensor in = n.in(0);
    out.like(0, in, Target(n));
  }

  void invoke(const Node& n) const {
    const fbx_dtype from = n.in(0).dtype();
    const fbx_dtype to = n.out(0).dtype();
    const fbx_dtype near = Wide(from);
    const fbx_dtype far = Wide(to);
    const auto* x = n.in(0).data<const std::byte>();
    auto* y = n.out(0).data<std::byte>();
    const auto count = static_cast<size_t>(n.in(0).count());
    ParallelFor(n.host(), count, 16384, [&](size_t begin, size_t end, uint32_t) {
      constexpr size_t kBlock = 256;
      std::array<float, kBlock> read, written;
      const size_t step = near == from && far == to ? end - begin : kBlock;
      for (size_t i = begin, left; i < end; i += left) {
        left = std::min(step, end - i);
        const void* source = x + i * ElementSize(from);
        void* const result = y + i * ElementSize(to);
        if (near != from) {
          Widen(from, x, i, left, read.data());
          source = read.data();
        }
        if (far == to) {
          ConvertAll(near, source, far, result, left);
        } else {
          ConvertAll(near, source, FBX_F32, written.data(), left);
          Narrow(to, written.data(), left, result);
        }
      }
    });
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<Cast>};

}  // namespace

constinit const KernelTable kCastKernels = kTable;

}  // namespace fusebox::cpu
