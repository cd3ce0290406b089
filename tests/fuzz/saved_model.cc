// SPDX-License-Identifier: Apache-2.0
#include "converter/convert.h"
#include "models/saved_model/saved_model_builder.h"
#include "tests/fuzz/targets.h"
#include "tests/testing/models/models.h"

namespace fusebox::fuzz {
namespace {

// The checkpoint of lstm_computed_state has the weights of all of them.
constexpr const char* kModels[] = {"keras_lstm",          "lstm_time_major",     "lstm_backwards",
                                   "lstm_sequences",      "lstm_last_step",      "lstm_states",
                                   "lstm_computed_state", "lstm_constant_state", "lstm_four_gates"};

std::shared_ptr<Registry> BuiltIn() {
  static const auto registry = [] {
    Config config;
    config.search_default_path = false;
    auto made = Registry::Create(config);
    FUSEBOX_CHECK(made.has_value());
    return *made;
  }();
  return registry;
}

// Numbers of words: two tables, filled from constants when the model is loaded, one asked after the other.
std::string TableSeed() {
  using namespace models;
  using namespace samples;
  tf::SavedModel model;
  model.set_saved_model_schema_version(1);
  tf::MetaGraphDef& meta = *model.add_meta_graphs();
  meta.mutable_meta_info_def()->add_tags("serve");
  const auto node = [&](const char* op, const char* name, const std::vector<std::string>& inputs,
                        const std::vector<Attr>& attrs) {
    tf::NodeDef& made = *meta.mutable_graph_def()->add_node();
    made.set_op(op);
    made.set_name(name);
    for (const std::string& input : inputs) made.add_input(input);
    for (const Attr& attr : attrs) (*made.mutable_attr())[attr.key] = attr.proto;
  };
  const auto constant = [&](const char* name, const TensorValue& value) {
    node("Const", name, {}, {Attr("dtype", value.dtype), Attr("value", value)});
  };
  const auto types = [](const char* key, const char* value) {
    return std::vector<Attr>{Attr(key, tf::DT_STRING), Attr(value, tf::DT_INT32)};
  };
  node("Placeholder", "x", {}, {Attr("dtype", tf::DT_STRING)});
  constant("keys", Strings({"a", "bc", ""}));
  constant("values", Ints({7, 8, 9}));
  constant("other", Int(-1));
  node("HashTableV2", "table", {}, types("key_dtype", "value_dtype"));
  node("MutableHashTableV2", "first", {}, types("key_dtype", "value_dtype"));
  node("LookupTableImportV2", "fill", {"table", "keys", "values"}, types("Tin", "Tout"));
  node("LookupTableImportV2", "insert", {"first", "keys", "values"}, types("Tin", "Tout"));
  node("NoOp", "init", {"^fill", "^insert"}, {});
  node("LookupTableFindV2", "find", {"table", "x", "other"}, types("Tin", "Tout"));
  node("LookupTableFindV2", "again", {"first", "x", "other"}, types("Tin", "Tout"));
  tf::SignatureDef& signature = (*meta.mutable_signature_def())["serving_default"];
  const auto info = [](tf::TensorInfo& of, const char* name, tf::DataType dtype) {
    of.set_name(name);
    of.set_dtype(dtype);
    of.mutable_tensor_shape()->add_dim()->set_size(-1);
  };
  info((*signature.mutable_inputs())["x"], "x:0", tf::DT_STRING);
  info((*signature.mutable_outputs())["y"], "find:0", tf::DT_INT32);
  info((*signature.mutable_outputs())["z"], "again:0", tf::DT_INT32);
  tf::SignatureDef& fill = (*meta.mutable_signature_def())["__saved_model_init_op"];
  (*fill.mutable_outputs())["__saved_model_init_op"].set_name("init");
  return model.SerializeAsString();
}

}  // namespace

Status RunSavedModel(std::span<const std::byte> bytes) {
  static const std::string dir = SampleDir("lstm_computed_state");
  WriteScratch(dir + "/saved_model.pb", bytes);
  auto conversion = converter::FromSavedModel(dir);
  conversion.options.registry = BuiltIn();
  FUSEBOX_ASSIGN(const auto converted, conversion.Convert());
  FUSEBOX_CHECK(converted.Write(ScratchDir() + "/out.tflite").has_value());
  return {};
}

std::vector<std::string> SavedModelSeeds() {
  std::vector<std::string> seeds = {TableSeed()};
  for (const char* name : kModels) seeds.push_back(Contents(SampleDir(name) + "/saved_model.pb"));
  return seeds;
}

std::vector<std::string> OtherSavedModelSeeds() {
  std::vector<std::string> seeds;
  for (const auto& model : test_models::NamedModels())
    seeds.push_back(Contents(SampleDir(std::string(model.name)) + "/saved_model.pb"));
  return seeds;
}

}  // namespace fusebox::fuzz
