// SPDX-License-Identifier: Apache-2.0
// TensorFlow functions called on a layer's result: TFOpLambda and SlicingOpLambda of Keras 2, and the
// operations of Keras 3.
#include <map>

#include "converter/import/keras/layers/operation.h"

namespace fusebox::keras {
namespace {

// Key: the last part of a TensorFlow function name or the Keras 3 class, in lower case without underscores:
// "math.squared_difference" and SquaredDifference are both squareddifference.
const std::map<std::string_view, OperationRow>& Rows() {
  static const auto* const rows = new std::map<std::string_view, OperationRow>{
      {"add", {"AddV2", Binary}},
      {"radd", {"AddV2", Binary}},
      {"biasadd", {"AddV2", Binary}},
      {"subtract", {"Sub", Binary}},
      {"multiply", {"Mul", Binary}},
      {"rmul", {"Mul", Binary}},
      {"truediv", {"RealDiv", Binary}},
      {"truedivide", {"RealDiv", Binary}},
      {"divide", {"RealDiv", Binary}},
      {"dividenonan", {"DivNoNan", Binary}},
      {"floordiv", {"FloorDiv", Binary}},
      {"floordivide", {"FloorDiv", Binary}},
      {"floormod", {"FloorMod", Binary}},
      {"mod", {"FloorMod", Binary}},
      {"squareddifference", {"SquaredDifference", Binary}},
      {"maximum", {"Maximum", Binary}},
      {"minimum", {"Minimum", Binary}},
      {"pow", {"Pow", Binary}},
      {"power", {"Pow", Binary}},
      {"atan2", {"Atan2", Binary}},
      {"arctan2", {"Atan2", Binary}},
      {"xlogy", {"Xlogy", Binary}},
      {"xdivy", {"Xdivy", Binary}},
      {"multiplynonan", {"MulNoNan", Binary}},
      {"truncatediv", {"TruncateDiv", Binary}},
      {"truncatemod", {"TruncateMod", Binary}},
      {"bitwiseand", {"BitwiseAnd", Binary}},
      {"bitwiseor", {"BitwiseOr", Binary}},
      {"bitwisexor", {"BitwiseXor", Binary}},
      {"logaddexp", {"logaddexp", OfTwoFloats}},
      {"hypot", {"hypot", OfTwoFloats}},
      {"notequal", {"NotEqual", Binary}},
      {"equal", {"Equal", Binary}},
      {"greater", {"Greater", Binary}},
      {"greaterequal", {"GreaterEqual", Binary}},
      {"less", {"Less", Binary}},
      {"lessequal", {"LessEqual", Binary}},
      {"logicaland", {"LogicalAnd", Logical}},
      {"logicalor", {"LogicalOr", Logical}},
      {"logicalxor", {"LogicalXor", Logical}},
      {"logicalnot", {"LogicalNot", Unary}},
      {"where", {"SelectV2", Where}},
      {"addn", {"AddV2", AddAll}},
      {"clipbyvalue", {"", Clip}},
      {"clip", {"", Clip}},
      {"matmul", {"BatchMatMulV2", MatMul}},
      {"dot", {"BatchMatMulV2", Dot}},
      {"einsum", {"Einsum", Einsum}},
      {"exp", {"Exp", Unary}},
      {"log", {"Log", Unary}},
      {"log1p", {"Log1p", Unary}},
      {"expm1", {"Expm1", Unary}},
      {"sqrt", {"Sqrt", Unary}},
      {"rsqrt", {"Rsqrt", Unary}},
      {"square", {"Square", Unary}},
      {"reciprocal", {"Reciprocal", Unary}},
      {"negative", {"Neg", Unary}},
      {"sign", {"Sign", Unary}},
      {"floor", {"Floor", Unary}},
      {"ceil", {"Ceil", Unary}},
      {"round", {"Round", Rounded}},
      {"sin", {"Sin", Unary}},
      {"cos", {"Cos", Unary}},
      {"tan", {"Tan", Unary}},
      {"sinh", {"Sinh", Unary}},
      {"cosh", {"Cosh", Unary}},
      {"atan", {"Atan", Unary}},
      {"arctan", {"Atan", Unary}},
      {"erf", {"Erf", Unary}},
      {"erfc", {"Erfc", Unary}},
      {"asin", {"Asin", Unary}},
      {"arcsin", {"Asin", Unary}},
      {"acos", {"Acos", Unary}},
      {"arccos", {"Acos", Unary}},
      {"asinh", {"Asinh", Unary}},
      {"arcsinh", {"Asinh", Unary}},
      {"acosh", {"Acosh", Unary}},
      {"arccosh", {"Acosh", Unary}},
      {"atanh", {"Atanh", Unary}},
      {"arctanh", {"Atanh", Unary}},
      {"rint", {"Rint", Unary}},
      {"trunc", {"", Truncate}},
      {"log2", {"log2", Scaled}},
      {"log10", {"log10", Scaled}},
      {"exp2", {"exp2", Scaled}},
      {"deg2rad", {"deg2rad", Scaled}},
      {"invert", {"Invert", Unary}},
      {"bitwiseinvert", {"Invert", Unary}},
      {"bitwisenot", {"Invert", Unary}},
      {"isnan", {"IsNan", Unary}},
      {"isinf", {"IsInf", Unary}},
      {"isfinite", {"IsFinite", Unary}},
      {"zeroslike", {"ZerosLike", Unary}},
      {"oneslike", {"OnesLike", Unary}},
      {"fulllike", {"", FullLike}},
      {"relu", {"relu", Named}},
      {"relu6", {"relu6", Named}},
      {"crelu", {"", Crelu}},
      {"sigmoid", {"sigmoid", Named}},
      {"tanh", {"tanh", Named}},
      {"softplus", {"softplus", Named}},
      {"softsign", {"softsign", Named}},
      {"selu", {"selu", Named}},
      {"mish", {"mish", Named}},
      {"logsigmoid", {"log_sigmoid", Named}},
      {"hardsigmoid", {"hard_sigmoid", Named}},
      {"hardsilu", {"hard_silu", Named}},
      {"hardswish", {"hard_silu", Named}},
      {"hardtanh", {"hard_tanh", Named}},
      {"tanhshrink", {"tanh_shrink", Named}},
      {"sparseplus", {"sparse_plus", Named}},
      {"sparsesigmoid", {"sparse_sigmoid", Named}},
      {"squareplus", {"", SquarePlus}},
      {"celu", {"", Celu}},
      {"glu", {"", Glu}},
      {"hardshrink", {"hardshrink", Shrink}},
      {"softshrink", {"softshrink", Shrink}},
      {"threshold", {"", Threshold}},
      {"silu", {"", Silu}},
      {"swish", {"", Silu}},
      {"gelu", {"", Gelu}},
      {"softmax", {"Softmax", SoftmaxOver}},
      {"logsoftmax", {"LogSoftmax", SoftmaxOver}},
      {"elu", {"", Elu}},
      {"leakyrelu", {"", LeakyRelu}},
      {"reducemean", {"Mean", Reduce}},
      {"mean", {"Mean", Reduce}},
      {"average", {"Mean", Average}},
      {"reducesum", {"Sum", Reduce}},
      {"sum", {"Sum", Reduce}},
      {"reducemax", {"Max", Reduce}},
      {"max", {"Max", Reduce}},
      {"amax", {"Max", Reduce}},
      {"reducemin", {"Min", Reduce}},
      {"min", {"Min", Reduce}},
      {"amin", {"Min", Reduce}},
      {"reduceprod", {"Prod", Reduce}},
      {"prod", {"Prod", Reduce}},
      {"reduceany", {"Any", Reduce}},
      {"any", {"Any", Reduce}},
      {"reduceall", {"All", Reduce}},
      {"all", {"All", Reduce}},
      {"reducevariance", {"", Spread}},
      {"var", {"", Spread}},
      {"reducestd", {"Sqrt", Spread}},
      {"std", {"Sqrt", Spread}},
      {"reducelogsumexp", {"", LogSumExp}},
      {"logsumexp", {"", LogSumExp}},
      {"reduceeuclideannorm", {"EuclideanNorm", Reduce}},
      {"countnonzero", {"", CountNonZero}},
      {"moments", {"", Moments}},
      {"norm", {"", Norm}},
      {"l2normalize", {"", UnitLength}},
      {"normalize", {"", UnitLength}},
      {"localresponsenormalization", {"LRN", LocalResponse}},
      {"lrn", {"LRN", LocalResponse}},
      {"argmax", {"ArgMax", Extreme}},
      {"argmin", {"ArgMin", Extreme}},
      {"cumsum", {"Cumsum", Cumulate}},
      {"cumprod", {"Cumprod", Cumulate}},
      {"topk", {"TopKV2", TopK}},
      {"sort", {"sort", Sorted}},
      {"argsort", {"argsort", Sorted}},
      {"identity", {"", Same}},
      {"copy", {"", Same}},
      {"stopgradient", {"", Same}},
      {"converttotensor", {"", Same}},
      {"expanddims", {"", ExpandDims}},
      {"squeeze", {"", Squeeze}},
      {"reshape", {"", Reshape}},
      {"ravel", {"", Ravel}},
      {"transpose", {"", TransposeAxes}},
      {"permutedimensions", {"", TransposeAxes}},
      {"swapaxes", {"", SwapAxes}},
      {"moveaxis", {"", MoveAxis}},
      {"broadcastto", {"", BroadcastTo}},
      {"shape", {"", ShapeOf}},
      {"concat", {"", Concat}},
      {"concatenate", {"", Concat}},
      {"hstack", {"hstack", Pile}},
      {"vstack", {"vstack", Pile}},
      {"dstack", {"dstack", Pile}},
      {"columnstack", {"columnstack", Pile}},
      {"append", {"", Append}},
      {"stack", {"", Stack}},
      {"unstack", {"", Unstack}},
      {"split", {"", Split}},
      {"hsplit", {"hsplit", SplitAt}},
      {"vsplit", {"vsplit", SplitAt}},
      {"dsplit", {"dsplit", SplitAt}},
      {"tile", {"", Tile}},
      {"repeat", {"", RepeatEach}},
      {"pad", {"", PadWith}},
      {"reverse", {"", Reverse}},
      {"flip", {"", Reverse}},
      {"fliplr", {"columns", Flip}},
      {"flipud", {"rows", Flip}},
      {"flipleftright", {"width", Flip}},
      {"flipupdown", {"height", Flip}},
      {"rot90", {"", Rotate}},
      {"rearrange", {"", Rearrange}},
      {"roll", {"", Roll}},
      {"gather", {"", Gather}},
      {"take", {"", Gather}},
      {"takealongaxis", {"", TakeAlong}},
      {"gathernd", {"GatherNd", GatherNd}},
      {"slice", {"Slice", CutOut}},
      {"bandpart", {"bandpart", Band}},
      {"tril", {"tril", Band}},
      {"triu", {"triu", Band}},
      {"onehot", {"", OneHot}},
      {"depthtospace", {"DepthToSpace", Blocks}},
      {"spacetodepth", {"SpaceToDepth", Blocks}},
      {"resize", {"", Resize}},
      {"cast", {"", CastTo}},
      {"saturatecast", {"saturate", CastTo}},
      {"getitem", {"", GetItem}},
  };
  return *rows;
}

// Null: unknown.
const OperationRow* FindOperation(std::string_view key) {
  static const auto* const all = [] {
    auto* made = new std::map<std::string_view, OperationRow>(Rows());
    for (const auto& table :
         {NumberOperations(), StatisticOperations(), ProductOperations(), WindowOperations(),
          NetworkOperations(), ImageOperations(), UpdateOperations(), SpectrumOperations()})
      for (const NamedOperation& entry : table) made->emplace(entry.name, entry.row);
    return made;
  }();
  const auto it = all->find(key);
  return it == all->end() ? nullptr : &it->second;
}

std::string Key(std::string_view name) {
  std::string key;
  for (const char c : name)
    if (c != '_') key += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return key;
}

void Apply(LayerCall& c, std::string_view name) {
  const OperationRow* row = FindOperation(Key(name));
  if (!row)
    return c.emit().Refuse("the function " + std::string(name) +
                           " is unsupported for Keras files; save the model as a SavedModel, where more "
                           "functions are supported");
  c.Keyword("name");
  row->build(c, row->op);
  // An ignored argument could change the result.
  if (const std::string unread = c.UnreadKeyword(); c.emit().ok() && !unread.empty())
    c.emit().Refuse("the argument " + unread + " of " + std::string(name));
}

// Settings stored in a Keras 3 operation. `fill_mode` applies to edges, which resizing does not have.
void CheckSettings(LayerCall& c) {
  for (const char* key : {"fill_mode", "fill_value", "synchronized"}) c.Keyword(key);
  if (const std::string unread = c.UnreadSetting(); c.emit().ok() && !unread.empty())
    c.emit().Refuse("the setting " + unread + " of " + c.layer().class_name);
}

// "math.add", "__operators__.add", "nn.relu"
void OpLambda(LayerCall& c) {
  const std::string function = c.Str("function", "");
  if (function == "compat.v1.image.resize" || function == "linalg.normalize")
    return c.emit().Refuse("the function " + function +
                           ", which differs from the one of TensorFlow 2 and Keras 3");
  Apply(c, std::string_view(function).substr(function.rfind('.') + 1));
}

void SlicingOpLambda(LayerCall& c) { GetItem(c, ""); }

}  // namespace

void BuildFunction(LayerCall& call, std::string_view name) { Apply(call, name); }

bool IsUnary(std::string_view name) {
  const OperationRow* row = FindOperation(Key(name));
  return row && (row->build == Unary || row->build == Named);
}

void BuildOperation(LayerCall& call) {
  Apply(call, call.layer().class_name);
  CheckSettings(call);
}

bool IsKnownOperation(std::string_view class_name) { return FindOperation(Key(class_name)) != nullptr; }

std::span<const LayerRow> OperationLayers() {
  static constexpr LayerRow kTable[] = {
      {"TFOpLambda", OpLambda, nullptr, MaskRule::kStop},
      {"SlicingOpLambda", SlicingOpLambda, nullptr, MaskRule::kStop},
  };
  return kTable;
}

}  // namespace fusebox::keras
