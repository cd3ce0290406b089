// SPDX-License-Identifier: Apache-2.0
// Builds models: the calls of their layers, each after the calls it depends on.
#include <algorithm>
#include <deque>

#include "converter/import/keras/layer_call.h"

namespace fusebox::keras {
namespace {

using CallKey = std::pair<int, int>;  // layer, number of its call

class ModelBuilder {
 public:
  ModelBuilder(BuildState& state, Emitter& emit, const Model& model)
      : state_(state), emit_(emit), model_(model) {}

  std::vector<Flow> Run(const std::vector<Flow>& inputs) {
    if (inputs.size() != model_.inputs.size())
      emit_.Reject("it is called with " + std::to_string(inputs.size()) + " tensors, but has " +
                   std::to_string(model_.inputs.size()) + " inputs");
    if (!emit_.ok()) return {};
    for (size_t i = 0; i < inputs.size(); ++i) Finish({model_.inputs[i].layer, 0}, {inputs[i]});
    Await();
    while (emit_.ok() && !ready_.empty()) {
      const CallKey next = ready_.front();
      ready_.pop_front();
      Call(next);
    }
    std::vector<Flow> out;
    for (const TensorRef& ref : model_.outputs) out.push_back(Resolve(ref));
    return out;
  }

 private:
  static void Collect(const Argument& argument, std::vector<TensorRef>& out) {
    if (const auto* ref = std::get_if<TensorRef>(&argument.value)) out.push_back(*ref);
    if (const auto* list = std::get_if<std::vector<Argument>>(&argument.value))
      for (const Argument& item : *list) Collect(item, out);
  }

  // Collects the dependencies of each call that the outputs need. Rejects calls that are not stored.
  void Await() {
    std::vector<CallKey> pending;
    for (const TensorRef& ref : model_.outputs) pending.emplace_back(ref.layer, ref.call);
    std::map<CallKey, bool> seen;
    while (!pending.empty()) {
      const CallKey key = pending.back();
      pending.pop_back();
      if (done_.contains(key) || !seen.emplace(key, true).second) continue;
      const Layer& layer = *model_.layers[static_cast<size_t>(key.first)];
      if (key.second >= static_cast<int>(layer.uses.size()))
        return emit_.Reject(layer.Describe() + ": call " + std::to_string(key.second) +
                            " of it is referenced but missing");
      std::vector<TensorRef> needed;
      const LayerUse& use = layer.uses[static_cast<size_t>(key.second)];
      for (const Argument& arg : use.args) Collect(arg, needed);
      for (const auto& [name, arg] : use.kwargs) Collect(arg, needed);
      int open = 0;
      for (const TensorRef& ref : needed) {
        const CallKey from{ref.layer, ref.call};
        if (done_.contains(from)) continue;
        followers_[from].push_back(key);
        ++open;
        pending.push_back(from);
      }
      waiting_[key] = open;
      if (open == 0) ready_.push_back(key);
    }
  }

  void Finish(CallKey key, std::vector<Flow> results) {
    done_[key] = std::move(results);
    for (const CallKey& follower : followers_[key])
      if (--waiting_[follower] == 0) ready_.push_back(follower);
  }

  Flow Resolve(const TensorRef& ref) {
    if (!emit_.ok()) return {};
    const Layer& layer = *model_.layers[static_cast<size_t>(ref.layer)];
    const auto it = done_.find({ref.layer, ref.call});
    if (it == done_.end()) {
      emit_.Reject(layer.Describe() + ": call " + std::to_string(ref.call) + " depends on its own result");
      return {};
    }
    if (static_cast<size_t>(ref.tensor) < it->second.size())
      return it->second[static_cast<size_t>(ref.tensor)];
    emit_.Reject(layer.Describe() + ": result " + std::to_string(ref.tensor) +
                 " of it is referenced; it has " + std::to_string(it->second.size()));
    return {};
  }

  Given Resolve(const Argument& argument) {
    if (const auto* ref = std::get_if<TensorRef>(&argument.value)) return {Resolve(*ref)};
    if (const auto* list = std::get_if<std::vector<Argument>>(&argument.value)) {
      std::vector<Given> items;
      for (const Argument& item : *list) items.push_back(Resolve(item));
      return {std::move(items)};
    }
    return {std::get<nlohmann::json>(argument.value)};
  }

  void Call(CallKey key) {
    const Layer& layer = *model_.layers[static_cast<size_t>(key.first)];
    const LayerUse& use = layer.uses[static_cast<size_t>(key.second)];
    std::vector<Given> args;
    std::map<std::string, Given> kwargs;
    for (const Argument& arg : use.args) args.push_back(Resolve(arg));
    for (const auto& [name, arg] : use.kwargs) kwargs.emplace(name, Resolve(arg));
    Finish(key, BuildLayer(state_, emit_, layer, std::move(args), std::move(kwargs)));
  }

  BuildState& state_;
  Emitter& emit_;
  const Model& model_;
  std::map<CallKey, std::vector<Flow>> done_;
  std::map<CallKey, std::vector<CallKey>> followers_;
  std::map<CallKey, int> waiting_;
  std::deque<CallKey> ready_;
};

// x + y is an operation Add of two tensors; layers.Add()([x, y]) is a layer with one list argument. Layers
// have `trainable`, operations do not.
bool IsOperation(const Layer& layer, const LayerRow* row, const LayerCall& call) {
  if (layer.operation) return true;
  if (!layer.sourceless || !IsKnownOperation(layer.class_name)) return false;
  const bool merges = row && std::ranges::any_of(MergeLayers(), [&](const LayerRow& r) { return &r == row; });
  if (!merges || layer.class_name == "Concatenate") return !layer.config.contains("trainable");
  const bool list = call.args().empty() ? call.keywords().contains("inputs")
                                        : std::holds_alternative<std::vector<Given>>(call.args()[0].value);
  return !list;
}

std::vector<Flow> Build(BuildState& state, Emitter& emit, const Layer& layer, LayerCall& call) {
  if (layer.custom) {
    BuildCustom(call);
    return call.TakeResults();
  }
  if (layer.model) return BuildModel(state, emit, *layer.model, call.inputs());
  const LayerRow* row = FindLayer(layer.class_name);
  if (IsOperation(layer, row, call)) {
    BuildOperation(call);
    return call.TakeResults();
  }
  if (!row) {
    emit.Refuse(WhyUnknown(layer.class_name));
    return {};
  }
  row->build(call);
  std::vector<Flow> results = call.TakeResults();
  for (Flow& flow : results) {
    if (row->mask == MaskRule::kPass && flow.mask == kNoValue) flow.mask = call.mask();
    if (row->mask == MaskRule::kStop) flow.mask = kNoValue;
  }
  return results;
}

}  // namespace

std::vector<Flow> BuildLayer(BuildState& state, Emitter& emit, const Layer& layer, std::vector<Given> args,
                             std::map<std::string, Given> kwargs) {
  if (!emit.ok()) return {};
  const std::string outer = emit.layer();
  emit.SetLayer(layer.path);
  LayerCall call(state, emit, layer, std::move(args), std::move(kwargs));
  std::vector<Flow> results = Build(state, emit, layer, call);
  // Errors of nested layers already have their place.
  if (!emit.ok() && !emit.status().error().message.starts_with("layer "))
    emit.status() = std::unexpected(Error(emit.status().error()).At(layer.Describe()));
  emit.SetLayer(outer);
  return results;
}

std::vector<Flow> BuildModel(BuildState& state, Emitter& emit, const Model& model,
                             const std::vector<Flow>& inputs) {
  return ModelBuilder(state, emit, model).Run(inputs);
}

}  // namespace fusebox::keras
