// SPDX-License-Identifier: Apache-2.0
// RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL, MULTINOMIAL. With a seed, they produce stock TFLite's numbers.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/elements/philox.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

// In [0, 1): the fraction of a number in [1, 2).
float Fraction(uint32_t bits) { return std::bit_cast<float>((bits & 0x7FFFFF) | 0x3F800000) - 1; }
double Fraction(uint32_t high, uint32_t low) {
  return std::bit_cast<double>(uint64_t{high & 0xFFFFF} << 32 | low | uint64_t{0x3FF} << 52) - 1;
}

// The seed is the key, the second seed the upper half of the counter. Continues between calls. Without seeds,
// it starts at a random state.
struct Generator {
  explicit Generator(const Node& n)
      : Generator(static_cast<uint64_t>(n.attrs().i64("seed", 0)),
                  static_cast<uint64_t>(n.attrs().i64("seed2", 0))) {}
  void Restart() { now = start; }

  Philox start, now;

 private:
  Generator(uint64_t seed, uint64_t seed2) : start(seed, seed2), now(start) {
    if (seed != 0 || seed2 != 0) return;
    std::random_device device;
    const auto any = [&] { return uint64_t{device()} << 32 | device(); };
    seed = any();
    start = now = Philox(seed, any());
  }
};

struct Uniform {
  static constexpr std::string_view kName = "RANDOM_UNIFORM";
  static std::array<float, 4> From(const Philox::Block& x) {
    return {Fraction(x[0]), Fraction(x[1]), Fraction(x[2]), Fraction(x[3])};
  }
};

// Box-Muller: two numbers become an angle and a radius.
struct Normal {
  static constexpr std::string_view kName = "RANDOM_STANDARD_NORMAL";
  static std::array<float, 4> From(const Philox::Block& x) {
    std::array<float, 4> normal;
    for (size_t i = 0; i < 4; i += 2) {
      const float angle = 2 * std::numbers::pi_v<float> * Fraction(x[i + 1]);
      const float distance = std::sqrt(-2 * std::log(std::max(Fraction(x[i]), 1e-7f)));
      normal[i] = std::sin(angle) * distance;
      normal[i + 1] = std::cos(angle) * distance;
    }
    return normal;
  }
};

template <class Of>
struct Random {
  static constexpr std::string_view builtin = Of::kName;
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    RequireDtype(n, 0, kIndices);
    if (n.out_count() > 0 && n.out(0).dtype() != FBX_F32)
      throw Reject{"DTYPE", std::string(dtype_name(n.out(0).dtype())) + " is unsupported", "result 0"};
  }
  static Shape Dims(const Node& n) {
    const Shape dims = IntList(n.in(0), 0);
    for (const int64_t d : dims)
      if (d < 0) Fail("a dimension of " + std::to_string(d), Operand(0));
    Count(dims);
    return dims;
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    const Tensor shape = n.in(0);
    if (shape.has_value()) return out.set(0, FBX_F32, Dims(n));
    SetUnknownDimsOfList(n, out, 0, FBX_F32);
  }
  Generator prepare(const Node& n, Plan&) const { return Generator(n); }
  static void reset(Generator& generator) { generator.Restart(); }
  void invoke(const Node& n, Generator& generator) const {
    if (Dims(n) != Shape(n.out(0))) Fail("the shape differs from the planned one", Operand(0));
    float* to = n.out(0).data<float>();
    for (int64_t left = n.out(0).count(); left > 0; left -= 4) {
      const std::array<float, 4> four = Of::From(generator.now.Next());
      to = std::copy_n(four.begin(), std::min<int64_t>(left, 4), to);
    }
  }
};

// Operands: log-probabilities [batch, classes], number of draws per row.
struct Multinomial {
  static constexpr std::string_view builtin = "MULTINOMIAL";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    RequireDtype(n, 0, kFloats);
    RequireDtype(n, 1, kIndices);
    if (n.out_count() > 0 && !Contains(kIndices, n.out(0).dtype()))
      throw Reject{"DTYPE", std::string(dtype_name(n.out(0).dtype())) + " is unsupported", "result 0"};
  }
  static int64_t Draws(const Node& n) {
    const int64_t draws = IntScalar(n.in(1), 1);
    if (draws < 0) Fail(std::to_string(draws) + " draws", Operand(1));
    return draws;
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    const Tensor in = n.in(0);
    if (in.rank() >= 0 && in.rank() != 2)
      Fail("expected a matrix, got rank " + std::to_string(in.rank()), Operand(0));
    if (in.rank() == 2 && in.dim(1) == 0) Fail("no classes", Operand(0));
    if (!n.in(1).has_value()) out.needs_value(1);
    const int64_t rows = in.rank() < 0 ? -1 : in.dim(0);
    out.set(0, n.out(0).dtype(), {rows, n.in(1).has_value() ? Draws(n) : -1});
  }
  Generator prepare(const Node& n, Plan&) const { return Generator(n); }
  static void reset(Generator& generator) { generator.Restart(); }
  void invoke(const Node& n, Generator& generator) const {
    if (n.out(0).dim(1) != Draws(n)) Fail("the number differs from the planned one", Operand(1));
    Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() {
      Dispatch(kIndices, n.out(0).dtype(), [&]<class I>() { Draw<T, I>(n, generator.now); });
    });
  }

 private:
  // Unnormalized cumulative probabilities of a row. Non-finite logits have probability 0.
  template <class T>
  static void SumUp(std::span<const T> logits, std::vector<double>& sums) {
    T most = std::numeric_limits<T>::lowest();
    for (const T x : logits)
      if (std::isfinite(x)) most = std::max(most, x);
    double sum = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      if (std::isfinite(logits[i])) sum += std::exp(double{logits[i]} - double{most});
      sums[i] = sum;
    }
  }

  template <class T, class I>
  static void Draw(const Node& n, Philox& generator) {
    const auto rows = static_cast<uint64_t>(n.in(0).dim(0));
    const auto draws = static_cast<uint64_t>(n.out(0).dim(1));
    const auto classes = static_cast<size_t>(n.in(0).dim(1));
    Philox own = generator;
    // TensorFlow reserves more numbers per call than it uses; the next call starts after them.
    generator.Skip(rows * ((draws + 3) / 4 * 4) * 2 * 256);
    std::vector<double> sums(classes);
    Philox::Block block{};
    size_t used = block.size();
    I* to = n.out(0).data<I>();
    for (uint64_t row = 0; row < rows; ++row) {
      SumUp(std::span(n.in(0).data<const T>() + row * classes, classes), sums);
      for (uint64_t i = 0; i < draws; ++i, used += 2) {
        if (used == block.size()) {
          block = own.Next();
          used = 0;
        }
        const double at = Fraction(block[used], block[used + 1]) * sums.back();
        const auto found = std::ranges::upper_bound(sums, at) - sums.begin();
        *to++ = static_cast<I>(std::min(static_cast<size_t>(found), classes - 1));
      }
    }
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<Random<Uniform>>, &kernel_of<Random<Normal>>,
                                        &kernel_of<Multinomial>};

}  // namespace

constinit const KernelTable kRandomKernels = kTable;

}  // namespace fusebox::cpu
