// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/call_numbers.h"

#include <algorithm>
#include <functional>
#include <set>

namespace fusebox::keras {
namespace {

void ForEachReference(Argument& argument, const std::function<void(TensorRef&)>& visit) {
  if (auto* ref = std::get_if<TensorRef>(&argument.value)) visit(*ref);
  if (auto* list = std::get_if<std::vector<Argument>>(&argument.value))
    for (Argument& item : *list) ForEachReference(item, visit);
}

// Visits the arguments of all calls.
void ForEachArgument(Model& model, const std::function<void(TensorRef&)>& visit) {
  for (const auto& layer : model.layers)
    for (LayerUse& use : layer->uses) {
      for (Argument& arg : use.args) ForEachReference(arg, visit);
      for (auto& [name, arg] : use.kwargs) ForEachReference(arg, visit);
    }
}

size_t At(const TensorRef& ref) { return static_cast<size_t>(ref.layer); }

// Keras 1 and 2: a functional model counts its construction as call 0, which is not stored: its calls as a
// layer count from 1, and the first of them is always referenced.
void SkipOwnCalls(Model& model) {
  std::vector<bool> from_zero(model.layers.size(), false);
  const auto look = [&](TensorRef& ref) { from_zero[At(ref)] = from_zero[At(ref)] || ref.call == 0; };
  const auto skip = [&](TensorRef& ref) {
    if (model.layers[At(ref)]->model && !from_zero[At(ref)]) --ref.call;
  };
  ForEachArgument(model, look);
  std::ranges::for_each(model.outputs, look);
  ForEachArgument(model, skip);
  std::ranges::for_each(model.outputs, skip);
}

// Keras 3: calls count from 0 in arguments and, for functional models only, from 1 in `output_layers`.
Status CountOutputsFromZero(Model& model) {
  for (TensorRef& ref : model.outputs) {
    const Layer& layer = *model.layers[At(ref)];
    if (!layer.model || layer.model->sequential) continue;
    if (ref.call == 0)
      return Invalid("output_layers: call 0 of " + layer.Describe() + " is referenced; they count from 1");
    --ref.call;
  }
  return {};
}

// Keras 3 before 3.2: arguments also count calls of the layer outside of this model, which are not stored. If
// each stored call is an argument, the order of their numbers is the order of the calls.
void SkipCallsElsewhere(Model& model) {
  std::vector<std::set<int>> numbers(model.layers.size());
  ForEachArgument(model, [&](TensorRef& ref) { numbers[At(ref)].insert(ref.call); });
  ForEachArgument(model, [&](TensorRef& ref) {
    const std::set<int>& all = numbers[At(ref)];
    if (all.size() != model.layers[At(ref)]->uses.size()) return;
    ref.call = static_cast<int>(std::distance(all.begin(), all.find(ref.call)));
  });
}

}  // namespace

Status CountCalls(Model& model, bool keras3) {
  if (!keras3) {
    SkipOwnCalls(model);
    return {};
  }
  SkipCallsElsewhere(model);
  return CountOutputsFromZero(model);
}

}  // namespace fusebox::keras
