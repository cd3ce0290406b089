// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/layer_call.h"

#include <algorithm>

namespace fusebox::keras {
namespace {

using nlohmann::json;

void Collect(const Given& given, std::vector<Flow>& out) {
  if (const auto* flow = std::get_if<Flow>(&given.value)) out.push_back(*flow);
  if (const auto* list = std::get_if<std::vector<Given>>(&given.value))
    for (const Given& item : *list) Collect(item, out);
}

std::string ShapeText(const std::vector<int64_t>& dims) { return ToString(Shape(dims)); }

}  // namespace

bool ConfigFlag(const Layer& layer, const char* key, bool otherwise) {
  const auto it = layer.config.find(key);
  if (it == layer.config.end() || it->is_null()) return otherwise;
  if (it->is_boolean()) return it->get<bool>();
  return it->is_number() ? it->get<double>() != 0 : otherwise;
}

LayerCall::LayerCall(BuildState& state, Emitter& emit, const Layer& layer, std::vector<Given> args,
                     std::map<std::string, Given> kwargs)
    : state_(state), emit_(emit), layer_(layer), args_(std::move(args)), kwargs_(std::move(kwargs)) {
  if (!args_.empty()) {
    Collect(args_[0], inputs_);
  } else {
    for (const char* name : {"inputs", "sequences", "sequence", "x", "input"}) {
      const Given* given = inputs_.empty() ? Keyword(name) : nullptr;
      if (given) Collect(*given, inputs_);
    }
  }
  // An explicit mask argument takes precedence over the mask of the input.
  if (const ValueId mask = KeywordTensor("mask"); mask != kNoValue && !inputs_.empty())
    inputs_[0].mask = mask;
}

bool LayerCall::Has(const char* key) const {
  const auto it = config().find(key);
  return it != config().end() && !it->is_null();
}

int64_t LayerCall::Int(const char* key) {
  const auto it = config().find(key);
  if (it != config().end() && it->is_number_integer()) return it->get<int64_t>();
  if (it != config().end() && it->is_array() && it->size() == 1 && (*it)[0].is_number_integer())
    return (*it)[0].get<int64_t>();
  emit_.Reject(std::string("its configuration has no integer ") + key);
  return 1;
}

double LayerCall::Float(const char* key) {
  const auto it = config().find(key);
  if (it != config().end() && it->is_number()) return it->get<double>();
  // NumPy scalars are stored as arrays of one element, by Keras 2.2 and 2.3 in another form than by newer
  // versions.
  if (it != config().end() && it->is_object() && it->value("type", json()) == "ndarray" &&
      it->value("value", json()).is_number())
    return (*it)["value"].get<double>();
  if (it != config().end() && it->is_object() && it->contains("config") && (*it)["config"].is_object()) {
    const json& value = (*it)["config"].value("value", json());
    if (value.is_number()) return value.get<double>();
  }
  emit_.Reject(std::string("its configuration has no number ") + key);
  return 1;
}

bool LayerCall::Bool(const char* key, bool otherwise) { return ConfigFlag(layer_, key, otherwise); }

std::string LayerCall::Str(const char* key, std::string_view otherwise) {
  const auto it = config().find(key);
  if (it == config().end() || it->is_null()) return std::string(otherwise);
  if (it->is_string()) return it->get<std::string>();
  emit_.Reject(std::string("its configuration has no text ") + key);
  return std::string(otherwise);
}

std::vector<int64_t> LayerCall::Ints(const char* key) {
  const auto it = config().find(key);
  std::vector<int64_t> out;
  if (it != config().end() && it->is_number_integer()) return {it->get<int64_t>()};
  bool fine = it != config().end() && it->is_array();
  if (fine)
    for (const json& item : *it) {
      fine = fine && item.is_number_integer();
      if (fine) out.push_back(item.get<int64_t>());
    }
  if (!fine) emit_.Reject(std::string("its configuration has no integers ") + key);
  return out;
}

std::vector<int64_t> LayerCall::Sizes(const char* key, size_t n, int64_t least) {
  std::vector<int64_t> out = Ints(key);
  if (out.size() == 1) out.resize(n, out[0]);
  const bool fits =
      out.size() == n && std::ranges::all_of(out, [&](int64_t v) { return v >= least && v <= INT32_MAX; });
  if (fits) return out;
  emit_.Reject(std::string("its ") + key + " " + ShapeText(out) + " should be " + std::to_string(n) +
               " numbers, each at least " + std::to_string(least));
  return std::vector<int64_t>(n, std::max<int64_t>(least, 1));
}

ValueId LayerCall::in(size_t i) {
  if (i < inputs_.size()) return inputs_[i].value;
  emit_.Reject("it is called with " + std::to_string(inputs_.size()) + " tensors, expected at least " +
               std::to_string(i + 1));
  return kNoValue;
}

const Given* LayerCall::Keyword(const std::string& name) const {
  asked_.insert(name);
  const auto it = kwargs_.find(name);
  return it == kwargs_.end() ? nullptr : &it->second;
}

std::string LayerCall::UnreadKeyword() const {
  for (const auto& [name, given] : kwargs_) {
    const auto* plain = std::get_if<json>(&given.value);
    if (!asked_.contains(name) && !(plain && (plain->is_null() || *plain == false))) return name;
  }
  return {};
}

std::string LayerCall::UnreadSetting() const {
  for (const auto& [name, value] : config().items()) {
    const bool said = !value.is_null() && value != false && name != "name";
    if (said && !asked_.contains(name)) return name;
  }
  return {};
}

ValueId LayerCall::KeywordTensor(const std::string& name) const {
  const Given* given = Keyword(name);
  const auto* flow = given ? std::get_if<Flow>(&given->value) : nullptr;
  return flow ? flow->value : kNoValue;
}

Tensor LayerCall::WeightData(size_t number, const std::vector<int64_t>& shape) {
  const Tensor nothing;
  if (!emit_.ok()) return nothing;
  if (number >= layer_.weights.size()) {
    emit_.Reject("the file has " + std::to_string(layer_.weights.size()) +
                 " weights of it, expected at least " + std::to_string(number + 1));
    return nothing;
  }
  const std::string& dataset = layer_.weights[number];
  const auto type = state_.archive.TypeOf(dataset);  // before anything is read
  if (!type) {
    emit_.Fail(type.error());
    return nothing;
  }
  if (type->dtype != DType::kF32 && type->dtype != DType::kF16 && type->dtype != DType::kF64 &&
      type->dtype != DType::kBF16 && !layer_.custom) {
    emit_.Refuse("its weight " + dataset + " is " + std::string(Name(type->dtype)) +
                 ": quantized weights are unsupported; save the model before quantizing it");
    return nothing;
  }
  if (!Compatible({type->dtype, type->shape}, {type->dtype, Shape(shape)})) {
    emit_.Reject("its weight " + dataset + " has the shape " + ToString(type->shape) + ", expected " +
                 ShapeText(shape));
    return nothing;
  }
  auto read = state_.archive.Read(dataset);
  if (!read) emit_.Fail(read.error());
  return read ? *read : nothing;
}

ValueId LayerCall::Weight(const std::string& name, const std::vector<int64_t>& shape) {
  const auto specs = WeightSpecs(layer_);
  const auto at = std::ranges::find(specs, name, &WeightSpec::name) - specs.begin();
  if (layer_.weights.size() != specs.size() && emit_.ok())
    emit_.Reject("the file has " + std::to_string(layer_.weights.size()) + " weights of it, expected " +
                 std::to_string(specs.size()));
  const Tensor data = WeightData(static_cast<size_t>(at), shape);
  if (!emit_.ok()) return kNoValue;
  ValueId& known =
      state_.constants.try_emplace({&emit_.function(), layer_.weights[static_cast<size_t>(at)]}, kNoValue)
          .first->second;
  if (known == kNoValue) known = emit_.Const(data, layer_.path + "/" + name);
  return known;
}

ValueId LayerCall::Activate(ValueId v, const char* key) {
  return Has(key) ? Activation(*this, config().at(key), v) : v;
}

std::vector<WeightSpec> WeightSpecs(const Layer& layer) {
  if (layer.custom) return layer.custom->weights;
  const LayerRow* row = FindLayer(layer.class_name);
  return row && row->weights ? row->weights(layer) : std::vector<WeightSpec>();
}

const LayerRow* FindLayer(std::string_view class_name) {
  static const auto* all = [] {
    auto* map = new std::map<std::string_view, const LayerRow*>;
    for (const auto table :
         {CoreLayers(), ActivationLayers(), ConvolutionLayers(), PoolingLayers(), NormalizationLayers(),
          MergeLayers(), SpatialLayers(), AttentionLayers(), RecurrentLayers(), OperationLayers(),
          PreprocessingLayers(), TextLayers(), TensorFlowLayers(), LambdaLayers()})
      for (const LayerRow& row : table) map->emplace(row.class_name, &row);
    return map;
  }();
  const auto it = all->find(class_name);
  return it == all->end() ? nullptr : it->second;
}

}  // namespace fusebox::keras
