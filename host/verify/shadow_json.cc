// SPDX-License-Identifier: Apache-2.0
#include "host/verify/shadow_json.h"

#include <nlohmann/json.hpp>

namespace fusebox::verify {

nlohmann::ordered_json ToJson(const std::vector<ShadowRow>& shadows) {
  auto rows = nlohmann::ordered_json::array();
  for (const ShadowRow& row : shadows)
    rows.push_back({{"function", row.function},
                    {"node", row.node},
                    {"op", row.op},
                    {"plugin", row.plugin},
                    {"calls", row.calls},
                    {"compared", row.compared},
                    {"drifted", row.drifted},
                    {"worst", row.worst},
                    {"where", row.where},
                    {"reason", row.why}});
  return rows;
}

}  // namespace fusebox::verify
