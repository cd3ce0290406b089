// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/partition/values.h"

#include <algorithm>

#include "plugins/common/activation.h"

namespace fusebox::xnnpack {

namespace {

void RequirePerTensor(Tensor t, const std::string& subject) {
  const fbx_quant* q = t.quant();
  const std::string dtype = dtype_name(t.dtype());
  if (q == nullptr || q->kind == FBX_QUANT_NONE || q->count == 0)
    throw Reject{"DTYPE", "dtype " + dtype + " without quantization", subject};
  if (q->kind != FBX_QUANT_PER_TENSOR && q->count != 1)
    throw Reject{"QUANT", "activation quantized per channel", subject};
  if (!std::isnormal(q->scales[0]) || q->scales[0] <= 0)
    throw Reject{"QUANT", "a scale of " + std::to_string(q->scales[0]), subject};
  const int64_t low = t.dtype() == FBX_I8 ? -128 : 0;
  if (q->zero_points[0] < low || q->zero_points[0] > low + 255)
    throw Reject{"QUANT", "a zero point of " + std::to_string(q->zero_points[0]) + " for " + dtype, subject};
}

float Quantize(float x, TensorQuant q, Tensor t) {
  const float low = t.dtype() == FBX_I8 ? -128 : 0;
  return std::clamp(std::nearbyint(x / q.scale + static_cast<float>(q.zero_point)), low, low + 255);
}

}  // namespace

TensorQuant TensorQuantOf(Tensor t) {
  if (!Quantized(t)) return {};
  return {t.quant()->scales[0], static_cast<int32_t>(t.quant()->zero_points[0])};
}

bool ScalesAreAtLeast(const fbx_quant& q, float least) {
  int smaller = 0;
  for (uint32_t i = 0; i < q.count; ++i) smaller |= !(q.scales[i] >= least);
  return smaller == 0;
}

xnn_datatype DatatypeOf(Tensor t) {
  if (t.dtype() == FBX_I8) return xnn_datatype_qint8;
  return t.dtype() == FBX_U8 ? xnn_datatype_quint8 : xnn_datatype_fp32;
}

void RequireValue(Tensor t, const std::string& subject) {
  if (!t.present()) throw Reject{"ARITY", "is missing", subject};
  if (Quantized(t)) {
    RequirePerTensor(t, subject);
  } else if (t.dtype() != FBX_F32) {
    throw Reject{"DTYPE", std::string("dtype ") + dtype_name(t.dtype()), subject};
  }
  if (t.rank() < 0) throw Reject{"RANK", "unknown rank", subject};
  if (t.rank() > XNN_MAX_TENSOR_DIMS)
    throw Reject{"RANK", "rank " + std::to_string(t.rank()) + ", XNNPACK supports at most 6", subject};
  if (t.is_variable()) throw Reject{"STATE", "a variable tensor", subject};
  for (const int64_t d : t.dims())
    if (d == 0) throw Reject{"SHAPE", "an empty tensor", subject};
}

void RequireValues(const NetworkNode& node, uint32_t first, uint32_t last) {
  for (uint32_t i = first; i <= last; ++i) RequireValue(node.in(i), Operand(i));
  for (uint32_t i = 0; i < node.out_count(); ++i) RequireValue(node.out(i), "result " + std::to_string(i));
}

void RequireFloat(Tensor t, const std::string& subject) {
  RequireValue(t, subject);
  if (t.dtype() != FBX_F32) throw Reject{"DTYPE", std::string("dtype ") + dtype_name(t.dtype()), subject};
}

void RequireSameType(Tensor a, Tensor b) {
  if (a.dtype() != b.dtype())
    throw Reject{"DTYPE", std::string("mixes ") + dtype_name(a.dtype()) + " and " + dtype_name(b.dtype())};
}

void RequireSameQuant(Tensor a, Tensor b) {
  RequireSameType(a, b);
  if (Quantized(a) && TensorQuantOf(a) != TensorQuantOf(b))
    throw Reject{"QUANT", "operand and result are quantized differently"};
}

void RequireRank(Tensor t, int rank, const std::string& subject) {
  if (t.rank() != rank)
    throw Reject{"RANK", "rank " + std::to_string(t.rank()) + ", expected " + std::to_string(rank), subject};
}

void RequireArity(const NetworkNode& node, uint32_t least, uint32_t most) {
  if (node.in_count() < least || node.in_count() > most)
    throw Reject{"ARITY", std::to_string(node.in_count()) + " operands"};
}

Dims DimsOf(Tensor t) {
  Dims dims;
  for (const int64_t d : t.dims()) dims.push_back(d < 0 ? 1 : static_cast<size_t>(d));
  return dims;
}

void RequireStatic(Tensor t, const std::string& subject) {
  if (!t.is_static()) throw Reject{"SHAPE", "unknown shape", subject};
}

std::vector<int64_t> Integers(const NetworkNode& node, uint32_t operand, const char* what) {
  const Tensor t = node.in(operand);
  if (!t.present() || !t.is_const() || !t.has_value())
    throw Reject{"NONCONST", std::string(what) + " is not constant", Operand(operand)};
  std::vector<int64_t> values;
  if (t.dtype() == FBX_I32) {
    for (const int32_t v : t.values<const int32_t>()) values.push_back(v);
  } else if (t.dtype() == FBX_I64) {
    for (const int64_t v : t.values<const int64_t>()) values.push_back(v);
  } else {
    throw Reject{"DTYPE", std::string(what) + " has dtype " + dtype_name(t.dtype()), Operand(operand)};
  }
  return values;
}

size_t Axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) throw Reject{"ATTR", "axis " + std::to_string(axis) + " is outside"};
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

Range FusedRange(const NetworkNode& node) {
  using common::Activation;
  const Activation activation = common::FusedActivation(node);
  Range range;
  if (activation == Activation::kRelu) {
    range.min = 0;
  } else if (activation == Activation::kRelu6) {
    range = {0, 6};
  } else if (activation == Activation::kReluN1To1) {
    range = {-1, 1};
  } else if (activation != Activation::kNone) {
    throw Reject{"ATTR", "fused activation TANH is not supported", "attr fused_activation_function"};
  }
  const Tensor out = node.out(0);
  if (activation != Activation::kNone && Quantized(out) &&
      Quantize(range.min, TensorQuantOf(out), out) >= Quantize(range.max, TensorQuantOf(out), out))
    throw Reject{"QUANT", "its fused activation leaves only one quantized value", "result 0"};
  return range;
}

}  // namespace fusebox::xnnpack
