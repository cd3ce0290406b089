// SPDX-License-Identifier: Apache-2.0
#include "models/saved_model/saved_model_builder.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "converter/import/saved_model/checkpoint.pb.h"
#include "host/base/buffer.h"
#include "models/saved_model/op_table.h"

namespace fusebox::models {
namespace {

// Versions that are emulated.
constexpr const char* kTensorFlowVersion = "2.8.4";
constexpr const char* kTensorFlowOfKeras3 = "2.17.0";
constexpr int kProducer = 987;

// Escapes with ".", the escape character of keys.
std::string EscapedPath(const std::string& path) {
  std::string escaped;
  for (char c : path) escaped += c == '.' ? std::string("..") : std::string(1, c);
  return escaped;
}

tf::TensorInfo InfoOf(const Ref& ref) {
  tf::TensorInfo info;
  info.set_name(ref.edge.find(':') == std::string::npos ? ref.edge + ":0" : ref.edge);
  info.set_dtype(ref.dtype);
  *info.mutable_tensor_shape() = ShapeProto(ref.shape);
  return info;
}

// Positions of names in alphabetic order.
std::vector<size_t> SortedOrder(const std::vector<std::string>& names) {
  std::vector<size_t> order(names.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](size_t i) { return names[i]; });
  return order;
}

}  // namespace

struct SavedModelBuilder::Variable {
  std::string name;
  TensorValue value;
  std::string path;
  bool trainable;
  int captured_as;  // the variable whose object functions list when they capture this one

  std::string key() const { return EscapedPath(path) + "/.ATTRIBUTES/VARIABLE_VALUE"; }
};

struct SavedModelBuilder::Object {
  std::string identifier;  // of other objects
  int variable = -1;
  std::string signature;
  std::vector<std::pair<std::string, int>> children;
};

class SavedModelBuilder::MainGraph : public GraphBuilder {
 public:
  explicit MainGraph(SavedModelBuilder& model) : GraphBuilder(model, true) {}

  void AddVariable(const Variable& variable) {
    handles_.push_back(AddHandle(variable.name, variable));
    AddRead(handles_.back(), variable);
  }

  // Keras 3: an unassigned handle, the handle passed to functions, and a copy of it.
  void AddVariableAndCopy(const Variable& variable) {
    AddRead(AddHandle(variable.name, variable), variable);
    const Ref used = AddHandle(variable.name, variable);
    const Ref value = AddRead(used, variable);
    const Ref copy = AddHandle("Variable", variable);
    SetScope(copy.edge);
    Ops("AssignVariableOp", {copy, value}, {}, {Attr("dtype", variable.value.dtype)});
    SetScope("");
    AddRead(copy, variable);
    handles_.insert(handles_.end(), {copy, used});
  }

  Ref AddPlaceholder(const std::string& name, tf::DataType dtype, const Shape& shape) {
    Ref ref = Op("Placeholder", {}, shape, {Attr("dtype", dtype), Attr("shape", shape)});
    ref.edge = UniqueName(name);
    nodes_.back().set_name(ref.edge);
    return ref;
  }

  void AddNoOp(const std::string& name) { AddNode("NoOp", UniqueName(name)); }
  const std::string& last_node() const { return nodes_.back().name(); }
  const std::vector<tf::NodeDef>& nodes() const { return nodes_; }

 private:
  Ref Handle(VariableRef variable) override { return handles_[variable.index]; }

  Ref AddHandle(const std::string& name, const Variable& variable) {
    const std::string node = UniqueName(name);
    AddNode("VarHandleOp", node);
    auto& attrs = *nodes_.back().mutable_attr();
    attrs["dtype"].set_type(variable.value.dtype);
    *attrs["shape"].mutable_shape() = ShapeProto(variable.value.shape);
    attrs["shared_name"].set_s(name);
    attrs["_output_shapes"] = Attr("", std::vector<Shape>{kScalar}).proto;
    return {node, tf::DT_RESOURCE, kScalar};
  }

  Ref AddRead(const Ref& handle, const Variable& variable) {
    SetScope(handle.edge + "/Read");
    Ref value = Op("ReadVariableOp", {handle}, variable.value.shape, {Attr("dtype", variable.value.dtype)});
    SetScope("");
    return value;
  }

  std::vector<Ref> handles_;
};

SavedModelBuilder::SavedModelBuilder(Exporter exporter)
    : exporter_(exporter), main_(std::make_unique<MainGraph>(*this)) {}
SavedModelBuilder::~SavedModelBuilder() = default;

const std::string& SavedModelBuilder::NameOf(VariableRef variable) const {
  return variables_[variable.index].name;
}

std::pair<tf::DataType, Shape> SavedModelBuilder::TypeOf(VariableRef variable) const {
  const TensorValue& value = variables_[variable.index].value;
  return {value.dtype, value.shape};
}

VariableRef SavedModelBuilder::AddVariable(const std::string& name, TensorValue value,
                                           const std::string& path, bool trainable) {
  const int index = static_cast<int>(variables_.size());
  if (exporter_ == Exporter::kTensorFlow) {
    variables_.push_back({.name = name,
                          .value = std::move(value),
                          .path = path,
                          .trainable = trainable,
                          .captured_as = index});
    main_->AddVariable(variables_.back());
    return {index};
  }
  const std::string place = std::to_string(index / 2);
  variables_.push_back({.name = name,
                        .value = value,
                        .path = "variables/" + place,
                        .trainable = trainable,
                        .captured_as = index});
  variables_.push_back({.name = name,
                        .value = std::move(value),
                        .path = "_all_variables/" + place,
                        .trainable = trainable,
                        .captured_as = index});
  main_->AddVariableAndCopy(variables_.back());
  return {index + 1};
}

FunctionBuilder& SavedModelBuilder::AddFunction(const std::string& name) {
  functions_.emplace_back(new FunctionBuilder(*this, NumberedName(name)));
  return *functions_.back();
}

void SavedModelBuilder::AddSignature(const std::string& key, const FunctionBuilder& function,
                                     const std::vector<std::string>& inputs,
                                     const std::vector<std::string>& outputs) {
  FUSEBOX_CHECK(inputs.size() == function.args().size() && outputs.size() == function.results().size());
  FunctionBuilder& wrapper = AddFunction("__inference_signature_wrapper");
  tf::SignatureDef& signature = signatures_[key];
  signature.set_method_name("tensorflow/serving/predict");
  std::vector<Ref> arguments(inputs.size());
  std::vector<Ref> placeholders;
  for (size_t i : SortedOrder(inputs)) {
    const Ref& arg = function.args()[i];
    arguments[i] = wrapper.Arg(inputs[i], arg.dtype, arg.shape);
    placeholders.push_back(main_->AddPlaceholder(key + "_" + inputs[i], arg.dtype, arg.shape));
    (*signature.mutable_inputs())[inputs[i]] = InfoOf(placeholders.back());
  }
  std::vector<Ref> results = wrapper.Call(function, arguments);
  std::vector<Ref> sorted;
  std::vector<size_t> order = SortedOrder(outputs);
  for (size_t i : order) sorted.push_back(results[i]);
  wrapper.Return(sorted);
  std::vector<Ref> called = main_->Call(wrapper, placeholders);
  for (size_t i = 0; i < order.size(); ++i)
    (*signature.mutable_outputs())[outputs[order[i]]] = InfoOf(called[i]);
  wrappers_[key] = &wrapper;
}

void SavedModelBuilder::AddRestore() {
  Ref file = main_->AddPlaceholder("saver_filename", tf::DT_STRING, kScalar);
  FunctionBuilder& restore = AddFunction("__inference__traced_restore");
  Ref prefix = restore.Arg("file_prefix", tf::DT_STRING, kScalar);
  std::vector<std::string> keys;
  std::vector<tf::DataType> types;
  for (const Variable& variable : variables_) {
    keys.push_back(variable.key());
    types.push_back(variable.value.dtype);
  }
  Ref names = restore.Const(Strings(keys), "RestoreV2/tensor_names");
  Ref slices = restore.Const(Strings(std::vector<std::string>(keys.size())), "RestoreV2/shape_and_slices");
  std::vector<Ref> tensors = restore.Ops("RestoreV2", {prefix, names, slices}, {}, {Attr("dtypes", types)});
  for (size_t i = 0; i < variables_.size(); ++i) {
    Ref value = restore.Op("Identity", {tensors[i]}, {});
    restore.Assign("AssignVariableOp", {static_cast<int>(i)}, value);
  }
  restore.Return({prefix});
  main_->Call(restore, {file});
  restore_node_ = main_->last_node();
}

// The two object graphs have different numbers: the checkpoint's has no signatures.
std::vector<SavedModelBuilder::Object> SavedModelBuilder::MakeObjects(bool of_checkpoint) const {
  std::vector<Object> objects = {
      {exporter_ == Exporter::kKeras3 ? "_generic_user_object" : "_tf_keras_model", -1, {}, {}}};
  auto add = [&](int parent, const std::string& name, Object object) {
    int id = static_cast<int>(objects.size());
    objects.push_back(std::move(object));
    objects[parent].children.emplace_back(name, id);
    return id;
  };
  if (!of_checkpoint) {
    int map = add(0, "signatures", {"signature_map", -1, {}, {}});
    for (const auto& [key, signature] : signatures_) add(map, key, {{}, -1, key, {}});
  }
  const bool lists = exporter_ == Exporter::kKeras3;  // paths use lists, not layers
  const char* inner = lists ? "trackable_list_wrapper" : "_tf_keras_layer";
  const int list =
      add(0, lists ? "trainable_variables" : "variables", {"trackable_list_wrapper", -1, {}, {}});
  std::map<std::string, int> known = {{"", 0}};
  for (size_t i = 0; i < variables_.size(); ++i) {
    std::filesystem::path path;
    int parent = 0;
    for (const std::filesystem::path& part : std::filesystem::path(variables_[i].path)) {
      path /= part;
      auto [at, added] = known.emplace(path.string(), static_cast<int>(objects.size()));
      if (added) add(parent, part.string(), {inner, -1, {}, {}});
      parent = at->second;
    }
    objects[parent].variable = static_cast<int>(i);
    if (variables_[i].captured_as == static_cast<int>(i))
      objects[list].children.emplace_back(std::to_string(objects[list].children.size()), parent);
  }
  return objects;
}

void SavedModelBuilder::AddObjects(tf::MetaGraphDef& meta_graph) const {
  tf::SavedObjectGraph& graph = *meta_graph.mutable_object_graph_def();
  std::vector<Object> objects = MakeObjects(false);
  std::map<int, int> object_of;  // variable -> object
  for (size_t id = 0; id < objects.size(); ++id) {
    const Object& object = objects[id];
    tf::SavedObject& saved = *graph.add_nodes();
    for (const auto& [name, child] : object.children) {
      tf::ObjectReference& reference = *saved.add_children();
      reference.set_local_name(name);
      reference.set_node_id(child);
    }
    if (object.variable >= 0) {
      const Variable& variable = variables_[object.variable];
      saved.mutable_variable()->set_dtype(variable.value.dtype);
      *saved.mutable_variable()->mutable_shape() = ShapeProto(variable.value.shape);
      saved.mutable_variable()->set_name(variable.name);
      saved.mutable_variable()->set_trainable(variable.trainable);
      object_of[object.variable] = static_cast<int>(id);
    } else if (!object.signature.empty()) {
      saved.mutable_bare_concrete_function()->set_concrete_function_name(
          wrappers_.at(object.signature)->name());
      for (const Ref& arg : wrappers_.at(object.signature)->args()) {
        saved.mutable_bare_concrete_function()->add_argument_keywords(arg.edge);
      }
    } else {
      saved.mutable_user_object()->set_identifier(object.identifier);
    }
  }
  for (const auto& [key, wrapper] : wrappers_) {
    tf::SavedConcreteFunction& function = (*graph.mutable_concrete_functions())[wrapper->name()];
    for (VariableRef capture : wrapper->captures())
      function.add_bound_inputs(object_of[variables_[capture.index].captured_as]);
  }
}

BundleWriter SavedModelBuilder::Checkpoint() const {
  BundleWriter bundle;
  for (const Variable& variable : variables_) bundle.Add(variable.key(), variable.value);
  tf::TrackableObjectGraph graph;
  for (const Object& object : MakeObjects(true)) {
    tf::TrackableObjectGraph::Object& stored = *graph.add_nodes();
    for (const auto& [name, child] : object.children) {
      stored.add_children()->set_local_name(name);
      stored.mutable_children(stored.children_size() - 1)->set_node_id(child);
    }
    if (object.variable < 0) continue;
    tf::TrackableObjectGraph::Object::Attribute& attribute = *stored.add_attributes();
    attribute.set_name("VARIABLE_VALUE");
    attribute.set_full_name(variables_[object.variable].name);
    attribute.set_checkpoint_key(variables_[object.variable].key());
  }
  bundle.Add("_CHECKPOINTABLE_OBJECT_GRAPH", String(graph.SerializeAsString()));
  return bundle;
}

tf::SavedModel SavedModelBuilder::ToProto() {
  if (restore_node_.empty()) {
    main_->AddNoOp("NoOp");
    AddRestore();
  }
  tf::SavedModel model;
  model.set_saved_model_schema_version(1);
  tf::MetaGraphDef& meta_graph = *model.add_meta_graphs();
  tf::MetaGraphDef::MetaInfo& info = *meta_graph.mutable_meta_info_def();
  info.add_tags("serve");
  info.set_tensorflow_version(exporter_ == Exporter::kKeras3 ? kTensorFlowOfKeras3 : kTensorFlowVersion);
  info.set_stripped_default_attrs(true);
  meta_graph.mutable_saver_def()->set_filename_tensor_name("saver_filename:0");
  meta_graph.mutable_saver_def()->set_restore_op_name(restore_node_);
  meta_graph.mutable_saver_def()->set_version(2);

  tf::GraphDef& graph = *meta_graph.mutable_graph_def();
  graph.mutable_versions()->set_producer(kProducer);
  graph.mutable_versions()->set_min_consumer(12);
  std::set<std::string> ops;
  for (const tf::NodeDef& node : main_->nodes()) {
    *graph.add_node() = node;
    ops.insert(node.op());
  }
  for (const auto& function : functions_) {
    tf::FunctionDef& proto = *graph.mutable_library()->add_function();
    proto = function->ToProto();
    for (const tf::NodeDef& node : proto.node_def()) ops.insert(node.op());
  }
  for (const std::string& op : ops) *info.mutable_stripped_op_list()->add_op() = OpDefOf(op);

  for (const auto& [key, signature] : signatures_) (*meta_graph.mutable_signature_def())[key] = signature;
  tf::TensorInfo& init = (*(*meta_graph.mutable_signature_def())["__saved_model_init_op"]
                               .mutable_outputs())["__saved_model_init_op"];
  init.set_name("NoOp");
  init.mutable_tensor_shape()->set_unknown_rank(true);
  AddObjects(meta_graph);
  return model;
}

Status SavedModelBuilder::Write(const std::string& dir) {
  return WriteSavedModel(dir, ToProto(), Checkpoint());
}

Status WriteSavedModel(const std::string& dir, const tf::SavedModel& model, const BundleWriter& checkpoint) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return IoError(dir + ": " + error.message());
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // maps sorted by key
    FUSEBOX_CHECK(model.SerializeToCodedStream(&coded));
  }
  FUSEBOX_TRY(checkpoint.Write((std::filesystem::path(dir) / "variables" / "variables").string()));
  return WriteFile((std::filesystem::path(dir) / "saved_model.pb").string(), std::as_bytes(std::span(bytes)));
}

}  // namespace fusebox::models
