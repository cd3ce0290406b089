// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/reader.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <system_error>

#include "converter/import/saved_model/parse_message.h"
#include "host/base/buffer.h"

namespace fusebox::saved_model {
namespace {

constexpr int kSchemaVersion = 1;

std::string TagText(const tf::MetaGraphDef& meta_graph) {
  std::string text;
  for (const std::string& tag : meta_graph.meta_info_def().tags()) text += (text.empty() ? "" : ",") + tag;
  return "{" + text + "}";
}

Result<tf::MetaGraphDef*> SelectMetaGraph(tf::SavedModel& file) {
  tf::MetaGraphDef* selected = nullptr;
  std::string tag_sets;
  for (tf::MetaGraphDef& meta_graph : *file.mutable_meta_graphs()) {
    tag_sets += (tag_sets.empty() ? "" : ", ") + TagText(meta_graph);
    const auto& tags = meta_graph.meta_info_def().tags();
    if (!selected && tags.size() == 1 && tags.Get(0) == "serve") selected = &meta_graph;
  }
  if (file.meta_graphs_size() == 0) return Invalid("it holds no meta graph: empty or truncated");
  if (!selected && file.meta_graphs_size() == 1) selected = file.mutable_meta_graphs(0);
  if (!selected) return Invalid("no meta graph has exactly the tag 'serve'; there are " + tag_sets);
  return selected;
}

template <class T>
Status AddName(std::unordered_map<std::string_view, const T*>& map, const std::string& name, const T& value,
               const char* what) {
  if (map.emplace(name, &value).second) return {};
  return Invalid(std::string(what) + " '" + name + "' is defined twice");
}

void AddWarnings(const tf::SavedModel& file, SavedModel& model) {
  if (file.meta_graphs_size() > 1) {
    model.warnings.push_back("holds " + std::to_string(file.meta_graphs_size()) + " meta graphs; " +
                             TagText(*model.meta_graph) + " is converted");
  } else if (TagText(*model.meta_graph) != "{serve}") {
    model.warnings.push_back("the only meta graph has the tags " + TagText(*model.meta_graph) +
                             ", not {serve}");
  }
}

// Finds what a folder without a SavedModel contains: a numbered one below it, or a checkpoint.
std::string WhatElse(const std::filesystem::path& dir) {
  std::error_code error;
  std::string checkpoint;
  for (std::filesystem::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    std::error_code none;
    if (std::filesystem::exists(it->path() / "saved_model.pb", none))
      return "; " + it->path().string() + " does, convert that";
    if (it->path().extension() == ".index") checkpoint = it->path().filename().string();
  }
  if (checkpoint.empty()) return "";
  return ", only a checkpoint (" + checkpoint +
         "), which has only weights; save the whole model (tf.saved_model.save, "
         "model.save)";
}

// Reports another form of the file if the usual one is missing.
std::unexpected<Error> MissingFile(const std::string& dir) {
  std::filesystem::path base(dir);
  std::error_code error;
  if (!std::filesystem::exists(base, error)) return NotFound(dir + ": no such folder");
  if (!std::filesystem::is_directory(base, error)) return Invalid(dir + ": not a SavedModel folder");
  if (std::filesystem::exists(base / "saved_model.pbtxt", error)) {
    return Unsupported((base / "saved_model.pbtxt").string() +
                       ": the text form is unsupported; save the model in binary form");
  }
  if (std::filesystem::exists(base / "saved_model.cpb", error)) {
    return Unsupported((base / "saved_model.cpb").string() +
                       ": the chunked form is unsupported; save the model without "
                       "the proto splitter");
  }
  return NotFound(dir + ": not a SavedModel folder: no saved_model.pb" + WhatElse(base));
}

Result<tf::SavedModel*> Parse(const Buffer& bytes, google::protobuf::Arena* arena) {
  if (bytes.size() > INT_MAX) return Invalid("larger than 2 GiB, the limit of a SavedModel");
  if (bytes.size() == 0) return Invalid("the file is empty");
  auto* file = google::protobuf::Arena::CreateMessage<tf::SavedModel>(arena);
  if (!ParseMessage(bytes.bytes(), *file)) return Invalid("not a SavedModel message: truncated or damaged");
  if (tf::GraphDef graph;
      file->meta_graphs().empty() && ParseMessage(bytes.bytes(), graph) && graph.node_size() > 0)
    return Invalid("is a frozen graph, not a SavedModel; convert the file instead of its folder");
  if (file->saved_model_schema_version() != kSchemaVersion) {
    return Invalid("schema version is " + std::to_string(file->saved_model_schema_version()) +
                   ", expected 1");
  }
  return file;
}

template <class T>
const T* FindIn(const std::unordered_map<std::string_view, const T*>& map, std::string_view name) {
  auto found = map.find(name);
  return found == map.end() ? nullptr : found->second;
}

}  // namespace

Status SavedModel::IndexNames() {
  for (const tf::NodeDef& node : graph().node()) FUSEBOX_TRY(AddName(nodes, node.name(), node, "node"));
  for (const tf::FunctionDef& function : graph().library().function())
    FUSEBOX_TRY(AddName(functions, function.signature().name(), function, "function"));
  for (const tf::OpDef& op : meta_graph->meta_info_def().stripped_op_list().op()) ops.emplace(op.name(), &op);
  return {};
}

std::vector<std::string> SavedModel::Signatures() const {
  std::vector<std::string> keys;
  for (const auto& [key, signature] : meta_graph->signature_def()) {
    if (!key.starts_with("__")) keys.push_back(key);
  }
  std::ranges::sort(keys);
  return keys;
}

const tf::SignatureDef* SavedModel::FindSignature(std::string_view key) const {
  auto found = meta_graph->signature_def().find(std::string(key));
  return found == meta_graph->signature_def().end() ? nullptr : &found->second;
}

const tf::FunctionDef* SavedModel::FindFunction(std::string_view name) const {
  return FindIn(functions, name);
}
const tf::FunctionDef* SavedModel::Callee(const tf::NodeDef& node) const {
  if (node.op() != "StatefulPartitionedCall" && node.op() != "PartitionedCall")
    return FindFunction(node.op());
  const auto f = node.attr().find("f");
  return f == node.attr().end() ? nullptr : FindFunction(f->second.func().name());
}

const tf::NodeDef* SavedModel::FindNode(std::string_view name) const { return FindIn(nodes, name); }
const tf::OpDef* SavedModel::FindOp(std::string_view op) const { return FindIn(ops, op); }

const tf::FunctionDef& SavedModel::Own(tf::FunctionDef function) {
  return made->emplace_back(std::move(function));
}

std::string SavedModel::Add(tf::FunctionDef function) {
  const tf::FunctionDef& kept = Own(std::move(function));
  functions.emplace(kept.signature().name(), &kept);
  return kept.signature().name();
}

Result<SavedModel> LoadSavedModel(const std::string& dir) {
  SavedModel model;
  model.dir = dir;
  model.path = (std::filesystem::path(dir) / "saved_model.pb").string();
  std::error_code error;
  if (!std::filesystem::exists(model.path, error)) return MissingFile(dir);
  FUSEBOX_ASSIGN(Buffer bytes, MapFile(model.path));
  auto arena = std::make_shared<google::protobuf::Arena>();
  FUSEBOX_ASSIGN(tf::SavedModel* const file, Parse(bytes, arena.get()).At(model.path));
  model.owner = arena;
  FUSEBOX_ASSIGN(model.meta_graph, SelectMetaGraph(*file).At(model.path));
  model.tensorflow_version = model.meta_graph->meta_info_def().tensorflow_version();
  FUSEBOX_TRY(model.IndexNames().At(model.path));
  AddWarnings(*file, model);
  return model;
}

}  // namespace fusebox::saved_model
