// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/variables.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "converter/import/saved_model/bindings.h"

namespace fusebox::saved_model {

// Builds a Variables: handles of the main graph, then objects, then keys from all sources.
class VariableBinder {
 public:
  explicit VariableBinder(const SavedModel& model) { out_.model_ = model; }

  Result<Variables> Bind() {
    FUSEBOX_TRY(OpenBundle());
    FUSEBOX_TRY(CollectKeys());
    AddHandles();
    FUSEBOX_TRY(AddObjects());
    FUSEBOX_TRY(BindKeys());
    return std::move(out_);
  }

 private:
  const SavedModel& model() const { return out_.model_; }

  Status OpenBundle() {
    if (model().frozen) return {};
    std::filesystem::path folder = std::filesystem::path(model().dir) / "variables";
    std::error_code error;
    if (!std::filesystem::exists(folder, error)) return {};
    if (std::filesystem::is_empty(folder, error)) return {};  // a frozen graph
    const std::filesystem::path index = folder / "variables.index";
    if (!std::filesystem::exists(index, error) && !error)
      return NotFound(index.string() +
                      ": missing, so the variables cannot be read; copy the whole "
                      "variables folder");
    FUSEBOX_ASSIGN(Bundle bundle, Bundle::Open((folder / "variables").string()));
    out_.bundle_ = std::make_shared<Bundle>(std::move(bundle));
    return {};
  }

  Status CollectKeys() {
    if (!out_.bundle_) return {};
    FUSEBOX_ASSIGN(const auto handles, RestoredHandles(model()));
    for (const auto& [node, from] : handles) {
      handle_keys_.emplace(node, from.key);
      if (!from.slice.empty()) handle_slices_.emplace(node, from.slice);
    }
    FUSEBOX_ASSIGN(object_keys_, KeysOfObjects(model(), *out_.bundle_));
    return {};
  }

  // Without objects, nodes with the same container and name are one variable. Names of objects may be equal.
  void AddHandles() {
    std::map<std::pair<std::string, std::string>, int> shared;
    for (const tf::NodeDef& node : model().graph().node()) {
      if (node.op() != "VarHandleOp" && node.op() != "VariableV2" && node.op() != "Variable") continue;
      Variable variable;
      variable.node = node.name();
      auto shared_name = node.attr().find("shared_name");
      if (shared_name != node.attr().end()) variable.name = shared_name->second.s();
      if (variable.name.empty()) variable.name = node.name();
      if (auto dtype = node.attr().find("dtype"); dtype != node.attr().end())
        variable.dtype = dtype->second.type();
      auto shape = node.attr().find("shape");
      SetShape(shape == node.attr().end() ? nullptr : &shape->second.shape(), variable);
      if (!model().has_objects() && shared_name != node.attr().end() && !shared_name->second.s().empty()) {
        const auto container = node.attr().find("container");
        const auto [it, fresh] = shared.emplace(
            std::pair(container == node.attr().end() ? "" : container->second.s(), shared_name->second.s()),
            static_cast<int>(out_.variables_.size()));
        if (!fresh && MayBeOne(it->second, variable.node)) {
          out_.by_node_.emplace(variable.node, it->second);
          continue;
        }
      }
      out_.by_node_.emplace(variable.node, static_cast<int>(out_.variables_.size()));
      out_.variables_.push_back(std::move(variable));
    }
  }

  // Nodes restored from different keys are different variables. If only one has a key, it applies to both.
  bool MayBeOne(int index, const std::string& node) {
    std::string& first = out_.variables_[static_cast<size_t>(index)].node;
    const auto here = handle_keys_.find(node);
    const auto there = handle_keys_.find(first);
    if (here == handle_keys_.end()) return true;
    if (there != handle_keys_.end()) return here->second == there->second;
    first = node;
    return true;
  }

  static void SetShape(const tf::TensorShape* shape, Variable& variable) {
    variable.unknown_rank = !shape || shape->unknown_rank();
    if (variable.unknown_rank) return;
    for (const tf::TensorShape::Dim& dim : shape->dim()) variable.shape.push_back(dim.size());
  }

  // Objects captured by functions come first, so that no other object claims their handle.
  Status AddObjects() {
    FUSEBOX_ASSIGN(auto captured, HandlesOfObjects(model()));
    for (const bool first : {true, false}) {
      for (int id = 0; id < model().objects().nodes_size(); ++id) {
        if (model().objects().nodes(id).has_variable() && captured.contains(id) == first)
          FUSEBOX_TRY(AddObject(id, captured));
      }
    }
    return {};
  }

  Status AddObject(int id, const std::unordered_map<int, std::string>& captured) {
    const tf::SavedVariable& saved = model().objects().nodes(id).variable();
    int index = HandleOf(id, saved.name(), captured);
    if (index < 0) index = AddVariable(saved);
    Variable& variable = out_.variables_[index];
    variable.object = id;
    variable.trainable = saved.trainable();
    if (!saved.name().empty()) variable.name = saved.name();
    if (variable.dtype != saved.dtype()) {
      return Invalid(model().path + ": variable '" + variable.name + "': its handle holds " +
                     DataTypeName(variable.dtype) + ", its object " + DataTypeName(saved.dtype()));
    }
    out_.by_object_.emplace(id, index);
    return {};
  }

  // Returns the handle that the main graph passes for a captured object, else the one with the same key, else
  // the only one with that name, or -1 if there is none.
  int HandleOf(int object, const std::string& name,
               const std::unordered_map<int, std::string>& captured) const {
    if (auto handle = captured.find(object); handle != captured.end()) {
      auto node = out_.by_node_.find(handle->second);
      if (node != out_.by_node_.end() && out_.variables_[node->second].object < 0) return node->second;
    }
    auto key = object_keys_.of_object.find(object);
    bool has_key = key != object_keys_.of_object.end();
    int same_key = !has_key ? -1 : OnlyFree([&](const Variable& variable) {
      auto found = handle_keys_.find(variable.node);
      return found != handle_keys_.end() && found->second == key->second;
    });
    if (same_key >= 0) return same_key;
    return OnlyFree([&](const Variable& variable) {
      return variable.name == name && !(has_key && handle_keys_.contains(variable.node));
    });
  }

  // Returns the only handle without an object that satisfies `wanted`, or -1 if there are none or several.
  template <class Predicate>
  int OnlyFree(const Predicate& wanted) const {
    int found = -1;
    for (size_t i = 0; i < out_.variables_.size(); ++i) {
      if (out_.variables_[i].object >= 0 || !wanted(out_.variables_[i])) continue;
      if (found >= 0) return -1;
      found = static_cast<int>(i);
    }
    return found;
  }

  int AddVariable(const tf::SavedVariable& saved) {
    Variable variable;
    variable.name = saved.name();
    variable.dtype = saved.dtype();
    SetShape(&saved.shape(), variable);
    out_.variables_.push_back(std::move(variable));
    return static_cast<int>(out_.variables_.size()) - 1;
  }

  Status BindKeys() {
    if (!out_.bundle_) return {};
    for (Variable& variable : out_.variables_) {
      Note(variable, handle_keys_, variable.node, "restore function");
      if (auto slice = handle_slices_.find(variable.node); slice != handle_slices_.end()) {
        FUSEBOX_ASSIGN(variable.part,
                       SliceSpec::Parse(slice->second)
                           .At(model().path + ": variable '" + variable.name + "': its slice"));
      }
      Note(variable, object_keys_.of_object, variable.object, "object graph");
      if (!variable.key.empty()) continue;
      Note(variable, object_keys_.of_name, variable.name, "name");
      if (variable.key.empty() && out_.bundle_->Find(variable.name)) {
        variable.key = variable.name;
        variable.bound_by = "name";
      }
    }
    return {};
  }

  template <class Map, class Id>
  void Note(Variable& variable, const Map& keys, const Id& id, const char* source) {
    auto found = keys.find(id);
    if (found == keys.end() || found->second.empty()) return;
    if (!variable.key.empty() && variable.key != found->second && Differ(variable.key, found->second)) {
      out_.warnings_.push_back(model().path + ": variable '" + variable.name + "': the " + source +
                               " binds it to '" + found->second + "', whose value differs from that of '" +
                               variable.key + "'; the " + variable.bound_by + " decides: '" + variable.key +
                               "' is used");
      return;
    }
    if (variable.key.empty()) variable.key = found->second;
    variable.bound_by += (variable.bound_by.empty() ? "" : ", ") + std::string(source);
  }

  // Keras 3 saves a variable under two keys, one per object that holds it. Unreadable values are reported
  // where they are used.
  bool Differ(const std::string& a, const std::string& b) const {
    const BundleTensor* first = out_.bundle_->Find(a);
    const BundleTensor* second = out_.bundle_->Find(b);
    if (!first || !second || first->dtype != second->dtype || first->shape != second->shape) return true;
    const Result<Buffer> x = out_.bundle_->Read(a);
    const Result<Buffer> y = out_.bundle_->Read(b);
    return x && y && !std::ranges::equal(x->bytes(), y->bytes());
  }

  Variables out_;
  std::unordered_map<std::string, std::string> handle_keys_, handle_slices_;  // by node
  CheckpointKeys object_keys_;
};

Result<Variables> Variables::Bind(const SavedModel& model) { return VariableBinder(model).Bind(); }

std::optional<int> Variables::OfNode(std::string_view node) const {
  auto found = by_node_.find(std::string(node));
  if (found == by_node_.end()) return std::nullopt;
  return found->second;
}

std::optional<int> Variables::OfObject(int object) const {
  auto found = by_object_.find(object);
  if (found == by_object_.end()) return std::nullopt;
  return found->second;
}

Result<std::vector<Capture>> Variables::CapturesOf(std::string_view function) const {
  const auto& functions = model_.objects().concrete_functions();
  std::string place = model_.path + ": function '" + std::string(function) + "'";
  auto found = functions.find(std::string(function));
  if (found == functions.end()) return NotFound(place + " is not among the saved functions");
  std::vector<Capture> captures;
  for (int id : found->second.bound_inputs()) {
    if (id < 0 || id >= model_.objects().nodes_size())
      return Invalid(place + " captures object " + std::to_string(id) + ", which does not exist");
    const tf::SavedObject& object = model_.objects().nodes(id);
    Capture capture;
    if (std::optional<int> variable = OfObject(id)) {
      capture.variable = *variable;
    } else if (object.has_constant()) {
      capture.constant = object.constant().operation();
    } else {
      capture.object = id;
    }
    captures.push_back(std::move(capture));
  }
  return captures;
}

Result<const BundleTensor*> Variables::Stored(const Variable& variable) const {
  std::string place = "variable '" + variable.name + "'";
  if (model_.frozen)
    return Invalid(
        "the graph is not frozen: " + place +
        " has no value in this file; freeze the graph (convert_variables_to_constants), or convert "
        "a SavedModel");
  if (!bundle_)
    return NotFound(model_.dir + ": no variables folder, or an empty one, but " + place +
                    " is stored there; copy the whole SavedModel");
  if (variable.key.empty()) {
    return NotFound(bundle_->index_path() + ": " + place +
                    ": neither the restore function nor the object graph nor "
                    "its name yields a checkpoint key");
  }
  const BundleTensor* stored = bundle_->Find(variable.key);
  place = bundle_->index_path() + ": " + place + ": key '" + variable.key + "'";
  if (!stored) return NotFound(place + " is missing");
  if (variable.part && variable.part->shape != stored->shape) {
    return Invalid(place + " holds " + ShapeText(stored->shape) + ", the variable is a part of " +
                   ShapeText(variable.part->shape));
  }
  const std::vector<int64_t>& shape = variable.part ? variable.part->size : stored->shape;
  bool fits = stored->dtype == variable.dtype;
  if (!variable.unknown_rank) {
    fits &= shape.size() == variable.shape.size();
    for (size_t d = 0; fits && d < variable.shape.size(); ++d)
      fits = variable.shape[d] < 0 || variable.shape[d] == shape[d];
  }
  if (!fits) {
    std::string declared = variable.unknown_rank ? "[*]" : ShapeText(variable.shape);
    return Invalid(place + " holds " + DataTypeName(stored->dtype) + ShapeText(shape) + ", the variable is " +
                   DataTypeName(variable.dtype) + declared);
  }
  return stored;
}

Result<Buffer> Variables::Read(int variable) const {
  const Variable& wanted = variables_[variable];
  FUSEBOX_TRY(Stored(wanted));
  FUSEBOX_ASSIGN(Buffer whole, bundle_->Read(wanted.key).At("variable '" + wanted.name + "'"));
  return wanted.part ? wanted.part->Cut(whole, ElementSize(wanted.dtype)) : whole;
}

Result<std::vector<int64_t>> Variables::Shape(int variable) const {
  FUSEBOX_ASSIGN(const BundleTensor* stored, Stored(variables_[variable]));
  return variables_[variable].part ? variables_[variable].part->size : stored->shape;
}

}  // namespace fusebox::saved_model
