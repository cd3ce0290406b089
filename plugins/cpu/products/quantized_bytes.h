// SPDX-License-Identifier: Apache-2.0
// Products of i8 and u8 rows, and of f32 rows that each invoke quantizes to bytes (hybrid), with packed
// weights. Sums of 32 bits become results of the input's dtype.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include <fusebox/weights.hpp>

#include "plugins/common/once.h"
#include "plugins/cpu/base/activation.h"
#include "plugins/cpu/products/byte_tiles.h"
#include "plugins/cpu/products/integer_gemm.h"
#include "plugins/cpu/products/quantized_weights.h"

namespace fusebox::cpu {

class QuantizedBytes {
 public:
  struct State {
    uint32_t input = 0;
    uint32_t scales = 0;
    uint32_t zeros = 0;
    uint32_t weights = 0;
    uint32_t stored = 0;
  };

  QuantizedBytes() = default;
  // `asymmetric`: the input of the hybrid form has a zero point.
  QuantizedBytes(const Node& n, ProductOperands o, Activation activation, bool asymmetric);

  bool hybrid() const { return hybrid_; }
  // In init. Constant weights are kept packed as matrices [channels, depth] ([depth, channels] if
  // transposed): for a store at once, otherwise from the first invoke on.
  void KeepPacked(const Node& n, int64_t channels, int64_t depth, TapLines lines = {});
  // In an invoke with weights that are not kept packed: packs them.
  void PackNow(const Node& n, const State& state, const BytePlan& plan, const ProductShape& shape) const;
  // The packed matrices. Any thread.
  const std::byte* Packed(const Node& n, const BytePlan& plan) const;
  // Each invoke begins with this.
  void Start(const Node& n) const;
  // Returns the input as bytes; a hybrid input is quantized by samples. Padding of a sample has the value
  // Pad.
  const int8_t* Bytes(const Node& n, const State& state, int64_t samples, const void* input) const;
  int8_t Pad(const Node& n, const State& state, int64_t sample) const;
  // Products with matrices of `shape`, from `packed` on, for all groups. rows(group, first, count, scratch)
  // returns ByteProductRows; row r is of the sample (first_row + r) / rows_per_sample; its results begin at
  // element `at` + r * groups * n.
  struct BytesTask {
    const State& state;
    const BytePlan& plan;
    const ProductShape& shape;
    const std::byte* packed;
    int64_t first_row, rows_per_sample, at;

    int64_t SampleOf(int64_t row) const { return (first_row + row) / rows_per_sample; }
  };
  template <class Rows>
  void RunBytes(const Node& n, const BytesTask& task, const Rows& rows) const {
    ForByteTiles(n, task.plan, task.shape, [&](const ByteTile& part) {
      RunPart(n, task, part, rows(part.group, part.first, part.count, part.rows));
    });
  }
  // The sums of rows [first, first + count) of one product, all its columns, `stride` apart (a multiple of
  // SumsWidth). `worker`: of the plan.
  void RunSums(const Node& n, const BytesTask& task, uint32_t worker, int64_t first, int64_t count,
               ByteProductRows rows, int32_t* sums, int64_t stride) const;
  // The first product of one row with constant weights, without packing them; false: not done. `input`: from
  // Bytes. `at`: element of the result.
  bool RunFirstRow(const Node& n, const State& state, const BytePlan& plan, const int8_t* input,
                   const ProductShape& shape, int64_t at) const;
  // Output pixels of a depthwise convolution, of one sample, from element `at` of the result on. The shape's
  // columns are channels, its depth the taps. Lines and steps as in ByteTaps.
  // `sums`: [pixels][channels], if hybrid.
  struct TapsTask {
    const State& state;
    const BytePlan& plan;
    const ProductShape& shape;
    const std::byte* packed;
    const int8_t* const* lines;
    int64_t pixel_step, tap_step, pixels, sample, at;
    int32_t* sums;
  };
  void RunTaps(const Node& n, const TapsTask& task) const;
  BytePlan PlanBytes(const Node& n, Plan& plan, const ProductShape& shape, bool copied) const;
  // `samples`: parts of a hybrid input with separate scales.
  State Prepare(const Node& n, Plan& plan, int64_t samples) const;
  // Writes `count` channels of the result from element `at` on, from their sums.
  void Finish(const Node& n, const State& state, int64_t sample, int64_t first_channel, int64_t count,
              const int32_t* sums, int64_t at) const;

  // The same for all channels of some pixels. Changes the sums.
  void FinishPixels(const Node& n, const State& state, int64_t sample, int64_t pixels, int64_t channels,
                    int32_t* sums, int64_t at) const;

 private:
  struct Constant {
    LatePackedWeights packed;
    int64_t channels = 0;  // N of the packed matrices
    int64_t depth = 0;     // K
    TapLines lines;
    bool int4 = false;               // packed as 4-bit weights
    std::atomic<bool> used = false;  // by a product of one row
  };
  // Scales of sums, per channel or one. The first invoke makes them.
  struct Factors {
    common::Once make;
    ByteScales scales;
  };

  void QuantizeSamples(const Node& n, const State& state, int64_t samples, int64_t each, const float* from,
                       int8_t* to) const;
  // Constant weights for this shape are kept packed.
  bool KeepsPacked(const ProductShape& shape) const;
  int64_t Matrices(const Node& n, int64_t channels, int64_t depth) const;
  ByteLayout LayoutOf(const ProductShape& shape, bool kept) const;
  ProductShape KeptShape() const { return {0, weights_->channels, weights_->depth, 1, weights_->lines}; }
  void PackInt4(const Node& n, std::byte* to) const;
  int32_t InputOffset() const;
  void PackOnce(const Node& n) const;
  void PackConstant(const Node& n, std::byte* to) const;
  template <class T>
  void Pack(std::span<const T> rows, int64_t matrices, const ProductShape& shape, std::byte* to) const;
  ByteResults Results(const Node& n) const;
  FloatResults FloatsOf(const Node& n) const;  // of a hybrid product
  void RunPart(const Node& n, const BytesTask& task, const ByteTile& part, ByteProductRows rows) const;
  ByteTask TaskOf(const Node& n, const BytesTask& task, const ByteTile& part, ByteProductRows rows,
                  const PackedMatrix& m) const;
  void FinishPart(const Node& n, const BytesTask& task, const ByteTile& part, const ByteTask& product) const;
  ProductOperands operands_;
  Activation activation_ = Activation::kNone;
  bool hybrid_ = false;
  bool asymmetric_ = false;
  bool unsigned_ = false;
  int32_t input_zero_ = 0;
  std::unique_ptr<Constant> weights_;  // null: computed
  std::unique_ptr<Factors> factors_;   // null: hybrid
};

}  // namespace fusebox::cpu
