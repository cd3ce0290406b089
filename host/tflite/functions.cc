// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "host/tflite/file.h"

namespace fusebox::tflite {
namespace {

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

// Compilers for accelerators list scratch memory among the operands of custom ops, which nothing defines. It
// is kept as session state if only custom ops read it.
void KeepScratch(Function& function) {
  const auto is_custom = [](const auto& node) { return node->is(Op::kCustom); };
  const auto by_custom = [](const Uses::Reader& use) {
    return use.node != nullptr && use.node->is(Op::kCustom);
  };
  if (std::ranges::none_of(function.nodes, is_custom)) return;
  const Uses uses(function);
  const std::set<ValueId> inputs(function.inputs.begin(), function.inputs.end());
  for (const auto& node : function.nodes) {
    if (!node->is(Op::kCustom)) continue;
    for (const ValueId id : node->operands) {
      if (id == kNoValue || uses.producer(id) != nullptr || inputs.contains(id)) continue;
      Value& value = function.value(id);
      const bool scratch = !value.is_const() && std::ranges::all_of(uses.readers(id), by_custom);
      if (scratch && value.type.shape.is_static()) value.is_variable = true;
    }
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

}  // namespace

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
  KeepScratch(function);
  return {};
}

Result<WrittenFunction> WriteFunction(Context& context, const Function& function) {
  const TensorNumbers numbers(function);
  FUSEBOX_ASSIGN(const auto tensors, WriteTensors(context, function, numbers));
  std::vector<Offset<format::Operator>> operators;
  for (const auto& node : function.nodes) {
    auto written = WriteNode(context, function, *node, numbers);
    if (!written) return std::unexpected(std::move(written.error()).At(Describe(function, *node)));
    operators.push_back(*written);
  }
  WrittenFunction written{{}, numbers.of(function.inputs), numbers.of(function.outputs)};
  flatbuffers::FlatBufferBuilder& out = context.out;
  const auto tensor_list = out.CreateVector(tensors);
  const auto inputs = out.CreateVector(written.inputs);
  const auto outputs = out.CreateVector(written.outputs);
  const auto operator_list = out.CreateVector(operators);
  written.offset = format::CreateSubGraph(out, tensor_list, inputs, outputs, operator_list,
                                          out.CreateString(function.name));
  return written;
}

}  // namespace fusebox::tflite
