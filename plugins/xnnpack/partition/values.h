// SPDX-License-Identifier: Apache-2.0
// Tensors that XNNPACK supports: element types, quantization, shapes.
//
// The Require functions throw Reject with the reason.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <xnnpack.h>

#include "plugins/xnnpack/partition/network.h"

namespace fusebox::xnnpack {

using Dims = std::vector<size_t>;

// Per-tensor quantization.
struct TensorQuant {
  float scale = 1;
  int32_t zero_point = 0;
  friend bool operator==(const TensorQuant&, const TensorQuant&) = default;
};

inline std::string Operand(uint32_t i) { return "operand " + std::to_string(i); }

inline bool Quantized(Tensor t) { return t.dtype() == FBX_I8 || t.dtype() == FBX_U8; }

// For a quantized tensor that passed RequireValue; the default for floats.
TensorQuant TensorQuantOf(Tensor t);

// Returns whether no scale is smaller.
bool ScalesAreAtLeast(const fbx_quant& quant, float least);

// fp32, qint8 or quint8; for a tensor that passed RequireValue.
xnn_datatype DatatypeOf(Tensor t);

// Requires an activation that XNNPACK supports: f32, or i8 / u8 quantized per tensor; at most 6 dims, none 0.
void RequireValue(Tensor t, const std::string& subject);
// Requires it for operands first to last and all results.
void RequireValues(const NetworkNode& node, uint32_t first, uint32_t last);
// Requires f32.
void RequireFloat(Tensor t, const std::string& subject);
void RequireSameType(Tensor a, Tensor b);
void RequireSameQuant(Tensor a, Tensor b);
void RequireRank(Tensor t, int rank, const std::string& subject);
// Counts absent operands too.
void RequireArity(const NetworkNode& node, uint32_t least, uint32_t most);

// Unknown dims become 1: reshaping sets them later.
Dims DimsOf(Tensor t);
// Requires all dims to be known.
void RequireStatic(Tensor t, const std::string& subject);

// The values of a constant i32 or i64 operand.
std::vector<int64_t> Integers(const NetworkNode& node, uint32_t operand, const char* what);

// Normalizes the axis to [0, rank).
size_t Axis(int64_t axis, int rank);

inline bool Within(float x, float least, float below) { return x >= least && x < below; }

// The range of the op's fused activation; unbounded: infinities. Rejects activations that are not a clamp,
// and ranges of a single quantized value.
struct Range {
  float min = -INFINITY;
  float max = INFINITY;
};
Range FusedRange(const NetworkNode& node);

}  // namespace fusebox::xnnpack
