// SPDX-License-Identifier: Apache-2.0
// Functions that were called on a layer's result: how their arguments are found, in the words of Keras 2 and
// of Keras 3.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "converter/import/keras/layer_call.h"

namespace fusebox::keras {

using Names = std::initializer_list<const char*>;

// operation_arguments.cc

// An argument of the call by position or by any of its names; null: not given.
const Given* FindArgument(LayerCall&, size_t position, Names);
// The same as plain data, nested lists included; what Keras 3 says when it makes the operation stands in its
// configuration. Null: not given. Fails the call where it is or holds a tensor.
nlohmann::json PlainArgument(LayerCall&, size_t position, Names);
// A whole number or a list of them; nothing where it is not given. Fails the call where it is something else.
std::optional<std::vector<int64_t>> IntsArgument(LayerCall&, size_t position, Names);
// One whole number, `otherwise` where it is not given.
int64_t IntArgument(LayerCall&, size_t position, Names, int64_t otherwise);
double NumberArgument(LayerCall&, size_t position, Names, double otherwise);
bool FlagArgument(LayerCall&, size_t position, Names);
std::string TextArgument(LayerCall&, size_t position, Names, std::string_view otherwise);
// Of a function's only or first tensor.
ValueId TensorArgument(LayerCall&, size_t position, Names);
// Whole numbers of which some may be computed, as a value i32 [n]; `known` gets those that are not (-1
// elsewhere). kNoValue: not given.
ValueId SizesArgument(LayerCall&, size_t position, Names, std::vector<int64_t>& known);
// An axis or axes as numbers from 0; the call fails where there is none such in `rank` dimensions.
std::vector<int64_t> AxesOf(LayerCall&, const std::vector<int64_t>& axes, int rank);

// The type that both operands are computed in: whole numbers that are divided, or that meet fractions, become
// floats.
DType CommonType(LayerCall&, const Given* a, const Given* b, std::string_view op);
// Nested lists of numbers as a constant of that type; kNone: i32 where all are whole, else f32.
ValueId Numbers(LayerCall&, const nlohmann::json& plain, DType);
// A tensor, a number or nested lists of numbers, in that type.
ValueId Operand(LayerCall&, const Given*, DType);

// One function: `op` tells its builder which of its kind it is.
struct OperationRow {
  std::string_view op;
  void (*build)(LayerCall&, std::string_view op);
};

// operation_math.cc: functions of elements, and reductions.
void Unary(LayerCall&, std::string_view op);
void Named(LayerCall&, std::string_view activation);  // an activation that takes nothing but a tensor
void Rounded(LayerCall&, std::string_view op);
void Binary(LayerCall&, std::string_view op);
void Logical(LayerCall&, std::string_view op);
void AddAll(LayerCall&, std::string_view op);
void Clip(LayerCall&, std::string_view op);
void Where(LayerCall&, std::string_view op);
void Reduce(LayerCall&, std::string_view op);
void Spread(LayerCall&, std::string_view op);  // variance, or its root where op is "Sqrt"
void LogSumExp(LayerCall&, std::string_view op);
void Norm(LayerCall&, std::string_view op);
void UnitLength(LayerCall&, std::string_view op);
void Extreme(LayerCall&, std::string_view op);  // ArgMax, ArgMin
void Cumulate(LayerCall&, std::string_view op);
void TopK(LayerCall&, std::string_view op);
void MatMul(LayerCall&, std::string_view op);
void Dot(LayerCall&, std::string_view op);
void Einsum(LayerCall&, std::string_view op);
void SoftmaxOver(LayerCall&, std::string_view op);  // Softmax, LogSoftmax
void Elu(LayerCall&, std::string_view op);
void LeakyRelu(LayerCall&, std::string_view op);
void Gelu(LayerCall&, std::string_view op);
void Silu(LayerCall&, std::string_view op);

// operation_formulas.cc: what TensorFlow puts together of several ops. `op` is the function where there are
// several.
void Scaled(LayerCall&, std::string_view function);  // log2, log10, exp2, deg2rad
void Truncate(LayerCall&, std::string_view op);
void FullLike(LayerCall&, std::string_view op);
void OfTwoFloats(LayerCall&, std::string_view function);  // hypot, logaddexp
void CountNonZero(LayerCall&, std::string_view op);
void Moments(LayerCall&, std::string_view op);
void Crelu(LayerCall&, std::string_view op);
void LocalResponse(LayerCall&, std::string_view op);
void Band(LayerCall&, std::string_view function);    // bandpart, tril, triu
void Sorted(LayerCall&, std::string_view function);  // sort, argsort

void Average(LayerCall&, std::string_view op);  // with weights or without
void SquarePlus(LayerCall&, std::string_view op);
void Celu(LayerCall&, std::string_view op);
void Glu(LayerCall&, std::string_view op);
void Shrink(LayerCall&, std::string_view function);  // hardshrink, softshrink
void Threshold(LayerCall&, std::string_view op);

// operation_shapes.cc, operation_parts.cc: what moves elements and computes nothing. `op` is of no meaning to
// most of them.
void Same(LayerCall&, std::string_view op);
void ExpandDims(LayerCall&, std::string_view op);
void Squeeze(LayerCall&, std::string_view op);
void Reshape(LayerCall&, std::string_view op);
void Ravel(LayerCall&, std::string_view op);
void TransposeAxes(LayerCall&, std::string_view op);
void SwapAxes(LayerCall&, std::string_view op);
void MoveAxis(LayerCall&, std::string_view op);
void BroadcastTo(LayerCall&, std::string_view op);
void ShapeOf(LayerCall&, std::string_view op);
void CastTo(LayerCall&, std::string_view op);
void GetItem(LayerCall&, std::string_view op);  // x[key]
void Concat(LayerCall&, std::string_view op);
void Stack(LayerCall&, std::string_view op);
void Pile(LayerCall&, std::string_view function);  // hstack, vstack
void Unstack(LayerCall&, std::string_view op);
void Split(LayerCall&, std::string_view op);
void Tile(LayerCall&, std::string_view op);
void RepeatEach(LayerCall&, std::string_view op);
void PadWith(LayerCall&, std::string_view op);
void Reverse(LayerCall&, std::string_view op);
void Roll(LayerCall&, std::string_view op);
void Gather(LayerCall&, std::string_view op);
void GatherNd(LayerCall&, std::string_view op);
void TakeAlong(LayerCall&, std::string_view op);
void CutOut(LayerCall&, std::string_view op);  // Slice
void OneHot(LayerCall&, std::string_view op);
void Blocks(LayerCall&, std::string_view op);  // DepthToSpace, SpaceToDepth
void Resize(LayerCall&, std::string_view op);

}  // namespace fusebox::keras
