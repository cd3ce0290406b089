// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/products/matrix_product.h"

namespace fusebox::cpu {
namespace {

class WordProduct final : public MatrixProduct {
 public:
  WordProduct(const Node& n, const ProductSpec& spec)
      : MatrixProduct(spec), quantized_(n, spec.operands, spec.activation, false) {}

  ProductState Prepare(const Node& n, Plan& plan, const ProductTask& task, int64_t samples) const override {
    ProductState state;
    state.quantized = quantized_.Prepare(n, plan, samples);
    const bool wide_weights = n.in(operands_.weights).dtype() == FBX_I16;
    state.words = PlanProduct<int64_t>(plan, task.shape, task.window != nullptr, wide_weights);
    return state;
  }

  const void* Begin(const Node& n, const ProductState&, const ProductTask&, int64_t,
                    const void* input) const override {
    quantized_.Start(n);
    return input;
  }

  void Run(const Node& n, const ProductState& state, const ProductTask& task) const override {
    const ProductShape& s = task.shape;
    const auto* const input = static_cast<const int16_t*>(task.input) + task.first_row * s.k;
    const int64_t width = s.n * s.groups;
    RunProduct<int64_t>(
        n, state.words, s, quantized_.Weights(n, state.quantized) + task.matrix * s.n * s.k,
        [&](int64_t group, int64_t first, int64_t count, int16_t* patches) {
          if (task.window == nullptr) return ProductRows{input + first * s.k, s.k};
          CopyPatches(*task.window, input, group, first, count, patches);
          return ProductRows{patches, s.k};
        },
        [&](int64_t first, int64_t count, int64_t channel, int64_t channels, const int64_t* sums) {
          for (int64_t row = first; row < first + count; ++row, sums += channels)
            quantized_.Finish(n, state.quantized, 0, channel, channels, sums,
                              task.at + row * width + channel);
        });
  }

 private:
  QuantizedProduct quantized_;
};

}  // namespace

std::unique_ptr<const MatrixProduct> ProductOfWords(const Node& n, const ProductSpec& spec) {
  return std::make_unique<WordProduct>(n, spec);
}

}  // namespace fusebox::cpu
