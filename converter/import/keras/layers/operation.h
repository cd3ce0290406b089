// SPDX-License-Identifier: Apache-2.0
// Functions called on a layer's result, and access to their arguments as Keras 2 and Keras 3 store them.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "converter/import/keras/layer_call.h"

namespace fusebox::keras {

using Names = std::initializer_list<const char*>;

// operation_arguments.cc

// Returns an argument of the call by position or by any of its names, or null if it is missing.
const Given* FindArgument(LayerCall&, size_t position, Names);
// Returns the same as plain JSON, nested lists included, or null; Keras 3 may store it in the operation's
// configuration. Fails the call if it is or contains a tensor.
nlohmann::json PlainArgument(LayerCall&, size_t position, Names);
// Returns an integer or a list of integers, or nullopt if it is missing. Other values fail the call.
std::optional<std::vector<int64_t>> IntsArgument(LayerCall&, size_t position, Names);
// One integer; `otherwise` if it is missing.
int64_t IntArgument(LayerCall&, size_t position, Names, int64_t otherwise);
double NumberArgument(LayerCall&, size_t position, Names, double otherwise);
bool FlagArgument(LayerCall&, size_t position, Names);
std::string TextArgument(LayerCall&, size_t position, Names, std::string_view otherwise);
// The function's only or first tensor.
ValueId TensorArgument(LayerCall&, size_t position, Names);
// Returns integers, some of which may be computed, as an i32 [n] value, or kNoValue if they are missing;
// `known` returns the constant ones (-1 elsewhere).
ValueId SizesArgument(LayerCall&, size_t position, Names, std::vector<int64_t>& known);
// Axes counted from 0. Fails the call if an axis is out of range for `rank`.
std::vector<int64_t> AxesOf(LayerCall&, const std::vector<int64_t>& axes, int rank);

// The dtype in which both operands are computed: integers become floats in a division or next to a float.
DType CommonType(LayerCall&, const Given* a, const Given* b, std::string_view op);
// Nested lists of numbers as a constant of that dtype; kNone: i32 if all are integers, else f32.
ValueId Numbers(LayerCall&, const nlohmann::json& plain, DType);
// A tensor, a number or nested lists of numbers, cast to that dtype.
ValueId Operand(LayerCall&, const Given*, DType);

// One function; its builder receives `op`, which selects the variant.
struct OperationRow {
  std::string_view op;
  void (*build)(LayerCall&, std::string_view op);
};

// operations.cc: a function by its name without a module, with its arguments as keywords.
void BuildFunction(LayerCall&, std::string_view name);
bool IsUnary(std::string_view name);  // an elementwise function of one tensor, without parameters

struct NamedOperation {
  std::string_view name;  // in lower case without underscores
  OperationRow row;
};
// One table per family, each in its own file. operations.cc has the table of the functions below.
std::span<const NamedOperation> NumberOperations();
std::span<const NamedOperation> StatisticOperations();
std::span<const NamedOperation> ProductOperations();
std::span<const NamedOperation> WindowOperations();
std::span<const NamedOperation> NetworkOperations();
std::span<const NamedOperation> ImageOperations();
std::span<const NamedOperation> UpdateOperations();
std::span<const NamedOperation> SpectrumOperations();

// Position of an argument that has none.
constexpr size_t kKeywordOnly = 99;
// Operand of f32.
ValueId FloatArgument(LayerCall&, size_t position, Names);
// Marks keywords and settings that have no effect as read.
void Ignore(LayerCall&, Names);
// 0, 1, ..., rank - 1
std::vector<int64_t> AllAxes(int rank);
// Axes of a reduction, which is the second argument; all axes by default.
struct Reduction {
  std::vector<int64_t> axes;
  Attrs attrs;
  bool keep = false;
};
Reduction ReductionOf(LayerCall&, ValueId x);
ValueId Reduced(LayerCall&, std::string_view op, ValueId x, const Reduction&);
ValueId Kept(LayerCall&, std::string_view op, ValueId x, const Reduction&);  // with axes of size 1

// operation_math.cc: elementwise functions and reductions.
void Unary(LayerCall&, std::string_view op);
void Named(LayerCall&, std::string_view activation);  // an activation without parameters
void Rounded(LayerCall&, std::string_view op);
void Binary(LayerCall&, std::string_view op);
void Logical(LayerCall&, std::string_view op);
void AddAll(LayerCall&, std::string_view op);
void Clip(LayerCall&, std::string_view op);
void Where(LayerCall&, std::string_view op);
void Reduce(LayerCall&, std::string_view op);
void Spread(LayerCall&, std::string_view op);  // variance; for op "Sqrt" the standard deviation
void LogSumExp(LayerCall&, std::string_view op);
void Norm(LayerCall&, std::string_view op);
void UnitLength(LayerCall&, std::string_view op);
void Extreme(LayerCall&, std::string_view op);  // ArgMax, ArgMin
void Cumulate(LayerCall&, std::string_view op);
void TopK(LayerCall&, std::string_view op);
void MatMul(LayerCall&, std::string_view op);
void Dot(LayerCall&, std::string_view op);
void VectorProduct(LayerCall&, std::string_view function);  // dot, inner (operation_products.cc)
void Einsum(LayerCall&, std::string_view op);
void SoftmaxOver(LayerCall&, std::string_view op);  // Softmax, LogSoftmax
void Elu(LayerCall&, std::string_view op);
void LeakyRelu(LayerCall&, std::string_view op);
void Gelu(LayerCall&, std::string_view op);
void Silu(LayerCall&, std::string_view op);

// operation_formulas.cc: functions composed of several TensorFlow ops.
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

void Average(LayerCall&, std::string_view op);  // optionally weighted
void SquarePlus(LayerCall&, std::string_view op);
void Celu(LayerCall&, std::string_view op);
void Glu(LayerCall&, std::string_view op);
void Shrink(LayerCall&, std::string_view function);  // hardshrink, softshrink
void Threshold(LayerCall&, std::string_view op);

// operation_shapes.cc, operation_parts.cc: data movement. Most ignore `op`.
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
void CastTo(LayerCall&, std::string_view op);     // "saturate": within the range of the type
void Rearrange(LayerCall&, std::string_view op);  // operation_rearrange.cc
void GetItem(LayerCall&, std::string_view op);    // x[key]
void Concat(LayerCall&, std::string_view op);
void Stack(LayerCall&, std::string_view op);
void Pile(LayerCall&, std::string_view function);  // hstack, vstack, dstack, columnstack
void Append(LayerCall&, std::string_view op);
void SplitAt(LayerCall&, std::string_view function);  // hsplit, vsplit, dsplit
void Unstack(LayerCall&, std::string_view op);
void Split(LayerCall&, std::string_view op);
void Tile(LayerCall&, std::string_view op);
void RepeatEach(LayerCall&, std::string_view op);
void PadWith(LayerCall&, std::string_view op);
void Reverse(LayerCall&, std::string_view op);
void Flip(LayerCall&, std::string_view axis);  // one axis, counted from the end if it is negative
void Rotate(LayerCall&, std::string_view op);
void Roll(LayerCall&, std::string_view op);
void Gather(LayerCall&, std::string_view op);
void GatherNd(LayerCall&, std::string_view op);
void TakeAlong(LayerCall&, std::string_view op);
void CutOut(LayerCall&, std::string_view op);  // Slice
void OneHot(LayerCall&, std::string_view op);
void Blocks(LayerCall&, std::string_view op);  // DepthToSpace, SpaceToDepth
void Resize(LayerCall&, std::string_view op);

}  // namespace fusebox::keras
