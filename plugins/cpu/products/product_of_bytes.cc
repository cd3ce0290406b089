// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/products/matrix_product.h"

namespace fusebox::cpu {
namespace {

class ByteProduct final : public MatrixProduct {
 public:
  ByteProduct(const Node& n, const ProductSpec& spec)
      : MatrixProduct(spec), bytes_(n, spec.operands, spec.activation, spec.asymmetric) {
    bytes_.KeepPacked(n, spec.shape.n, spec.shape.k);
  }

  ProductState Prepare(const Node& n, Plan& plan, const ProductTask& task) const override {
    ProductState state{.task = task};
    state.bytes = bytes_.Prepare(n, plan, task.samples);
    state.bytes_plan = bytes_.PlanBytes(n, plan, task.shape, task.window.has_value());
    return state;
  }

  const void* Begin(const Node& n, const ProductState& state, const void* input) const override {
    const int8_t* const rows = bytes_.Bytes(n, state.bytes, state.task.samples, input);
    if (!state.bytes_plan.kept) bytes_.PackNow(n, state.bytes, state.bytes_plan, state.task.shape);
    return rows;
  }

  void Run(const Node& n, const ProductState& state, const ProductPart& part) const override {
    const ProductShape& s = state.task.shape;
    const auto* const input = static_cast<const int8_t*>(part.input) + part.first_row * s.k;
    const bool first_row = !state.task.window && part.matrix == 0 && part.first_row == 0;
    if (first_row && bytes_.RunFirstRow(n, state.bytes, state.bytes_plan, input, s, part.at)) return;
    const auto pad = [&](int64_t image) { return bytes_.Pad(n, state.bytes, image); };
    bytes_.RunBytes(n, TaskOf(n, state, part),
                    [&](int64_t group, int64_t first, int64_t count, int8_t* patches) {
                      if (!state.task.window) return ByteProductRows{input + first * s.k, s.k};
                      CopyPatches(*state.task.window, input, group, first, count, patches, pad);
                      return ByteProductRows{patches, s.k};
                    });
  }

  ProductSums Sums(const ProductState& state) const override {
    const auto width = static_cast<int64_t>(SumsWidth());
    return {FBX_I32, (state.task.shape.n + width - 1) / width * width, state.bytes_plan.chunk};
  }

  void Sum(const Node& n, const ProductState& state, const void* input, uint32_t worker, int64_t first,
           int64_t count, void* sums) const override {
    const int64_t k = state.task.shape.k;
    const ByteProductRows rows{static_cast<const int8_t*>(input) + first * k, k};
    bytes_.RunSums(n, TaskOf(n, state, {}), worker, first, count, rows, static_cast<int32_t*>(sums),
                   Sums(state).stride);
  }

  void Finish(const Node& n, const ProductState& state, int64_t sample, int64_t pixels, int64_t channels,
              void* sums, int64_t at) const override {
    bytes_.FinishPixels(n, state.bytes, sample, pixels, channels, static_cast<int32_t*>(sums), at);
  }

 private:
  QuantizedBytes::BytesTask TaskOf(const Node& n, const ProductState& state, const ProductPart& part) const {
    const BytePlan& plan = state.bytes_plan;
    return {state.bytes,      plan,
            state.task.shape, bytes_.Packed(n, plan) + static_cast<size_t>(part.matrix) * plan.matrix_bytes,
            part.first_row,   state.task.rows_per_sample,
            part.at};
  }

  QuantizedBytes bytes_;
};

}  // namespace

std::unique_ptr<const MatrixProduct> ProductOfBytes(const Node& n, const ProductSpec& spec) {
  return std::make_unique<ByteProduct>(n, spec);
}

}  // namespace fusebox::cpu
