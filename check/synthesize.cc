// SPDX-License-Identifier: Apache-2.0
// Models for custom ops that have none: one node, with attributes from the options_schema of the manifest.
#include <algorithm>

#include "check/example.h"
#include "check/workload.h"
#include "host/tflite/tflite.h"

namespace fusebox::check {
namespace {

constexpr size_t kMostOperands = 4;
constexpr size_t kMostResults = 3;

struct Signature {
  size_t operands, results;
  Shape shape;
};

std::vector<Signature> Signatures() {
  std::vector<Signature> all;
  for (const Shape& shape : {Shape{3, 5}, Shape{2, 3, 7}, Shape{1, 5, 6, 3}})
    for (size_t operands = 1; operands <= kMostOperands; ++operands)
      for (size_t results = 1; results <= kMostResults; ++results) all.push_back({operands, results, shape});
  return all;
}

std::unique_ptr<Module> ModelOf(const ManifestOp& op, const Attrs& attrs, const Signature& signature) {
  auto module = std::make_unique<Module>();
  Function& main = module->Add("main");
  const Type type{DType::kF32, signature.shape};
  ValueIds operands;
  for (size_t i = 0; i < signature.operands; ++i)
    operands.push_back(main.AddInput(type, "input" + std::to_string(i)));
  Node& node =
      main.AddNode(Op::kCustom, operands, std::vector<Type>(signature.results, {DType::kF32, {}}), attrs);
  node.name = op.name;
  node.version = std::max(op.version, 1);
  for (const ValueId v : node.results) main.outputs.push_back(v);
  return module;
}

// In a child: the bytes of the file, or nothing if the model does not run.
std::string TryModel(const Manifest& manifest, const ManifestOp& op, const Options& options,
                     const Signature& signature) {
  const auto attrs = ExampleAttributes(op.options_schema, false);
  const auto rig = Rig::Create(manifest, options.config, {});
  if (!attrs || !rig) return {};
  auto module = ModelOf(op, *attrs, signature);
  Function& main = *module->functions[0];
  if (!InferTypes(*(*rig)->registry(), *module, main)) return {};
  for (const ValueId v : main.outputs)
    if (!main.value(v).type.shape.is_static()) return {};
  const auto bytes = tflite::Write(*module);
  ModelOptions model_options;
  model_options.registry = (*rig)->registry();
  model_options.delegates.emplace();
  const auto model = Model::FromModule(std::move(module), model_options);
  return bytes && model && RunModel(*model, {.runs = 1, .seed = options.seed}) ? *bytes : std::string();
}

}  // namespace

Result<std::string> SynthesizeModel(const Manifest& manifest, const ManifestOp& op, const Options& options) {
  for (const Signature& signature : Signatures()) {
    const auto ended = RunInChild([&] { return TryModel(manifest, op, options, signature); },
                                  {.seconds = std::min(options.seconds, 5.0)});
    if (!ended) return std::unexpected(ended.error());
    if (ended->finished && !ended->result.empty()) return ended->result;
    if (ended->timed_out) break;
  }
  return std::string();
}

}  // namespace fusebox::check
