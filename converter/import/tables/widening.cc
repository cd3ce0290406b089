// SPDX-License-Identifier: Apache-2.0
// TFLite treats 8- and 16-bit integers as quantized and has few f16 kernels. TensorFlow's arithmetic on them
// is plain, so it is computed in a wider dtype between casts. Integer casts wrap where TensorFlow overflows.
#include <algorithm>

#include "converter/import/tables/translate.h"

namespace fusebox::converter {
namespace {

constexpr std::string_view kOfIntegers[] = {
    "Abs",       "Add",        "AddN",        "AddV2",      "BiasAdd",      "BitwiseAnd",
    "BitwiseOr", "BitwiseXor", "ClipByValue", "Cumprod",    "Cumsum",       "Div",
    "Equal",     "FloorDiv",   "FloorMod",    "Greater",    "GreaterEqual", "Invert",
    "Less",      "LessEqual",  "Max",         "Maximum",    "Mean",         "Min",
    "Minimum",   "Mod",        "Mul",         "Neg",        "NotEqual",     "Pow",
    "Prod",      "Relu",       "Relu6",       "Sign",       "Square",       "SquaredDifference",
    "Sub",       "Sum",        "TruncateDiv", "TruncateMod"};

constexpr std::string_view kOfReals[] = {"Acos",
                                         "Acosh",
                                         "Asin",
                                         "Asinh",
                                         "Atan",
                                         "Atanh",
                                         "Cosh",
                                         "Sinh",
                                         "EuclideanNorm",
                                         "SegmentMean",
                                         "MaxPoolV2",
                                         "NonMaxSuppression",
                                         "NonMaxSuppressionV2",
                                         "NonMaxSuppressionV3",
                                         "NonMaxSuppressionV4",
                                         "NonMaxSuppressionV5",
                                         "Atan2",
                                         "AvgPool",
                                         "AvgPool3D",
                                         "BatchMatMul",
                                         "BatchMatMulV2",
                                         "BatchMatMulV3",
                                         "Ceil",
                                         "Conv2D",
                                         "Conv2DBackpropInput",
                                         "Conv3D",
                                         "Cos",
                                         "DepthwiseConv2dNative",
                                         "Div",
                                         "DivNoNan",
                                         "Einsum",
                                         "Elu",
                                         "Erf",
                                         "Erfc",
                                         "Exp",
                                         "Expm1",
                                         "Floor",
                                         "Inv",
                                         "IsFinite",
                                         "IsInf",
                                         "IsNan",
                                         "LeakyRelu",
                                         "Log",
                                         "Log1p",
                                         "LogSoftmax",
                                         "MatMul",
                                         "MaxPool",
                                         "MaxPool3D",
                                         "RealDiv",
                                         "Reciprocal",
                                         "Rint",
                                         "Round",
                                         "Rsqrt",
                                         "Selu",
                                         "Sigmoid",
                                         "Sin",
                                         "Softmax",
                                         "Softplus",
                                         "Softsign",
                                         "Sqrt",
                                         "Tan",
                                         "Tanh"};

bool IsIn(std::span<const std::string_view> ops, std::string_view op) {
  return std::ranges::find(ops, op) != ops.end();
}

// Returns the dtype to compute in, or kNone for the dtype of the operands.
DType WiderThan(DType dtype, std::string_view op) {
  switch (dtype) {
    case DType::kU8:
    case DType::kI8:
    case DType::kI16:
      if (op == "MaxPool" || op == "MaxPoolV2") return DType::kF32;
      return IsIn(kOfIntegers, op) ? DType::kI32 : DType::kNone;
    case DType::kF16:
    case DType::kBF16: return IsIn(kOfIntegers, op) || IsIn(kOfReals, op) ? DType::kF32 : DType::kNone;
    default: return DType::kNone;
  }
}

}  // namespace

Status TranslateWidened(Translate translate, Translation& t) {
  const DType narrow = t.count() == 0 ? DType::kNone : t.in_type(0).dtype;
  const DType wide = WiderThan(narrow, t.node().name);
  if (wide == DType::kNone) return translate(t);
  Node node = t.node();
  for (ValueId& operand : node.operands)
    if (operand != kNoValue && t.type(operand).dtype == narrow) operand = t.Cast(operand, wide);
  FUSEBOX_ASSIGN(const auto made, t.Of(node, translate));
  for (size_t i = 0; i < made.size(); ++i)
    if (made[i] != kNoValue)
      t.SetResult(i, t.type(made[i]).dtype == wide ? t.Cast(made[i], narrow) : made[i]);
  return {};
}

}  // namespace fusebox::converter
