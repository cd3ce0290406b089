// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <iterator>

#include "host/graph/graph.h"

namespace fusebox {
namespace {

std::string Number(ValueId id) { return id == kNoValue ? "_" : "%" + std::to_string(id); }

std::string Definition(const Function& function, ValueId id) {
  if (id == kNoValue) return "_";
  const Value& value = function.value(id);
  std::string text = Number(id);
  if (!value.name.empty()) text += " \"" + value.name + "\"";
  text += ": " + ToString(value.type);
  if (value.quant != nullptr && !value.quant->scales.empty()) {
    text += " quant(" + std::to_string(value.quant->scales.size()) + ")";
  }
  if (value.is_variable) text += value.initial ? " variable with initial value" : " variable";
  return text;
}

template <class F>
std::string Join(std::span<const ValueId> ids, F&& to_text) {
  std::string text;
  for (const ValueId id : ids) text += (text.empty() ? "" : ", ") + to_text(id);
  return text;
}

std::string OpName(const Node& node) {
  std::string name(Name(node.op));
  return node.name.empty() ? name : name + " \"" + node.name + "\"";
}

std::string Line(const Function& function, const Node& node) {
  const auto define = [&](ValueId id) { return Definition(function, id); };
  std::string text = "  " + Join(node.results, define);
  text += (node.results.empty() ? "" : " = ") + OpName(node);
  if (node.version != 0) text += " v" + std::to_string(node.version);
  text += "(" + Join(node.operands, Number) + ")";
  if (!node.attrs.empty()) text += " " + ToString(node.attrs);
  if (!node.raw_options.empty()) text += " raw(" + std::to_string(node.raw_options.size()) + " bytes)";
  if (!node.body.empty()) text += " body @" + node.body;
  if (!node.location.layer.empty()) text += "  # " + node.location.layer;
  return text + "\n";
}

// Referenced values without a defining node: constants and plain variable tensors.
std::vector<ValueId> FreeValues(const Function& function) {
  std::vector<char> used(static_cast<size_t>(function.value_count()));
  std::vector<char> defined(used.size());
  const auto mark = [](std::vector<char>& set, std::span<const ValueId> ids) {
    for (const ValueId id : ids) {
      if (id >= 0 && static_cast<size_t>(id) < set.size()) set[static_cast<size_t>(id)] = 1;
    }
  };
  mark(defined, function.inputs);
  mark(used, function.outputs);
  for (const auto& node : function.nodes) {
    if (node == nullptr) continue;
    mark(used, node->operands);
    mark(used, node->intermediates);
    mark(defined, node->results);
  }
  std::vector<ValueId> free;
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i] && !defined[i]) free.push_back(static_cast<ValueId>(i));
  }
  return free;
}

}  // namespace

std::string ToText(const Function& function) {
  const auto define = [&](ValueId id) { return Definition(function, id); };
  std::string text = "function " + function.name + "(" + Join(function.inputs, define) + ")";
  if (!function.attrs.empty()) text += " " + ToString(function.attrs);
  text += function.placeholder ? " placeholder {\n" : " {\n";
  for (const ValueId id : FreeValues(function)) {
    const Value& value = function.value(id);
    text += "  " + define(id) + " = " +
            (value.is_const()    ? "const"
             : value.is_variable ? "state"
                                 : "undefined") +
            "\n";
  }
  for (const auto& node : function.nodes) {
    if (node != nullptr) text += Line(function, *node);
  }
  return text + "  return " + Join(function.outputs, Number) + "\n}\n";
}

std::string ToText(const Module& module) {
  std::string text;
  if (!module.description.empty()) text += "description \"" + module.description + "\"\n";
  const auto names = [](const std::vector<std::string>& list) {
    std::string joined;
    for (const std::string& name : list) joined += (joined.empty() ? "" : ", ") + name;
    return joined;
  };
  for (const Signature& signature : module.signatures) {
    text += "signature " + signature.key + " = " + signature.function + "(" + names(signature.input_names) +
            ") -> (" + names(signature.output_names) + ")\n";
  }
  for (const Variable& variable : module.variables) {
    text += "variable " + variable.name + ": " + ToString(variable.type) + "\n";
  }
  for (const Metadata& metadata : module.metadata) {
    text += "metadata " + metadata.name + " " + std::to_string(metadata.data.size()) + " bytes\n";
  }
  for (const auto& function : module.functions) text += ToText(*function);
  return text;
}

namespace {

void AppendNumber(std::string& text, size_t number) {
  char digits[20];
  text.append(std::begin(digits), std::to_chars(std::begin(digits), std::end(digits), number).ptr);
  text += ' ';
}

void AppendSubject(std::string& text, const Node& node) {
  text += node.name.empty() ? Name(node.op) : std::string_view(node.name);
  if (node.location.name.empty()) return;
  text += " (";
  text += node.location.name;
  text += ')';
}

}  // namespace

std::string Describe(const Function& function, const Node& node) {
  const auto found = std::ranges::find(function.nodes, &node, [](const auto& entry) { return entry.get(); });
  if (found != function.nodes.end())
    return Describe(node, static_cast<size_t>(found - function.nodes.begin()));
  std::string text = "node ";
  AppendSubject(text, node);
  return text;
}

std::string Describe(const Node& node, size_t index) {
  std::string text = "node ";
  AppendNumber(text, index);
  AppendSubject(text, node);
  return text;
}

std::string DescribeIn(const Function& function, const Node& node, size_t index) {
  return "function " + function.name + ": " + Describe(node, index);
}

}  // namespace fusebox
