// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "converter/convert.h"
#include "host/base/table.h"
#include "host/fusion/site_json.h"

namespace fusebox::converter {
namespace {

using Json = nlohmann::ordered_json;

std::string_view NameOf(Variable::Mutability mutability) {
  switch (mutability) {
    case Variable::Mutability::kUnknown: return "unknown";
    case Variable::Mutability::kReadOnly: return "read-only";
    case Variable::Mutability::kMutable: return "mutable";
    case Variable::Mutability::kUnused: return "unused";
  }
  return "unknown";
}

std::string Joined(const std::vector<std::string>& parts, std::string_view otherwise) {
  return parts.empty() ? std::string(otherwise) : fmt::format("{}", fmt::join(parts, ", "));
}

// Returns the outcome of one rule at one site: "fused -> FILL, UNIDIRECTIONAL_SEQUENCE_LSTM; verified against
// its body: ...".
std::string Outcome(const SiteReport& site, const RuleReport& rule) {
  std::string text(Name(rule.outcome));
  if (rule.outcome == RuleReport::Outcome::kFused) {
    text += " -> " + Joined(site.emitted, "constants");
    if (!site.verification.empty())
      text += (site.compared ? "; verified against its body: " : "; ") + site.verification;
    if (!rule.reasons.empty()) text += fmt::format("; {}", fmt::join(rule.reasons, "; "));
  } else if (!rule.reasons.empty()) {
    text += fmt::format(": {}", fmt::join(rule.reasons, "; "));
  }
  return text;
}

void AddSites(const Report& report, std::string& out) {
  if (report.sites.empty()) return;
  const auto fused =
      std::count_if(report.sites.begin(), report.sites.end(), [](const SiteReport& s) { return s.fused; });
  out += fmt::format("composites: {} of {} fused\n", fused, report.sites.size());
  Table table({"site", "rule", "plugin", "result"});
  for (const SiteReport& site : report.sites) {
    const std::string place = SiteText(site);
    for (const RuleReport& rule : site.rules) {
      const std::string plugin =
          rule.plugin_version.empty() ? rule.plugin : rule.plugin + " " + rule.plugin_version;
      table.Row({place, rule.rule, plugin, Outcome(site, rule)});
    }
    if (site.rules.empty())
      table.Row({place, "-", "-", site.fused ? "fused -> " + Joined(site.emitted, "constants") : site.why});
  }
  out += table.Text() + "\n";
}

void AddVariables(const Report& report, std::string& out) {
  if (report.variables.empty()) return;
  Table table({"variable", "type", "is", "reason"});
  for (const Variable& v : report.variables)
    table.Row({v.name, ToString(v.type), std::string(NameOf(v.mutability)), v.why});
  out += table.Text() + "\n";
}

void AddUnsupported(const Report& report, std::string& out) {
  if (report.unsupported.empty()) return;
  Table table({"cannot be converted", "count", "first at", "reason"});
  for (const UnsupportedOps& u : report.unsupported)
    table.Row({u.op, std::to_string(u.count), u.first, u.reason});
  out += table.Text() + "\n";
}

void AddOps(const Report& report, std::string& out) {
  std::map<std::string, std::pair<int, int>> counts;
  for (const auto& [op, count] : report.ops_before) counts[op].first = count;
  for (const auto& [op, count] : report.ops_after) counts[op].second = count;
  if (counts.empty()) return;
  Table table({"op", "before", "after"});
  int before = 0;
  int after = 0;
  for (const auto& [op, count] : counts) {
    table.Row({op, std::to_string(count.first), std::to_string(count.second)});
    before += count.first;
    after += count.second;
  }
  table.Row({"all", std::to_string(before), std::to_string(after)});
  out += table.Text();
}

void AddLayers(const Report& report, std::string& out) {
  if (report.layers.empty()) return;
  Table table({"layer", "op", "is", "largest value", "largest error", "rms error", "relative"});
  for (const LayerError& layer : report.layers)
    table.Row({layer.location, layer.op, layer.quantized ? "i8" : "f32", fmt::format("{:.4g}", layer.peak),
               fmt::format("{:.3g}", layer.largest), fmt::format("{:.3g}", layer.rms),
               fmt::format("{:.3g}", layer.ratio)});
  out += table.Text() + "\n";
}

Json JsonOf(const LayerError& layer) {
  return {{"location", layer.location},     {"op", layer.op},
          {"quantized", layer.quantized},   {"largest_value", layer.peak},
          {"largest_error", layer.largest}, {"rms_error", layer.rms},
          {"relative", layer.ratio}};
}

Json JsonOf(const std::vector<std::pair<std::string, int>>& counts) {
  Json object = Json::object();
  for (const auto& [op, count] : counts) object[op] = count;
  return object;
}

}  // namespace

std::string ToText(const Report& report) {
  std::string out;
  AddSites(report, out);
  AddVariables(report, out);
  AddUnsupported(report, out);
  for (const auto& [signature, why] : report.refused)
    out += "signature " + Printable(signature) + " was dropped: " + Printable(why) + "\n";
  for (const std::string& note : report.notes) out += "note: " + Printable(note) + "\n";
  if (!report.refused.empty() || !report.notes.empty()) out += "\n";
  AddLayers(report, out);
  AddOps(report, out);
  if (!report.rejected_by_litert.empty())
    out += fmt::format(
        "LiteRT 2.5 rejects {}, unless it has kernels of these names; --composites inline writes other ops\n",
        fmt::join(report.rejected_by_litert, ", "));
  return out;
}

std::string ToJson(const Report& report) {
  Json refused = Json::array();
  Json sites = Json::array();
  Json variables = Json::array();
  Json unsupported = Json::array();
  for (const auto& [signature, why] : report.refused)
    refused.push_back({{"signature", signature}, {"reason", why}});
  for (const SiteReport& site : report.sites) sites.push_back(fusebox::ToJson(site));
  for (const Variable& v : report.variables)
    variables.push_back({{"name", v.name},
                         {"type", ToString(v.type)},
                         {"mutability", NameOf(v.mutability)},
                         {"reason", v.why}});
  for (const UnsupportedOps& u : report.unsupported)
    unsupported.push_back({{"op", u.op}, {"count", u.count}, {"first", u.first}, {"reason", u.reason}});
  Json layers = Json::array();
  for (const LayerError& layer : report.layers) layers.push_back(JsonOf(layer));
  const Json out = {{"source", report.source},
                    {"error", report.error.empty() ? Json() : Json(report.error)},
                    {"signatures", report.signatures},
                    {"refused", std::move(refused)},
                    {"sites", std::move(sites)},
                    {"verification_failed", report.verification_failed},
                    {"variables", std::move(variables)},
                    {"unsupported", std::move(unsupported)},
                    {"layers", std::move(layers)},
                    {"notes", report.notes},
                    {"ops_before", JsonOf(report.ops_before)},
                    {"ops_after", JsonOf(report.ops_after)},
                    {"rejected_by_litert", report.rejected_by_litert}};
  // Names come from a file and may be invalid UTF-8, which must not throw.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace fusebox::converter
