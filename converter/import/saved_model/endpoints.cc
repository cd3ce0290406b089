// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs of a graph without signatures.
#include <algorithm>
#include <map>
#include <set>

#include "converter/import/saved_model/frozen_graph.h"
#include "converter/import/saved_model/function_import.h"
#include "converter/import/saved_model/v1/graph.h"
#include "converter/import/tables/translate.h"

namespace fusebox::saved_model {
namespace {

// Before this version of TensorFlow, a shape without dimensions meant an unknown one.
constexpr int kFirstWithScalars = 24;

std::string Listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

bool IsPlaceholder(const tf::NodeDef& node) {
  return node.op() == "Placeholder" || node.op() == "PlaceholderV2";
}

class Reader {
 public:
  explicit Reader(const SavedModel& model) : model_(model) {}

  Result<tf::TensorInfo> Info(const std::string& text) const {
    FUSEBOX_ASSIGN(const Edge edge, ParseEdge(text, false));
    const tf::NodeDef* node = model_.FindNode(edge.node);
    if (!node || edge.control) return NotFound("no such node" + Similar(edge.node));
    FUSEBOX_ASSIGN(const NodeOutputs outputs, OutputsOf(model_, *node));
    const auto number = static_cast<size_t>(edge.index);
    if (number >= outputs.dtypes.size())
      return NotFound("node " + edge.node + " (" + node->op() + ") has " +
                      std::to_string(outputs.dtypes.size()) + " outputs");
    tf::TensorInfo info;
    info.set_name(edge.node + ":" + std::to_string(edge.index));
    info.set_dtype(v1::ToDataType(outputs.dtypes[number]));
    *info.mutable_tensor_shape() = ShapeOf(*node, edge.index);
    return info;
  }

  // Placeholders that the outputs need.
  std::vector<std::string> Placeholders(const std::vector<std::string>& outputs) const {
    const std::set<std::string> needed = Needed(outputs);
    std::vector<std::string> out;
    for (const tf::NodeDef& node : model_.graph().node())
      if (IsPlaceholder(node) && needed.contains(node.name())) out.push_back(node.name());
    return out;
  }

  // Nodes that compute something from the inputs and that nobody reads. Gradients, and what is computed from
  // or only for them, count neither as nodes nor as readers; `trained` returns their number.
  std::vector<std::string> Sinks(const std::vector<std::string>& inputs, size_t& trained) const {
    Readers readers;
    std::vector<std::string> starts;
    std::vector<std::string> gradients;
    for (const tf::NodeDef& node : model_.graph().node()) {
      for (const std::string& input : node.input())
        if (!input.starts_with('^')) readers[NodeOf(input)].push_back(&node);
      if (IsPlaceholder(node)) starts.push_back(node.name());
      if (converter::IsTraining(node.op())) gradients.push_back(node.name());
    }
    for (const std::string& input : inputs) starts.push_back(NodeOf(input));
    const std::set<std::string> sources(starts.begin(), starts.end());
    const std::set<std::string> fed = Fed(readers, std::move(starts));
    const std::set<std::string> training = Fed(readers, std::move(gradients));
    trained = training.size();
    const auto read = [&](const tf::NodeDef* reader) { return !training.contains(reader->name()); };
    std::vector<std::string> out;
    for (const tf::NodeDef& node : model_.graph().node()) {
      const auto& all = readers[node.name()];
      const bool candidate = fed.contains(node.name()) && !sources.contains(node.name()) &&
                             !training.contains(node.name()) && IsResult(node);
      const bool helps = !all.empty() && node.name().find("gradients") != std::string::npos;
      if (candidate && !helps && std::ranges::none_of(all, read)) out.push_back(node.name());
    }
    return out;
  }

 private:
  using Readers = std::map<std::string, std::vector<const tf::NodeDef*>>;

  // Nodes that are computed from these, and these.
  static std::set<std::string> Fed(Readers& readers, std::vector<std::string> pending) {
    std::set<std::string> fed;
    while (!pending.empty()) {
      const std::string name = std::move(pending.back());
      pending.pop_back();
      if (!fed.insert(name).second) continue;
      for (const tf::NodeDef* reader : readers[name]) pending.push_back(reader->name());
    }
    return fed;
  }

  static std::string NodeOf(const std::string& edge) { return edge.substr(0, edge.find(':')); }

  // Conditionals leave nodes that nobody reads.
  bool IsResult(const tf::NodeDef& node) const {
    if (v1::KindOf(node.op()) != v1::Kind::kOther) return false;
    const auto outputs = OutputsOf(model_, node);
    if (!outputs || outputs->dtypes.empty()) return false;
    const bool forwards = node.op() == "Identity" && node.input_size() > 0;
    const tf::NodeDef* source = forwards ? model_.FindNode(NodeOf(node.input(0))) : nullptr;
    return !source || v1::KindOf(source->op()) != v1::Kind::kSwitch;
  }

  std::set<std::string> Needed(const std::vector<std::string>& outputs) const {
    std::set<std::string> seen;
    std::vector<std::string> pending;
    for (const std::string& output : outputs) pending.push_back(NodeOf(output));
    while (!pending.empty()) {
      const std::string name = std::move(pending.back());
      pending.pop_back();
      const tf::NodeDef* node = model_.FindNode(name);
      if (!node || !seen.insert(name).second) continue;
      for (const std::string& input : node->input())
        if (!input.starts_with('^')) pending.push_back(NodeOf(input));
    }
    return seen;
  }

  tf::TensorShape ShapeOf(const tf::NodeDef& node, int output) const {
    tf::TensorShape unknown;
    unknown.set_unknown_rank(true);
    const auto all = node.attr().find("_output_shapes");
    if (all != node.attr().end() && output < all->second.list().shape_size())
      return all->second.list().shape(output);
    const auto shape = node.attr().find("shape");
    const bool declares = IsPlaceholder(node) || node.op() == "PlaceholderWithDefault";
    if (!declares || shape == node.attr().end()) return unknown;
    const bool old = model_.graph().versions().producer() < kFirstWithScalars;
    return old && shape->second.shape().dim_size() == 0 ? unknown : shape->second.shape();
  }

  // Nodes whose name ends like that one.
  std::string Similar(const std::string& name) const {
    constexpr size_t kMost = 5;
    const std::string last = name.substr(name.rfind('/') + 1);
    std::vector<std::string> names;
    for (const tf::NodeDef& node : model_.graph().node())
      if (!last.empty() && names.size() < kMost && node.name().find(last) != std::string::npos)
        names.push_back(node.name());
    return names.empty() ? "" : "; similar: " + Listed(names);
  }

  const SavedModel& model_;
};

// "x:0" is the tensor that "x" is.
std::string PlainName(const std::string& text) {
  return text.ends_with(":0") ? text.substr(0, text.size() - 2) : text;
}

Status AddInfo(const Reader& reader, const std::string& text, const char* what,
               google::protobuf::Map<std::string, tf::TensorInfo>& to, std::vector<std::string>& order) {
  auto info = reader.Info(text).At(std::string(what) + " " + text);
  if (!info) return std::unexpected(info.error());
  if (info->dtype() == tf::DT_INVALID && std::string_view(what) == "input")
    return Unsupported("input " + text + ": its type is not known; cut the graph at another tensor");
  if (!to.insert({PlainName(text), *info}).second)
    return Invalid(std::string(what) + " " + text + ": given twice");
  order.push_back(PlainName(text));
  return {};
}

}  // namespace

Status SetEndpoints(SavedModel& model, const Endpoints& wanted) {
  const Reader reader(model);
  Endpoints all = wanted;
  size_t trained = 0;
  if (all.outputs.empty()) std::ranges::sort(all.outputs = reader.Sinks(all.inputs, trained));
  if (all.outputs.empty()) return Invalid("no node computes an output of a placeholder; name the outputs");
  if (all.inputs.empty()) std::ranges::sort(all.inputs = reader.Placeholders(all.outputs));
  tf::MetaGraphDef& meta = *model.meta_graph;
  meta.clear_signature_def();
  tf::SignatureDef& signature = (*meta.mutable_signature_def())[kDefaultSignature];
  for (const std::string& input : all.inputs)
    FUSEBOX_TRY(AddInfo(reader, input, "input", *signature.mutable_inputs(), model.inputs));
  for (const std::string& output : all.outputs)
    FUSEBOX_TRY(AddInfo(reader, output, "output", *signature.mutable_outputs(), model.outputs));
  if (wanted.inputs.empty() && !all.inputs.empty())
    model.warnings.push_back("inputs: " + Listed(all.inputs) + " (placeholders; --inputs selects others)");
  if (trained > 0)
    model.warnings.push_back("left out: " + std::to_string(trained) + " nodes of gradients and training");
  if (wanted.outputs.empty())
    model.warnings.push_back("outputs: " + Listed(all.outputs) +
                             " (nodes that no other node reads; --outputs selects others)");
  return {};
}

}  // namespace fusebox::saved_model
