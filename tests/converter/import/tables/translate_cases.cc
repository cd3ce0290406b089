// SPDX-License-Identifier: Apache-2.0
#include "tests/converter/import/tables/translate_cases.h"

#include <cmath>

namespace fusebox::converter {
namespace {

using Ints = std::vector<int64_t>;

std::vector<double> Map(const std::vector<float>& x, double (*f)(double)) {
  std::vector<double> out;
  for (float v : x) out.push_back(f(v));
  return out;
}

}  // namespace

std::vector<SourceOp> ElementwiseCases() {
  const std::vector<float> x = {-1.5f, 0.25f, 2}, pos = {0.5f, 1, 4};
  std::vector<SourceOp> out;
  for (const char* op : {"Identity", "IdentityN", "StopGradient", "GuaranteeConst", "PreventGradient",
                         "Snapshot", "EnsureShape", "PlaceholderWithDefault", "CheckNumerics", "Print"})
    out.push_back({op, {F({3}, x)}, {-1.5, 0.25, 2}});
  for (const char* op : {"Assert", "PrintV2", "ControlTrigger"}) out.push_back({op, {F({3}, x)}, {}, {}, 0});
  const auto unary = [&](const char* op, double (*f)(double), const std::vector<float>& on) {
    out.push_back({op, {F({3}, on)}, Map(on, f)});
  };
  unary("Relu", [](double v) { return std::max(v, 0.0); }, x);
  unary("Relu6", [](double v) { return std::min(std::max(v, 0.0), 6.0); }, {-1, 3, 9});
  unary("Elu", [](double v) { return v > 0 ? v : std::exp(v) - 1; }, x);
  unary("Tanh", [](double v) { return std::tanh(v); }, x);
  unary("Sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); }, x);
  unary("Exp", [](double v) { return std::exp(v); }, x);
  unary("Log", [](double v) { return std::log(v); }, pos);
  unary("Sqrt", [](double v) { return std::sqrt(v); }, pos);
  unary("Rsqrt", [](double v) { return 1 / std::sqrt(v); }, pos);
  unary("Square", [](double v) { return v * v; }, x);
  unary("Abs", [](double v) { return std::fabs(v); }, x);
  unary("Neg", [](double v) { return -v; }, x);
  unary("Sin", [](double v) { return std::sin(v); }, x);
  unary("Cos", [](double v) { return std::cos(v); }, x);
  unary("Floor", [](double v) { return std::floor(v); }, x);
  unary("Ceil", [](double v) { return std::ceil(v); }, x);
  unary("Round", [](double v) { return std::nearbyint(v); }, {-1.5f, 0.5f, 2.5f});
  unary("Rint", [](double v) { return std::nearbyint(v); }, {-1.5f, 0.5f, 2.5f});
  unary("Sign", [](double v) { return v > 0 ? 1.0 : v < 0 ? -1.0 : 0.0; }, {-2, 0, 3});
  unary("ZerosLike", [](double) { return 0.0; }, x);
  unary("Softsign", [](double v) { return v / (1 + std::fabs(v)); }, x);
  unary(
      "Selu",
      [](double v) { return 1.0507009873554805 * (v > 0 ? v : 1.6732632423543772 * (std::exp(v) - 1)); }, x);
  unary("Inv", [](double v) { return 1 / v; }, pos);
  unary("Reciprocal", [](double v) { return 1 / v; }, pos);
  out.push_back({"LeakyRelu", {F({3}, x)}, {-0.45, 0.25, 2}, A("alpha", 0.3)});
  out.push_back({"LogicalNot", {B({1, 0})}, {0, 1}});
  out.push_back({"Softmax", {F({1, 2}, {0, std::log(3.0f)})}, {0.25, 0.75}});
  out.push_back({"LogSoftmax", {F({1, 2}, {0, std::log(3.0f)})}, {std::log(0.25), std::log(0.75)}});
  const auto binary = [&](const char* op, std::vector<double> expected) {
    out.push_back({op, {F({3}, {7, -7, 2}), F({3}, {2, 2, 2})}, std::move(expected), {}, 1, 2});
  };
  for (const char* op : {"Add", "AddV2"}) binary(op, {9, -5, 4});
  for (const char* op : {"RealDiv", "Div"}) binary(op, {3.5, -3.5, 1});
  binary("Sub", {5, -9, 0});
  binary("Mul", {14, -14, 4});
  binary("Maximum", {7, 2, 2});
  binary("Minimum", {2, -7, 2});
  binary("Pow", {49, 49, 4});
  binary("SquaredDifference", {25, 81, 0});
  binary("FloorDiv", {3, -4, 1});
  binary("FloorMod", {1, 1, 0});
  binary("Equal", {0, 0, 1});
  binary("NotEqual", {1, 1, 0});
  binary("Less", {0, 1, 0});
  binary("LessEqual", {0, 1, 1});
  binary("Greater", {1, 0, 0});
  binary("GreaterEqual", {1, 0, 1});
  out.push_back({"LogicalAnd", {B({1, 1, 0}), B({1, 0, 0})}, {1, 0, 0}, {}, 1, 2});
  out.push_back({"LogicalOr", {B({1, 1, 0}), B({1, 0, 0})}, {1, 1, 0}, {}, 1, 2});
  out.push_back({"LogicalXor", {B({1, 1, 0}), B({1, 0, 0})}, {0, 1, 0}, {}, 1, 2});
  out.push_back(
      {"Atan2", {F({2}, {1, -2}), F({2}, {-1, 0})}, {2.356194490192345, -1.5707963267948966}, {}, 1, 2});
  out.push_back({"Cast", {F({2}, {1.75f, -1.75f})}, {1, -1}, A("DstT", DType::kI32)});
  out.push_back({"AddN", {F({1}, {1}), F({1}, {2}), F({1}, {4})}, {7}, {}, 1, 3});
  out.push_back({"SelectV2", {B({1, 0}), F({2}, {1, 2}), F({2}, {3, 4})}, {1, 4}, {}, 1, 3});
  out.push_back({"ClipByValue", {F({3}, x), F({}, {-1}), F({}, {1})}, {-1, 0.25, 1}});
  return out;
}

std::vector<SourceOp> ShapeCases() {
  const Tensor m = F({2, 3}, {1, 2, 3, 4, 5, 6});
  std::vector<SourceOp> out = {
      {"Reshape", {m, L({2}, {3, -1})}, {1, 2, 3, 4, 5, 6}},
      {"ExpandDims", {m, L({}, {0})}, {1, 2, 3, 4, 5, 6}},
      {"Squeeze", {F({1, 2, 1}, {1, 2})}, {1, 2}, A("squeeze_dims", Ints{0})},
      {"Transpose", {m, L({2}, {1, 0})}, {1, 4, 2, 5, 3, 6}},
      {"ConcatV2", {F({2, 1}, {7, 8}), m, I({}, {-1})}, {7, 1, 2, 3, 8, 4, 5, 6}},
      {"Split", {I({}, {1}), F({1, 4}, {1, 2, 3, 4})}, {1, 2}, A("num_split", 2), 2, 0},
      {"SplitV", {F({1, 3}, {1, 2, 3}), L({2}, {2, 1}), I({}, {1})}, {1, 2}, A("num_split", 2), 2},
      {"Pack", {F({2}, {1, 2}), F({2}, {3, 4})}, {1, 3, 2, 4}, A("axis", 1, "N", 2), 1, 2},
      {"Unpack", {m}, {1, 4}, A("axis", 1, "num", 3), 3},
      {"Slice", {m, L({2}, {0, 1}), L({2}, {2, 2})}, {2, 3, 5, 6}},
      {"StridedSlice", {m, I({2}, {0, 0}), I({2}, {0, 3}), I({2}, {1, 2})}, {1, 3, 4, 6}, A("end_mask", 1)},
      {"Gather", {m, I({1}, {1})}, {4, 5, 6}},
      {"GatherV2", {m, I({2}, {2, 0}), I({}, {1})}, {3, 1, 6, 4}},
      {"GatherNd", {m, I({1, 2}, {1, 2})}, {6}},
      {"ScatterNd", {I({2, 1}, {2, 0}), F({2}, {5, 7}), I({1}, {4})}, {7, 0, 5, 0}, {}, 1, 0},
      {"Shape", {m}, {2, 3}, A("out_type", DType::kI64)},
      {"Rank", {m}, {2}},
      {"Size", {m}, {6}},
      {"OneHot", {I({2}, {1, 0}), I({}, {2}), F({}, {5}), F({}, {-1})}, {-1, 5, 5, -1}},
      {"Pad", {F({2}, {1, 2}), L({1, 2}, {1, 2})}, {0, 1, 2, 0, 0}},
      {"PadV2", {F({2}, {1, 2}), L({1, 2}, {1, 0}), F({}, {9})}, {9, 1, 2}},
      {"MirrorPad", {F({3}, {1, 2, 3}), I({1, 2}, {1, 1})}, {2, 1, 2, 3, 2}, A("mode", "REFLECT")},
      {"Tile", {F({2}, {1, 2}), L({1}, {2})}, {1, 2, 1, 2}},
      {"BroadcastTo", {F({1, 2}, {1, 2}), L({2}, {2, 2})}, {1, 2, 1, 2}},
      {"BroadcastArgs", {I({2}, {2, 1}), I({1}, {3})}, {2, 3}},
      {"Fill", {L({1}, {3}), F({}, {4})}, {4, 4, 4}, {}, 1, 0},
      {"Range", {I({}, {1}), I({}, {7}), I({}, {2})}, {1, 3, 5}, {}, 1, 0},
      {"ReverseV2", {m, I({1}, {1})}, {3, 2, 1, 6, 5, 4}},
      {"ReverseSequence", {m, I({2}, {2, 3})}, {2, 1, 3, 6, 5, 4}, A("seq_dim", 1, "batch_dim", 0)},
      {"Where", {B({0, 1, 1})}, {1, 2}},
      {"TopKV2", {m, I({}, {2})}, {3, 2, 6, 5}, {}, 2},
      {"SpaceToDepth", {F({1, 2, 2, 1}, {1, 2, 3, 4})}, {1, 2, 3, 4}, A("block_size", 2)},
      {"SpaceToDepth",
       {F({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})},
       {1, 3, 2, 4, 5, 7, 6, 8},
       A("block_size", 2, "data_format", "NCHW")},
      {"DepthToSpace",
       {F({1, 4, 1, 2}, {1, 2, 3, 4, 5, 6, 7, 8})},
       {1, 3, 2, 4, 5, 7, 6, 8},
       A("block_size", 2, "data_format", "NCHW")},
      {"DepthToSpace", {F({1, 1, 1, 4}, {1, 2, 3, 4})}, {1, 2, 3, 4}, A("block_size", 2)},
      {"SpaceToBatchND", {F({1, 2, 1, 1}, {1, 2}), I({2}, {2, 1}), I({2, 2}, {0, 0, 0, 0})}, {1, 2}},
      {"BatchToSpaceND", {F({2, 1, 1, 1}, {1, 2}), I({2}, {2, 1}), I({2, 2}, {0, 0, 0, 0})}, {1, 2}},
      {"ResizeBilinear",
       {F({1, 1, 2, 1}, {0, 2}), I({2}, {1, 4})},
       {0, 0.5, 1.5, 2},
       A("half_pixel_centers", true)},
      {"ResizeNearestNeighbor",
       {F({1, 1, 2, 1}, {3, 5}), I({2}, {1, 4})},
       {3, 3, 5, 5},
       A("half_pixel_centers", true)},
      {"ArgMax", {m, L({}, {1})}, {2, 2}},
      {"ArgMin", {m, I({}, {0})}, {0, 0, 0}, A("output_type", DType::kI32)},
      {"Cumsum", {m, I({}, {1})}, {0, 1, 3, 0, 4, 9}, A("exclusive", true)},
  };
  const auto reduce = [&](const char* op, std::vector<double> expected) {
    out.push_back({op, {m, I({1}, {1})}, std::move(expected), A("keep_dims", true)});
  };
  reduce("Mean", {2, 5});
  reduce("Sum", {6, 15});
  reduce("Max", {3, 6});
  reduce("Min", {1, 4});
  reduce("Prod", {6, 120});
  out.push_back({"Any", {B({0, 1}), I({1}, {0})}, {1}});
  out.push_back({"All", {B({0, 1}), I({1}, {0})}, {0}});
  return out;
}

std::vector<SourceOp> MatrixCases() {
  const Tensor a = F({1, 2}, {1, 2}), b = F({2, 2}, {1, 2, 3, 4});
  const Ints ones = {1, 1, 1, 1};
  std::vector<SourceOp> out = {
      {"MatMul", {a, b}, {7, 10}},
      {"MatMul", {F({2, 1}, {1, 2}), b}, {5, 11}, A("transpose_a", true, "transpose_b", true)},
      // [1,2,2,1] with a 2x2 filter of two channels
      {"Conv2D",
       {F({1, 2, 2, 1}, {1, 2, 3, 4}), F({2, 2, 1, 2}, {1, 0, 1, 0, 1, 0, 1, 2})},
       {10, 8},
       A("strides", ones, "padding", "VALID")},
      {"Conv2D",
       {F({1, 1, 2, 2}, {1, 2, 3, 4}), F({2, 2, 1, 2}, {1, 0, 1, 0, 1, 0, 1, 2})},
       {10, 8},
       A("strides", ones, "padding", "VALID", "data_format", "NCHW")},
      {"Conv2D",
       {F({1, 1, 1, 1}, {5}), F({2, 2, 1, 1}, {1, 2, 3, 4})},
       {20, 15, 10, 5},
       A("strides", ones, "padding", "EXPLICIT", "explicit_paddings", Ints{0, 0, 1, 1, 1, 1, 0, 0})},
      {"DepthwiseConv2dNative",
       {F({1, 1, 1, 2}, {3, 5}), F({1, 1, 2, 2}, {1, 2, 3, 4})},
       {3, 6, 15, 20},
       A("strides", ones, "padding", "SAME")},
      // each pixel spreads the filter over 2x2 of the result; the filter's last dimension is the operand's
      // channel
      {"Conv2DBackpropInput",
       {I({4}, {1, 2, 4, 1}), F({2, 2, 1, 1}, {1, 2, 3, 4}), F({1, 1, 2, 1}, {1, 10})},
       {1, 2, 10, 20, 3, 4, 30, 40},
       A("strides", Ints{1, 2, 2, 1}, "padding", "VALID"),
       1,
       0},
      {"Conv2DBackpropInput",
       {I({4}, {1, 2, 1, 1}), F({1, 1, 2, 2}, {1, 2, 3, 4}), F({1, 2, 1, 1}, {1, 10})},
       {21, 43},
       A("strides", ones, "padding", "SAME", "data_format", "NCHW"),
       1,
       0},
      {"MaxPoolV2",
       {F({1, 2, 2, 1}, {-1, -2, -3, -4}), I({4}, {1, 2, 2, 1}), I({4}, {1, 1, 1, 1})},
       {-1},
       A("padding", "VALID")},
      {"MaxPool",
       {F({1, 2, 2, 1}, {-1, -2, -3, -4})},
       {-1},
       A("ksize", Ints{1, 2, 2, 1}, "strides", ones, "padding", "VALID")},
      {"AvgPool",
       {F({1, 2, 2, 1}, {1, 2, 3, 6})},
       {3},
       A("ksize", Ints{1, 2, 2, 1}, "strides", ones, "padding", "VALID")},
      {"BiasAdd", {b, F({2}, {10, 20})}, {11, 22, 13, 24}},
      {"BiasAddV1", {b, F({2}, {10, 20})}, {11, 22, 13, 24}},
      {"BiasAdd", {F({1, 2, 1, 1}, {1, 2}), F({2}, {10, 20})}, {11, 22}, A("data_format", "NCHW")},
  };
  for (const char* op : {"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})
    out.push_back({op, {F({1, 1, 2}, {1, 2}), F({1, 2, 2}, {1, 2, 3, 4})}, {5, 11}, A("adj_y", true)});
  for (const char* op : {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}) {
    out.push_back({op,
                   {F({1, 1, 1, 2}, {3, 5}), F({2}, {2, 1}), F({2}, {1, 0}), F({2}, {1, 1}), F({2}, {3, 15})},
                   {3, 1},
                   A("epsilon", 1.0, "is_training", false),
                   6});
  }
  return out;
}

std::vector<SourceOp> EinsumCases() {
  const Tensor a = F({2, 3}, {1, 2, 3, 4, 5, 6}), b = F({3, 2}, {1, 0, 2, 1, 0, 3});
  return {
      {"Einsum", {a, b}, {5, 11, 14, 23}, A("equation", "ij,jk->ik"), 1, 2},
      {"Einsum", {a, b}, {5, 14, 11, 23}, A("equation", "ij,jk->ki")},
      {"Einsum", {a}, {6, 15}, A("equation", "ij->i")},
  };
}

std::vector<SourceOp> RowCases() {
  const Tensor x = F({3, 2}, {1, 2, 3, 4, 5, 6});
  return {
      {"Empty", {I({2}, {2, 1})}, {0, 0}, A("dtype", DType::kF32)},
      {"DeepCopy", {x}, {1, 2, 3, 4, 5, 6}},
      {"InplaceUpdate", {x, I({1}, {1}), F({1, 2}, {8, 9})}, {1, 2, 8, 9, 5, 6}, {}, 1, 3},
      {"InplaceUpdate", {x, I({1}, {-1}), F({1, 2}, {8, 9})}, {1, 2, 3, 4, 8, 9}, {}, 1, 3},
      {"InplaceUpdate", {x, I({2}, {2, 0}), F({2, 2}, {7, 8, 9, 10})}, {9, 10, 3, 4, 7, 8}, {}, 1, 3},
      {"InplaceUpdate", {F({2}, {1, 2}), I({1}, {1}), F({1}, {9})}, {1, 9}, {}, 1, 3},
  };
}

std::vector<SourceOp> AllSourceOps() {
  std::vector<SourceOp> all;
  for (const auto& cases : {ElementwiseCases(), ComposedCases(), BuiltinCases(), ShapeCases(), MatrixCases(),
                            VolumeCases(), SegmentCases(), FormCases(), BitCases(), FunctionCases(),
                            ImageCases(), PatchCases(), CellCases(), EinsumCases(), RowCases()})
    all.insert(all.end(), cases.begin(), cases.end());
  return all;
}

}  // namespace fusebox::converter
