// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "host/graph/flex.h"
#include "host/graph/versions.h"
#include "host/tflite/file.h"
#include "host/tflite/options.h"

namespace fusebox::tflite {
namespace {

// The raw view of a union's table.
const flatbuffers::Table* AsTable(const void* table) { return static_cast<const flatbuffers::Table*>(table); }

// Old files have no room for large numbers in the first field, new ones fill both.
int NumberOf(const format::OperatorCode& code) {
  return std::max<int>(code.deprecated_builtin_code(), code.builtin_code());
}

class NodeReader {
 public:
  NodeReader(const File& file, const format::SubGraph& graph, Function& function)
      : file_(file), graph_(graph), function_(function), now_(static_cast<size_t>(function.value_count())) {
    for (size_t i = 0; i < now_.size(); ++i) now_[i] = static_cast<ValueId>(i);
  }

  Status Run() {
    function_.nodes.reserve(SizeOf(graph_.operators()));
    for (size_t i = 0; i < SizeOf(graph_.operators()); ++i) {
      auto node = std::make_unique<Node>();
      const Status status = One(*graph_.operators()->Get(static_cast<unsigned>(i)), *node);
      if (!status) {
        const std::string name = node->name.empty() ? std::string(Name(node->op)) : node->name;
        return std::unexpected(
            Error(status.error()).At("node " + std::to_string(i) + (named_ ? " " + name : "")));
      }
      if (!IsUnpacking(*node)) function_.nodes.push_back(std::move(node));
    }
    // A function's outputs hold what its tensors hold at the end.
    for (ValueId& output : function_.outputs) output = now_[static_cast<size_t>(output)];
    return {};
  }

 private:
  Status One(const format::Operator& source, Node& node) {
    named_ = false;
    FUSEBOX_TRY(ReadCode(source, node));
    named_ = true;
    FUSEBOX_TRY(ReadValues(source.inputs(), "operand", node.operands));
    FUSEBOX_TRY(ReadValues(source.outputs(), "result", node.results));
    FUSEBOX_TRY(ReadValues(source.intermediates(), "intermediate", node.intermediates));
    for (ValueId& id : node.operands) id = id == kNoValue ? id : now_[static_cast<size_t>(id)];
    if (IsUnpacking(node)) {
      now_[static_cast<size_t>(node.results[0])] = node.operands[0];
      return {};
    }
    if (!node.results.empty() && node.results[0] != kNoValue)
      node.location.name = function_.value(node.results[0]).name;
    AddStateResults(source, node);
    return node.op == Op::kCustom ? ReadCustomOptions(source, node) : ReadBuiltinOptions(source, node);
  }

  // DENSIFY of a constant returns its operand, because constants are dense by now.
  bool IsUnpacking(const Node& node) const {
    return node.is(Op::kDensify) && node.operands.size() == 1 && node.results.size() == 1 &&
           node.operands[0] != kNoValue && node.results[0] != kNoValue &&
           function_.value(node.operands[0]).is_const();
  }

  Status ReadCode(const format::Operator& source, Node& node) {
    if (source.opcode_index() >= SizeOf(file_.model.operator_codes())) {
      return Invalid("operator code " + std::to_string(source.opcode_index()) + " does not exist");
    }
    const format::OperatorCode& code = *file_.model.operator_codes()->Get(source.opcode_index());
    const std::optional<Op> op = OpOf(file_, source);
    if (!op) return Unsupported("operator " + std::to_string(NumberOf(code)) + " is not known");
    node.op = *op;
    node.version = code.version();
    if (node.op != Op::kCustom) return {};
    node.name = TextOf(code.custom_code());
    return node.name.empty() ? Status(Invalid("custom operator without a name")) : Status();
  }

  Status ReadValues(const flatbuffers::Vector<int32_t>* list, const char* what, ValueIds& ids) const {
    ids.reserve(SizeOf(list));
    for (size_t i = 0; i < SizeOf(list); ++i) {
      const int32_t id = list->Get(static_cast<unsigned>(i));
      if (id < kNoValue || id >= static_cast<int32_t>(now_.size())) {
        return Invalid(std::string(what) + " " + std::to_string(i) + ": tensor " + std::to_string(id) +
                       " does not exist");
      }
      ids.push_back(id);
    }
    return {};
  }

  // The tensor of a state operand holds the final state from here on: for later readers that is another
  // value.
  void AddStateResults(const format::Operator& source, Node& node) {
    for (const int index : StateOperands(node.op)) {
      const auto i = static_cast<size_t>(index);
      if (i >= node.operands.size()) continue;
      if (node.operands[i] == kNoValue) {
        node.results.push_back(kNoValue);
        continue;
      }
      const ValueId operand = node.operands[i];
      const ValueId state = function_.AddValue(function_.value(operand).type, function_.value(operand).name);
      function_.value(state).quant = function_.value(operand).quant;
      now_[static_cast<size_t>(source.inputs()->Get(static_cast<unsigned>(i)))] = state;
      node.results.push_back(state);
    }
  }

  Status ReadCustomOptions(const format::Operator& source, Node& node) const {
    std::string_view bytes;
    Buffer large;
    if (source.large_custom_options_offset() > 1) {
      FUSEBOX_ASSIGN(
          large, ReadRange(file_, source.large_custom_options_offset(), source.large_custom_options_size())
                     .At("options"));
      bytes = {reinterpret_cast<const char*>(large.data()), large.size()};
    } else if (const auto* options = source.custom_options()) {
      bytes = {reinterpret_cast<const char*>(options->data()), options->size()};
    }
    if (bytes.empty()) return {};
    Result<Attrs> attrs = ReadFlexMap(bytes);
    if (attrs) node.attrs = *std::move(attrs);
    if (node.attrs.empty() || !FlexMapEquals(bytes, node.attrs)) node.raw_options = bytes;
    return {};
  }

  Status ReadBuiltinOptions(const format::Operator& source, Node& node) const {
    const OptionTable* table = TableOf(node.op);
    const auto first = static_cast<uint8_t>(source.builtin_options_type());
    const auto second = static_cast<uint8_t>(source.builtin_options_2_type());
    if (!IsKnownTag(OptionUnion::kFirst, first) || !IsKnownTag(OptionUnion::kSecond, second)) {
      node.extra = "options of a kind that is not known";
      return {};
    }
    // Options of another op's kind are ignored, as in TFLite's interpreter.
    if (table == nullptr) return {};
    const bool in_first = table->tag.where == OptionUnion::kFirst;
    const void* options = in_first ? source.builtin_options() : source.builtin_options_2();
    if (options == nullptr || (in_first ? first : second) != table->tag.tag) return {};
    if (HasNewerFields(*AsTable(options), *table)) node.extra = "options with fields that are not known";
    FUSEBOX_ASSIGN(node.attrs,
                   ReadOptionTable(*AsTable(options), *table, file_.function_names).At("options"));
    return node.op == Op::kStablehloComposite ? ReadComposite(node) : Status();
  }

  // Reads the options that are members of the node in the graph.
  static Status ReadComposite(Node& node) {
    node.name = node.attrs.str("name", "");
    node.version = static_cast<int32_t>(node.attrs.i64("version", 0));
    if (const FunctionRef* body = node.attrs.function("decomposition_subgraph_index")) node.body = body->name;
    const std::string bytes = node.attrs.str("composite_attributes", "");
    Result<Attrs> attrs = bytes.empty() ? Result<Attrs>(Attrs()) : ReadFlexMap(bytes);
    if (!attrs) return std::unexpected(std::move(attrs.error()).At("attributes of composite " + node.name));
    if (!FlexMapEquals(bytes, *attrs)) node.raw_options = bytes;
    node.attrs = *std::move(attrs);
    return {};
  }

  const File& file_;
  const format::SubGraph& graph_;
  Function& function_;
  std::vector<ValueId> now_;  // by tensor: the value that it holds at this place
  bool named_ = false;
};

// The value before a state operand is not session state when something defines it.
void ClearDefinedVariables(Function& function) {
  if (std::ranges::all_of(function.nodes, [](const auto& node) { return StateOperands(node->op).empty(); }))
    return;
  const auto clear = [&](ValueId id) {
    if (id != kNoValue) function.value(id).is_variable = false;
  };
  std::vector<char> states(static_cast<size_t>(function.value_count()));
  for (const auto& node : function.nodes) {
    for (const int i : StateOperands(node->op)) {
      if (static_cast<size_t>(i) >= node->operands.size() ||
          node->operands[static_cast<size_t>(i)] == kNoValue)
        continue;
      states[static_cast<size_t>(node->operands[static_cast<size_t>(i)])] = 1;
    }
  }
  for (const ValueId id : function.inputs) {
    if (states[static_cast<size_t>(id)]) clear(id);
  }
  for (const auto& node : function.nodes) {
    for (const ValueId id : node->results) {
      if (id != kNoValue && states[static_cast<size_t>(id)]) clear(id);
    }
  }
}

// Returns the bytes of the file if they still hold the attributes, else the attributes as bytes.
std::string FlexOptions(const Node& node) {
  if (!node.raw_options.empty()) {
    const Result<Attrs> said = ReadFlexMap(node.raw_options);
    if (said ? *said == node.attrs : node.attrs.empty()) return node.raw_options;
  }
  return node.attrs.empty() ? std::string() : WriteFlexMap(node.attrs);
}

// Returns the attributes of the options table: for a composite, the fields that the graph keeps elsewhere.
Attrs TableAttrs(const Node& node) {
  if (!node.is(Op::kStablehloComposite)) return node.attrs;
  Attrs attrs;
  attrs.Set("name", node.name);
  if (!node.body.empty()) attrs.Set("decomposition_subgraph_index", FunctionRef{node.body});
  const std::string options = FlexOptions(node);
  attrs.Set("composite_attributes", options.empty() ? WriteFlexMap({}) : options);  // LiteRT requires a map
  attrs.Set("version", int64_t{node.version});
  return attrs;
}

struct Options {
  Offset<void> offset;
  uint8_t first = 0;
  uint8_t second = 0;
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
  const OptionTag tag = table->tag;
  (tag.where == OptionUnion::kFirst ? options.first : options.second) = tag.tag;
  return options;
}

// Which operands the op overwrites; nothing where it overwrites none.
ListOffset<uint8_t> Mutating(Context& context, const Function& function, const Node& node) {
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

std::optional<Op> OpOf(const File& file, const format::Operator& source) {
  if (source.opcode_index() >= SizeOf(file.model.operator_codes())) return std::nullopt;
  const std::optional<Op> op = FindOp(NumberOf(*file.model.operator_codes()->Get(source.opcode_index())));
  return op == Op::kPlaceholderForGreaterOpCodes ? std::nullopt : op;
}

Status ReadNodes(const File& file, const format::SubGraph& graph, Function& function) {
  FUSEBOX_TRY(NodeReader(file, graph, function).Run());
  ClearDefinedVariables(function);
  return {};
}

uint32_t Codes::Add(Key key) {
  const auto [place, added] = numbers.emplace(key, static_cast<uint32_t>(list.size()));
  if (added) list.push_back(std::move(key));
  return place->second;
}

Result<Offset<format::Operator>> WriteNode(Context& context, const Function& function, const Node& node,
                                           const TensorNumbers& numbers) {
  if (!node.extra.empty()) return Unsupported("has " + node.extra + ", which cannot be written back");
  const OpInfo& info = Info(node.op);
  const bool own_version = node.version != 0 && !node.is(Op::kStablehloComposite);
  const int version = own_version ? node.version : LowestVersion(function, node);
  const uint32_t code =
      context.codes.Add({info.code, node.is(Op::kCustom) ? node.name : std::string(), version});
  std::vector<int32_t> results = numbers.of(node.results);
  results.resize(ProperResultCount(node));
  flatbuffers::FlatBufferBuilder& out = context.out;
  ListOffset<uint8_t> custom;
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

}  // namespace fusebox::tflite
