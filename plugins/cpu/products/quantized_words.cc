// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/products/quantized_words.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/base/simd.h"

namespace fusebox::cpu {
namespace {

template <class Total>
FUSEBOX_INLINE inline Total Narrowed(int64_t sum) {
  if constexpr (std::is_same_v<Total, int64_t>) return sum;
  else return static_cast<Total>(std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX));
}

}  // namespace

QuantizedWords::QuantizedWords(const Node& n, const ProductOperands& o, Activation activation)
    : operands_(o), range_(activation, n.out(0)), zero_(AffineOf(n.out(0)).zero) {
  if (const std::string why = WhyNoScales(n.in(o.weights)); !why.empty()) Fail(why, Operand(o.weights));
}

QuantizedWords::State QuantizedWords::Prepare(const Node& n, Plan& plan) const {
  const Tensor weights = n.in(operands_.weights);
  if (weights.is_const()) return {};
  const auto bytes = static_cast<size_t>(Product(Count(weights.dims()), sizeof(int16_t)));
  return {plan.scratch(bytes), Rearranges(operands_) ? plan.scratch(bytes) : 0};
}

void QuantizedWords::Start(const Node& n, const State& state) const {
  constants_->scale([&] { constants_->factors = ResultFactors(n, operands_); });
  if (n.in(operands_.weights).is_const()) return;
  UnpackWeights(n, operands_, n.scratch<int16_t>(state.weights),
                Rearranges(operands_) ? n.scratch<int16_t>(state.stored) : nullptr);
}

const int16_t* QuantizedWords::Weights(const Node& n, const State& state) const {
  const Tensor weights = n.in(operands_.weights);
  if (!weights.is_const()) return n.scratch<int16_t>(state.weights);
  constants_->unpack([&] {
    const auto count = static_cast<size_t>(weights.count());
    auto values = std::make_unique_for_overwrite<int16_t[]>(count);
    std::vector<int16_t> stored(Rearranges(operands_) ? count : 0);
    UnpackWeights(n, operands_, values.get(), stored.data());
    constants_->weights = std::move(values);
  });
  return constants_->weights.get();
}

// TFLite scales 64-bit sums by the bias type: with a 32-bit bias the sum is narrowed to 32 bits.
void QuantizedWords::Finish(const Node& n, int64_t first, int64_t count, const int64_t* sums,
                            int64_t at) const {
  const bool per_channel = constants_->factors.size() > 1;
  const FixedPoint* const scales = constants_->factors.data() + (per_channel ? first : 0);
  const QuantizedRange range = range_;
  const int32_t zero = zero_;
  int16_t* const y = n.out(0).data<int16_t>() + at;
  const auto store = [&]<class Total>(const auto* bias, Total) {
    Vectorized([&]() FUSEBOX_INLINE {
      for (int64_t c = 0; c < count; ++c) {
        const auto sum =
            static_cast<int64_t>(static_cast<uint64_t>(sums[c]) + static_cast<uint64_t>(bias ? bias[c] : 0));
        const int32_t z = Scaled(Narrowed<Total>(sum), scales[per_channel ? c : 0]) + zero;
        y[c] = static_cast<int16_t>(range(z));
      }
    });
  };
  const int32_t* none = nullptr;
  if (!n.has_in(operands_.bias))
    return operands_.two_roundings ? store(none, int32_t{}) : store(none, int64_t{});
  const Tensor bias = n.in(operands_.bias);
  if (bias.dtype() == FBX_I64) return store(bias.data<const int64_t>() + first, int64_t{});
  store(bias.data<const int32_t>() + first, int32_t{});
}

}  // namespace fusebox::cpu
