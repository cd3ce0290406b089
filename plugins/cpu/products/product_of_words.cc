// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/products/matrix_product.h"

namespace fusebox::cpu {
namespace {

class WordProduct final : public MatrixProduct {
 public:
  WordProduct(const Node& n, const ProductSpec& spec)
      : MatrixProduct(spec), words_(n, spec.operands, spec.activation) {}

  ProductState Prepare(const Node& n, Plan& plan, const ProductTask& task) const override {
    ProductState state{.task = task};
    state.words = words_.Prepare(n, plan);
    const bool wide_weights = n.in(operands_.weights).dtype() == FBX_I16;
    state.words_plan = PlanProduct(plan, task.shape, task.window.has_value(), wide_weights);
    return state;
  }

  const void* Begin(const Node& n, const ProductState& state, const void* input) const override {
    words_.Start(n, state.words);
    return input;
  }

  void Run(const Node& n, const ProductState& state, const ProductPart& part) const override {
    const ProductShape& s = state.task.shape;
    const auto* const input = static_cast<const int16_t*>(part.input) + part.first_row * s.k;
    const int64_t width = s.n * s.groups;
    RunProduct(
        n, state.words_plan, s, words_.Weights(n, state.words) + part.matrix * s.n * s.k,
        [&](int64_t group, int64_t first, int64_t count, int16_t* patches) {
          if (!state.task.window) return ProductRows{input + first * s.k, s.k};
          CopyPatches(*state.task.window, input, group, first, count, patches);
          return ProductRows{patches, s.k};
        },
        [&](int64_t first, int64_t count, int64_t channel, int64_t channels, const int64_t* sums) {
          for (int64_t row = first; row < first + count; ++row, sums += channels)
            words_.Finish(n, channel, channels, sums, part.at + row * width + channel);
        });
  }

  ProductSums Sums(const ProductState& state) const override {
    return {FBX_I64, state.task.shape.n, state.words_plan.chunk};
  }

  void Sum(const Node& n, const ProductState& state, const void* input, uint32_t, int64_t first,
           int64_t count, void* sums) const override {
    const ProductShape& s = state.task.shape;
    Multiply(IntegerProduct<int64_t>{static_cast<const int16_t*>(input) + first * s.k, s.k,
                                     words_.Weights(n, state.words), s.k, static_cast<int64_t*>(sums), s.n,
                                     count, s.n, s.k, state.words_plan.wide});
  }

  void Finish(const Node& n, const ProductState&, int64_t, int64_t pixels, int64_t channels, void* sums,
              int64_t at) const override {
    const auto* from = static_cast<const int64_t*>(sums);
    for (int64_t i = 0; i < pixels; ++i, from += channels, at += channels)
      words_.Finish(n, 0, channels, from, at);
  }

 private:
  QuantizedWords words_;
};

}  // namespace

std::unique_ptr<const MatrixProduct> ProductOfWords(const Node& n, const ProductSpec& spec) {
  return std::make_unique<WordProduct>(n, spec);
}

}  // namespace fusebox::cpu
