// SPDX-License-Identifier: Apache-2.0
#include "cli/plugin/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "host/base/table.h"
#include "host/plugin/importers.h"
#include "host/plugin/seal.h"

namespace fusebox::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Joined(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string OpNames(const std::vector<ManifestOp>& ops) {
  std::vector<std::string> names;
  for (const ManifestOp& op : ops) names.push_back(OpName(op));
  return Joined(names);
}

std::string Versions(const ManifestRule& rule) {
  if (rule.min_version == 0 && rule.max_version == 0) return "any";
  return fmt::format("{}-{}", rule.min_version, rule.max_version > 0 ? std::to_string(rule.max_version) : "");
}

// A manifest's JSON text, parsed; null if empty.
Json Parsed(const std::string& text) { return text.empty() ? Json() : Json::parse(text, nullptr, false); }

void AddLine(std::string& out, std::string_view what, const std::string& value) {
  if (!value.empty()) out += fmt::format("  {:<12}{}\n", what, Printable(value));
}

std::string Rules(const Manifest& manifest) {
  Table table({"rule", "implements", "versions", "when", "emits"});
  for (const ManifestRule& rule : manifest.rules)
    table.Row({rule.id, Joined(rule.implements), Versions(rule), rule.when.empty() ? "always" : rule.when,
               OpNames(rule.emits)});
  return table.empty() ? "" : table.Text("  ");
}

std::string Ops(const Manifest& manifest) {
  Table table({"kernel of", "version", "options"});
  for (const ManifestOp& op : manifest.ops)
    table.Row({OpName(op), op.version > 0 ? std::to_string(op.version) : "any",
               op.options_schema.empty() ? "-" : op.options_schema});
  return table.empty() ? "" : table.Text("  ");
}

std::string ImportersText(const Manifest& manifest) {
  Table table({"importer of", "inputs", "becomes"});
  for (const Importer& importer : ImportersOf(manifest)) {
    const std::string composite = importer.entry.value("composite", "");
    table.Row({Joined(importer.classes), Joined(importer.entry["inputs"].get<std::vector<std::string>>()),
               composite.empty() ? "ops" : "composite " + composite});
  }
  return table.empty() ? "" : table.Text("  ");
}

Json ImportersJson(const Manifest& manifest) {
  Json rows = Json::array();
  for (const Importer& importer : ImportersOf(manifest))
    rows.push_back({{"classes", importer.classes},
                    {"inputs", Json(importer.entry["inputs"])},
                    {"composite", importer.entry.value("composite", "")}});
  return rows;
}

Json RuleJson(const ManifestRule& rule) {
  Json emits = Json::array();
  for (const ManifestOp& op : rule.emits) emits.push_back(OpName(op));
  return {{"id", rule.id},
          {"implements", rule.implements},
          {"min_version", rule.min_version},
          {"max_version", rule.max_version},
          {"when", Parsed(rule.when)},
          {"emits", std::move(emits)}};
}

Json ProvidesJson(const Manifest& manifest) {
  Json rules = Json::array();
  Json ops = Json::array();
  Json delegates = Json::array();
  for (const ManifestRule& rule : manifest.rules) rules.push_back(RuleJson(rule));
  for (const ManifestOp& op : manifest.ops)
    ops.push_back(
        {{"op", OpName(op)}, {"version", op.version}, {"options_schema", Parsed(op.options_schema)}});
  for (const ManifestDelegate& delegate : manifest.delegates)
    delegates.push_back({{"name", delegate.name},
                         {"default", delegate.is_default},
                         {"options_schema", Parsed(delegate.options_schema)}});
  return {{"rules", std::move(rules)},
          {"ops", std::move(ops)},
          {"delegates", std::move(delegates)},
          {"importers", ImportersJson(manifest)},
          {"extensions", manifest.provides_extensions}};
}

Json PlatformsJson(const Manifest& manifest) {
  Json rows = Json::array();
  for (const ManifestLibrary& library : manifest.libraries)
    rows.push_back(
        {{"platform", library.platform}, {"path", library.path}, {"used", library.path == manifest.library}});
  return rows;
}

}  // namespace

std::string OpName(const ManifestOp& op) { return op.kind == FBX_OP_CUSTOM ? "CUSTOM:" + op.name : op.name; }

std::string PlatformText(const PluginInfo& info) {
  const Manifest& m = info.manifest;
  if (const ManifestLibrary* const chosen = m.Chosen()) return chosen->platform;
  std::vector<std::string> others;
  for (const ManifestLibrary& library : m.libraries)
    if (std::ranges::find(others, library.platform) == others.end()) others.push_back(library.platform);
  return others.empty() ? "-" : "only " + Joined(others);
}

std::string SealText(const PluginInfo& info) {
  const auto seal = SealOf(info.manifest);
  return seal ? std::string(Name(*seal)) : "unknown: " + seal.error().message;
}

std::string PluginText(const PluginInfo& info) {
  const Manifest& m = info.manifest;
  std::string out = Printable(m.id.empty() ? m.path : m.id + " " + m.version) + "\n";
  AddLine(out, "state", std::string(Name(info.state)) + (info.why.empty() ? "" : ": " + info.why));
  AddLine(out, "manifest", m.path);
  AddLine(out, "library", m.library.empty() ? m.no_library : m.library);
  AddLine(out, "loaded", info.loaded ? "yes" : "no");
  AddLine(out, "platform", PlatformText(info));
  AddLine(out, "seal", SealText(info));
  if (m.id.empty()) return out;
  AddLine(out, "description", m.description);
  AddLine(out, "license", m.license);
  AddLine(out, "namespace", m.name_space);
  AddLine(out, "abi", fmt::format("{}.{}", m.abi_major, m.abi_min_minor));
  AddLine(out, "cpu", Joined(m.requires_cpu));
  AddLine(out, "requires", Joined(m.requires_extensions));
  AddLine(out, "provides", Joined(m.provides_extensions));
  AddLine(out, "options", m.options_schema);
  for (const std::string& table : {Rules(m), Ops(m), ImportersText(m)})
    out += table.empty() ? "" : "\n" + table;
  for (const ManifestDelegate& delegate : m.delegates)
    AddLine(out, "delegate", delegate.name + (delegate.is_default ? " (default)" : ""));
  return out;
}

Json PluginRowJson(const PluginInfo& info) {
  return {{"id", info.manifest.id},
          {"version", info.manifest.version},
          {"state", Name(info.state)},
          {"reason", info.why},
          {"manifest", info.manifest.path},
          {"library", info.manifest.library},
          {"loaded", info.loaded},
          {"built_in", info.built_in},
          {"platforms", PlatformsJson(info.manifest)},
          {"seal", SealText(info)}};
}

Json PluginJson(const PluginInfo& info) {
  const Manifest& m = info.manifest;
  Json out = PluginRowJson(info);
  out["namespace"] = m.name_space;
  out["description"] = m.description;
  out["license"] = m.license;
  out["abi"] = {{"major", m.abi_major}, {"min_minor", m.abi_min_minor}};
  out["priority"] = m.priority;
  out["requires"] = {{"cpu", m.requires_cpu}, {"extensions", m.requires_extensions}};
  out["provides"] = ProvidesJson(m);
  out["options_schema"] = Parsed(m.options_schema);
  return out;
}

}  // namespace fusebox::cli
