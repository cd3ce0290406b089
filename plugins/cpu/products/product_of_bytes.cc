// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/products/matrix_product.h"

namespace fusebox::cpu {
namespace {

class ByteProduct final : public MatrixProduct {
 public:
  ByteProduct(const Node& n, const ProductSpec& spec)
      : MatrixProduct(spec), quantized_(n, spec.operands, spec.activation, spec.asymmetric) {
    quantized_.KeepPacked(n, spec.shape.n, spec.shape.k);
  }

  ProductState Prepare(const Node& n, Plan& plan, const ProductTask& task, int64_t samples) const override {
    ProductState state;
    state.quantized = quantized_.Prepare(n, plan, samples);
    state.bytes = quantized_.PlanBytes(n, plan, task.shape, task.window != nullptr);
    return state;
  }

  const void* Begin(const Node& n, const ProductState& state, const ProductTask& task, int64_t samples,
                    const void* input) const override {
    const int8_t* const rows = quantized_.Bytes(n, state.quantized, samples, input);
    if (!quantized_.KeepsPacked(task.shape)) quantized_.PackNow(n, state.quantized, state.bytes, task.shape);
    return rows;
  }

  void Run(const Node& n, const ProductState& state, const ProductTask& task) const override {
    const ProductShape& s = task.shape;
    const auto* const input = static_cast<const int8_t*>(task.input) + task.first_row * s.k;
    const bool first_row = task.window == nullptr && task.matrix == 0 && task.first_row == 0;
    if (first_row && quantized_.RunFirstRow(n, state.quantized, input, s, task.at)) return;
    const std::byte* const packed =
        quantized_.Packed(n, state.bytes, s) + static_cast<size_t>(task.matrix) * quantized_.MatrixBytes(s);
    const auto pad = [&](int64_t image) { return quantized_.Pad(n, state.quantized, image); };
    quantized_.RunBytes(
        n, {state.quantized, state.bytes, s, packed, task.first_row, task.rows_per_sample, task.at},
        [&](int64_t group, int64_t first, int64_t count, int8_t* patches) {
          if (task.window == nullptr) return ByteProductRows{input + first * s.k, s.k};
          CopyPatches(*task.window, input, group, first, count, patches, pad);
          return ByteProductRows{patches, s.k};
        });
  }

 private:
  QuantizedProduct quantized_;
};

}  // namespace

std::unique_ptr<const MatrixProduct> ProductOfBytes(const Node& n, const ProductSpec& spec) {
  return std::make_unique<ByteProduct>(n, spec);
}

}  // namespace fusebox::cpu
