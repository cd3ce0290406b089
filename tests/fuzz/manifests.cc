// SPDX-License-Identifier: Apache-2.0
// Manifests of plugins, with all that is done with them short of loading the library; and fusebox.json.
#include <algorithm>
#include <filesystem>

#include "converter/import/keras/importers.h"
#include "host/fusion/fusion.h"
#include "host/plugin/registry.h"
#include "tests/fuzz/targets.h"

namespace fusebox::fuzz {
namespace {

std::string Example(const std::string& name) { return Contents(FUSEBOX_SOURCE_DIR "/" + name); }

const Type kType{DType::kF32, {2, 3}};

// A rule without code, with all that it can have.
constexpr char kDeclared[] = R"({"manifest_version": "1.0", "abi": {"major": 1, "min_minor": 0},
 "plugin": {"id": "com.acme.all", "version": "1.2.3-rc1", "namespace": "acme", "priority": 5, "x-note": 1},
 "provides": {"rules": [{"id": "acme.all", "implements": ["acme.op", "acme.many_*"], "versions": "1-3",
   "when": {"alpha": {"type": "number", "exclusiveMinimum": 0}, "mode": {"enum": ["fast", "exact"]},
            "sizes": {"type": "array", "items": {"type": "integer"}, "maxItems": 4}},
   "emits": [{"custom": "acme.all", "version": 1,
     "options_schema": {"type": "object", "additionalProperties": false, "required": ["alpha"], "definitions": {"n": {"type": "number"}},
       "properties": {"alpha": {"type": "number", "maximum": 9}, "mode": {"pattern": "^[a-z]+$"}, "n": {"$ref": "#/definitions/n"}, "b": {"default": [1, 2]},
                      "map": {"type": "object", "default": {}, "properties": {"deep": {"default": 1.5}}}}},
     "quantization": {"weights": [{"operand": 1, "axis": 0}], "biases": [{"operand": 2, "input": 0, "weights": 1}],
                      "same_scale": [{"operands": [0], "results": [0]}], "asymmetric_inputs": true}}],
   "rewrite": {"operands": [{"operand": 0, "dtype": "f32", "rank": 2, "transpose": [1, 0]}, 1, null, {"operand": 2, "constant": false}],
     "results": [1, 0], "tolerance": {"atol": 1e-6, "rtol": 0.001},
     "attributes": {"alpha": {"from": "alpha", "value": 2}, "mode": {"from": "mode"}, "list": {"value": ["a", "b"]}}}}]},
 "options_schema": {"properties": {"path": {"type": "string", "format": "path", "default": "cache/"}}},
 "requires": {"extensions": ["fusebox.threads/1?"]}})";

// The plugin of the configurations.
constexpr char kConfigured[] = R"({"manifest_version": "1.0", "abi": {"major": 1},
 "plugin": {"id": "com.acme.my_op", "version": "1.0.0", "namespace": "acme"},
 "libraries": [{"platform": "linux-x86_64", "path": "none.so"}, {"platform": "linux-aarch64", "path": "none.so"}],
 "provides": {"ops": [{"custom": "my_custom_fused_op"}], "delegates": [{"name": "fast", "default": true,
   "options_schema": {"properties": {"level": {"type": "integer", "default": 1}, "cache": {"format": "path"}}}}]},
 "options_schema": {"additionalProperties": false,
                    "properties": {"denormals": {"enum": ["keep", "flush"], "default": "keep"}}}})";

constexpr char kConfig[] =
    R"({"plugin_path": ["plugins", "/none"], "allow": ["com.*"], "deny": ["org.[a-z]*"],
 "options": {"com.acme.my_op": {"denormals": "keep"}},
 "delegates": [{"name": "fast", "options": {"level": 3, "cache": "c/"}}, {"name": "none"}],
 "prefer": {"my_*": ["com.acme.my_op", "com.acme.other"]}})";

// What the build adds to a manifest of the tree, without the brace that begins it.
const std::string kLibraries =
    R"({"libraries": [{"platform": "linux-x86_64", "path": "none.so"}, {"platform": "linux-aarch64", "path": "none.so"}],)";

// Attributes of every kind, under the names that the seeds use.
Attrs SomeAttrs() {
  Attrs attrs;
  attrs.Set("example_option", 3);
  attrs.Set("alpha", 0.5);
  attrs.Set("mode", std::string("fast"));
  attrs.Set("sizes", std::vector<int64_t>{1, 2});
  attrs.Set("flag", true);
  return attrs;
}

std::string Folder(const std::string& name) {
  const std::string path = ScratchDir() + "/" + name;
  std::filesystem::create_directories(path);
  return path;
}

// main(x...) = composite(x...) of that name, whose body returns its first operand.
Module Composite(const std::string& name, size_t operands, size_t results) {
  Module module;
  Function &main = module.Add("main"), &body = module.Add("body");
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < operands; ++i) {
    inputs.push_back(main.AddInput(kType));
    body.AddInput(kType);
  }
  Node& node = main.AddNode(Op::kStablehloComposite, inputs, std::vector<Type>(results, kType), SomeAttrs());
  node.name = name;
  node.version = 1;
  node.body = "body";
  main.outputs = node.results;
  for (size_t i = 0; i < results; ++i) {
    Node& relu = body.AddNode(Op::kRelu, {body.inputs[0]}, {kType});
    body.outputs.push_back(relu.results[0]);
  }
  return module;
}

// Uses all that the manifest lists: conditions and rewrites of rules, schemas and defaults of ops, importers.
Status Use(const Manifest& manifest, Registry& registry) {
  for (const ManifestRule& rule : manifest.rules) {
    for (const std::string& name : rule.implements) {
      int most = 0;
      if (rule.rewrite && rule.rewrite->operands)
        for (const auto& operand : *rule.rewrite->operands) most = std::max(most, operand.from);
      const size_t results = rule.rewrite && rule.rewrite->results ? rule.rewrite->results->size() : 1;
      Module module = Composite(name, static_cast<size_t>(most) + 1, results);
      FUSEBOX_TRY(Fuse(module, registry));
      FUSEBOX_TRY(Verify(module));
    }
  }
  for (const ManifestOp& op : manifest.ops) {
    for (Attrs attrs : {Attrs(), SomeAttrs()}) {
      Node node{.name = op.name, .version = op.version, .attrs = std::move(attrs)};
      registry.FillOptions(node);
      (void)registry.CheckOptions(node);
      registry.KernelsOf(op.kind, op.name);
    }
  }
  const nlohmann::json config = {{"units", 4}, {"heads", 2}, {"use_bias", true}, {"alpha", nullptr}};
  for (const Importer& importer : ImportersOf(manifest)) {
    (void)keras::WithConfig(importer.entry, config);
    for (const char* list : {"weights", "layers", "ops"})
      for (const nlohmann::json& one : importer.entry.value(list, nlohmann::json::array()))
        (void)keras::Exists(one, config);
  }
  return {};
}

Status UseConfig(Config config) {
  config.search_default_path = false;
  FUSEBOX_ASSIGN(const auto registry, Registry::Create(config));
  std::vector<std::string> notices;
  FUSEBOX_TRY(registry->Delegates(std::nullopt, {}, notices));
  for (const PluginInfo& info : registry->plugins()) FUSEBOX_TRY(Use(info.manifest, *registry));
  return {};
}

}  // namespace

Status RunManifest(std::span<const std::byte> bytes) {
  static const std::string folder = Folder("manifest/plugin");
  WriteScratch(folder + "/fusebox-plugin.json", bytes);
  FUSEBOX_TRY(ReadManifest(folder + "/fusebox-plugin.json"));
  Config config;
  config.plugin_path = {folder};
  return UseConfig(std::move(config));
}

Status RunConfig(std::span<const std::byte> bytes) {
  static const std::string folder = Folder("config/plugins");
  static const std::string file = ScratchDir() + "/config/fusebox.json";
  static const bool written = [] {
    const std::string manifest = kConfigured;
    WriteScratch(folder + "/fusebox-plugin.json", std::as_bytes(std::span(manifest)));
    return true;
  }();
  FUSEBOX_CHECK(written);
  WriteScratch(file, bytes);
  FUSEBOX_ASSIGN(Config config, ReadConfig(file));
  return UseConfig(std::move(config));
}

std::vector<std::string> ManifestSeeds() {
  std::vector<std::string> seeds = {Example("sdk/schema/examples/fusebox-plugin.json"), kDeclared};
  for (const char* name : {"rnn", "embedding", "text", "vision", "xnnpack", "null"})
    seeds.push_back(kLibraries + Example("plugins/" + std::string(name) + "/fusebox-plugin.json").substr(1));
  seeds.push_back(Example("samples/plugins/keras_layers/fusebox-plugin.json"));
  return seeds;
}

std::vector<std::string> ConfigSeeds() { return {Example("sdk/schema/examples/fusebox.json"), kConfig}; }

}  // namespace fusebox::fuzz
