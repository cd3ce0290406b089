// SPDX-License-Identifier: Apache-2.0
// What XNNPACK can hold: element types, quantization, shapes; and the reasons why a tensor is not for it.
//
// The Require functions throw Reject with a reason in plain words.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <xnnpack.h>

#include "plugins/xnnpack/network.h"

namespace fusebox::xnnpack {

using Dims = std::vector<size_t>;

// Quantization of a whole tensor.
struct Affine {
  float scale = 1;
  int32_t zero_point = 0;
  friend bool operator==(const Affine&, const Affine&) = default;
};

inline std::string Operand(uint32_t i) { return "operand " + std::to_string(i); }

inline bool Quantized(Tensor t) { return t.dtype() == FBX_I8 || t.dtype() == FBX_U8; }

// Of a tensor that passed RequireValue and is quantized; the default for floats.
Affine AffineOf(Tensor t);

// fp32, qint8 or quint8; of a tensor that passed RequireValue.
xnn_datatype DatatypeOf(Tensor t);

// An activation that XNNPACK can hold: f32, or i8 / u8 quantized per tensor; at most 6 dims, none of them 0.
void RequireValue(Tensor t, const std::string& subject);
// Every operand from first to last and every result.
void RequireValues(const NetworkNode& node, uint32_t first, uint32_t last);
// f32 and nothing else.
void RequireFloat(Tensor t, const std::string& subject);
void RequireSameType(Tensor a, Tensor b);
void RequireSameQuant(Tensor a, Tensor b);
void RequireRank(Tensor t, int rank, const std::string& subject);
// The operand count including absent ones.
void RequireArity(const NetworkNode& node, uint32_t least, uint32_t most);

// The dims with unknown ones as 1: reshaping says them later.
Dims DimsOf(Tensor t);
// All known.
void RequireStatic(Tensor t, const std::string& subject);

// The values of a constant i32 or i64 operand.
std::vector<int64_t> Integers(const NetworkNode& node, uint32_t operand, const char* what);

// The axis in [0, rank).
size_t Axis(int64_t axis, int rank);

inline bool Within(float x, float least, float below) { return x >= least && x < below; }

// The range of the op's fused activation; without bounds: infinities. Rejects what is not a clamp, and a
// range that holds one quantized value only.
struct Range {
  float min = -INFINITY, max = INFINITY;
};
Range FusedRange(const NetworkNode& node);

}  // namespace fusebox::xnnpack
