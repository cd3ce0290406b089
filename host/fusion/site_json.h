// SPDX-License-Identifier: Apache-2.0
// Fusion reports as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "host/fusion/fusion.h"

namespace fusebox {

nlohmann::ordered_json ToJson(const SiteReport&);
// The reports in the member "sites" of a document. Other text has none.
std::vector<SiteReport> SitesOf(std::string_view document);

}  // namespace fusebox
