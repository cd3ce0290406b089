// SPDX-License-Identifier: Apache-2.0
#include "host/c/report.h"

#include <nlohmann/json.hpp>

#include "host/fusion/site_json.h"
#include "host/verify/shadow_json.h"

namespace fusebox::c {
namespace {

using Json = nlohmann::ordered_json;

// Names come from files and may be invalid UTF-8, which must not throw.
std::string Text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json JsonOf(const PluginInfo& info) {
  return {{"id", info.manifest.id}, {"version", info.manifest.version}, {"state", Name(info.state)},
          {"reason", info.why},     {"manifest", info.manifest.path},   {"library", info.manifest.library},
          {"loaded", info.loaded},  {"built_in", info.built_in}};
}

Json JsonOf(const std::vector<Placement>& placements) {
  Json rows = Json::array();
  for (const Placement& row : placements)
    rows.push_back({{"function", row.function},
                    {"node", row.node},
                    {"op", row.op},
                    {"runner", row.runner},
                    {"reason", row.why}});
  return rows;
}

Json EntriesJson(const Model& model) {
  Json rows = Json::array();
  for (const Model::Entry& entry : model.entries())
    rows.push_back({{"key", entry.signature},
                    {"function", entry.function},
                    {"can_run", entry.status.has_value()},
                    {"reason", entry.status ? "" : entry.status.error().message}});
  return rows;
}

Json FusedJson(const Module& module) {
  Json rows = Json::array();
  for (const auto& function : module.functions) {
    for (const auto& node : function->nodes) {
      if (node->fused == nullptr) continue;
      rows.push_back({{"function", function->name},
                      {"node", node->location.name},
                      {"op", node->is(Op::kCustom) ? node->name : std::string(Name(node->op))},
                      {"plugin", node->fused->plugin},
                      {"version", node->fused->plugin_version},
                      {"rule", node->fused->rule},
                      {"composite", node->fused->composite}});
    }
  }
  return rows;
}

Json JsonOf(const NodeTime& time) {
  Json spans = Json::array();
  for (const SpanTime& span : time.spans)
    spans.push_back({{"name", span.name},
                     {"worker", span.worker},
                     {"count", span.count},
                     {"total_ns", span.total_ns},
                     {"bytes", span.bytes},
                     {"flops", span.flops}});
  return {{"function", time.function}, {"node", time.node},
          {"nodes", time.nodes},       {"op", time.op},
          {"name", time.name},         {"runner", time.runner},
          {"runs", time.runs},         {"total_ns", time.total_ns},
          {"bytes", time.bytes},       {"flops", time.flops},
          {"spans", std::move(spans)}};
}

}  // namespace

std::string ReportOf(const Registry& registry) {
  Json plugins = Json::array();
  for (const PluginInfo& info : registry.plugins()) plugins.push_back(JsonOf(info));
  return Text({{"plugins", std::move(plugins)}, {"searched", registry.searched()}});
}

std::string ReportOf(const Model& model) {
  Json sites = Json::array();
  for (const SiteReport& site : model.fusions()) sites.push_back(ToJson(site));
  Json functions = Json::array();
  for (const auto& function : model.module().functions) functions.push_back(function->name);
  return Text({{"name", model.name()},
               {"signatures", EntriesJson(model)},
               {"functions", std::move(functions)},
               {"notices", model.notices()},
               {"sites", std::move(sites)},
               {"fused", FusedJson(model.module())},
               {"placements", JsonOf(model.placements())}});
}

std::string ReportOf(const Session& session) {
  return Text({{"signature", session.signature()},
               {"threads", session.threads()},
               {"arena_bytes", session.arena_bytes()},
               {"shadows", verify::ToJson(session.shadows())},
               {"notices", session.notices()},
               {"placements", JsonOf(session.placements())}});
}

std::string TimesOf(const Session& session) {
  Json rows = Json::array();
  for (const NodeTime& time : session.times()) rows.push_back(JsonOf(time));
  return Text(rows);
}

}  // namespace fusebox::c
