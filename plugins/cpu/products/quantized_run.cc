// SPDX-License-Identifier: Apache-2.0
// Runs the products of QuantizedBytes.
#include <algorithm>
#include <type_traits>

#include "plugins/cpu/base/simd.h"
#include "plugins/cpu/products/quantized_bytes.h"

namespace fusebox::cpu {

BytePlan PlanBytes(Plan& plan, const ProductShape& s, bool copied, bool sums) {
  constexpr int64_t kLeast = 12;  // a multiple of the rows of all tiles, as is kMost
  constexpr int64_t kMost = 240;
  const auto slot = [&](int64_t bytes) { return plan.scratch(static_cast<size_t>(bytes)); };
  BytePlan p;
  p.workers = std::max(1u, plan.threads());
  p.chunk = std::clamp(math::kRowsBytes / std::max<int64_t>(1, s.k) / kLeast * kLeast, kLeast, kMost);
  p.chunk = std::min(p.chunk, std::max<int64_t>(1, s.m));
  p.copied = copied;
  const int64_t rows = Product(p.chunk, p.workers);
  if (copied) p.rows_slot = slot(Product(rows, s.k));
  p.terms_slot = slot(Product(rows, 2 * sizeof(int32_t)));
  p.sums = sums;
  if (sums) p.sums_slot = slot(Product(rows, static_cast<int64_t>(SumsWidth() * sizeof(int32_t))));
  return p;
}

void FlipRows(ByteTask& product, bool rows_are_unsigned, int8_t* to) {
  const ByteKernels& code = BestByteKernels();
  if (!code.signs.Flips(rows_are_unsigned)) return;
  code.flip(product.rows, product.count, product.stride, product.layout.k, to);
  product.rows = to;
  product.stride = product.layout.k;
}

// A convolution whose input got other channels has other groups.
bool QuantizedBytes::KeepsPacked(const ProductShape& s) const {
  return weights_ && weights_->channels == s.n && weights_->depth == s.k && weights_->lines == s.lines &&
         s.n > 0;
}

ByteLayout QuantizedBytes::LayoutOf(const ProductShape& s, bool kept) const {
  const bool int4 = kept && weights_->int4;
  const ByteKernels& code = BestByteKernels();
  const TapLines& lines = s.lines;
  const int64_t columns = lines.taps > 0 ? s.k / lines.taps * lines.padded() * lines.pixels : s.k;
  return {code.lanes, static_cast<size_t>(s.n), static_cast<size_t>(columns), int4,
          int4 || operands_.taps ? 4 : code.unit};
}

// Times the sum of a row of weights, this is taken from a product of the input's bytes.
int32_t QuantizedBytes::InputOffset() const {
  return hybrid_ ? 0 : input_zero_ + BestByteKernels().signs.Offset(unsigned_);
}

// Counts the matrices of the weights: groups of a convolution, or the leading dims of a matrix.
int64_t QuantizedBytes::Matrices(const Node& n, int64_t channels, int64_t depth) const {
  const Shape dims(n.in(operands_.weights));
  if (channels > 0 && depth > 0) return Count(dims) / Product(channels, depth);
  return Count({dims.begin(), static_cast<size_t>(std::max(0, dims.rank() - 2))});
}

BytePlan QuantizedBytes::PlanBytes(const Node& n, Plan& plan, const ProductShape& s, bool copied) const {
  const bool kept = KeepsPacked(s);
  copied = copied || BestByteKernels().signs.Flips(unsigned_);
  BytePlan p = cpu::PlanBytes(plan, s, copied, hybrid_ || (kept && weights_->int4));
  p.kept = kept;
  p.layout = LayoutOf(s, kept);
  p.matrix_bytes = PackedMatrix::Bytes(p.layout);
  if (!kept) {
    const int64_t bytes = Product(Matrices(n, s.n, s.k), static_cast<int64_t>(p.matrix_bytes));
    p.packed_slot = plan.scratch(static_cast<size_t>(bytes));
  }
  return p;
}

void QuantizedBytes::PackNow(const Node& n, const State& state, const BytePlan& plan,
                             const ProductShape& s) const {
  const auto count = static_cast<size_t>(n.in(operands_.weights).count());
  int16_t* const values = n.scratch<int16_t>(state.weights);
  if (!weights_) {
    UnpackWeights(n, operands_, values, Rearranges(operands_) ? n.scratch<int16_t>(state.stored) : nullptr);
    return Pack(std::span<const int16_t>(values, count), Matrices(n, s.n, s.k), s,
                n.scratch<std::byte>(plan.packed_slot));
  }
  // Constant weights of other groups than those that are kept.
  std::vector<int16_t> constant(count);
  std::vector<int16_t> stored(Rearranges(operands_) ? count : 0);
  UnpackWeights(n, operands_, constant.data(), stored.data());
  Pack(std::span<const int16_t>(constant), Matrices(n, s.n, s.k), s, n.scratch<std::byte>(plan.packed_slot));
}

const std::byte* QuantizedBytes::Packed(const Node& n, const BytePlan& plan) const {
  if (!plan.kept) return n.scratch<std::byte>(plan.packed_slot);
  PackOnce(n);
  return weights_->packed->data<std::byte>();
}

const int8_t* QuantizedBytes::Bytes(const Node& n, const State& state, int64_t samples,
                                    const void* input) const {
  Start(n);
  if (!hybrid_) return static_cast<const int8_t*>(input);
  auto* const to = n.scratch<int8_t>(state.input);
  const int64_t count = n.in(operands_.input).count();
  if (count > 0) QuantizeSamples(n, state, samples, count / samples, static_cast<const float*>(input), to);
  return to;
}

int8_t QuantizedBytes::Pad(const Node& n, const State& state, int64_t sample) const {
  return static_cast<int8_t>(hybrid_ ? n.scratch<int32_t>(state.zeros)[sample] : input_zero_);
}

ByteResults QuantizedBytes::Results(const Node& n) const {
  return {&factors_->scales, n.has_in(operands_.bias) ? n.in(operands_.bias).data<const int32_t>() : nullptr};
}

ByteTask QuantizedBytes::TaskOf(const Node& n, const BytesTask& task, const ByteTile& part,
                                ByteProductRows rows, const PackedMatrix& m) const {
  const ByteKernels& code = BestByteKernels();
  const auto count = static_cast<size_t>(part.count);
  ByteTask product{.rows = rows.at,
                   .count = count,
                   .stride = static_cast<size_t>(rows.stride),
                   .layout = m.layout,
                   .weights = m.values};
  const int32_t* const zeros = hybrid_ ? n.scratch<int32_t>(task.state.zeros) : nullptr;
  const auto zero_of = [&](size_t r) {
    return zeros ? zeros[task.SampleOf(part.first + static_cast<int64_t>(r))] : input_zero_;
  };
  if (hybrid_) {
    for (size_t r = 0; r < count; ++r) part.terms[0][r] = -(zero_of(r) + code.signs.Offset(false));
    product.terms[0] = {m.sums, part.terms[0]};
  } else {
    product.start = m.start;
  }
  if (*m.any_zeros != 0) {
    code.sum_rows(rows.at, count, product.stride, m.layout.k, unsigned_, 0, part.terms[1]);
    for (size_t r = 0; r < count; ++r) part.terms[1][r] -= static_cast<int32_t>(task.shape.k) * zero_of(r);
    product.terms[1] = {m.zeros, part.terms[1]};
  }
  return product;
}

void QuantizedBytes::RunPart(const Node& n, const BytesTask& task, const ByteTile& part,
                             ByteProductRows rows) const {
  const ProductShape& s = task.shape;
  const PackedMatrix m(task.plan.layout, const_cast<std::byte*>(task.packed) +
                                             static_cast<size_t>(part.group) * task.plan.matrix_bytes);
  ByteTask product = TaskOf(n, task, part, rows, m);
  FlipRows(product, unsigned_, part.rows);
  if (hybrid_ || m.layout.int4) return FinishPart(n, task, part, product);
  const int64_t width = s.n * s.groups;
  const int64_t channel = part.group * s.n;
  const ByteResults results = Results(n);
  BestByteKernels().multiply_and_store(
      {product, &results, static_cast<size_t>(channel),
       n.out(0).data<uint8_t>() + task.at + part.first * width + channel, static_cast<size_t>(width)},
      part.begin, part.end);
}

void QuantizedBytes::RunSums(const Node& n, const BytesTask& task, uint32_t worker, int64_t first,
                             int64_t count, ByteProductRows rows, int32_t* sums, int64_t stride) const {
  const ByteLayout& layout = task.plan.layout;
  const PackedMatrix m(layout, const_cast<std::byte*>(task.packed));
  int32_t* const terms = n.scratch<int32_t>(task.plan.terms_slot) + 2 * worker * task.plan.chunk;
  const ByteTile part{0,      first, count, 0, PanelGroups(layout), nullptr, {terms, terms + task.plan.chunk},
                      nullptr};
  ByteTask product = TaskOf(n, task, part, rows, m);
  FlipRows(product, unsigned_,
           n.scratch<int8_t>(task.plan.rows_slot) + worker * task.plan.chunk * task.shape.k);
  BestByteKernels().multiply(product, sums, static_cast<size_t>(stride), part.begin, part.end);
}

void QuantizedBytes::RunTaps(const Node& n, const TapsTask& task) const {
  const ByteKernels& code = BestByteKernels();
  const ProductShape& s = task.shape;
  const ByteLayout& layout = task.plan.layout;
  const PackedMatrix m(layout, const_cast<std::byte*>(task.packed));
  const int32_t zero = hybrid_ ? n.scratch<int32_t>(task.state.zeros)[task.sample] : input_zero_;
  const ByteResults results = hybrid_ ? ByteResults{} : Results(n);
  code.depthwise({.lines = reinterpret_cast<const uint8_t* const*>(task.lines),
                  .line_count = static_cast<size_t>(s.k / s.lines.taps),
                  .taps = static_cast<size_t>(s.lines.taps),
                  .together = static_cast<size_t>(s.lines.pixels),
                  .step = static_cast<size_t>(s.lines.step),
                  .pixel_step = static_cast<size_t>(task.pixel_step),
                  .tap_step = static_cast<size_t>(task.tap_step),
                  .pixels = static_cast<size_t>(task.pixels),
                  .flipped = code.signs.Flips(unsigned_),
                  .layout = layout,
                  .weights = m.values,
                  .sums = m.sums,
                  .zeros = *m.any_zeros != 0 ? m.zeros : nullptr,
                  .offset = zero + code.signs.Offset(unsigned_),
                  .results = hybrid_ ? nullptr : &results,
                  .out = hybrid_ ? static_cast<void*>(task.sums) : n.out(0).data<uint8_t>() + task.at});
  for (int64_t p = 0; hybrid_ && p < task.pixels; ++p)
    Finish(n, task.state, task.sample, 0, s.n, task.sums + p * s.n, task.at + p * s.n);
}

void QuantizedBytes::FinishPart(const Node& n, const BytesTask& task, const ByteTile& part,
                                const ByteTask& product) const {
  const ByteKernels& code = BestByteKernels();
  const ProductShape& s = task.shape;
  const auto width = static_cast<int64_t>(SumsWidth());
  for (size_t group = part.begin; group < part.end; ++group) {
    code.multiply(product, part.sums, SumsWidth(), group, group + 1);
    const int64_t first = static_cast<int64_t>(group) * width;
    const int64_t channel = part.group * s.n + first;
    for (int64_t r = 0; r < part.count; ++r)
      Finish(n, task.state, task.SampleOf(part.first + r), channel, std::min(width, s.n - first),
             part.sums + r * width, task.at + (part.first + r) * s.n * s.groups + channel);
  }
}

}  // namespace fusebox::cpu
