// SPDX-License-Identifier: Apache-2.0
// Edges between nodes.
#include <charconv>

#include "converter/import/saved_model/function_import.h"

namespace fusebox::saved_model {
namespace {

bool ParseNumber(std::string_view text, int& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out >= 0;
}

}  // namespace

Result<Edge> ParseEdge(const std::string& text, bool in_function) {
  Edge edge;
  std::string_view rest = text;
  if (rest.starts_with('^')) return Edge{std::string(rest.substr(1)), "", 0, true};
  const size_t first = rest.find(':');
  edge.node = rest.substr(0, first);
  if (first == std::string_view::npos) return edge;
  rest.remove_prefix(first + 1);
  const size_t second = rest.find(':');
  if (in_function && second != std::string_view::npos) {
    edge.output = rest.substr(0, second);
    rest.remove_prefix(second + 1);
  }
  if (edge.node.empty() || !ParseNumber(rest, edge.index)) return Invalid("\"" + text + "\" is not an edge");
  return edge;
}

void DeclaredShapes(const tf::NodeDef& node, std::vector<Type>& of_outputs) {
  const auto it = node.attr().find("_output_shapes");
  if (it == node.attr().end()) return;
  for (int i = 0; i < it->second.list().shape_size() && i < static_cast<int>(of_outputs.size()); ++i)
    of_outputs[static_cast<size_t>(i)].shape = ToShape(it->second.list().shape(i));
}

Status CheckFed(const SavedModel& model, const tf::TensorInfo& info, const Edge& edge) {
  const tf::NodeDef* node = model.FindNode(edge.node);
  if (!node) return Invalid("is fed to " + info.name() + ", which does not exist");
  const auto dtype = node->attr().find("dtype");
  if (node->op() == "Placeholder" && dtype != node->attr().end() && dtype->second.type() != info.dtype())
    return Invalid("is declared " + std::string(Name(ToDType(info.dtype()))) + ", its placeholder " +
                   std::string(Name(ToDType(dtype->second.type()))));
  return {};
}

}  // namespace fusebox::saved_model
