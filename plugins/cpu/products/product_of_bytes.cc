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

  ProductState Prepare(const Node& n, Plan& plan, const ProductTask& task, int64_t samples) const override {
    ProductState state;
    state.bytes = bytes_.Prepare(n, plan, samples);
    state.bytes_plan = bytes_.PlanBytes(n, plan, task.shape, task.window != nullptr);
    return state;
  }

  const void* Begin(const Node& n, const ProductState& state, const ProductTask& task, int64_t samples,
                    const void* input) const override {
    const int8_t* const rows = bytes_.Bytes(n, state.bytes, samples, input);
    if (!bytes_.KeepsPacked(task.shape)) bytes_.PackNow(n, state.bytes, state.bytes_plan, task.shape);
    return rows;
  }

  void Run(const Node& n, const ProductState& state, const ProductTask& task) const override {
    const ProductShape& s = task.shape;
    const auto* const input = static_cast<const int8_t*>(task.input) + task.first_row * s.k;
    const bool first_row = task.window == nullptr && task.matrix == 0 && task.first_row == 0;
    if (first_row && bytes_.RunFirstRow(n, state.bytes, input, s, task.at)) return;
    const std::byte* const packed =
        bytes_.Packed(n, state.bytes_plan, s) + static_cast<size_t>(task.matrix) * bytes_.MatrixBytes(s);
    const auto pad = [&](int64_t image) { return bytes_.Pad(n, state.bytes, image); };
    bytes_.RunBytes(n,
                    {state.bytes, state.bytes_plan, s, packed, task.first_row, task.rows_per_sample, task.at},
                    [&](int64_t group, int64_t first, int64_t count, int8_t* patches) {
                      if (task.window == nullptr) return ByteProductRows{input + first * s.k, s.k};
                      CopyPatches(*task.window, input, group, first, count, patches, pad);
                      return ByteProductRows{patches, s.k};
                    });
  }

 private:
  QuantizedBytes bytes_;
};

}  // namespace

std::unique_ptr<const MatrixProduct> ProductOfBytes(const Node& n, const ProductSpec& spec) {
  return std::make_unique<ByteProduct>(n, spec);
}

}  // namespace fusebox::cpu
