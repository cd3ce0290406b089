// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/ops/weights.h"

#include <fusebox/quant.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fusebox::xnnpack {

using namespace sdk;

namespace {

// Returns whether the numbers of all channels are checked now: when a partition is created, once.
bool ReadsNumbers(const NetworkNode& node, const WeightOperands& at, const fbx_quant& q) {
  return q.count == 1 || (!node.network().claiming() && !at.checked);
}

void RequireScales(const NetworkNode& node, const WeightOperands& at, Tensor filter) {
  const int channel_axis = at.channel_axis;
  const fbx_quant* q = filter.quant();
  if (q == nullptr || q->count == 0) throw Reject{"QUANT", "filter is not quantized"};
  if (q->kind == FBX_QUANT_PER_AXIS && q->count > 1 && q->axis != channel_axis)
    throw Reject{"QUANT", "filter is quantized along axis " + std::to_string(q->axis)};
  if (q->kind == FBX_QUANT_PER_AXIS && q->count > 1 &&
      static_cast<int64_t>(q->count) != filter.dim(channel_axis))
    throw Reject{"QUANT", std::to_string(q->count) + " scales for " +
                              std::to_string(filter.dim(channel_axis)) + " channels"};
  if (ReadsNumbers(node, at, *q) && !scales_are_finite(*q))
    throw Reject{"QUANT", "filter has a scale that is negative or not finite"};
}

void RequireSymmetric(const NetworkNode& node, const WeightOperands& at, Tensor filter) {
  const fbx_quant& q = *filter.quant();
  if (ReadsNumbers(node, at, q) && !is_symmetric(q))
    throw Reject{"QUANT", "filter has a zero point that is not 0"};
}

// XNNPACK multiplies sums by input scale * filter scale / output scale, and supports multipliers in [2^-32,
// 256). A 32-bit sum times a smaller multiplier rounds to zero, and so does it times the least one.
float LeastScale(Tensor input, Tensor filter, Tensor output) {
  const float to_output = TensorQuantOf(input).scale / TensorQuantOf(output).scale;
  const fbx_quant& q = *filter.quant();
  for (uint32_t i = 0; i < q.count; ++i)
    if (!(to_output * q.scales[i] < 256))
      throw Reject{"QUANT", "a scale ratio of " + std::to_string(to_output * q.scales[i])};
  float least = std::max(0x1p-32f / to_output, std::numeric_limits<float>::min());
  const auto rounds_up = [&] {
    return TensorQuantOf(input).scale * least / TensorQuantOf(output).scale >= 0x1p-32f;
  };
  // Three operations round. Those that lose more, to zero or denormals, are left to other kernels.
  for (int i = 0; i < 3 && !rounds_up(); ++i) least = std::nextafter(least, HUGE_VALF);
  if (!rounds_up() || !std::isfinite(least))
    throw Reject{"QUANT", "a ratio of input and output scales of " + std::to_string(to_output)};
  return least;
}

void RequireBias(const NetworkNode& node, const WeightOperands& at, fbx_dtype dtype) {
  if (!node.has_in(at.bias)) return;
  const auto bias = node.constant(at.bias);
  if (!bias && dtype == FBX_F32) return RequireFloat(node.in(at.bias), Operand(at.bias));
  if (!bias) throw Reject{"NONCONST", "bias is not constant", Operand(at.bias)};
  const bool unpacked = dtype == FBX_F32 && node.in(at.bias).dtype() == FBX_F32;
  const bool half = dtype == FBX_F32 && bias->dtype() == FBX_F16;
  if (bias->dtype() != dtype && !half && !unpacked)
    throw Reject{"DTYPE", std::string("bias has dtype ") + dtype_name(bias->dtype()), Operand(at.bias)};
}

Weights PlanQuantized(const NetworkNode& node, const WeightOperands& at, Tensor filter) {
  const Tensor input = node.in(at.input);
  const Tensor output = node.out(0);
  RequireSameType(input, output);
  RequireSameType(input, filter);
  RequireScales(node, at, filter);
  RequireBias(node, at, FBX_I32);
  Weights w;
  w.least_scale = LeastScale(input, filter, output);
  if (input.dtype() == FBX_U8) {
    const fbx_quant& q = *filter.quant();
    if (q.count != 1) throw Reject{"QUANT", "u8 filter quantized per channel"};
    if (q.zero_points[0] < 0 || q.zero_points[0] > 255) throw Reject{"QUANT", "filter's zero point"};
    w.datatype = xnn_datatype_quint8;
  } else {
    RequireSymmetric(node, at, filter);
    w.datatype = xnn_datatype_qcint8;
  }
  return w;
}

void RequireBlocks(Tensor filter) {
  const fbx_quant& q = *filter.quant();
  const int64_t block = q.block_size;
  const int64_t rows = filter.dim(0);
  const int64_t columns = filter.dim(-1);
  if (block < XNN_MIN_BLOCKSIZE || block % XNN_MIN_BLOCKSIZE != 0)
    throw Reject{"QUANT", "blocks of " + std::to_string(block) + " weights"};
  if (columns % block != 0 || q.count != static_cast<uint64_t>(rows * (columns / block)))
    throw Reject{"QUANT", std::to_string(q.count) + " scales for blocks of " + std::to_string(block)};
  for (uint32_t i = 0; i < q.count; ++i)
    if (!std::isnormal(q.scales[i]) || q.scales[i] <= 0 || q.scales[i] > 3e38f)
      throw Reject{"QUANT", "filter has a scale of " + std::to_string(q.scales[i])};
}

Weights PlanNibbles(const NetworkNode& node, const WeightOperands& at, Tensor filter) {
  if (filter.dim(-1) % 2 != 0) throw Reject{"SHAPE", "odd number of 4-bit weights per row"};
  RequireSymmetric(node, at, filter);
  const bool blocks = filter.quant()->kind == FBX_QUANT_BLOCKWISE;
  if (blocks) RequireBlocks(filter);
  else RequireScales(node, at, filter);
  Weights w;
  w.dynamic = true;
  w.datatype = blocks ? xnn_datatype_qbint4 : xnn_datatype_qcint4;
  w.least_scale = std::numeric_limits<float>::min();
  return w;
}

Weights PlanFloat(const NetworkNode& node, const WeightOperands& at, Tensor filter) {
  RequireFloat(node.out(0), "result 0");
  RequireBias(node, at, FBX_F32);
  const bool unpacked = node.in(at.filter).dtype() == FBX_F32;
  if (unpacked || filter.dtype() == FBX_F16) return {};
  if (filter.dtype() == FBX_I4 && at.may_be_int4 && filter.quant() != nullptr)
    return PlanNibbles(node, at, filter);
  if (filter.dtype() != FBX_I8)
    throw Reject{"DTYPE", std::string("filter has dtype ") + dtype_name(filter.dtype()), Operand(at.filter)};
  RequireScales(node, at, filter);
  RequireSymmetric(node, at, filter);
  Weights w;
  if (at.may_be_dynamic) {
    w.datatype = xnn_datatype_qcint8;
    w.dynamic = true;
    w.least_scale = std::numeric_limits<float>::min();
  }
  return w;
}

}  // namespace

Weights PlanWeights(const NetworkNode& node, const WeightOperands& at) {
  RequireValue(node.in(at.input), Operand(at.input));
  RequireValue(node.out(0), "result 0");
  if (!node.has_in(at.filter)) throw Reject{"ARITY", "filter is missing", Operand(at.filter)};
  const auto filter = node.constant(at.filter);
  if (!filter) throw Reject{"NONCONST", "filter is not constant", Operand(at.filter)};
  if (filter->rank() < 2) throw Reject{"RANK", "filter has rank " + std::to_string(filter->rank())};
  for (const int64_t d : filter->dims())
    if (d <= 0) throw Reject{"SHAPE", "the filter is empty", Operand(at.filter)};
  Weights w = Quantized(node.in(at.input)) ? PlanQuantized(node, at, *filter) : PlanFloat(node, at, *filter);
  w.filter = at.filter;
  if (node.constant(at.bias)) w.bias = at.bias;
  return w;
}

Weights PlanCheckedWeights(const NetworkNode& node, const WeightOperands& at) {
  WeightOperands checked = at;
  checked.checked = true;
  return PlanWeights(node, checked);
}

Dims DimsButOne(Tensor t) {
  Dims dims;
  for (const int64_t d : t.dims()) dims.push_back(static_cast<size_t>(std::max<int64_t>(d, 0)));
  if (std::find(dims.begin(), dims.end(), size_t{0}) == dims.end()) dims[0] = 0;
  return dims;
}

void AddActivations(Recipe& recipe, Tensor input, Tensor output) {
  if (!Quantized(input)) return;
  const TensorQuant in = TensorQuantOf(input);
  const TensorQuant out = TensorQuantOf(output);
  recipe.Add(in.scale, in.zero_point, out.scale);
}

}  // namespace fusebox::xnnpack
