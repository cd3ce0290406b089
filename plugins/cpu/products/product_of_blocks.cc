// SPDX-License-Identifier: Apache-2.0
// Products of f32 rows, quantized per row at run time, with constant weights of 4 or 8 bits that have a scale
// per block of a row. Sums of a block are exact integers.
#include <algorithm>
#include <vector>

#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/base/simd.h"
#include "plugins/cpu/products/matrix_product.h"

namespace fusebox::cpu {

namespace {

class BlockProduct final : public MatrixProduct {
 public:
  BlockProduct(const Node& n, const ProductSpec& spec);

  ProductState Prepare(const Node& n, Plan& plan, const ProductTask& task) const override;
  const void* Begin(const Node& n, const ProductState& state, const void* input) const override;
  void Run(const Node& n, const ProductState& state, const ProductPart& part) const override;

 private:
  // One block of all outputs: packed weights, and by output their sum and scale.
  struct Block {
    int8_t* values;
    int32_t* sums;
    float* scales;
  };
  ByteLayout Layout(const Node& n) const;
  // `packed` begins with the values of all blocks; then come their sums and scales.
  static Block BlockAt(std::byte* packed, size_t blocks, size_t block, const ByteLayout& layout);
  void PackOnce(const Node& n) const;
  size_t PackedBytes(const Node& n) const;
  void Pack(const Node& n, std::byte* to) const;
  void RunPart(const Node& n, const ProductState& state, const ProductShape& shape, const ByteTile& part,
               const int8_t* rows) const;
  void AddBlock(const ByteTile& part, const Block& block, size_t first, size_t columns, float* y,
                size_t stride) const;
  void Finish(const Node& n, const ProductState& state, const ByteTile& part, size_t first, size_t columns,
              float* y, size_t stride) const;

  int64_t block_;
  QuantizedBytes input_;  // quantizes the rows
  LatePackedWeights packed_;
};

BlockProduct::BlockProduct(const Node& n, const ProductSpec& spec)
    : MatrixProduct(spec),
      block_(n.in(operands_.weights).quant()->block_size),
      input_(n, operands_, activation_, spec.asymmetric) {
  if (keeps_weights(n.host())) PackOnce(n);
}

ProductState BlockProduct::Prepare(const Node& n, Plan& plan, const ProductTask& task) const {
  ProductState state{.task = task};
  state.bytes_plan = PlanBytes(plan, task.shape, BestByteKernels().signs.Flips(false), true);
  state.bytes = input_.Prepare(n, plan, task.samples);
  return state;
}

const void* BlockProduct::Begin(const Node& n, const ProductState& state, const void* input) const {
  return input_.Bytes(n, state.bytes, state.task.samples, input);
}

ByteLayout BlockProduct::Layout(const Node& n) const {
  const ByteKernels& code = BestByteKernels();
  return {.lanes = code.lanes,
          .n = static_cast<size_t>(n.in(operands_.weights).dim(0)),
          .k = static_cast<size_t>(block_),
          .unit = code.unit};
}

BlockProduct::Block BlockProduct::BlockAt(std::byte* packed, size_t blocks, size_t block,
                                          const ByteLayout& layout) {
  auto* const sums = reinterpret_cast<int32_t*>(packed + blocks * layout.bytes());
  auto* const scales = reinterpret_cast<float*>(sums + blocks * layout.padded());
  const size_t at = block * layout.padded();
  return {reinterpret_cast<int8_t*>(packed) + block * layout.bytes(), sums + at, scales + at};
}

void BlockProduct::PackOnce(const Node& n) const {
  packed_.make_once([&] {
    const ByteLayout layout = Layout(n);
    return PackedWeights(n,
                         {.what = "blocks",
                          .numbers = {static_cast<int64_t>(layout.lanes), static_cast<int64_t>(layout.unit)},
                          .sources = {n.in(operands_.weights)},
                          .size = PackedBytes(n)},
                         [&](void* to) { Pack(n, static_cast<std::byte*>(to)); });
  });
}

size_t BlockProduct::PackedBytes(const Node& n) const {
  const ByteLayout layout = Layout(n);
  const size_t blocks = static_cast<size_t>(n.in(operands_.weights).dim(1)) / layout.k;
  return blocks * (layout.bytes() + layout.padded() * (sizeof(int32_t) + sizeof(float)));
}

void BlockProduct::Pack(const Node& n, std::byte* to) const {
  const Tensor w = n.in(operands_.weights);
  const ByteLayout layout = Layout(n);
  const size_t depth = static_cast<size_t>(w.dim(1));
  const size_t blocks = depth / layout.k;
  std::fill_n(to, PackedBytes(n), std::byte{0});
  std::vector<int8_t> row(depth);
  for (size_t i = 0; i < layout.n; ++i) {
    const uint8_t* const from = w.data<const uint8_t>();
    for (size_t k = 0; k < depth; ++k) {
      const size_t at = i * depth + k;
      row[k] = w.dtype() == FBX_I8
                   ? static_cast<int8_t>(from[at])
                   : static_cast<int8_t>(((at % 2 ? from[at / 2] >> 4 : from[at / 2] & 0xF) ^ 8) - 8);
    }
    for (size_t b = 0; b < blocks; ++b) {
      const int8_t* const values = row.data() + b * layout.k;
      const Block block = BlockAt(to, blocks, b, layout);
      math::PackByteRow(layout, i, values, block.values);
      block.sums[i] = math::SumOfBytes(values, layout.k);
      block.scales[i] = w.quant()->scales[i * blocks + b];
    }
  }
}

void BlockProduct::Run(const Node& n, const ProductState& state, const ProductPart& part) const {
  const ProductShape& s = state.task.shape;
  if (s.m == 0 || s.n == 0) return;
  PackOnce(n);
  ForByteTiles(n, state.bytes_plan, s, [&](const ByteTile& tile) {
    RunPart(n, state, s, tile, static_cast<const int8_t*>(part.input));
  });
}

void BlockProduct::RunPart(const Node& n, const ProductState& state, const ProductShape& shape,
                           const ByteTile& part, const int8_t* rows) const {
  const ByteKernels& code = BestByteKernels();
  const ByteLayout layout = Layout(n);
  auto* const packed = const_cast<std::byte*>(packed_->data<std::byte>());  // is only read
  const auto depth = static_cast<size_t>(shape.k);
  const auto stride = static_cast<size_t>(shape.n);
  const int32_t* const zeros = n.scratch<int32_t>(state.bytes.zeros) + part.first;
  for (int64_t r = 0; r < part.count; ++r) part.terms[0][r] = -(zeros[r] + code.signs.Offset(false));
  ByteTask product{.rows = rows + static_cast<size_t>(part.first) * depth,
                   .count = static_cast<size_t>(part.count),
                   .stride = depth,
                   .layout = {.lanes = layout.lanes, .n = layout.n, .k = depth}};
  FlipRows(product, false, part.rows);
  const auto* const whole_rows = static_cast<const int8_t*>(product.rows);
  product.layout = layout;
  for (size_t group = part.begin; group < part.end; ++group) {
    const size_t first = group * SumsWidth();
    const size_t columns = std::min(SumsWidth(), layout.n - first);
    float* const y = n.out(0).data<float>() + static_cast<size_t>(part.first) * stride + first;
    for (size_t r = 0; r < product.count; ++r) std::fill_n(y + r * stride, columns, 0.0f);
    for (size_t b = 0; b * layout.k < depth; ++b) {
      const Block block = BlockAt(packed, depth / layout.k, b, layout);
      product.rows = whole_rows + b * layout.k;
      product.weights = block.values;
      product.terms[0] = {block.sums, part.terms[0]};
      code.multiply(product, part.sums, SumsWidth(), group, group + 1);
      AddBlock(part, block, first, columns, y, stride);
    }
    Finish(n, state, part, first, columns, y, stride);
  }
}

void BlockProduct::AddBlock(const ByteTile& part, const Block& block, size_t first, size_t columns, float* y,
                            size_t stride) const {
  Vectorized([&]() FUSEBOX_INLINE {
    const float* __restrict scales = block.scales + first;
    for (size_t r = 0; r < static_cast<size_t>(part.count); ++r) {
      const int32_t* __restrict sums = part.sums + r * SumsWidth();
      float* __restrict to = y + r * stride;
      for (size_t c = 0; c < columns; ++c) to[c] += static_cast<float>(sums[c]) * scales[c];
    }
  });
}

void BlockProduct::Finish(const Node& n, const ProductState& state, const ByteTile& part, size_t first,
                          size_t columns, float* y, size_t stride) const {
  const float* const scales = n.scratch<float>(state.bytes.scales) + part.first;
  const float* const bias =
      n.has_in(operands_.bias) ? n.in(operands_.bias).data<const float>() + first : nullptr;
  for (size_t r = 0; r < static_cast<size_t>(part.count); ++r) {
    float* const to = y + r * stride;
    for (size_t c = 0; c < columns; ++c) to[c] = to[c] * scales[r] + (bias ? bias[c] : 0.0f);
    Activate(activation_, to, columns);
  }
}

}  // namespace

bool HasBlocks(const Node& n, const ProductOperands& o) {
  return IsQuantized(n, o.weights) && n.in(o.weights).quant()->kind == FBX_QUANT_BLOCKWISE;
}

void SupportsBlocks(const Node& n, const ProductOperands& o) {
  const std::string subject = "operand " + std::to_string(o.weights);
  const Tensor w = n.in(o.weights);
  if (w.dtype() != FBX_I4 && w.dtype() != FBX_I8)
    throw Reject{"DTYPE", "blockwise scales of " + std::string(dtype_name(w.dtype())), subject};
  if (!w.is_const() || w.rank() != 2)
    throw Reject{"QUANT", "blockwise scales of weights that are no constant matrix", subject};
  if (n.in(o.input).dtype() != FBX_F32)
    throw Reject{"DTYPE", "blockwise scales, but activations are not f32", "operand 0"};
  const fbx_quant& q = *w.quant();
  const int64_t rows = w.dim(0);
  const int64_t columns = w.dim(1);
  if (q.block_size <= 0 || columns % q.block_size != 0 || q.count != rows * (columns / q.block_size))
    throw Reject{"QUANT",
                 std::to_string(q.count) + " scales for blocks of " + std::to_string(q.block_size) +
                     " weights in rows of " + std::to_string(columns),
                 subject};
  RequireScales(w, subject);
  if (!is_symmetric(q)) throw Reject{"QUANT", "blockwise scales with a zero point", subject};
  if (n.has_in(o.bias)) RequireDtype(n, o.bias, Types<float>{});
  RequireActivation(n, o.input);
}

std::unique_ptr<const MatrixProduct> ProductOfBlocks(const Node& n, const ProductSpec& spec) {
  return std::make_unique<BlockProduct>(n, spec);
}

}  // namespace fusebox::cpu
