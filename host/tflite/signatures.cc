// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "host/base/log.h"
#include "host/tflite/file.h"

namespace fusebox::tflite {
namespace {

// One name per input (or output) of the function, in its order. Names of other tensors are ignored, as in
// TFLite.
std::vector<std::string> SignatureNames(const flatbuffers::Vector<Offset<format::TensorMap>>* maps,
                                        const flatbuffers::Vector<int32_t>* tensors,
                                        const format::SubGraph& graph, const std::string& what) {
  std::vector<std::string> names(SizeOf(tensors));
  std::vector<char> named(names.size());
  bool warned = false;
  for (size_t m = 0; m < SizeOf(maps); ++m) {
    const format::TensorMap& map = *maps->Get(static_cast<unsigned>(m));
    bool found = false;
    for (size_t i = 0; i < names.size() && !found; ++i) {
      if (named[i] || static_cast<uint32_t>(tensors->Get(static_cast<unsigned>(i))) != map.tensor_index())
        continue;
      names[i] = TextOf(map.name());
      named[i] = 1;
      found = true;
    }
    if (!found && !warned) {
      Log("tflite").warn("{} \"{}\" is ignored: tensor {} is not among those of the subgraph", what,
                         TextOf(map.name()), map.tensor_index());
    }
    warned = warned || !found;
  }
  std::set<std::string> taken;
  for (size_t i = 0; i < names.size(); ++i)
    if (named[i]) taken.insert(names[i]);
  for (size_t i = 0; i < names.size(); ++i) {
    if (named[i]) continue;
    // The signature leaves it out; calls still need a name for it.
    names[i] =
        TextOf(graph.tensors()->Get(static_cast<unsigned>(tensors->Get(static_cast<unsigned>(i))))->name());
    if (taken.contains(names[i])) names[i] += "_";
    if (taken.contains(names[i])) names[i] += std::to_string(i);
    while (!taken.insert(names[i]).second) names[i] += "_";
  }
  return names;
}

ListOffset<Offset<format::TensorMap>> WriteMap(flatbuffers::FlatBufferBuilder& out,
                                               const std::vector<std::string>& names,
                                               const std::vector<int32_t>& tensors) {
  std::vector<std::pair<std::string, int32_t>> sorted;
  for (size_t i = 0; i < names.size(); ++i) sorted.emplace_back(names[i], tensors[i]);
  // If a tensor has several names, the function's order is kept.
  const bool distinct = std::set(tensors.begin(), tensors.end()).size() == tensors.size();
  if (distinct) std::ranges::sort(sorted);
  std::vector<Offset<format::TensorMap>> maps;
  for (const auto& [name, tensor] : sorted) {
    maps.push_back(format::CreateTensorMap(out, out.CreateString(name), static_cast<uint32_t>(tensor)));
  }
  return out.CreateVector(maps);
}

}  // namespace

Status ReadSignatures(const File& file, Module& module) {
  module.signatures.reserve(SizeOf(file.model.signature_defs()));
  for (size_t i = 0; i < SizeOf(file.model.signature_defs()); ++i) {
    const format::SignatureDef& source = *file.model.signature_defs()->Get(static_cast<unsigned>(i));
    Signature& signature = module.signatures.emplace_back();
    signature.key = TextOf(source.signature_key());
    const std::string place = "signature " + signature.key;
    if (source.subgraph_index() >= module.functions.size()) {
      return Invalid(place + ": subgraph " + std::to_string(source.subgraph_index()) + " does not exist");
    }
    signature.function = file.function_names[source.subgraph_index()];
    const format::SubGraph& graph = *file.model.subgraphs()->Get(source.subgraph_index());
    const std::string subject = (module.source.empty() ? "" : module.source + ": ") + place;
    signature.input_names = SignatureNames(source.inputs(), graph.inputs(), graph, subject + ": input");
    signature.output_names = SignatureNames(source.outputs(), graph.outputs(), graph, subject + ": output");
  }
  return {};
}

std::vector<Offset<format::SignatureDef>> WriteSignatures(Context& context,
                                                          std::span<const WrittenFunction> functions) {
  std::vector<Offset<format::SignatureDef>> signatures;
  for (const Signature& signature : context.module.signatures) {
    const int number = context.function_numbers.find(signature.function)->second;
    const WrittenFunction& function = functions[static_cast<size_t>(number)];
    const auto inputs = WriteMap(context.out, signature.input_names, function.inputs);
    const auto outputs = WriteMap(context.out, signature.output_names, function.outputs);
    const auto key = context.out.CreateString(signature.key);
    signatures.push_back(
        format::CreateSignatureDef(context.out, inputs, outputs, key, static_cast<uint32_t>(number)));
  }
  return signatures;
}

}  // namespace fusebox::tflite
