// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/net.h"

#include <cmath>

namespace fusebox::bench {
namespace {

size_t Count(const Dims& dims) {
  size_t count = 1;
  for (const int64_t d : dims) count *= static_cast<size_t>(d);
  return count;
}

// Symmetric; the largest magnitude is `most`.
std::shared_ptr<const Quant> Scales(size_t channels, float most, int64_t fan_in) {
  auto quant = std::make_shared<Quant>();
  quant->scales = std::vector<float>(channels, 1 / (most * std::sqrt(static_cast<float>(fan_in))));
  quant->zero_points = std::vector<int64_t>(channels);
  return quant;
}

}  // namespace

// xorshift64: hundreds of megabytes are made, so that a better generator would be most of the time.
uint64_t WeightSource::Next() {
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  return state_;
}

Weights WeightSource::Float(Dims dims, int64_t fan_in) {
  const float scale = 1 / std::sqrt(static_cast<float>(fan_in));
  const size_t count = Count(dims);
  Buffer data = Buffer::Make(count * sizeof(float), [&](std::span<std::byte> bytes) {
    auto* const to = reinterpret_cast<float*>(bytes.data());
    for (size_t i = 0; i < count; ++i)
      to[i] = scale * static_cast<float>(static_cast<int32_t>(Next() >> 40) - (1 << 23)) / (1 << 23);
  });
  return {{DType::kF32, dims}, std::move(data), nullptr};
}

Weights WeightSource::Int8(Dims dims, int64_t fan_in) {
  const size_t count = Count(dims), channels = static_cast<size_t>(dims[0]);
  Buffer data = Buffer::Make(count, [&](std::span<std::byte> bytes) {
    for (std::byte& b : bytes)
      b = static_cast<std::byte>(std::max<int>(static_cast<int8_t>(Next() >> 56), -127));
  });
  return {{DType::kI8, dims}, std::move(data), Scales(channels, 127, fan_in)};
}

Weights WeightSource::Int4(Dims dims, int64_t fan_in) {
  Buffer data = Buffer::Make((Count(dims) + 1) / 2, [&](std::span<std::byte> bytes) {
    const auto half = [](uint64_t random) { return static_cast<int>((random >> 32) % 15 + 9) & 0xF; };
    for (std::byte& b : bytes) b = static_cast<std::byte>(half(Next()) | half(Next()) << 4);
  });
  return {{DType::kI4, dims}, std::move(data), Scales(static_cast<size_t>(dims[0]), 7, fan_in)};
}

ValueId Net::Constant(const Weights& weights) {
  const ValueId id = f_.AddConst(weights.type, weights.data);
  f_.value(id).quant = weights.quant;
  return id;
}

ValueId Net::Integers(const std::vector<int32_t>& values) {
  return f_.AddConst<int32_t>(DType::kI32, {static_cast<int64_t>(values.size())}, values);
}

ValueId Net::Node(Op op, std::vector<ValueId> operands, Dims result, Attrs attrs) {
  return f_.AddNode(op, std::move(operands), {{DType::kF32, std::move(result)}}, std::move(attrs)).results[0];
}

ValueId Net::Reshape(ValueId x, Dims to) {
  const ValueId shape = Integers(std::vector<int32_t>(to.begin(), to.end()));
  return Node(Op::kReshape, {x, shape}, std::move(to));
}

ValueId Net::Transpose(ValueId x, const std::vector<int32_t>& order) {
  Dims result;
  for (const int32_t axis : order) result.push_back(dims(x)[static_cast<size_t>(axis)]);
  return Node(Op::kTranspose, {x, Integers(order)}, std::move(result));
}

ValueId Net::Concat(std::vector<ValueId> parts, int axis) {
  Dims result = dims(parts[0]);
  for (size_t i = 1; i < parts.size(); ++i)
    result[static_cast<size_t>(axis)] += dims(parts[i])[static_cast<size_t>(axis)];
  Attrs attrs;
  attrs.Set("axis", axis);
  return Node(Op::kConcatenation, std::move(parts), std::move(result), std::move(attrs));
}

ValueId Net::FullyConnected(ValueId x, const Weights& weights, bool relu) {
  Dims result = dims(x);
  result.back() = weights.type.shape[0];
  Attrs attrs;
  attrs.Set("keep_num_dims", true);
  if (relu) attrs.Set("fused_activation_function", "RELU");
  return Node(Op::kFullyConnected, {x, Constant(weights), kNoValue}, std::move(result), std::move(attrs));
}

ValueId Net::Conv(ValueId x, const Weights& weights, const Weights& bias, int stride) {
  const Dims in = dims(x);
  Attrs attrs;
  attrs.Set("stride_w", stride);
  attrs.Set("stride_h", stride);
  attrs.Set("fused_activation_function", "RELU");
  return Node(Op::kConv2D, {x, Constant(weights), Constant(bias)},
              {in[0], (in[1] + stride - 1) / stride, (in[2] + stride - 1) / stride, weights.type.shape[0]},
              std::move(attrs));
}

ValueId Net::MatMul(ValueId a, ValueId b, bool transpose_b) {
  Dims result = dims(a);
  result.back() = dims(b)[dims(b).size() - (transpose_b ? 2 : 1)];
  Attrs attrs;
  if (transpose_b) attrs.Set("adj_y", true);
  return Node(Op::kBatchMatmul, {a, b}, std::move(result), std::move(attrs));
}

}  // namespace fusebox::bench
