// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/models/v1_graph.h"

#include "host/base/buffer.h"
#include "models/saved_model/bundle_writer.h"
#include "models/saved_model/saved_model_builder.h"

namespace fusebox::test_models {

using namespace models;

std::string V1Graph::Unique(const std::string& name) {
  return Number(scope_.empty() ? name : scope_ + "/" + name);
}

std::string V1Graph::Number(const std::string& full) {
  const int count = names_[full]++;
  return count == 0 ? full : full + "_" + std::to_string(count);
}

tf::NodeDef& V1Graph::Add(const std::string& op, const std::string& name, const std::vector<Attr>& attrs) {
  tf::NodeDef& node = *graph_.add_node();
  node.set_op(op);
  node.set_name(name);
  for (const Attr& attr : attrs) (*node.mutable_attr())[attr.key] = attr.proto;
  return node;
}

std::string V1Graph::Define(const std::string& value, tf::DataType dtype, size_t depth) {
  types_[value] = dtype;
  depths_[value] = depth;
  return value;
}

std::string V1Graph::Placeholder(const std::string& name, tf::DataType dtype, const Shape& shape) {
  Add("Placeholder", name, {Attr("dtype", dtype), Attr("shape", shape)});
  return Define(name, dtype, 0);
}

std::string V1Graph::Const(const TensorValue& value, const std::string& name) {
  tf::NodeDef& node = Add("Const", Unique(name), {Attr("dtype", value.dtype), Attr("value", value)});
  if (!contexts_.empty()) node.add_input("^" + contexts_.back().pivot);
  return Define(node.name(), value.dtype, contexts_.size());
}

std::string V1Graph::Use(const std::string& value) {
  std::string here = value;
  for (size_t i = depths_.at(value); i < contexts_.size(); ++i) {
    Context& context = contexts_[i];
    const auto found = context.captured.find(value);
    if (found != context.captured.end()) {
      here = found->second;
      continue;
    }
    const tf::DataType dtype = types_.at(value);
    if (context.loop) {
      here = Enter(here, context, true);
    } else {
      tf::NodeDef& node = Add("Switch", Number(context.scope + "/Switch"), {Attr("T", dtype)});
      node.add_input(here);
      node.add_input(context.condition);
      here = node.name() + (context.side == 1 ? ":1" : "");
    }
    context.captured[value] = Define(here, dtype, i + 1);
  }
  return here;
}

std::string V1Graph::Enter(const std::string& value, const Context& context, bool constant) {
  tf::NodeDef& node = Add("Enter", Number(context.scope + "/Enter"),
                          {Attr("T", types_.at(value)), Attr("frame_name", context.frame),
                           Attr("is_constant", constant), Attr("parallel_iterations", 32)});
  node.add_input(value);
  return Define(node.name(), types_.at(value), contexts_.size());
}

std::string V1Graph::Op(const std::string& op, const Names& inputs, tf::DataType dtype,
                        const std::vector<Attr>& attrs, const std::string& name) {
  Names here;
  for (const std::string& input : inputs) here.push_back(Use(input));
  tf::NodeDef& node = Add(op, Unique(name.empty() ? op : name));
  for (const std::string& input : here) node.add_input(input);
  const tf::DataType first = inputs.empty() ? dtype : types_.at(inputs[0]);
  if (!inputs.empty()) (*node.mutable_attr())["T"].set_type(first);
  for (const Attr& attr : attrs) (*node.mutable_attr())[attr.key] = attr.proto;
  return Define(node.name(), dtype == tf::DT_INVALID ? first : dtype, contexts_.size());
}

std::string V1Graph::Output(const std::string& node, int number, tf::DataType dtype) {
  return Define(node + ":" + std::to_string(number), dtype, depths_.at(node));
}

std::string V1Graph::Identity(const std::string& value, const std::string& name) {
  tf::NodeDef& node = Add("Identity", Unique(name), {Attr("T", types_.at(value))});
  node.add_input(value);
  return Define(node.name(), types_.at(value), contexts_.size());
}

Names V1Graph::Branches(const std::string& scope, const std::string& condition, int side,
                        const Branch& branch) {
  Context context;
  context.scope = scope;
  context.condition = condition;
  context.side = side;
  context.pivot = scope + (side == 1 ? "/switch_t" : "/switch_f");
  contexts_.push_back(context);
  scope_ = scope;
  const Names written = branch();
  scope_.clear();
  Names results;
  for (const std::string& value : written) results.push_back(Use(value));
  contexts_.pop_back();
  return results;
}

Names V1Graph::Cond(const std::string& name, const std::string& condition, const Branch& then_branch,
                    const Branch& else_branch) {
  const std::string outer = scope_;
  const std::string scope = Unique(name);
  const std::string here = Use(condition);
  scope_.clear();
  tf::NodeDef& pivot = Add("Switch", scope + "/Switch", {Attr("T", tf::DT_BOOL)});
  names_[scope + "/Switch"] = 1;
  pivot.add_input(here);
  pivot.add_input(here);
  for (const int side : {1, 0}) {
    tf::NodeDef& node =
        Add("Identity", scope + (side == 1 ? "/switch_t" : "/switch_f"), {Attr("T", tf::DT_BOOL)});
    node.add_input(scope + (side == 1 ? "/Switch:1" : "/Switch"));
  }
  const std::string id = Identity(here, scope + "/pred_id");
  const Names taken = Branches(scope, id, 1, then_branch);
  const Names other = Branches(scope, id, 0, else_branch);
  FUSEBOX_CHECK(taken.size() == other.size());
  Names results;
  for (size_t i = 0; i < taken.size(); ++i) {
    const tf::DataType dtype = types_.at(taken[i]);
    tf::NodeDef& merge = Add("Merge", Unique(scope + "/Merge"), {Attr("T", dtype), Attr("N", 2)});
    merge.add_input(other[i]);
    merge.add_input(taken[i]);
    results.push_back(Define(merge.name(), dtype, contexts_.size()));
  }
  scope_ = outer;
  return results;
}

Names V1Graph::While(const std::string& name, const Names& variables,
                     const std::function<std::string(const Names&)>& condition, const Step& body) {
  const std::string outer = scope_;
  const std::string scope = Unique(name);
  Names initial;
  for (const std::string& value : variables) initial.push_back(Use(value));
  scope_.clear();
  Context context;
  context.loop = true;
  context.scope = scope;
  context.frame = scope + "/while_context";
  Names merges;
  std::vector<int> merge_nodes;
  for (const std::string& value : initial) {
    const std::string enter = Enter(value, context, false);
    merge_nodes.push_back(graph_.node_size());
    tf::NodeDef& merge = Add("Merge", Unique(scope + "/Merge"), {Attr("T", types_.at(value)), Attr("N", 2)});
    merge.add_input(enter);
    merges.push_back(Define(merge.name(), types_.at(value), contexts_.size() + 1));
  }
  context.pivot = merges[0];
  contexts_.push_back(context);
  scope_ = scope;
  const std::string written = condition(merges);
  scope_.clear();
  const std::string more = Use(written);
  Add("LoopCond", scope + "/LoopCond").add_input(more);
  Names switches;
  Names inside;
  for (const std::string& merge : merges) {
    tf::NodeDef& node = Add("Switch", Unique(scope + "/Switch"), {Attr("T", types_.at(merge))});
    node.add_input(merge);
    node.add_input(scope + "/LoopCond");
    switches.push_back(node.name());
    Define(node.name() + ":1", types_.at(merge), contexts_.size());
    inside.push_back(Identity(node.name() + ":1", scope + "/Identity"));
  }
  contexts_.back().pivot = inside[0];
  scope_ = scope;
  const Names computed = body(inside);
  scope_.clear();
  Names next;
  for (const std::string& value : computed) next.push_back(Use(value));
  contexts_.pop_back();
  FUSEBOX_CHECK(next.size() == merges.size());
  Names results;
  for (size_t i = 0; i < next.size(); ++i) {
    const tf::DataType dtype = types_.at(merges[i]);
    tf::NodeDef& step = Add("NextIteration", Unique(scope + "/NextIteration"), {Attr("T", dtype)});
    step.add_input(next[i]);
    graph_.mutable_node(merge_nodes[i])->add_input(step.name());
    tf::NodeDef& exit = Add("Exit", Unique(scope + "/Exit"), {Attr("T", dtype)});
    exit.add_input(switches[i]);
    results.push_back(Define(exit.name(), dtype, contexts_.size()));
  }
  scope_ = outer;
  return results;
}

V1Graph::Array V1Graph::TensorArray(const std::string& size, tf::DataType dtype, const Shape& element,
                                    bool dynamic) {
  const std::string node = Op(
      "TensorArrayV3", {size}, tf::DT_RESOURCE,
      {Attr("dtype", dtype), Attr("element_shape", element), Attr("dynamic_size", dynamic),
       Attr("clear_after_read", true), Attr("identical_element_shapes", true), Attr("tensor_array_name", "")},
      "TensorArray");
  return {node, Output(node, 1, tf::DT_FLOAT), dtype};
}

std::string V1Graph::Write(const Array& array, const std::string& index, const std::string& value) {
  return Op("TensorArrayWriteV3", {array.handle, index, value, array.flow}, tf::DT_FLOAT,
            {Attr("T", array.dtype)}, "TensorArrayWrite/TensorArrayWriteV3");
}

std::string V1Graph::Read(const Array& array, const std::string& index) {
  return Op("TensorArrayReadV3", {array.handle, index, array.flow}, array.dtype, {Attr("dtype", array.dtype)},
            "TensorArrayReadV3");
}

std::string V1Graph::Unstack(const Array& array, const std::string& value) {
  const std::string shape = Op("Shape", {value}, tf::DT_INT32, {Attr("out_type", tf::DT_INT32)});
  const std::string length = Op("StridedSlice", {shape, Const(Ints({0})), Const(Ints({1})), Const(Ints({1}))},
                                tf::DT_INT32, {Attr("Index", tf::DT_INT32), Attr("shrink_axis_mask", 1)});
  const std::string range =
      Op("Range", {Const(Int(0)), length, Const(Int(1))}, tf::DT_INT32, {Attr("Tidx", tf::DT_INT32)});
  return Op("TensorArrayScatterV3", {array.handle, range, value, array.flow}, tf::DT_FLOAT,
            {Attr("T", array.dtype)}, "TensorArrayUnstack/TensorArrayScatter/TensorArrayScatterV3");
}

std::string V1Graph::Stack(const Array& array, const Shape& element) {
  const std::string size = Op("TensorArraySizeV3", {array.handle, array.flow}, tf::DT_INT32);
  const std::string range =
      Op("Range", {Const(Int(0)), size, Const(Int(1))}, tf::DT_INT32, {Attr("Tidx", tf::DT_INT32)});
  return Op("TensorArrayGatherV3", {array.handle, range, array.flow}, array.dtype,
            {Attr("dtype", array.dtype), Attr("element_shape", element)},
            "TensorArrayStack/TensorArrayGatherV3");
}

Status WriteFrozenGraph(const std::string& path, const tf::GraphDef& graph) {
  const std::string bytes = graph.SerializeAsString();
  return WriteFile(path, std::as_bytes(std::span(bytes)));
}

Status WriteV1SavedModel(const std::string& dir, const tf::GraphDef& graph, const Names& inputs,
                         const Names& outputs) {
  tf::SavedModel file;
  file.set_saved_model_schema_version(1);
  tf::MetaGraphDef& meta = *file.add_meta_graphs();
  meta.mutable_meta_info_def()->add_tags("serve");
  *meta.mutable_graph_def() = graph;
  tf::SignatureDef& signature = (*meta.mutable_signature_def())["serving_default"];
  for (const tf::NodeDef& node : graph.node()) {
    for (const std::string& input : inputs) {
      if (node.name() != input) continue;
      tf::TensorInfo& info = (*signature.mutable_inputs())[input];
      info.set_name(input + ":0");
      info.set_dtype(node.attr().at("dtype").type());
      if (node.attr().contains("shape")) *info.mutable_tensor_shape() = node.attr().at("shape").shape();
    }
  }
  for (const std::string& output : outputs)
    (*signature.mutable_outputs())[output].set_name(output.find(':') == std::string::npos ? output + ":0"
                                                                                          : output);
  return WriteSavedModel(dir, file, BundleWriter());
}

}  // namespace fusebox::test_models
