// SPDX-License-Identifier: Apache-2.0
#include <flatbuffers/flexbuffers.h>

#include <map>

#include "converter/import/saved_model/graph.pb.h"
#include "converter/import/saved_model/import.h"
#include "converter/import/saved_model/parse_message.h"
#include "converter/import/tflite/import.h"

namespace fusebox::tflite_import {
namespace {

constexpr std::string_view kPrefix = "Flex";

Result<tf::NodeDef> ParseOptions(const std::string& bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  std::vector<uint8_t> seen;
  if (bytes.empty() || !flexbuffers::VerifyBuffer(data, bytes.size(), &seen))
    return Invalid("its options are not a FlexBuffer");
  const auto root = flexbuffers::GetRoot(data, bytes.size());
  if (!root.IsVector() || root.AsVector().size() < 2 || !root.AsVector()[1].IsString())
    return Invalid("its options are not a pair of a name and a NodeDef");
  const flexbuffers::String text = root.AsVector()[1].AsString();
  tf::NodeDef node;
  if (!saved_model::ParseMessage(std::as_bytes(std::span(text.c_str(), text.length())), node))
    return Invalid("the NodeDef in its options is damaged");
  return node;
}

// A .tflite file does not contain functions named by attributes: the op finds no translation and is rejected
// by name.
bool IsSilent(const std::string& name, const tf::AttrValue& value) {
  return name.starts_with('_') || value.has_func() || value.list().func_size() > 0;
}

Status Lift(Node& node) {
  FUSEBOX_ASSIGN(const tf::NodeDef def, ParseOptions(node.raw_options));
  if (def.op() != node.name.substr(kPrefix.size()))
    return Invalid("the NodeDef in its options is of op \"" + def.op() + "\"");
  Attrs attrs;
  for (const auto& [name, value] : def.attr()) {
    if (IsSilent(name, value)) continue;
    FUSEBOX_ASSIGN(AttrValue converted, saved_model::ToAttr(value).At("attribute " + name));
    if (!std::holds_alternative<std::monostate>(converted)) attrs.Set(name, std::move(converted));
  }
  node.op = Op::kOpaque;
  node.name = def.op();
  node.version = 0;
  node.attrs = std::move(attrs);
  node.raw_options.clear();
  if (!def.name().empty()) node.location.name = def.name();
  return {};
}

// A node with its Flex name has no translation: only the signatures that reach it are rejected.
void LeaveUnread(Node& node, const std::string& why) {
  node.op = Op::kOpaque;
  node.version = 0;
  node.attrs = {};
  node.attrs.Set("reason", why);
  node.raw_options.clear();
}

}  // namespace

void LiftFlex(Module& module, std::vector<std::string>& notes) {
  std::map<std::string, int> lifted;
  for (const auto& f : module.functions) {
    for (size_t i = 0; i < f->nodes.size(); ++i) {
      Node& node = *f->nodes[i];
      if (!node.is(Op::kCustom) || !node.name.starts_with(kPrefix) || node.name.size() == kPrefix.size())
        continue;
      if (const Status done = Lift(node); done) ++lifted[node.name];
      else LeaveUnread(node, done.error().message);
    }
  }
  std::string list;
  for (const auto& [op, count] : lifted)
    list += (list.empty() ? "" : ", ") + std::to_string(count) + " " + op;
  if (!list.empty()) notes.push_back("Flex ops, converted as TensorFlow ops: " + list);
}

}  // namespace fusebox::tflite_import
