// SPDX-License-Identifier: Apache-2.0
#include "models/build/tensorflow_ops.h"

#include <algorithm>
#include <map>

#include "converter/import/saved_model/tensor_data.h"
#include "host/base/json.h"
#include "host/graph/npy.h"
#include "models/saved_model/op_table.h"

namespace fusebox::models {
namespace {

using models::Attr, models::Ref;

// {"type": "f32"} or {"shape": [2, 3]}.
Status SetFromMap(const Attrs& map, tf::AttrValue& proto) {
  const AttrValue* const type = map.size() == 1 ? map.Find("type") : nullptr;
  if (type != nullptr) {
    const auto dtype = ParseDType(map.str("type", ""));
    if (!dtype || ToTensorFlow(*dtype) == tf::DT_INVALID)
      return Invalid(ToString(*type) + " is no data type of TensorFlow; use f32, i32, ...");
    proto.set_type(ToTensorFlow(*dtype));
    return {};
  }
  if (map.size() != 1 || map.Find("shape") == nullptr)
    return Invalid("a map must be {\"type\": \"f32\"} or {\"shape\": [2, 3]}");
  *proto.mutable_shape() = models::ShapeProto(Shape(map.i64s("shape")));
  return {};
}

struct SetProto {
  tf::AttrValue& proto;
  Status operator()(bool v) const {
    proto.set_b(v);
    return {};
  }
  Status operator()(int64_t v) const {
    proto.set_i(v);
    return {};
  }
  Status operator()(double v) const {
    proto.set_f(static_cast<float>(v));
    return {};
  }
  Status operator()(const std::string& v) const {
    proto.set_s(v);
    return {};
  }
  Status operator()(const std::vector<int64_t>& list) const {
    proto.mutable_list();
    for (const int64_t v : list) proto.mutable_list()->add_i(v);
    return {};
  }
  Status operator()(const std::vector<double>& list) const {
    for (const double v : list) proto.mutable_list()->add_f(static_cast<float>(v));
    return {};
  }
  Status operator()(const std::vector<std::string>& list) const {
    for (const std::string& v : list) proto.mutable_list()->add_s(v);
    return {};
  }
  Status operator()(const std::shared_ptr<const Attrs>& map) const { return SetFromMap(*map, proto); }
  Status operator()(const auto&) const { return Invalid("a SavedModel has no attributes of this kind"); }
};

std::string TypeName(tf::DataType type) { return saved_model::DataTypeName(type); }

// The element types of an op's type attributes, as far as they are known.
using Types = std::map<std::string, tf::DataType>;

// The inputs of one argument: as many as its number attribute or list needs, or one.
Status CheckArgument(const tf::OpDef::Arg& arg, std::span<const Ref> inputs, Types& types) {
  if (!arg.type_list_attr().empty()) return {};
  for (const Ref& input : inputs) {
    tf::DataType wanted = arg.type();
    if (!arg.type_attr().empty()) wanted = types.try_emplace(arg.type_attr(), input.dtype).first->second;
    if (input.dtype == wanted) continue;
    return Invalid("input " + arg.name() + " is " + TypeName(input.dtype) + ", expected " + TypeName(wanted));
  }
  return {};
}

bool SupportsMany(const tf::OpDef::Arg& arg) {
  return !arg.number_attr().empty() || !arg.type_list_attr().empty();
}

// As GraphBuilder::Ops distributes them: an argument with many inputs receives what the others leave.
Status CheckInputs(const tf::OpDef& op, std::span<const Ref> inputs, Types& types) {
  const auto many = std::ranges::count_if(op.input_arg(), SupportsMany);
  const size_t least = static_cast<size_t>(op.input_arg_size());
  if (inputs.size() < least || (many == 0 && inputs.size() > least))
    return Invalid("has " + std::to_string(inputs.size()) + " inputs, expected " +
                   (many == 0 ? "" : "at least ") + std::to_string(least));
  size_t next = 0;
  for (const tf::OpDef::Arg& arg : op.input_arg()) {
    const size_t count = SupportsMany(arg) ? inputs.size() - least + 1 : 1;
    FUSEBOX_TRY(CheckArgument(arg, inputs.subspan(next, count), types));
    next += count;
  }
  return {};
}

// The attributes that GraphBuilder::Ops needs for the types and numbers of the results.
Status CheckResults(const tf::OpDef& op, const Attrs& attrs, const Types& types) {
  const auto missing = [&](const std::string& key, const char* example) {
    return Invalid("attribute " + key + " is missing; set it, for example to " + example);
  };
  for (const tf::OpDef::Arg& arg : op.output_arg()) {
    const std::string& type = arg.type_attr();
    if (!type.empty() && !types.contains(type) && attrs.Find(type) == nullptr)
      return missing(type, "{\"type\": \"f32\"}");
    const std::string& number = arg.number_attr();
    if (!number.empty() && (attrs.i64(number, 0) < 1 || attrs.i64(number, 0) > 1000))
      return missing(number, "2");
    if (!arg.type_list_attr().empty()) return Unsupported("ops with results of several types");
  }
  return {};
}

Result<std::vector<Ref>> Add(models::FunctionBuilder& function, const std::string& op,
                             const std::vector<Ref>& inputs, const Attrs& attrs) {
  const tf::OpDef* const def = models::FindOp(op);
  if (def == nullptr) return Invalid("no such TensorFlow op here" + DidYouMean(op, models::OpNames()));
  if (def->is_stateful() || op == "Const" || op == "Placeholder")
    return Unsupported("an op with state or without inputs; use weights and constants");
  FUSEBOX_ASSIGN(std::vector<Attr> protos, ToTensorFlow(attrs));
  Types types;
  for (const Attr& attr : protos) {
    if (attr.proto.value_case() == tf::AttrValue::kType) types[attr.key] = attr.proto.type();
  }
  FUSEBOX_TRY(CheckInputs(*def, inputs, types));
  FUSEBOX_TRY(CheckResults(*def, attrs, types));
  return function.Ops(op, inputs, {}, protos);
}

}  // namespace

tf::DataType ToTensorFlow(DType type) {
  switch (type) {
    case DType::kF32: return tf::DT_FLOAT;
    case DType::kF64: return tf::DT_DOUBLE;
    case DType::kF16: return tf::DT_HALF;
    case DType::kBF16: return tf::DT_BFLOAT16;
    case DType::kI8: return tf::DT_INT8;
    case DType::kI16: return tf::DT_INT16;
    case DType::kI32: return tf::DT_INT32;
    case DType::kI64: return tf::DT_INT64;
    case DType::kU8: return tf::DT_UINT8;
    case DType::kU16: return tf::DT_UINT16;
    case DType::kU32: return tf::DT_UINT32;
    case DType::kU64: return tf::DT_UINT64;
    case DType::kBool: return tf::DT_BOOL;
    case DType::kString: return tf::DT_STRING;
    case DType::kComplex64: return tf::DT_COMPLEX64;
    case DType::kComplex128: return tf::DT_COMPLEX128;
    default: return tf::DT_INVALID;
  }
}

Result<models::TensorValue> ToTensorFlow(const Tensor& tensor) {
  models::TensorValue value{ToTensorFlow(tensor.type.dtype), tensor.type.shape, {}, {}};
  if (value.dtype == tf::DT_INVALID)
    return Unsupported(ToString(tensor.type) + ": a SavedModel cannot store this type");
  if (value.dtype == tf::DT_STRING) {
    FUSEBOX_ASSIGN(value.strings, UnpackStrings(tensor.data));
  } else {
    value.bytes.assign(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  }
  return value;
}

Result<std::vector<Attr>> ToTensorFlow(const Attrs& attrs) {
  std::vector<Attr> out;
  for (const auto& [key, value] : attrs) {
    Attr& attr = out.emplace_back(key, false);
    attr.proto.Clear();
    FUSEBOX_TRY(std::visit(SetProto{attr.proto}, value).At("attribute " + key));
  }
  return out;
}

Result<std::vector<Ref>> AddOp(models::FunctionBuilder& function, const std::string& op,
                               const std::vector<Ref>& inputs, const Attrs& attrs) {
  return Add(function, op, inputs, attrs).At(op);
}

}  // namespace fusebox::models
