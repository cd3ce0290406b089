// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/products/matrix_product.h"

namespace fusebox::cpu {
namespace {

class WordProduct final : public MatrixProduct {
 public:
  WordProduct(const Node& n, const ProductSpec& spec)
      : MatrixProduct(spec), words_(n, spec.operands, spec.activation) {}

  ProductState Prepare(const Node& n, Plan& plan, const ProductTask& task, int64_t) const override {
    ProductState state;
    state.words = words_.Prepare(n, plan);
    const bool wide_weights = n.in(operands_.weights).dtype() == FBX_I16;
    state.words_plan = PlanProduct(plan, task.shape, task.window != nullptr, wide_weights);
    return state;
  }

  const void* Begin(const Node& n, const ProductState& state, const ProductTask&, int64_t,
                    const void* input) const override {
    words_.Start(n, state.words);
    return input;
  }

  void Run(const Node& n, const ProductState& state, const ProductTask& task) const override {
    const ProductShape& s = task.shape;
    const auto* const input = static_cast<const int16_t*>(task.input) + task.first_row * s.k;
    const int64_t width = s.n * s.groups;
    RunProduct(
        n, state.words_plan, s, words_.Weights(n, state.words) + task.matrix * s.n * s.k,
        [&](int64_t group, int64_t first, int64_t count, int16_t* patches) {
          if (task.window == nullptr) return ProductRows{input + first * s.k, s.k};
          CopyPatches(*task.window, input, group, first, count, patches);
          return ProductRows{patches, s.k};
        },
        [&](int64_t first, int64_t count, int64_t channel, int64_t channels, const int64_t* sums) {
          for (int64_t row = first; row < first + count; ++row, sums += channels)
            words_.Finish(n, channel, channels, sums, task.at + row * width + channel);
        });
  }

 private:
  QuantizedWords words_;
};

}  // namespace

std::unique_ptr<const MatrixProduct> ProductOfWords(const Node& n, const ProductSpec& spec) {
  return std::make_unique<WordProduct>(n, spec);
}

}  // namespace fusebox::cpu
