// SPDX-License-Identifier: Apache-2.0
#include "models/saved_model/op_table.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "host/base/status.h"

namespace fusebox::models {
namespace {

constexpr std::string_view kLines[] = {
    "NoOp() -> ()",
    "Placeholder() -> (output: dtype)",
    "Const() -> (output: dtype)",
    "Identity(input: T) -> (output: T)",
    "IdentityN(input: [T]) -> (output: [T])",
    "VarHandleOp() -> (resource: resource) !",
    "ReadVariableOp(resource: resource) -> (value: dtype) !",
    "AssignVariableOp(resource: resource, value: dtype) -> () !",
    "AssignAddVariableOp(resource: resource, value: dtype) -> () !",
    "AssignSubVariableOp(resource: resource, value: dtype) -> () !",
    "RestoreV2(prefix: string, tensor_names: string, shape_and_slices: string) -> (tensors: [dtypes]) !",
    "PartitionedCall(args: [Tin]) -> (output: [Tout])",
    "StatefulPartitionedCall(args: [Tin]) -> (output: [Tout]) !",
    "While(input: [T]) -> (output: [T]) !",
    "StatelessWhile(input: [T]) -> (output: [T])",
    "If(cond: Tcond, input: [Tin]) -> (output: [Tout]) !",
    "StatelessIf(cond: Tcond, input: [Tin]) -> (output: [Tout])",
    "StatelessCase(branch_index: int32, input: [Tin]) -> (output: [Tout])",
    "MatMul(a: T, b: T) -> (product: T)",
    "BatchMatMulV2(x: T, y: T) -> (output: T)",
    "Einsum(inputs: N * T) -> (output: T)",
    "BiasAdd(value: T, bias: T) -> (output: T)",
    "Conv2D(input: T, filter: T) -> (output: T)",
    "Conv3D(input: T, filter: T) -> (output: T)",
    "DepthwiseConv2dNative(input: T, filter: T) -> (output: T)",
    "MaxPool(input: T) -> (output: T)",
    "AvgPool(value: T) -> (output: T)",
    "Relu(features: T) -> (activations: T)",
    "Relu6(features: T) -> (activations: T)",
    "Softmax(logits: T) -> (softmax: T)",
    "Sigmoid(x: T) -> (y: T)",
    "Tanh(x: T) -> (y: T)",
    "Exp(x: T) -> (y: T)",
    "Neg(x: T) -> (y: T)",
    "Floor(x: T) -> (y: T)",
    "Sqrt(x: T) -> (y: T)",
    "Rsqrt(x: T) -> (y: T)",
    "Square(x: T) -> (y: T)",
    "Add(x: T, y: T) -> (z: T)",
    "AddV2(x: T, y: T) -> (z: T)",
    "Sub(x: T, y: T) -> (z: T)",
    "Mul(x: T, y: T) -> (z: T)",
    "RealDiv(x: T, y: T) -> (z: T)",
    "FloorDiv(x: T, y: T) -> (z: T)",
    "FloorMod(x: T, y: T) -> (z: T)",
    "ScatterNd(indices: Tindices, updates: T, shape: Tindices) -> (output: T)",
    "Maximum(x: T, y: T) -> (z: T)",
    "Minimum(x: T, y: T) -> (z: T)",
    "ClipByValue(t: T, clip_value_min: T, clip_value_max: T) -> (output: T)",
    "SquaredDifference(x: T, y: T) -> (z: T)",
    "SelectV2(condition: bool, t: T, e: T) -> (output: T)",
    "Tile(input: T, multiples: Tmultiples) -> (output: T)",
    "CudnnRNNV3(input: T, input_h: T, input_c: T, params: T, sequence_lengths: int32) -> (output: T, "
    "output_h: T, output_c: T, reserve_space: T, host_reserved: int8) !",
    "Less(x: T, y: T) -> (z: bool)",
    "Greater(x: T, y: T) -> (z: bool)",
    "NotEqual(x: T, y: T) -> (z: bool)",
    "Any(input: bool, reduction_indices: Tidx) -> (output: bool)",
    "ZerosLike(x: T) -> (y: T)",
    "FusedBatchNormV3(x: T, scale: U, offset: U, mean: U, variance: U) -> (y: T, batch_mean: U, "
    "batch_variance: U, "
    "reserve_space_1: U, reserve_space_2: U, reserve_space_3: U)",
    "GreaterEqual(x: T, y: T) -> (z: bool)",
    "Equal(x: T, y: T) -> (z: bool)",
    "LogicalAnd(x: bool, y: bool) -> (z: bool)",
    "LogicalOr(x: bool, y: bool) -> (z: bool)",
    "Cast(x: SrcT) -> (y: DstT)",
    "Shape(input: T) -> (output: out_type)",
    "Reshape(tensor: T, shape: Tshape) -> (output: T)",
    "Transpose(x: T, perm: Tperm) -> (y: T)",
    "ExpandDims(input: T, dim: Tdim) -> (output: T)",
    "Squeeze(input: T) -> (output: T)",
    "ConcatV2(values: N * T, axis: Tidx) -> (output: T)",
    "Pack(values: N * T) -> (output: T)",
    "Unpack(value: T) -> (output: num * T)",
    "Split(split_dim: int32, value: T) -> (output: num_split * T)",
    "SplitV(value: T, size_splits: Tlen, split_dim: int32) -> (output: num_split * T)",
    "StridedSlice(input: T, begin: Index, end: Index, strides: Index) -> (output: T)",
    "Slice(input: T, begin: Index, size: Index) -> (output: T)",
    "ReverseV2(tensor: T, axis: Tidx) -> (output: T)",
    "Fill(dims: index_type, value: T) -> (output: T)",
    "GatherV2(params: Tparams, indices: Tindices, axis: Taxis) -> (output: Tparams)",
    "Mean(input: T, reduction_indices: Tidx) -> (output: T)",
    "Sum(input: T, reduction_indices: Tidx) -> (output: T)",
    "Max(input: T, reduction_indices: Tidx) -> (output: T)",
    "Abs(x: T) -> (y: T)",
    "AddN(inputs: N * T) -> (sum: T)",
    "All(input: bool, reduction_indices: Tidx) -> (output: bool)",
    "BroadcastTo(input: T, shape: Tidx) -> (output: T)",
    "Ceil(x: T) -> (y: T)",
    "Cos(x: T) -> (y: T)",
    "Cumsum(x: T, axis: Tidx) -> (out: T)",
    "Elu(features: T) -> (activations: T)",
    "Erf(x: T) -> (y: T)",
    "GatherNd(params: Tparams, indices: Tindices) -> (output: Tparams)",
    "LeakyRelu(features: T) -> (activations: T)",
    "LessEqual(x: T, y: T) -> (z: bool)",
    "Log(x: T) -> (y: T)",
    "Log1p(x: T) -> (y: T)",
    "LogicalNot(x: bool) -> (y: bool)",
    "LogSoftmax(logits: T) -> (logsoftmax: T)",
    "Min(input: T, reduction_indices: Tidx) -> (output: T)",
    "OneHot(indices: TI, depth: int32, on_value: T, off_value: T) -> (output: T)",
    "Pad(input: T, paddings: Tpaddings) -> (output: T)",
    "PadV2(input: T, paddings: Tpaddings, constant_values: T) -> (output: T)",
    "Pow(x: T, y: T) -> (z: T)",
    "Prod(input: T, reduction_indices: Tidx) -> (output: T)",
    "Range(start: Tidx, limit: Tidx, delta: Tidx) -> (output: Tidx)",
    "Reciprocal(x: T) -> (y: T)",
    "Round(x: T) -> (y: T)",
    "Selu(features: T) -> (activations: T)",
    "Sign(x: T) -> (y: T)",
    "Sin(x: T) -> (y: T)",
    "Softplus(features: T) -> (activations: T)",
    "TopKV2(input: T, k: int32) -> (values: T, indices: int32)",
    "ArgMax(input: T, dimension: Tidx) -> (output: output_type)",
    "TensorListFromTensor(tensor: element_dtype, element_shape: shape_type) -> (output_handle: variant)",
    "TensorListReserve(element_shape: shape_type, num_elements: int32) -> (handle: variant)",
    "TensorListGetItem(input_handle: variant, index: int32, element_shape: int32) -> (item: element_dtype)",
    "TensorListSetItem(input_handle: variant, index: int32, item: element_dtype) -> (output_handle: variant)",
    "TensorListStack(input_handle: variant, element_shape: int32) -> (tensor: element_dtype)",
};

constexpr std::pair<std::string_view, tf::DataType> kTypeNames[] = {
    {"float", tf::DT_FLOAT},       {"int32", tf::DT_INT32},    {"int64", tf::DT_INT64},
    {"int8", tf::DT_INT8},         {"bool", tf::DT_BOOL},      {"string", tf::DT_STRING},
    {"resource", tf::DT_RESOURCE}, {"variant", tf::DT_VARIANT}};

std::string_view Trim(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

void AddAttr(tf::OpDef& op, std::string_view name, const char* type) {
  bool known =
      std::ranges::any_of(op.attr(), [&](const tf::OpDef::Attr& attr) { return attr.name() == name; });
  if (known) return;
  tf::OpDef::Attr* attr = op.add_attr();
  attr->set_name(std::string(name));
  attr->set_type(type);
}

void SetType(std::string_view type, tf::OpDef& op, tf::OpDef::Arg& arg) {
  if (type.starts_with('[')) {
    arg.set_type_list_attr(std::string(type.substr(1, type.size() - 2)));
    return AddAttr(op, arg.type_list_attr(), "list(type)");
  }
  if (size_t star = type.find('*'); star != type.npos) {
    arg.set_number_attr(std::string(Trim(type.substr(0, star))));
    AddAttr(op, arg.number_attr(), "int");
    type = Trim(type.substr(star + 1));
  }
  for (const auto& [name, dtype] : kTypeNames) {
    if (type == name) return arg.set_type(dtype);
  }
  arg.set_type_attr(std::string(type));
  AddAttr(op, type, "type");
}

// "(a: T, b: T)"
void AddArgs(std::string_view list, tf::OpDef& op, bool inputs) {
  list = Trim(list.substr(1, list.size() - 2));
  while (!list.empty()) {
    std::string_view item = list.substr(0, list.find(','));
    list = item.size() == list.size() ? std::string_view() : Trim(list.substr(item.size() + 1));
    size_t colon = item.find(':');
    FUSEBOX_CHECK(colon != item.npos);
    tf::OpDef::Arg* arg = inputs ? op.add_input_arg() : op.add_output_arg();
    arg->set_name(std::string(Trim(item.substr(0, colon))));
    SetType(Trim(item.substr(colon + 1)), op, *arg);
  }
}

tf::OpDef Parse(std::string_view line) {
  tf::OpDef op;
  op.set_is_stateful(line.ends_with('!'));
  line = Trim(line.substr(0, line.rfind(')') + 1));
  size_t open = line.find('(');
  size_t arrow = line.find("->");
  FUSEBOX_CHECK(open != line.npos && arrow != line.npos);
  op.set_name(std::string(line.substr(0, open)));
  AddArgs(Trim(line.substr(open, arrow - open)), op, true);
  AddArgs(Trim(line.substr(arrow + 2)), op, false);
  return op;
}

std::map<std::string, tf::OpDef, std::less<>>& Table() {
  static auto* table = [] {
    auto* made = new std::map<std::string, tf::OpDef, std::less<>>;
    for (std::string_view line : kLines) {
      tf::OpDef op = Parse(line);
      made->emplace(op.name(), op);
    }
    return made;
  }();
  return *table;
}

}  // namespace

const tf::OpDef* FindOp(std::string_view op) {
  auto found = Table().find(op);
  return found == Table().end() ? nullptr : &found->second;
}

const tf::OpDef& OpDefOf(std::string_view op) {
  const tf::OpDef* found = FindOp(op);
  if (found == nullptr) CheckFailed(__FILE__, __LINE__, ("no row for op " + std::string(op)).c_str());
  return *found;
}

std::vector<std::string> OpNames() {
  std::vector<std::string> names;
  for (const auto& [name, op] : Table()) names.push_back(name);
  return names;
}

const tf::OpDef& DefineOp(std::string_view line) {
  tf::OpDef op = Parse(line);
  return Table().insert_or_assign(op.name(), op).first->second;
}

}  // namespace fusebox::models
