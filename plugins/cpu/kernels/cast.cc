// SPDX-License-Identifier: Apache-2.0
// CAST between numbers. Float to integer truncates and saturates, NaN becomes 0; integer to integer wraps; to
// bool, nonzero is true.
#include <bit>
#include <limits>
#include <type_traits>

#include "plugins/cpu/kernels.h"
#include "plugins/cpu/move.h"
#include "plugins/cpu/simd.h"

namespace fusebox::cpu {
namespace {

// An IEEE half as stored.
struct Half {
  uint16_t bits;

  static Half From(float x) {
    const uint32_t u = std::bit_cast<uint32_t>(x), sign = u >> 16 & 0x8000u, magnitude = u & 0x7fffffffu;
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

  float ToFloat() const {
    const uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 0x1fu, fraction = bits & 0x3ffu;
    if (exponent == 0)
      return std::bit_cast<float>(sign) + (sign ? -1.0f : 1.0f) * static_cast<float>(fraction) * 0x1p-24f;
    const uint32_t top = exponent == 31 ? 0x7f800000u : (exponent + 112) << 23;
    return std::bit_cast<float>(sign | top | fraction << 13);
  }
};

template <class To, class From>
FUSEBOX_INLINE inline To Convert(From x) {
  if constexpr (std::is_same_v<From, Half>) {
    return Convert<To>(x.ToFloat());
  } else if constexpr (std::is_same_v<To, Half>) {
    return Half::From(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && sizeof(To) < sizeof(int32_t)) {
    // Through 32 bits, which vectors convert to.
    constexpr From least = std::numeric_limits<To>::min(), most = std::numeric_limits<To>::max();
    const From number = x == x ? x : From(0), above = number < least ? least : number;
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

template <class F>
void DispatchCast(fbx_dtype dtype, F&& f) {
  if (dtype == FBX_F16) return f.template operator()<Half>();
  if (dtype == FBX_BOOL) return f.template operator()<bool>();
  Dispatch(kAllNumbers, dtype, f);
}

struct Cast {
  static constexpr std::string_view builtin = "CAST";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static bool Does(fbx_dtype t) { return t == FBX_F16 || t == FBX_BOOL || Contains(kAllNumbers, t); }

  static void supports(const Node& n) {
    if (!Does(n.in(0).dtype())) RejectDtype(n.in(0).dtype(), 0);
    const fbx_dtype to = Target(n);
    if (!Does(to))
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
    const auto count = static_cast<size_t>(n.in(0).count());
    DispatchCast(n.in(0).dtype(), [&]<class From>() {
      DispatchCast(n.out(0).dtype(), [&]<class To>() {
        const From* x = n.in(0).data<const From>();
        To* y = n.out(0).data<To>();
        // Only usual pairs of types: the code of each is there twice.
        constexpr bool kUsual =
            (std::is_same_v<From, float> && sizeof(To) <= 4 && !std::is_same_v<To, Half>) ||
            (std::is_same_v<To, float> && sizeof(From) <= 4 && !std::is_same_v<From, Half>);
        ParallelFor(n.host(), count, 16384, [&](size_t begin, size_t end, uint32_t) {
          const auto convert = [x, y, begin, end]() FUSEBOX_INLINE {
            const From* const from = x + begin;  // stores of bytes may alias the captures
            To* const to = y + begin;
            for (size_t i = 0, left = end - begin; i < left; ++i) to[i] = Convert<To>(from[i]);
          };
          if constexpr (kUsual) Vectorized(convert);
          else Compactly(convert);
        });
      });
    });
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<Cast>};

}  // namespace

constinit const KernelTable kCastKernels = kTable;

}  // namespace fusebox::cpu
