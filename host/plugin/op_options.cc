// SPDX-License-Identifier: Apache-2.0
// Options of custom ops and their schemas.
#include <algorithm>

#include "host/graph/flex.h"
#include "host/plugin/impl.h"

namespace fusebox {
namespace {

using nlohmann::json;

void AddSchemas(const Manifest& manifest, const std::vector<ManifestOp>& ops, std::string_view name,
                std::vector<OpSchema>& schemas) {
  for (const ManifestOp& op : ops) {
    if (op.kind != FBX_OP_CUSTOM || op.name != name || op.options_schema.empty()) continue;
    if (auto schema = JsonSchema::Parse(op.options_schema))
      schemas.push_back({op.version, manifest.id + " " + manifest.version, *std::move(schema)});
  }
}

// The options that kernels see. Error: the bytes are not a map.
Result<Attrs> OptionsOf(const Node& node) {
  if (!node.attrs.empty() || node.raw_options.empty()) return node.attrs;
  return ReadFlexMap(node.raw_options);
}

bool HasUnreadable(const Attrs& attrs) {
  return std::ranges::any_of(attrs, [](const auto& attr) {
    const auto* map = std::get_if<std::shared_ptr<const Attrs>>(&attr.second);
    return std::holds_alternative<std::monostate>(attr.second) || (map && *map && HasUnreadable(**map));
  });
}

// Adds the members of `filled` that are missing in `attrs`.
void AddMissing(const json& filled, Attrs& attrs) {
  for (const auto& [key, member] : filled.items()) {
    const AttrValue* const own = attrs.Find(key);
    if (own == nullptr) {
      if (const auto made = AttrsFromJson({{key, member}})) attrs.Set(key, *made->Find(key));
      continue;
    }
    const auto* map = std::get_if<std::shared_ptr<const Attrs>>(own);
    if (map == nullptr || *map == nullptr || !member.is_object()) continue;
    Attrs copy = **map;
    AddMissing(member, copy);
    attrs.Set(key, std::shared_ptr<const Attrs>(std::make_shared<Attrs>(std::move(copy))));
  }
}

}  // namespace

const OpSchema* Registry::Impl::SchemaOf(const Node& node) {
  auto found = op_schemas.find(node.name);
  if (found == op_schemas.end()) {
    found = op_schemas.emplace(node.name, std::vector<OpSchema>()).first;
    std::vector<Plugin*> order = InOrderFor(node.name);
    std::erase_if(order, [&](const Plugin* plugin) {
      const bool silent = plugin->rest.file && !plugin->rest.MayHave(FBX_OP_CUSTOM, node.name);
      return silent || plugin->unlisted != nullptr || plugin->info.state != PluginInfo::State::kOk;
    });
    const auto each = [&](const auto& add) {
      for (Plugin* const plugin : order) add(Whole(*plugin));
    };
    each([&](const Manifest& m) { AddSchemas(m, m.ops, node.name, found->second); });
    each([&](const Manifest& m) {
      for (const ManifestRule& rule : m.rules) AddSchemas(m, rule.emits, node.name, found->second);
    });
  }
  const auto fits = [&](const OpSchema& s) {
    return s.version == 0 || node.version == 0 || s.version == node.version;
  };
  const auto schema = std::ranges::find_if(found->second, fits);
  return schema == found->second.end() ? nullptr : &*schema;
}

Status Registry::CheckOptions(const Node& node) {
  if (!node.is(Op::kCustom)) return {};
  const std::lock_guard lock(impl_->mutex);
  const OpSchema* const schema = impl_->SchemaOf(node);
  if (schema == nullptr) return {};
  const std::string required = " as the options_schema of " + schema->plugin + " requires";
  const auto options = OptionsOf(node);
  if (!options) return Invalid("the option bytes are not a FlexBuffer map; write them" + required);
  const auto violation = schema->schema.Check(JsonFromAttrs(*options));
  if (!violation) return {};
  const std::string at = violation->pointer.empty() ? "options" : "option " + violation->pointer.substr(1);
  return Invalid(at + ": " + violation->what + "; set it" + required);
}

void Registry::FillOptions(Node& node) {
  if (!node.is(Op::kCustom)) return;
  const std::lock_guard lock(impl_->mutex);
  const OpSchema* const schema = impl_->SchemaOf(node);
  auto options = schema ? OptionsOf(node) : Result<Attrs>(Attrs());
  if (schema == nullptr || !options || HasUnreadable(*options)) return;
  json filled = JsonFromAttrs(*options);
  const json given = filled;
  schema->schema.FillDefaults(filled);
  if (filled == given) return;
  AddMissing(filled, *options);
  node.attrs = *std::move(options);
  node.raw_options.clear();
}

void Registry::FillOptions(Module& module) {
  for (const auto& function : module.functions)
    for (const auto& node : function->nodes) FillOptions(*node);
}

}  // namespace fusebox
