// SPDX-License-Identifier: Apache-2.0
// QuantizedProduct on packed 8-bit weights: bytes and hybrid.
#include <algorithm>
#include <type_traits>

#include "plugins/cpu/quantized_product.h"
#include "plugins/cpu/simd.h"

namespace fusebox::cpu {

BytePlan PlanBytes(Plan& plan, const ProductShape& s, bool copied, bool sums) {
  constexpr int64_t kCacheBytes = 64 * 1024, kLeast = 12, kMost = 240;  // multiples of all tiles
  const auto slot = [&](int64_t bytes) { return plan.scratch(static_cast<size_t>(bytes)); };
  BytePlan p;
  p.workers = std::max(1u, plan.threads());
  p.chunk = std::clamp(kCacheBytes / std::max<int64_t>(1, s.depth) / kLeast * kLeast, kLeast, kMost);
  p.chunk = std::min(p.chunk, std::max<int64_t>(1, s.rows));
  p.copied = copied;
  const int64_t rows = Product(p.chunk, p.workers);
  if (copied) p.rows_slot = slot(Product(rows, s.depth));
  p.terms_slot = slot(Product(rows, 2 * sizeof(int32_t)));
  p.sums = sums;
  if (sums) p.sums_slot = slot(Product(rows, static_cast<int64_t>(SumsWidth() * sizeof(int32_t))));
  return p;
}

void QuantizedProduct::KeepPacked(const Node& n, int64_t channels, int64_t depth, TapLines lines) {
  if (!packed() || !weights_ || channels <= 0 || depth <= 0) return;
  weights_->channels = channels;
  weights_->depth = depth;
  weights_->lines = lines;
  weights_->halves = four_bits_ && !Rearranges() && depth % 2 == 0;
  if (keeps_weights(n.host())) PackOnce(n);
}

// A convolution whose input got other channels has other groups.
bool QuantizedProduct::KeepsPacked(const ProductShape& s) const {
  return weights_ && weights_->channels == s.columns && weights_->depth == s.depth &&
         weights_->lines == s.lines && s.columns > 0;
}

ByteLayout QuantizedProduct::LayoutOf(const ProductShape& s, bool kept) const {
  const bool halves = kept && weights_->halves;
  const ByteCode& code = BestByteCode();
  const TapLines& lines = s.lines;
  const int64_t columns = lines.taps > 0 ? s.depth / lines.taps * lines.padded() * lines.pixels : s.depth;
  return {code.lanes, static_cast<size_t>(s.columns), static_cast<size_t>(columns), halves,
          halves || operands_.taps ? 4 : code.unit};
}

// 4-bit weights are packed plus 8, which is taken back by a multiple of the sum of the input.
void QuantizedProduct::PackHalves(const Node& n, std::byte* to) const {
  const ByteLayout layout = LayoutOf(KeptShape(), true);
  const auto* row = n.in(operands_.weights).data<const uint8_t>();
  const int32_t offset = InputOffset();
  const int64_t matrices = Matrices(n, weights_->channels, weights_->depth);
  for (int64_t matrix = 0; matrix < matrices; ++matrix, to += PackedMatrix::Bytes(layout)) {
    std::fill_n(to, PackedMatrix::Bytes(layout), std::byte{0});
    const PackedMatrix m(layout, to);
    *m.any_zeros = 1;
    for (size_t i = 0; i < layout.outputs; ++i, row += layout.columns / 2) {
      m.zeros[i] = -8;
      m.sums[i] = common::PackHalvesRow(layout, i, row, m.values);
      m.start[i] = -offset * m.sums[i];
    }
  }
}

// What a product of the input's bytes has to be reduced by, times the sum of a row of weights.
int32_t QuantizedProduct::InputOffset() const {
  return hybrid_ ? 0 : input_zero_ + BestByteCode().signs.Offset(unsigned_);
}

void QuantizedProduct::PackOnce(const Node& n) const {
  weights_->packed.make_once([&] {
    const ByteLayout layout = LayoutOf(KeptShape(), true);
    const TapLines& lines = weights_->lines;
    const size_t each = PackedMatrix::Bytes(layout);
    PackedWeights::Recipe recipe{.what = "bytes"};
    recipe.numbers = {static_cast<int64_t>(layout.lanes),
                      static_cast<int64_t>(layout.unit),
                      layout.halves,
                      InputOffset(),
                      weights_->channels,
                      weights_->depth,
                      operands_.by_tap,
                      operands_.transposed,
                      lines.taps,
                      lines.step,
                      lines.pixels};
    recipe.sources = {n.in(operands_.weights)};
    recipe.size = static_cast<size_t>(Matrices(n, weights_->channels, weights_->depth)) * each;
    return PackedWeights(n, recipe, [&](void* to) { PackConstant(n, static_cast<std::byte*>(to)); });
  });
}

void QuantizedProduct::PackConstant(const Node& n, std::byte* to) const {
  const int64_t channels = weights_->channels, depth = weights_->depth;
  const Tensor w = n.in(operands_.weights);
  const auto count = static_cast<size_t>(w.count());
  const fbx_quant& q = *w.quant();
  const bool as_stored = w.dtype() == FBX_I8 && std::all_of(q.zero_points, q.zero_points + q.count,
                                                            [](int64_t z) { return z == 0; });
  const int64_t matrices = Matrices(n, channels, depth);
  if (weights_->halves) {
    PackHalves(n, to);
  } else if (as_stored) {
    std::vector<int8_t> rows(Rearranges() ? count : 0);
    if (Rearranges()) Transpose(n, w.data<const int8_t>(), rows.data());
    Pack(std::span(Rearranges() ? rows.data() : w.data<const int8_t>(), count), matrices, KeptShape(), to);
  } else {
    std::vector<int16_t> rows(count);
    UnpackConstant(n, rows.data());
    Pack(std::span<const int16_t>(rows), matrices, KeptShape(), to);
  }
}

// Of the weights: groups of a convolution, or the leading dims of a matrix.
int64_t QuantizedProduct::Matrices(const Node& n, int64_t channels, int64_t depth) const {
  const Shape dims(n.in(operands_.weights));
  if (channels > 0 && depth > 0) return Count(dims) / Product(channels, depth);
  return Count({dims.begin(), static_cast<size_t>(std::max(0, dims.rank() - 2))});
}

size_t QuantizedProduct::MatrixBytes(const ProductShape& s) const {
  return PackedMatrix::Bytes(LayoutOf(s, KeepsPacked(s)));
}

BytePlan QuantizedProduct::PlanBytes(const Node& n, Plan& plan, const ProductShape& s, bool copied) const {
  BytePlan p = cpu::PlanBytes(plan, s, copied, hybrid_ || (KeepsPacked(s) && weights_->halves));
  if (!KeepsPacked(s)) {
    const auto each = static_cast<int64_t>(MatrixBytes(s));
    p.packed_slot = plan.scratch(static_cast<size_t>(Product(Matrices(n, s.columns, s.depth), each)));
  }
  return p;
}

const std::byte* QuantizedProduct::Packed(const Node& n, const State& state, const BytePlan& plan,
                                          const ProductShape& s) const {
  if (KeepsPacked(s)) {
    PackOnce(n);
    return weights_->packed->data<std::byte>();
  }
  auto* const to = n.scratch<std::byte>(plan.packed_slot);
  Pack(std::span(Weights(n, state), static_cast<size_t>(n.in(operands_.weights).count())),
       Matrices(n, s.columns, s.depth), s, to);
  return to;
}

namespace {

int32_t SumOf(std::span<const int8_t> row) {
  int32_t sum = 0;
  Vectorized([&]() FUSEBOX_INLINE {
    int32_t local = 0;
    for (const int8_t v : row) local += v;
    sum = local;
  });
  return sum;
}

// The values minus their zero points of a row span less than 256 numbers: they are moved into the range of a
// byte, by a multiple of the sum of the input.
int32_t MovedBytes(std::span<const int16_t> row, std::vector<int8_t>& bytes) {
  int32_t moved = 0;
  Vectorized([&]() FUSEBOX_INLINE {
    int16_t least = row[0], most = row[0];
    for (const int16_t v : row) least = std::min(least, v), most = std::max(most, v);
    const int32_t by = least >= -128 && most <= 127 ? 0 : least + 128;
    int8_t* const to = bytes.data();
    for (size_t k = 0; k < row.size(); ++k) to[k] = static_cast<int8_t>(row[k] - by);
    moved = by;
  });
  return moved;
}

// The lines of a window for each pixel, in fours. What lies between them stays as it is.
template <class T>
void SpreadLines(std::span<const T> window, const TapLines& lines, std::span<T> to) {
  auto at = to.begin();
  for (int64_t pixel = 0; pixel < lines.pixels; ++pixel) {
    for (auto line = window.begin(); line < window.end(); line += lines.taps, at += lines.padded())
      std::copy_n(line, lines.taps, at + pixel * lines.step);
  }
}

}  // namespace

// `rows`: 8-bit values without zero points, or values minus their zero points.
template <class T>
void QuantizedProduct::Pack(std::span<const T> rows, int64_t matrices, const ProductShape& shape,
                            std::byte* to) const {
  const int32_t offset = InputOffset();
  const ByteLayout layout = LayoutOf(shape, false);
  const auto depth = static_cast<size_t>(shape.depth);
  std::vector<int8_t> moved(layout.columns);
  std::vector<T> spread(shape.lines.taps > 0 ? layout.columns : 0);
  for (int64_t matrix = 0; matrix < matrices; ++matrix, to += PackedMatrix::Bytes(layout)) {
    std::fill_n(to, PackedMatrix::Bytes(layout), std::byte{0});
    const PackedMatrix m(layout, to);
    for (size_t i = 0; i < layout.outputs && depth > 0; ++i) {
      auto row = rows.first(depth);
      rows = rows.subspan(depth);
      if (!spread.empty()) {
        SpreadLines<T>(row, shape.lines, spread);
        row = spread;
      }
      std::span<const int8_t> bytes = moved;
      if constexpr (std::is_same_v<T, int8_t>) bytes = row;
      else m.zeros[i] = MovedBytes(row, moved);
      if (m.zeros[i] != 0) *m.any_zeros = 1;
      common::PackByteRow(layout, i, bytes.data(), m.values);
      m.sums[i] = SumOf(bytes.first(layout.columns / static_cast<size_t>(shape.lines.pixels)));
      m.start[i] = -offset * m.sums[i];
    }
  }
}

const int8_t* QuantizedProduct::Bytes(const Node& n, const State& state, int64_t samples,
                                      const float* floats) const {
  const Tensor in = n.in(operands_.input);
  if (factors_) factors_->make([&] { MakeFactors(n); });
  if (!hybrid_) return in.data<const int8_t>();
  auto* const to = n.scratch<int8_t>(state.input);
  if (in.count() > 0)
    QuantizeSamples(n, state, samples, in.count() / samples, floats ? floats : in.data<const float>(), to);
  return to;
}

int8_t QuantizedProduct::Pad(const Node& n, const State& state, int64_t sample) const {
  return static_cast<int8_t>(hybrid_ ? n.scratch<int32_t>(state.zeros)[sample] : input_zero_);
}

ByteResults QuantizedProduct::Results(const Node& n) const {
  return {&factors_->bytes, n.has_in(operands_.bias) ? n.in(operands_.bias).data<const int32_t>() : nullptr};
}

ByteTask QuantizedProduct::TaskOf(const Node& n, const BytesTask& task, const BytePart& part,
                                  ByteProductRows rows, const PackedMatrix& m) const {
  const ByteCode& code = BestByteCode();
  const auto count = static_cast<size_t>(part.count);
  ByteTask product{.rows = rows.at,
                   .count = count,
                   .stride = static_cast<size_t>(rows.stride),
                   .flipped = code.signs.Flips(unsigned_),
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
    code.sum_rows(rows.at, count, product.stride, m.layout.columns, unsigned_, 0, part.terms[1]);
    for (size_t r = 0; r < count; ++r)
      part.terms[1][r] -= static_cast<int32_t>(task.shape.depth) * zero_of(r);
    product.terms[1] = {m.zeros, part.terms[1]};
  }
  return product;
}

void QuantizedProduct::RunPart(const Node& n, const BytesTask& task, const BytePart& part,
                               ByteProductRows rows) const {
  const ProductShape& s = task.shape;
  const ByteLayout layout = LayoutOf(s, KeepsPacked(s));
  const PackedMatrix m(layout, const_cast<std::byte*>(task.packed) +
                                   static_cast<size_t>(part.group) * PackedMatrix::Bytes(layout));
  const ByteTask product = TaskOf(n, task, part, rows, m);
  if (hybrid_ || layout.halves) return FinishPart(n, task, part, product);
  const int64_t width = s.columns * s.groups, channel = part.group * s.columns;
  const ByteResults results = Results(n);
  BestByteCode().multiply_and_store(
      {product, &results, static_cast<size_t>(channel),
       n.out(0).data<uint8_t>() + task.at + part.first * width + channel, static_cast<size_t>(width)},
      part.begin, part.end);
}

void QuantizedProduct::RunSums(const Node& n, const BytesTask& task, uint32_t worker, int64_t first,
                               int64_t count, ByteProductRows rows, int32_t* sums, int64_t stride) const {
  const ByteLayout layout = LayoutOf(task.shape, KeepsPacked(task.shape));
  const PackedMatrix m(layout, const_cast<std::byte*>(task.packed));
  int32_t* const terms = n.scratch<int32_t>(task.plan.terms_slot) + 2 * worker * task.plan.chunk;
  const BytePart part{0,      first, count, 0, PanelGroups(layout), nullptr, {terms, terms + task.plan.chunk},
                      nullptr};
  BestByteCode().multiply(TaskOf(n, task, part, rows, m), sums, static_cast<size_t>(stride), part.begin,
                          part.end);
}

void QuantizedProduct::RunTaps(const Node& n, const TapsTask& task) const {
  const ByteCode& code = BestByteCode();
  const ProductShape& s = task.shape;
  const ByteLayout layout = LayoutOf(s, false);
  const PackedMatrix m(layout, const_cast<std::byte*>(task.packed));
  const int32_t zero = hybrid_ ? n.scratch<int32_t>(task.state.zeros)[task.sample] : input_zero_;
  const ByteResults results = hybrid_ ? ByteResults{} : Results(n);
  code.depthwise({.lines = reinterpret_cast<const uint8_t* const*>(task.lines),
                  .line_count = static_cast<size_t>(s.depth / s.lines.taps),
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
    Finish(n, task.state, task.sample, 0, s.columns, task.sums + p * s.columns, task.at + p * s.columns);
}

void QuantizedProduct::FinishPart(const Node& n, const BytesTask& task, const BytePart& part,
                                  const ByteTask& product) const {
  const ByteCode& code = BestByteCode();
  const ProductShape& s = task.shape;
  const auto width = static_cast<int64_t>(SumsWidth());
  for (size_t group = part.begin; group < part.end; ++group) {
    code.multiply(product, part.sums, SumsWidth(), group, group + 1);
    const int64_t first = static_cast<int64_t>(group) * width, channel = part.group * s.columns + first;
    for (int64_t r = 0; r < part.count; ++r)
      Finish(n, task.state, task.SampleOf(part.first + r), channel, std::min(width, s.columns - first),
             part.sums + r * width, task.at + (part.first + r) * s.columns * s.groups + channel);
  }
}

}  // namespace fusebox::cpu
