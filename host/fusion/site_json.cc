// SPDX-License-Identifier: Apache-2.0
#include "host/fusion/site_json.h"

#include <nlohmann/json.hpp>

namespace fusebox {
namespace {

RuleReport::Outcome OutcomeOf(std::string_view name) {
  using enum RuleReport::Outcome;
  for (const RuleReport::Outcome outcome : {kFused, kNotApplicable, kDiffers})
    if (name == Name(outcome)) return outcome;
  return kError;
}

RuleReport RuleOf(const nlohmann::json& rule) {
  return {.rule = rule.value("rule", ""),
          .plugin = rule.value("plugin", ""),
          .plugin_version = rule.value("plugin_version", ""),
          .outcome = OutcomeOf(rule.value("outcome", "")),
          .reasons = rule.value("reasons", std::vector<std::string>())};
}

SiteReport SiteOf(const nlohmann::json& site) {
  SiteReport out{.function = site.value("function", ""),
                 .location = site.value("location", ""),
                 .composite = site.value("composite", ""),
                 .fused = site.value("fused", false),
                 .rules = {},
                 .why = site.value("reason", ""),
                 .verification = site.value("verification", ""),
                 .emitted = site.value("emitted", std::vector<std::string>()),
                 .replaced = {}};
  for (const auto& node : site.value("replaced", nlohmann::json::array()))
    out.replaced.push_back({node.value("op", ""), node.value("name", "")});
  for (const auto& rule : site.value("rules", nlohmann::json::array())) out.rules.push_back(RuleOf(rule));
  return out;
}

}  // namespace

nlohmann::ordered_json ToJson(const SiteReport& site) {
  auto rules = nlohmann::ordered_json::array();
  for (const RuleReport& rule : site.rules)
    rules.push_back({{"rule", rule.rule},
                     {"plugin", rule.plugin},
                     {"plugin_version", rule.plugin_version},
                     {"outcome", Name(rule.outcome)},
                     {"reasons", rule.reasons}});
  auto replaced = nlohmann::ordered_json::array();
  for (const ReplacedNode& node : site.replaced) replaced.push_back({{"op", node.op}, {"name", node.name}});
  return {{"function", site.function},   {"location", site.location},
          {"composite", site.composite}, {"fused", site.fused},
          {"reason", site.why},          {"verification", site.verification},
          {"emitted", site.emitted},     {"replaced", std::move(replaced)},
          {"rules", std::move(rules)}};
}

std::vector<SiteReport> SitesOf(std::string_view document) {
  std::vector<SiteReport> out;
  const auto json = nlohmann::json::parse(document, nullptr, false);
  if (!json.is_object()) return out;
  for (const auto& site : json.value("sites", nlohmann::json::array())) out.push_back(SiteOf(site));
  return out;
}

}  // namespace fusebox
