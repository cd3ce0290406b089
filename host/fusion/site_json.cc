// SPDX-License-Identifier: Apache-2.0
#include "host/fusion/site_json.h"

#include <nlohmann/json.hpp>

namespace fusebox {

nlohmann::ordered_json ToJson(const SiteReport& site) {
  auto rules = nlohmann::ordered_json::array();
  for (const RuleReport& rule : site.rules)
    rules.push_back({{"rule", rule.rule},
                     {"plugin", rule.plugin},
                     {"plugin_version", rule.plugin_version},
                     {"outcome", Name(rule.outcome)},
                     {"reasons", rule.reasons}});
  return {{"function", site.function}, {"location", site.location}, {"composite", site.composite},
          {"fused", site.fused},       {"reason", site.why},        {"verification", site.verification},
          {"emitted", site.emitted},   {"rules", std::move(rules)}};
}

}  // namespace fusebox
