// SPDX-License-Identifier: Apache-2.0
// QuantizedBytes of one row with weights as they are stored: for the first invoke, which would pack them
// only to read them once.
#include <algorithm>
#include <vector>

#include "plugins/cpu/base/simd.h"
#include "plugins/cpu/products/quantized_bytes.h"

namespace fusebox::cpu {
namespace {

constexpr int64_t kChannels = 8;  // unpacked at once: they stay in the first cache

template <class T>
void Widen(const T* from, int64_t count, int32_t zero, int16_t* to) {
  Vectorized([&]() FUSEBOX_INLINE {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<int16_t>(from[i] - zero);
  });
}

void Widen(const Tensor& bytes, int64_t first, int64_t count, int32_t zero, int16_t* to) {
  if (bytes.dtype() == FBX_U8) return Widen(bytes.data<const uint8_t>() + first, count, zero, to);
  Widen(bytes.data<const int8_t>() + first, count, zero, to);
}

}  // namespace

bool QuantizedBytes::RunFirstRow(const Node& n, const State& state, const BytePlan& plan, const int8_t* input,
                                 const ProductShape& s, int64_t at) const {
  if (s.m * s.groups != 1 || !plan.kept || weights_->packed.made()) return false;
  const Tensor w = n.in(operands_.weights);
  if (operands_.transposed || !Contains(kBytes, w.dtype()) || weights_->used.exchange(true)) return false;
  std::vector<int16_t> row(static_cast<size_t>(s.k));
  if (hybrid_) Widen(input, s.k, n.scratch<int32_t>(state.zeros)[0], row.data());
  else if (unsigned_) Widen(reinterpret_cast<const uint8_t*>(input), s.k, input_zero_, row.data());
  else Widen(input, s.k, input_zero_, row.data());

  const fbx_quant& q = *w.quant();
  std::vector<int16_t> unpacked(
      static_cast<size_t>(Product(std::max(1u, thread_count(n.host())), kChannels * s.k)));
  const auto run = [&](size_t begin, size_t end, uint32_t worker) {
    int16_t* const values = unpacked.data() + worker * kChannels * s.k;
    for (auto block = static_cast<int64_t>(begin); block < static_cast<int64_t>(end); ++block) {
      const int64_t first = block * kChannels;
      const int64_t count = std::min(kChannels, s.n - first);
      for (int64_t c = 0; c < count; ++c) {
        const auto zero = static_cast<int32_t>(q.zero_points[q.count > 1 ? first + c : 0]);
        Widen(w, (first + c) * s.k, s.k, zero, values + c * s.k);
      }
      int32_t sums[kChannels];
      Multiply(IntegerProduct<int32_t>{row.data(), s.k, values, s.k, sums, count, 1, count, s.k});
      Finish(n, state, 0, first, count, sums, at + first);
    }
  };
  ParallelFor(n.host(), static_cast<size_t>((s.n + kChannels - 1) / kChannels), Grain(kChannels * s.k), run);
  return true;
}

}  // namespace fusebox::cpu
