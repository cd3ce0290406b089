// SPDX-License-Identifier: Apache-2.0
// STABLEHLO_RNG_BIT_GENERATOR: uniform bits from a counter, with the bits of TFLite.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/elements/philox.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

// Threefry2x32 with 20 rounds (Salmon et al., SC 2011).
class Threefry {
 public:
  using Block = std::array<uint32_t, 2>;

  Threefry(uint64_t key, uint64_t counter)
      : key_{Low(key), High(key), Low(key) ^ High(key) ^ 0x1BD11BDA}, counter_(counter) {}

  Block Next() {
    constexpr int kTurns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    uint32_t a = Low(counter_) + key_[0];
    uint32_t b = High(counter_) + key_[1];
    for (uint32_t four = 0; four < 5; ++four) {
      for (const int turn : kTurns[four % 2]) {
        a += b;
        b = std::rotl(b, turn) ^ a;
      }
      a += key_[(four + 1) % 3];
      b += key_[(four + 2) % 3] + four + 1;
    }
    ++counter_;
    return {a, b};
  }
  uint64_t low() const { return counter_; }

 private:
  static uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
  static uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

  std::array<uint32_t, 3> key_;
  uint64_t counter_;
};

// Operand: state u64 [2] (key, counter), with Philox also [3] (the upper half of the counter). Results: the
// state after the call, the bits. The file has the shape of the bits.
struct RandomBits {
  static constexpr std::string_view builtin = "STABLEHLO_RNG_BIT_GENERATOR";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static constexpr Types<int32_t, int64_t, uint32_t, uint64_t> kTypes{};

  static bool IsThreefry(const Node& n) { return n.attrs().s("algorithm", "DEFAULT") == "THREEFRY"; }

  static void supports(const Node& n) {
    RequireDtype(n, 0, Types<uint64_t>{});
    const std::string_view algorithm = n.attrs().s("algorithm", "DEFAULT");
    if (algorithm != "DEFAULT" && algorithm != "PHILOX" && algorithm != "THREEFRY")
      throw Reject{"ATTR", std::string(algorithm) + " is unsupported", "attr algorithm"};
    if (n.out_count() > 1 && !Contains(kTypes, n.out(1).dtype()))
      throw Reject{"DTYPE", std::string(dtype_name(n.out(1).dtype())) + " is unsupported", "result 1"};
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1, 2);
    const Tensor state = n.in(0);
    if (state.rank() >= 0 && (state.rank() != 1 || (state.dim(0) >= 0 && state.dim(0) != 2 &&
                                                    (state.dim(0) != 3 || IsThreefry(n)))))
      Fail("a state of shape " + Text(state.dims()), Operand(0));
    out.like(0, state);
    if (n.out(1).rank() >= 0) Count(n.out(1).dims());
    out.like(1, n.out(1));
  }

  void invoke(const Node& n) const {
    if (!n.out(1).is_static()) Fail("the file has no shape for the bits", "result 1");
    const uint64_t* const state = n.in(0).data<const uint64_t>();
    const uint64_t upper = n.in(0).count() == 3 ? state[2] : state[0];
    const uint64_t next = IsThreefry(n) ? Fill(n.out(1), Threefry(state[0], state[1]))
                                        : Fill(n.out(1), Philox(state[0], upper, state[1]));
    uint64_t* const after = n.out(0).data<uint64_t>();
    std::copy_n(state, n.in(0).count(), after);
    after[1] = next;
  }

 private:
  // Returns the counter after it.
  template <class Generator>
  static uint64_t Fill(Tensor bits, Generator generator) {
    auto* to = bits.data<std::byte>();
    for (size_t left = static_cast<size_t>(bits.count()) * ElementSize(bits.dtype()); left > 0;) {
      const auto block = generator.Next();
      const size_t bytes = std::min(left, sizeof(block));
      std::memcpy(to, block.data(), bytes);
      to += bytes;
      left -= bytes;
    }
    return generator.low();
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<RandomBits>};

}  // namespace

constinit const KernelTable kRandomBitsKernels = kTable;

}  // namespace fusebox::cpu
