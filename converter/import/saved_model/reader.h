// SPDX-License-Identifier: Apache-2.0
// LoadSavedModel: a SavedModel folder as parsed messages, with its functions, nodes and op definitions by
// name.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "converter/import/saved_model/saved_model.pb.h"
#include "host/base/status.h"

namespace fusebox::saved_model {

// Copies share the messages, which are immutable and live as long as the last copy.
struct SavedModel {
  std::string dir;
  std::string path;  // DIR/saved_model.pb, or the file of a frozen graph; for messages
  std::string tensorflow_version;
  bool frozen = false;  // the weights are constants: there is no variables folder
  tf::MetaGraphDef* meta_graph = nullptr;
  std::vector<std::string> warnings;  // findings that do not stop a conversion
  // Order of the arguments of a signature that was made from --inputs and --outputs; others are sorted.
  std::vector<std::string> inputs, outputs;

  const tf::GraphDef& graph() const { return meta_graph->graph_def(); }
  const tf::SavedObjectGraph& objects() const { return meta_graph->object_graph_def(); }
  // True for TensorFlow 2 files: signatures are function calls, and objects describe their captures.
  bool has_objects() const { return meta_graph->has_object_graph_def(); }
  // Signature keys in order, without internal ones ("__...").
  std::vector<std::string> Signatures() const;

  // These return null if there is none of that name.
  const tf::SignatureDef* FindSignature(std::string_view key) const;
  const tf::FunctionDef* FindFunction(std::string_view name) const;
  const tf::NodeDef* FindNode(std::string_view name) const;  // of the main graph
  const tf::OpDef* FindOp(std::string_view op) const;        // from the file's own list of ops in use
  // The function that a node calls: by its op, or by the attribute of a PartitionedCall.
  const tf::FunctionDef* Callee(const tf::NodeDef& node) const;

  Status IndexNames();  // once, after reading
  // Adds a function to the library; returns its name. The first form only keeps it.
  const tf::FunctionDef& Own(tf::FunctionDef);
  std::string Add(tf::FunctionDef);

  std::shared_ptr<const void> owner;  // keeps every message alive
  std::unordered_map<std::string_view, const tf::FunctionDef*> functions;
  std::unordered_map<std::string_view, const tf::NodeDef*> nodes;
  std::unordered_map<std::string_view, const tf::OpDef*> ops;
  std::shared_ptr<std::deque<tf::FunctionDef>> made = std::make_shared<std::deque<tf::FunctionDef>>();
};

// Reads DIR/saved_model.pb and picks the meta graph with exactly the tag "serve" (or the only one).
// kNotFound: no such folder or file; kUnsupported: a text or chunked file; kInvalid: truncated, malformed, a
// duplicate name, or no meta graph for serving (the message lists the tag sets).
Result<SavedModel> LoadSavedModel(const std::string& dir);

}  // namespace fusebox::saved_model
