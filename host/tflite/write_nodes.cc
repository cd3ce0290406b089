// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "host/graph/flex.h"
#include "host/graph/versions.h"
#include "host/tflite/options.h"
#include "host/tflite/writer.h"

namespace fusebox::tflite {
namespace {

// The bytes of the file while they still say what the attributes say, else the attributes.
std::string FlexOptions(const Node& node) {
  if (!node.raw_options.empty()) {
    const Result<Attrs> said = fusebox::ReadFlexMap(node.raw_options);
    if (said ? *said == node.attrs : node.attrs.empty()) return node.raw_options;
  }
  return node.attrs.empty() ? std::string() : fusebox::WriteFlexMap(node.attrs);
}

// What stands in the options table: for a composite, the fields that the graph keeps elsewhere.
Attrs TableAttrs(const Node& node) {
  if (!node.is(Op::kStablehloComposite)) return node.attrs;
  Attrs attrs;
  attrs.Set("name", node.name);
  if (!node.body.empty()) attrs.Set("decomposition_subgraph_index", FunctionRef{node.body});
  const std::string options = FlexOptions(node);
  if (!options.empty()) attrs.Set("composite_attributes", options);
  attrs.Set("version", int64_t{node.version});
  return attrs;
}

struct Options {
  flatbuffers::Offset<void> offset;
  uint8_t first = 0, second = 0;
};

Result<Options> WriteBuiltinOptions(Context& context, const Node& node) {
  const OptionTable* table = TableOf(node.op);
  if (table == nullptr) {
    if (!node.attrs.empty())
      return Invalid("has attributes " + ToString(node.attrs) + ", but its op has no options");
    return Options();
  }
  // A reshape without a shape in its options takes it from its operand; an empty table would contradict that.
  if (node.is(Op::kReshape) && node.attrs.empty()) return Options();
  const auto number = [&](std::string_view name) -> std::optional<int> {
    const auto found = context.function_numbers.find(name);
    return found == context.function_numbers.end() ? std::nullopt : std::optional(found->second);
  };
  Options options;
  FUSEBOX_ASSIGN(options.offset, WriteOptionTable(context.out, *table, TableAttrs(node), number));
  const OptionTag tag = TagOf(*table);
  (tag.where == OptionUnion::kFirst ? options.first : options.second) = tag.tag;
  return options;
}

// Which operands the op overwrites; nothing where it overwrites none.
flatbuffers::Offset<flatbuffers::Vector<uint8_t>> Mutating(Context& context, const Function& function,
                                                           const Node& node) {
  std::vector<uint8_t> flags(node.operands.size());
  const auto states = StateOperands(node.op);
  for (size_t i = 0; i < flags.size(); ++i) {
    if (node.operands[i] == kNoValue) continue;
    const bool state = std::ranges::find(states, static_cast<int>(i)) != states.end();
    flags[i] = state || (node.is(Op::kCustom) && function.value(node.operands[i]).is_variable);
  }
  if (std::ranges::count(flags, 1) == 0) return {};
  return context.out.CreateVector(flags);
}

}  // namespace

uint32_t Codes::Add(Key key) {
  const auto [place, added] = numbers.emplace(key, static_cast<uint32_t>(list.size()));
  if (added) list.push_back(std::move(key));
  return place->second;
}

Result<flatbuffers::Offset<format::Operator>> WriteNode(Context& context, const Function& function,
                                                        const Node& node, const TensorNumbers& numbers) {
  if (!node.extra.empty()) return Unsupported("has " + node.extra + ", which cannot be written back");
  const OpInfo& info = Info(node.op);
  const bool own_version = node.version != 0 && !node.is(Op::kStablehloComposite);
  const int version = own_version ? node.version : LowestVersion(function, node);
  const uint32_t code =
      context.codes.Add({info.code, node.is(Op::kCustom) ? node.name : std::string(), version});
  std::vector<int32_t> results = numbers.of(node.results);
  results.resize(ProperResultCount(node));
  flatbuffers::FlatBufferBuilder& out = context.out;
  flatbuffers::Offset<flatbuffers::Vector<uint8_t>> custom;
  Options options;
  if (node.is(Op::kCustom)) {
    const std::string bytes = FlexOptions(node);
    if (!bytes.empty()) {
      out.ForceVectorAlignment(bytes.size(), 1, 16);
      custom = out.CreateVector(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    }
  } else {
    FUSEBOX_ASSIGN(options, WriteBuiltinOptions(context, node));
  }
  const auto inputs = out.CreateVector(numbers.of(node.operands));
  const auto outputs = out.CreateVector(results);
  const auto mutating = Mutating(context, function, node);
  const auto inner = node.intermediates.empty() ? 0 : out.CreateVector(numbers.of(node.intermediates));
  const auto first = static_cast<format::BuiltinOptions>(options.first);
  const auto second = static_cast<format::BuiltinOptions2>(options.second);
  return format::CreateOperator(out, code, inputs, outputs, first, options.first != 0 ? options.offset : 0,
                                custom, format::CustomOptionsFormat_FLEXBUFFERS, mutating, inner, 0, 0,
                                second, options.second != 0 ? options.offset : 0);
}

Result<WrittenFunction> WriteFunction(Context& context, const Function& function) {
  const TensorNumbers numbers(function);
  FUSEBOX_ASSIGN(const auto tensors, WriteTensors(context, function, numbers));
  std::vector<flatbuffers::Offset<format::Operator>> operators;
  for (const auto& node : function.nodes) {
    auto written = WriteNode(context, function, *node, numbers);
    if (!written) return std::unexpected(std::move(written.error()).At(Describe(function, *node)));
    operators.push_back(*written);
  }
  WrittenFunction written{{}, numbers.of(function.inputs), numbers.of(function.outputs)};
  flatbuffers::FlatBufferBuilder& out = context.out;
  const auto tensor_list = out.CreateVector(tensors);
  const auto inputs = out.CreateVector(written.inputs), outputs = out.CreateVector(written.outputs);
  const auto operator_list = out.CreateVector(operators);
  written.offset = format::CreateSubGraph(out, tensor_list, inputs, outputs, operator_list,
                                          out.CreateString(function.name));
  return written;
}

}  // namespace fusebox::tflite
