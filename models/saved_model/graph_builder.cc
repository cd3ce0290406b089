// SPDX-License-Identifier: Apache-2.0
#include "models/saved_model/graph_builder.h"

#include <algorithm>
#include <cctype>

#include "host/base/status.h"
#include "models/saved_model/op_table.h"
#include "models/saved_model/saved_model_builder.h"

namespace fusebox::models {
namespace {

// The name of a result or captured argument: no capitals or slashes.
std::string ArgumentName(std::string name) {
  for (char& c : name)
    c = std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(c)) : '_';
  return name;
}

std::vector<tf::DataType> TypesOf(const std::vector<Ref>& values) {
  std::vector<tf::DataType> types;
  for (const Ref& value : values) types.push_back(value.dtype);
  return types;
}

std::vector<Shape> ShapesOf(const std::vector<Ref>& values) {
  std::vector<Shape> shapes;
  for (const Ref& value : values) shapes.push_back(value.shape);
  return shapes;
}

void Put(tf::NodeDef& node, const Attr& attr) { (*node.mutable_attr())[attr.key] = attr.proto; }

// Sets attributes that follow from an argument's values, unless already set.
void InferAttrs(const tf::OpDef::Arg& arg, std::span<const Ref> values, tf::NodeDef& node) {
  if (!arg.type_attr().empty() && !values.empty() && !node.attr().contains(arg.type_attr())) {
    Put(node, Attr(arg.type_attr(), values[0].dtype));
  }
  if (!arg.number_attr().empty()) Put(node, Attr(arg.number_attr(), values.size()));
  if (!arg.type_list_attr().empty() && !node.attr().contains(arg.type_list_attr())) {
    Put(node, Attr(arg.type_list_attr(), TypesOf({values.begin(), values.end()})));
  }
}

// Returns the number of inputs of an argument. A list has all remaining inputs, except for the inputs of
// later arguments.
size_t TakenBy(const tf::OpDef& op, int argument, size_t remaining) {
  const tf::OpDef::Arg& arg = op.input_arg(argument);
  if (arg.number_attr().empty() && arg.type_list_attr().empty()) return 1;
  size_t after = op.input_arg_size() - argument - 1;
  FUSEBOX_CHECK(remaining >= after);
  return remaining - after;
}

std::vector<tf::DataType> OutputTypes(const tf::OpDef::Arg& arg, const tf::NodeDef& node) {
  auto attr = [&](const std::string& key) -> const tf::AttrValue& {
    auto found = node.attr().find(key);
    if (found == node.attr().end())
      CheckFailed(__FILE__, __LINE__, (node.op() + " needs attribute " + key).c_str());
    return found->second;
  };
  if (!arg.type_list_attr().empty()) {
    std::vector<tf::DataType> types;
    for (int type : attr(arg.type_list_attr()).list().type())
      types.push_back(static_cast<tf::DataType>(type));
    return types;
  }
  tf::DataType type = arg.type_attr().empty() ? arg.type() : attr(arg.type_attr()).type();
  return std::vector<tf::DataType>(arg.number_attr().empty() ? 1 : attr(arg.number_attr()).i(), type);
}

}  // namespace

Attr::Attr(std::string key, const Shape& value) : key(std::move(key)) {
  *proto.mutable_shape() = ShapeProto(value);
}
Attr::Attr(std::string key, const TensorValue& value) : key(std::move(key)) {
  *proto.mutable_tensor() = value.ToProto();
}
Attr::Attr(std::string key, const std::vector<int64_t>& value) : key(std::move(key)) {
  proto.mutable_list();
  for (int64_t i : value) proto.mutable_list()->add_i(i);
}
Attr::Attr(std::string key, const std::vector<tf::DataType>& value) : key(std::move(key)) {
  proto.mutable_list();
  for (tf::DataType type : value) proto.mutable_list()->add_type(type);
}
Attr::Attr(std::string key, const std::vector<Shape>& value) : key(std::move(key)) {
  proto.mutable_list();
  for (const Shape& shape : value) *proto.mutable_list()->add_shape() = ShapeProto(shape);
}
Attr::Attr(std::string key, const std::string& name, const std::vector<Attr>& attrs) : key(std::move(key)) {
  proto.mutable_func()->set_name(name);
  for (const Attr& attr : attrs) (*proto.mutable_func()->mutable_attr())[attr.key] = attr.proto;
}

std::string GraphBuilder::UniqueName(std::string_view stem) {
  std::string base = scope_.empty() ? std::string(stem) : scope_ + "/" + std::string(stem);
  std::string name = base;
  for (int& last = last_[base]; !names_.insert(name).second;) name = base + "_" + std::to_string(++last);
  return name;
}

tf::NodeDef& GraphBuilder::AddNode(std::string_view op, const std::string& name) {
  tf::NodeDef& node = nodes_.emplace_back();
  node.set_name(name);
  node.set_op(std::string(op));
  return node;
}

std::vector<Ref> GraphBuilder::Ops(std::string_view op, const std::vector<Ref>& inputs,
                                   const std::vector<Shape>& shapes, const std::vector<Attr>& attrs) {
  const tf::OpDef& def = OpDefOf(op);
  tf::NodeDef& node = AddNode(op, UniqueName(op));
  for (const Attr& attr : attrs) Put(node, attr);
  size_t next = 0;
  for (int i = 0; i < def.input_arg_size(); ++i) {
    size_t count = TakenBy(def, i, inputs.size() - next);
    FUSEBOX_CHECK(next + count <= inputs.size());
    InferAttrs(def.input_arg(i), std::span(inputs).subspan(next, count), node);
    next += count;
  }
  FUSEBOX_CHECK(next == inputs.size());
  for (const Ref& input : inputs) node.add_input(input.edge);

  std::vector<Ref> results;
  for (const tf::OpDef::Arg& arg : def.output_arg()) {
    std::vector<tf::DataType> types = OutputTypes(arg, node);
    for (size_t k = 0; k < types.size(); ++k) {
      size_t number = results.size();
      std::string edge = node.name() + (is_main_ ? (number ? ":" : "") : ":" + arg.name() + ":");
      if (!is_main_) edge += std::to_string(k);
      if (is_main_ && number) edge += std::to_string(number);
      results.push_back({edge, types[k], number < shapes.size() ? shapes[number] : Shape{}});
    }
  }
  FUSEBOX_CHECK(shapes.size() <= results.size());
  if (std::ranges::any_of(shapes, &Shape::ranked)) Put(node, Attr("_output_shapes", ShapesOf(results)));
  return results;
}

Ref GraphBuilder::Op(std::string_view op, const std::vector<Ref>& inputs, const Shape& shape,
                     const std::vector<Attr>& attrs) {
  std::vector<Ref> results = Ops(op, inputs, {shape}, attrs);
  FUSEBOX_CHECK(results.size() == 1);
  return results[0];
}

Ref GraphBuilder::Const(const TensorValue& value, std::string_view name) {
  tf::NodeDef& node = AddNode("Const", UniqueName(name));
  Put(node, Attr("dtype", value.dtype));
  Put(node, Attr("value", value));
  Put(node, Attr("_output_shapes", std::vector<Shape>{value.shape}));
  return {node.name() + (is_main_ ? "" : ":output:0"), value.dtype, value.shape};
}

Ref GraphBuilder::Read(VariableRef variable) {
  Ref handle = Handle(variable);
  auto [dtype, shape] = model_.TypeOf(variable);
  Ref value = Op("ReadVariableOp", {handle}, shape, {Attr("dtype", dtype)});
  effects_.push_back(nodes_.back().name());
  if (!last_write_.empty()) nodes_.back().add_input("^" + last_write_);
  return value;
}

void GraphBuilder::Assign(std::string_view op, VariableRef variable, const Ref& value) {
  std::vector<std::string> before = effects_;
  Ops(op, {Handle(variable), value}, {});
  for (const std::string& effect : before) nodes_.back().add_input("^" + effect);
  last_write_ = nodes_.back().name();
  effects_.push_back(last_write_);
}

std::vector<Ref> GraphBuilder::Call(const FunctionBuilder& callee, const std::vector<Ref>& arguments) {
  FUSEBOX_CHECK(!callee.results().empty() && arguments.size() == callee.args().size());
  std::vector<Ref> inputs = arguments;
  std::vector<int64_t> resources;
  for (VariableRef capture : callee.captures()) {
    resources.push_back(static_cast<int64_t>(inputs.size()));
    inputs.push_back(Handle(capture));
  }
  std::vector<Attr> attrs = {
      Attr("f", callee.name(), {}), Attr("Tout", TypesOf(callee.results())),
      Attr("_collective_manager_ids", std::vector<int64_t>{}),
      Attr("_read_only_resource_inputs", callee.writes() ? std::vector<int64_t>{} : resources)};
  std::string before = is_main_ ? "" : last_write_;  // signatures do not depend on each other
  std::vector<Ref> results = Ops(callee.is_stateful() ? "StatefulPartitionedCall" : "PartitionedCall", inputs,
                                 ShapesOf(callee.results()), attrs);
  if (!callee.is_stateful()) return results;
  if (!before.empty()) nodes_.back().add_input("^" + before);
  effects_.push_back(nodes_.back().name());
  if (callee.writes()) last_write_ = nodes_.back().name();
  return results;
}

std::vector<Ref> GraphBuilder::While(const FunctionBuilder& cond, const FunctionBuilder& body,
                                     const std::vector<Ref>& inputs, bool stateful) {
  FUSEBOX_CHECK(body.args().size() == inputs.size() && body.results().size() == inputs.size());
  std::vector<Shape> shapes = ShapesOf(inputs);
  return Ops(
      stateful ? "While" : "StatelessWhile", inputs, shapes,
      {Attr("cond", cond.name(), {}), Attr("body", body.name(), {}), Attr("output_shapes", shapes),
       Attr("parallel_iterations", 32), Attr("_lower_using_switch_merge", true),
       Attr("_num_original_outputs", inputs.size()),
       Attr("_read_only_resource_inputs", std::vector<int64_t>{}), Attr("_stateful_parallelism", false)});
}

std::vector<Ref> GraphBuilder::If(const Ref& condition, const FunctionBuilder& then_branch,
                                  const FunctionBuilder& else_branch, const std::vector<Ref>& arguments,
                                  const std::vector<Shape>& shapes) {
  std::vector<Ref> inputs = {condition};
  inputs.insert(inputs.end(), arguments.begin(), arguments.end());
  return Ops("StatelessIf", inputs, shapes,
             {Attr("then_branch", then_branch.name(), {}), Attr("else_branch", else_branch.name(), {}),
              Attr("Tout", TypesOf(then_branch.results())), Attr("output_shapes", shapes),
              Attr("_lower_using_switch_merge", true)});
}

Ref FunctionBuilder::Arg(const std::string& name, tf::DataType dtype, const Shape& shape) {
  FUSEBOX_CHECK(names_.insert(name).second);
  args_.push_back({name, dtype, shape});
  return args_.back();
}

FunctionBuilder& FunctionBuilder::SetAttr(const Attr& attr) {
  attrs_.push_back(attr);
  return *this;
}

Ref FunctionBuilder::Handle(VariableRef variable) {
  for (size_t i = 0; i < captures_.size(); ++i) {
    if (captures_[i].index == variable.index) return capture_args_[i];
  }
  std::string stem = ArgumentName(model_.NameOf(variable)) + "_resource";
  std::string name = stem;
  for (int i = 0; !names_.insert(name).second; ++i) name = stem + "_" + std::to_string(i);
  captures_.push_back(variable);
  capture_args_.push_back({name, tf::DT_RESOURCE, kScalar});
  return capture_args_.back();
}

void FunctionBuilder::AddResult(const std::string& name, const Ref& value) {
  result_names_.push_back(name);
  results_.push_back(value);
}

void FunctionBuilder::Return(const std::vector<Ref>& values) { ReturnLoop(values, {}); }

void FunctionBuilder::ReturnLoop(const std::vector<Ref>& carried, const std::vector<Ref>& invariant) {
  FUSEBOX_CHECK(results_.empty());
  std::string last;
  if (!effects_.empty()) {
    last = UniqueName("NoOp");
    tf::NodeDef& node = AddNode("NoOp", last);
    for (const std::string& effect : effects_) node.add_input("^" + effect);
    Put(node, Attr("_acd_function_control_output", true));
  }
  for (const Ref& value : carried) {
    Ref result = Op("Identity", {value}, value.shape);
    if (!last.empty()) nodes_.back().add_input("^" + last);
    AddResult(ArgumentName(nodes_.back().name()), result);
  }
  for (const Ref& value : invariant) AddResult(value.edge + "_out", value);
}

tf::FunctionDef FunctionBuilder::ToProto() const {
  tf::FunctionDef proto;
  tf::OpDef& signature = *proto.mutable_signature();
  signature.set_name(name_);
  signature.set_is_stateful(is_stateful());
  std::vector<Ref> all = args_;
  all.insert(all.end(), capture_args_.begin(), capture_args_.end());
  for (size_t i = 0; i < all.size(); ++i) {
    tf::OpDef::Arg* arg = signature.add_input_arg();
    arg->set_name(all[i].edge);
    arg->set_type(all[i].dtype);
    auto& attrs = *(*proto.mutable_arg_attr())[static_cast<uint32_t>(i)].mutable_attr();
    attrs["_output_shapes"] = Attr("", std::vector<Shape>{all[i].shape}).proto;
    if (i < args_.size()) attrs["_user_specified_name"].set_s(all[i].edge);
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    tf::OpDef::Arg* arg = signature.add_output_arg();
    arg->set_name(result_names_[i]);
    arg->set_type(results_[i].dtype);
    (*proto.mutable_ret())[result_names_[i]] = results_[i].edge;
  }
  for (const std::string& effect : effects_) {
    signature.add_control_output(effect);
    (*proto.mutable_control_ret())[effect] = effect;
  }
  for (const tf::NodeDef& node : nodes_) *proto.add_node_def() = node;
  for (const Attr& attr : attrs_) (*proto.mutable_attr())[attr.key] = attr.proto;
  (*proto.mutable_attr())["_construction_context"].set_s("kEagerRuntime");
  (*proto.mutable_attr())["_input_shapes"] = Attr("", ShapesOf(all)).proto;
  return proto;
}

}  // namespace fusebox::models
