// SPDX-License-Identifier: Apache-2.0
// One call of one layer, the interface of layers/*.cc: configuration, inputs, weights, and an emitter for
// ops.
//
// A layer is a table row: its class, its weights in Keras' order, and a function that builds one call. Errors
// are kept (see Emitter): a getter that finds no value or a wrong one fails the call and returns a harmless
// default.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "converter/import/keras/archive.h"
#include "converter/import/keras/emitter.h"
#include "converter/import/keras/topology.h"

namespace fusebox::keras {

// A value with its Keras mask ([batch, time] bool), if any.
struct Flow {
  ValueId value = kNoValue;
  ValueId mask = kNoValue;
};

// An argument of a call, with references resolved.
struct Given {
  std::variant<nlohmann::json, Flow, std::vector<Given>> value = nlohmann::json();
};

// State shared by all calls of one import.
struct BuildState {
  const Archive& archive;
  Module& module;
  Registry& registry;
  Status status;
  std::map<std::pair<const Function*, std::string>, ValueId> constants;  // by function and dataset
  std::vector<std::string> notes;
  int64_t tables = 0;  // number of lookup tables so far
};

class LayerCall {
 public:
  LayerCall(BuildState& state, Emitter& emit, const Layer& layer, std::vector<Given> args,
            std::map<std::string, Given> kwargs = {});

  BuildState& state() { return state_; }
  Emitter& emit() { return emit_; }
  const Layer& layer() const { return layer_; }
  const nlohmann::json& config() const { return layer_.config; }
  int keras() const { return state_.archive.major(); }

  // Configuration. Without `otherwise` the key is required.
  bool Has(const char* key) const;  // present and not null
  int64_t Int(const char* key);
  int64_t Int(const char* key, int64_t otherwise) { return Has(key) ? Int(key) : otherwise; }
  double Float(const char* key);
  double Float(const char* key, double otherwise) { return Has(key) ? Float(key) : otherwise; }
  bool Bool(const char* key, bool otherwise);
  std::string Str(const char* key, std::string_view otherwise);
  std::vector<int64_t> Ints(const char* key);  // a list, or one number as a list of one
  // Sizes per spatial dimension: a list of `n`, or one number for all. Each is at least `least`.
  std::vector<int64_t> Sizes(const char* key, size_t n, int64_t least = 1);

  // Inputs: the tensors of the first argument, in order.
  const std::vector<Flow>& inputs() const { return inputs_; }
  ValueId in(size_t i = 0);
  ValueId mask(size_t i = 0) const { return i < inputs_.size() ? inputs_[i].mask : kNoValue; }
  const Given* Keyword(const std::string& name) const;  // null: missing
  std::string UnreadKeyword() const;  // a keyword that was never read and is not null or false; empty: none
  // The same for the configuration of an operation, which holds arguments that the call omits.
  std::string UnreadSetting() const;
  const std::vector<Given>& args() const { return args_; }
  const std::map<std::string, Given>& keywords() const { return kwargs_; }
  ValueId KeywordTensor(const std::string& name) const;  // kNoValue: missing

  // A weight by its name in the layer's specs; checks its shape (-1: any size).
  ValueId Weight(const std::string& name, const std::vector<int64_t>& shape);
  size_t weight_count() const { return layer_.weights.size(); }
  Tensor WeightData(size_t number, const std::vector<int64_t>& shape);
  ValueId Constant(const Tensor& tensor, const std::string& name) { return emit_.Const(tensor, name); }

  bool ChannelsFirst() { return Str("data_format", "channels_last") == "channels_first"; }
  // Applies the `activation` of the configuration.
  ValueId Activate(ValueId v, const char* key = "activation");

  void AddOutput(Flow flow) { results_.push_back(flow); }
  void AddOutput(ValueId v, ValueId mask = kNoValue) { results_.push_back({v, mask}); }
  std::vector<Flow> TakeResults() { return std::move(results_); }

 private:
  BuildState& state_;
  Emitter& emit_;
  const Layer& layer_;
  std::vector<Given> args_;
  std::map<std::string, Given> kwargs_;
  mutable std::set<std::string> asked_;  // keywords that were read
  std::vector<Flow> inputs_, results_;
};

// Mask of the results: the mask of the first input, none, or set by the layer itself.
enum class MaskRule { kPass, kStop, kOwn };

struct LayerRow {
  std::string_view class_name;
  void (*build)(LayerCall&);
  std::vector<WeightSpec> (*weights)(const Layer&) = nullptr;  // null: none
  MaskRule mask = MaskRule::kPass;
};

// One table per family, each in its own file.
std::span<const LayerRow> CoreLayers();
std::span<const LayerRow> ActivationLayers();
std::span<const LayerRow> ConvolutionLayers();
std::span<const LayerRow> PoolingLayers();
std::span<const LayerRow> NormalizationLayers();
std::span<const LayerRow> PreprocessingLayers();
std::span<const LayerRow> TextLayers();
std::span<const LayerRow> MergeLayers();
std::span<const LayerRow> SpatialLayers();
std::span<const LayerRow> AttentionLayers();
std::span<const LayerRow> RecurrentLayers();
std::span<const LayerRow> OperationLayers();
std::span<const LayerRow> TensorFlowLayers();
std::span<const LayerRow> LambdaLayers();
void BuildOperation(LayerCall&);  // of Keras 3, found by class
bool IsKnownOperation(std::string_view class_name);
const LayerRow* FindLayer(std::string_view class_name);  // null: unknown
std::string WhyUnknown(const std::string& class_name);   // error text for an unknown class
std::vector<WeightSpec> WeightSpecs(const Layer&);       // in the order of the layer's class
void BuildCustom(LayerCall&);                            // of a custom class

// Builds one call of a layer, including nested models and wrapped layers. Returns its results.
std::vector<Flow> BuildLayer(BuildState&, Emitter&, const Layer&, std::vector<Given> args,
                             std::map<std::string, Given> kwargs = {});
std::vector<Flow> BuildModel(BuildState&, Emitter&, const Model&, const std::vector<Flow>& inputs);

// Applies an activation given by its configuration: a name, a serialized function or a layer. "linear"
// returns `v`.
ValueId Activation(LayerCall&, const nlohmann::json& config, ValueId v);
bool IsActivation(const std::string& name);  // of Keras
// Attention scores [..., queries, keys], far below the others where `mask` (bool, broadcast) is false.
ValueId Masked(LayerCall&, ValueId scores, ValueId mask);
// A bool [queries, keys] mask: a query attends to keys up to its own position.
ValueId CausalMask(LayerCall&, ValueId scores);
// A flag of the configuration, such as use_bias; `otherwise` if it is missing.
bool ConfigFlag(const Layer&, const char* key, bool otherwise);

}  // namespace fusebox::keras
