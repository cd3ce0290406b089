// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "host/tflite/reader.h"

namespace fusebox::tflite {
namespace {

std::vector<std::string> FunctionNames(const format::Model& model) {
  const auto name_of = [](const format::SubGraph* graph) {
    return graph->name() == nullptr ? std::string_view() : graph->name()->string_view();
  };
  std::vector<std::string_view> given;
  given.reserve(model.subgraphs()->size());
  for (const format::SubGraph* graph : *model.subgraphs()) given.push_back(name_of(graph));
  std::ranges::sort(given);
  const auto times = [&](std::string_view name) { return std::ranges::equal_range(given, name).size(); };
  std::vector<std::string> names;
  names.reserve(given.size());
  std::set<std::string> made;
  for (const format::SubGraph* graph : *model.subgraphs()) {
    std::string name(name_of(graph));
    if (name.empty() || times(name) > 1) {
      name = names.empty() ? "main" : "subgraph" + std::to_string(names.size());
      while (times(name) == 1 || !made.insert(name).second) name += "_";
    }
    names.push_back(std::move(name));
  }
  return names;
}

bool StatesRank(const format::Model& model) {
  for (const format::SubGraph* graph : *model.subgraphs()) {
    if (graph->tensors() == nullptr) continue;
    for (const format::Tensor* tensor : *graph->tensors()) {
      if (tensor->has_rank()) return true;
    }
  }
  return false;
}

Result<std::vector<ValueId>> Interface(const flatbuffers::Vector<int32_t>* list, const Function& function,
                                       const char* what) {
  std::vector<ValueId> ids;
  ids.reserve(SizeOf(list));
  for (size_t i = 0; i < SizeOf(list); ++i) {
    const int32_t id = list->Get(static_cast<unsigned>(i));
    if (id < 0 || id >= function.value_count()) {
      return Invalid(std::string(what) + " " + std::to_string(i) + ": tensor " + std::to_string(id) +
                     " does not exist");
    }
    ids.push_back(id);
  }
  return ids;
}

bool IsEmpty(const Value& value) {
  const Dims& dims = value.type.shape.dims();
  return std::ranges::find(dims, 0) != dims.end() && !value.is_const() && value.type.shape.is_static();
}

// A constant of no elements needs no bytes in the file.
void AddEmptyConstants(Function& function) {
  bool any = false;
  for (ValueId id = 0; id < function.value_count(); ++id) any = any || IsEmpty(function.value(id));
  if (!any) return;
  const Uses uses(function);
  std::vector<char> defined(static_cast<size_t>(function.value_count()));
  for (const ValueId id : function.inputs) defined[static_cast<size_t>(id)] = 1;
  for (ValueId id = 0; id < function.value_count(); ++id) {
    Value& value = function.value(id);
    const bool open = IsEmpty(value) && !value.is_variable && !defined[static_cast<size_t>(id)];
    if (!open || uses.producer(id) != nullptr || uses.readers(id).empty()) continue;
    const int32_t no_strings[] = {0, 8};
    value.data = value.type.dtype == DType::kString ? Buffer::Of(std::span<const int32_t>(no_strings))
                                                    : Buffer::Copy({});
  }
}

// Tensors, and what ops with state add to them.
size_t ValueCount(const File& file, const format::SubGraph& graph) {
  size_t count = SizeOf(graph.tensors());
  for (size_t i = 0; i < SizeOf(graph.operators()); ++i) {
    const auto op = OpOf(file, *graph.operators()->Get(static_cast<unsigned>(i)));
    if (op) count += StateOperands(*op).size();
  }
  return count;
}

Status ReadFunction(const File& file, const format::SubGraph& graph, Function& function) {
  function.ReserveValues(ValueCount(file, graph));
  function.AddValues(SizeOf(graph.tensors()));
  for (size_t i = 0; i < SizeOf(graph.tensors()); ++i) {
    const format::Tensor& tensor = *graph.tensors()->Get(static_cast<unsigned>(i));
    Status status = ReadTensor(file, graph, tensor, function.value(static_cast<ValueId>(i)));
    if (!status)
      return std::move(status).At("tensor " + std::to_string(i) + " (" + TextOf(tensor.name()) + ")");
  }
  FUSEBOX_ASSIGN(function.inputs, Interface(graph.inputs(), function, "input"));
  FUSEBOX_ASSIGN(function.outputs, Interface(graph.outputs(), function, "output"));
  FUSEBOX_TRY(ReadNodes(file, graph, function));
  AddEmptyConstants(function);
  return {};
}

// One name per input (or output) of the function, in its order.
Result<std::vector<std::string>> SignatureNames(
    const flatbuffers::Vector<flatbuffers::Offset<format::TensorMap>>* maps,
    const flatbuffers::Vector<int32_t>* tensors, const format::SubGraph& graph, const char* what) {
  std::vector<std::string> names(SizeOf(tensors));
  std::vector<char> named(names.size());
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
    if (!found) {
      return Invalid(std::string(what) + " \"" + TextOf(map.name()) + "\": tensor " +
                     std::to_string(map.tensor_index()) + " is not an " + what + " of its subgraph");
    }
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (named[i]) continue;
    // The signature leaves it out; calls still need a name for it.
    names[i] =
        TextOf(graph.tensors()->Get(static_cast<unsigned>(tensors->Get(static_cast<unsigned>(i))))->name());
    while (std::ranges::count(names, names[i]) > 1) names[i] += "_";
  }
  return names;
}

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
    FUSEBOX_ASSIGN(signature.input_names,
                   SignatureNames(source.inputs(), graph.inputs(), graph, "input").At(place));
    FUSEBOX_ASSIGN(signature.output_names,
                   SignatureNames(source.outputs(), graph.outputs(), graph, "output").At(place));
  }
  return {};
}

Status ReadMetadata(const File& file, Module& module) {
  for (size_t i = 0; i < SizeOf(file.model.metadata()); ++i) {
    const format::Metadata& source = *file.model.metadata()->Get(static_cast<unsigned>(i));
    Metadata& metadata = module.metadata.emplace_back();
    metadata.name = TextOf(source.name());
    FUSEBOX_ASSIGN(metadata.data, ReadBuffer(file, source.buffer()).At("metadata " + metadata.name));
  }
  return {};
}

std::set<ValueId> ReadBySomebody(const Function& function) {
  std::set<ValueId> read(function.outputs.begin(), function.outputs.end());
  for (const auto& node : function.nodes) read.insert(node->operands.begin(), node->operands.end());
  return read;
}

// A composite's body that reads none of its inputs only declares types.
void MarkPlaceholders(Module& module) {
  for (const auto& function : module.functions) {
    for (const auto& node : function->nodes) {
      Function* body =
          node->is(Op::kStablehloComposite) && !node->body.empty() ? module.Find(node->body) : nullptr;
      if (body == nullptr || body->inputs.empty()) continue;
      const std::set<ValueId> read = ReadBySomebody(*body);
      body->placeholder = std::ranges::none_of(body->inputs, [&](ValueId id) { return read.contains(id); });
    }
  }
}

void ListVariables(Module& module) {
  for (const auto& function : module.functions) {
    if (std::ranges::none_of(function->nodes, [](const auto& node) { return node->is(Op::kVarHandle); }))
      continue;
    const Uses uses(*function);
    for (const auto& node : function->nodes) {
      if (!node->is(Op::kVarHandle) || node->results.empty()) continue;
      const std::string name = node->attrs.str("shared_name", "");
      Variable* variable = module.FindVariable(name);
      if (variable == nullptr) {
        variable = &module.variables.emplace_back();
        variable->name = name;
        variable->container = node->attrs.str("container", "");
      }
      for (const Uses::Reader& reader : uses.readers(node->results[0])) {
        if (reader.node == nullptr || reader.index != 0) continue;
        const bool assigns = reader.node->is(Op::kAssignVariable) && reader.node->operands[1] != kNoValue;
        if (assigns) variable->type = function->value(reader.node->operands[1]).type;
      }
    }
  }
}

// Where the last bytes begin that no constant holds: what is appended to the file lies there.
size_t EndOfConstants(const File& file) {
  const std::byte* end = file.bytes.data();
  for (size_t i = 0; i < SizeOf(file.model.buffers()); ++i) {
    const auto* data = file.model.buffers()->Get(static_cast<unsigned>(i))->data();
    if (data != nullptr) end = std::max(end, reinterpret_cast<const std::byte*>(data->data()) + data->size());
  }
  return static_cast<size_t>(end - file.bytes.data());
}

Status ReadModel(const Buffer& bytes, Module& module) {
  FUSEBOX_TRY(CheckFile(bytes));
  const format::Model& model = *format::GetModel(bytes.data());
  if (model.version() != 3)
    return Unsupported("format version " + std::to_string(model.version()) + ", expected 3");
  if (SizeOf(model.subgraphs()) == 0) return Invalid("there is no subgraph");
  const File file = {bytes, model, FunctionNames(model), StatesRank(model)};
  module.functions.reserve(file.function_names.size());
  for (const std::string& name : file.function_names)
    module.functions.push_back(std::make_unique<Function>(name));
  for (size_t i = 0; i < module.functions.size(); ++i) {
    Status status =
        ReadFunction(file, *model.subgraphs()->Get(static_cast<unsigned>(i)), *module.functions[i]);
    if (!status) return std::move(status).At("subgraph " + std::to_string(i));
  }
  FUSEBOX_TRY(ReadSignatures(file, module));
  FUSEBOX_TRY(ReadMetadata(file, module));
  module.description = TextOf(model.description());
  module.appended = ReadAppendedZip(bytes, EndOfConstants(file));
  // Before anything that relies on it: from here on the graph is as sound as one that was built.
  FUSEBOX_TRY(Verify(module, Strictness::kLoose));
  MarkPlaceholders(module);
  ListVariables(module);
  return {};
}

}  // namespace

Result<std::unique_ptr<Module>> Read(Buffer file, const std::string& name) {
  // Scalars of a FlatBuffer are aligned as far as its start is.
  if (reinterpret_cast<uintptr_t>(file.data()) % 8 != 0) file = Buffer::Copy(file.bytes());
  auto module = std::make_unique<Module>();
  module->source = name;
  Status status = ReadModel(file, *module);
  if (!status) return std::unexpected(std::move(status.error()).At(name));
  return module;
}

Result<std::unique_ptr<Module>> ReadFile(const std::string& path) {
  FUSEBOX_ASSIGN(Buffer file, MapFile(path));
  return Read(std::move(file), path);
}

}  // namespace fusebox::tflite
