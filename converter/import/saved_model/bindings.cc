// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/bindings.h"

#include <charconv>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "converter/import/saved_model/parse_message.h"

namespace fusebox::saved_model {
namespace {

constexpr std::string_view kObjectGraphKey = "_CHECKPOINTABLE_OBJECT_GRAPH";
constexpr std::string_view kVariableValue = "VARIABLE_VALUE";

// A data input: "node", "node:k" or, in a function, "node:output:k".
struct DataInput {
  std::string_view node;
  int index = 0;
};

std::optional<DataInput> ParseDataInput(std::string_view input) {
  if (input.empty() || input.front() == '^') return std::nullopt;
  DataInput parsed{input.substr(0, input.find(':'))};
  if (parsed.node.size() == input.size()) return parsed;
  std::string_view number = input.substr(input.rfind(':') + 1);
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), parsed.index);
  if (error != std::errc() || end != number.data() + number.size() || parsed.index < 0) return std::nullopt;
  return parsed;
}

using Nodes = std::unordered_map<std::string_view, const tf::NodeDef*>;

const tf::NodeDef* NodeOf(const Nodes& nodes, std::string_view name) {
  auto found = nodes.find(name);
  return found == nodes.end() ? nullptr : found->second;
}

// The node and output of an input, skipping Identity nodes.
std::pair<const tf::NodeDef*, int> Source(const Nodes& nodes, std::string_view input) {
  constexpr int kMaxIdentities = 8;
  for (int i = 0; i < kMaxIdentities; ++i) {
    std::optional<DataInput> parsed = ParseDataInput(input);
    const tf::NodeDef* node = parsed ? NodeOf(nodes, parsed->node) : nullptr;
    if (!node) return {nullptr, 0};
    if (node->op() != "Identity" || node->input_size() == 0) return {node, parsed->index};
    input = node->input(0);
  }
  return {nullptr, 0};
}

// Returns a constant of strings, or nullopt if the input is no such constant.
std::optional<std::string> StringAt(const Nodes& nodes, const std::string& input, int index) {
  const tf::NodeDef* node = Source(nodes, input).first;
  if (!node || node->op() != "Const") return std::nullopt;
  auto value = node->attr().find("value");
  if (value == node->attr().end()) return std::nullopt;
  const auto& strings = value->second.tensor().string_val();
  if (index < strings.size()) return strings.Get(index);
  if (strings.empty()) return std::string();
  return strings.Get(strings.size() - 1);  // the last value fills the rest
}

// Target of every assignment of a restored tensor -> that tensor. A target is a node or, in a function, an
// argument.
std::unordered_map<std::string, RestoredTensor> RestoredKeys(
    const google::protobuf::RepeatedPtrField<tf::NodeDef>& graph) {
  Nodes nodes;
  for (const tf::NodeDef& node : graph) nodes.emplace(node.name(), &node);
  std::unordered_map<std::string, RestoredTensor> keys;
  for (const tf::NodeDef& node : graph) {
    if ((node.op() != "AssignVariableOp" && node.op() != "Assign") || node.input_size() < 2) continue;
    std::optional<DataInput> target = ParseDataInput(node.input(0));
    auto [restore, output] = Source(nodes, node.input(1));
    if (!target || !restore || restore->op() != "RestoreV2" || restore->input_size() < 3) continue;
    std::optional<std::string> key = StringAt(nodes, restore->input(1), output);
    std::optional<std::string> slice = StringAt(nodes, restore->input(2), output);
    if (key && slice) keys.emplace(target->node, RestoredTensor{*key, *slice});
  }
  return keys;
}

// Returns the handle that a call in the main graph passes as argument i, or an empty string if it is no
// handle.
std::string HandleArgument(const SavedModel& model, const tf::NodeDef& call, int i) {
  if (i < 0 || i >= call.input_size()) return {};
  const tf::NodeDef* node = Source(model.nodes, call.input(i)).first;
  return node && node->op() == "VarHandleOp" ? node->name() : std::string();
}

Result<tf::TrackableObjectGraph> CheckpointObjects(const Bundle& bundle) {
  tf::TrackableObjectGraph objects;
  if (!bundle.Find(kObjectGraphKey)) return objects;
  std::string place = bundle.index_path() + ": tensor '" + std::string(kObjectGraphKey) + "'";
  FUSEBOX_ASSIGN(std::vector<std::string> strings, bundle.ReadStrings(kObjectGraphKey));
  if (strings.size() != 1 || !ParseMessage(std::as_bytes(std::span(strings[0])), objects))
    return Invalid(place + ": not a graph of objects");
  return objects;
}

// Walks both graphs in parallel. Objects may form cycles, so each saved object is visited once.
class ObjectMatcher {
 public:
  ObjectMatcher(const tf::SavedObjectGraph& saved, const tf::TrackableObjectGraph& checkpoint,
                std::unordered_map<int, std::string>& keys)
      : saved_(saved), checkpoint_(checkpoint), keys_(keys) {}

  Status Match() {
    if (saved_.nodes().empty() || checkpoint_.nodes().empty()) return {};
    FUSEBOX_TRY(Pair(0, 0));
    while (!open_.empty()) {
      auto [saved, stored] = open_.back();
      open_.pop_back();
      FUSEBOX_TRY(PairChildren(saved, stored).At("object " + std::to_string(saved)));
    }
    return {};
  }

 private:
  Status Pair(int saved, int stored) {
    if (saved_.nodes(saved).has_variable()) {
      for (const auto& attribute : checkpoint_.nodes(stored).attributes()) {
        if (attribute.name() != kVariableValue) continue;
        auto [at, added] = keys_.emplace(saved, attribute.checkpoint_key());
        if (added || at->second == attribute.checkpoint_key()) continue;
        return Invalid("object " + std::to_string(saved) + " is both '" + at->second + "' and '" +
                       attribute.checkpoint_key() + "' in the checkpoint");
      }
    }
    if (entered_.insert(saved).second) open_.emplace_back(saved, stored);
    return {};
  }

  Status PairChildren(int saved, int stored) {
    std::unordered_map<std::string_view, int> children;
    for (const auto& child : checkpoint_.nodes(stored).children())
      children.emplace(child.local_name(), child.node_id());
    for (const tf::ObjectReference& child : saved_.nodes(saved).children()) {
      auto match = children.find(child.local_name());
      if (match == children.end()) continue;
      if (child.node_id() < 0 || child.node_id() >= saved_.nodes_size() || match->second < 0 ||
          match->second >= checkpoint_.nodes_size()) {
        return Invalid("its child '" + child.local_name() + "' does not exist");
      }
      FUSEBOX_TRY(Pair(child.node_id(), match->second));
    }
    return {};
  }

  const tf::SavedObjectGraph& saved_;
  const tf::TrackableObjectGraph& checkpoint_;
  std::unordered_map<int, std::string>& keys_;
  std::unordered_set<int> entered_;
  std::vector<std::pair<int, int>> open_;  // object of the SavedModel, object of the checkpoint
};

}  // namespace

Result<std::unordered_map<std::string, RestoredTensor>> RestoredHandles(const SavedModel& model) {
  std::string_view restore = model.meta_graph->saver_def().restore_op_name();
  const tf::NodeDef* call = restore.empty() ? nullptr : model.FindNode(restore);
  const tf::FunctionDef* function = call ? model.Callee(*call) : nullptr;
  if (!function) return RestoredKeys(model.graph().node());

  std::unordered_map<std::string, RestoredTensor> by_argument = RestoredKeys(function->node_def());
  std::unordered_map<std::string, RestoredTensor> keys;
  for (int i = 0; i < function->signature().input_arg_size(); ++i) {
    auto found = by_argument.find(function->signature().input_arg(i).name());
    std::string handle = HandleArgument(model, *call, i);
    if (found == by_argument.end() || handle.empty()) continue;
    if (auto [at, added] = keys.emplace(handle, found->second); !added && at->second != found->second) {
      return Invalid(model.path + ": the restore function assigns both '" + at->second.key + "' and '" +
                     found->second.key + "' to variable '" + handle + "'");
    }
  }
  return keys;
}

Result<CheckpointKeys> KeysOfObjects(const SavedModel& model, const Bundle& bundle) {
  FUSEBOX_ASSIGN(tf::TrackableObjectGraph checkpoint, CheckpointObjects(bundle));
  CheckpointKeys keys;
  for (const tf::TrackableObjectGraph::Object& object : checkpoint.nodes()) {
    for (const auto& attribute : object.attributes()) {
      if (attribute.name() != kVariableValue || attribute.full_name().empty()) continue;
      auto [at, added] = keys.of_name.emplace(attribute.full_name(), attribute.checkpoint_key());
      if (!added && at->second != attribute.checkpoint_key()) at->second.clear();
    }
  }
  FUSEBOX_TRY(ObjectMatcher(model.objects(), checkpoint, keys.of_object).Match().At(model.path));
  return keys;
}

Result<std::unordered_map<int, std::string>> HandlesOfObjects(const SavedModel& model) {
  std::unordered_map<int, std::string> handles;
  for (const tf::NodeDef& node : model.graph().node()) {
    const tf::FunctionDef* function = model.Callee(node);
    if (!function) continue;
    auto saved = model.objects().concrete_functions().find(function->signature().name());
    if (saved == model.objects().concrete_functions().end()) continue;
    int captures = saved->second.bound_inputs_size();
    int first = function->signature().input_arg_size() - captures;
    for (int i = 0; i < captures; ++i) {
      std::string handle = HandleArgument(model, node, first + i);
      if (handle.empty()) continue;
      int object = saved->second.bound_inputs(i);
      if (auto [at, added] = handles.emplace(object, handle); !added && at->second != handle) {
        return Invalid(model.path + ": object " + std::to_string(object) + " is both '" + at->second +
                       "' and '" + handle + "' in the main graph");
      }
    }
  }
  return handles;
}

}  // namespace fusebox::saved_model
