// SPDX-License-Identifier: Apache-2.0
// Output of `fusebox cache`, as tables and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/cache/client.h"

namespace fusebox::cli {

// "unverified", "verified", "bad", "unusable".
std::string StateName(fbx_cache_state state);
// "cached", "repacked", "private".
std::string KindName(fbx_cache_kind kind);

// One line for the store, then one row per segment.
std::string SegmentsText(const CacheReport& report);
std::string EntriesText(const CacheReport& report);
// One line per file and the total; `verb` is the action.
std::string RemovedText(const CacheReport& report, const std::string& verb);

std::string FactsText(const CacheReport& facts);
nlohmann::ordered_json FactsJson(const CacheReport& facts);  // spaces in names become _

// {"path", "single_file", "bytes", "segments": [...]}; `path` is null if there is no cache.
nlohmann::ordered_json StoreJson(const CacheReport& report);
nlohmann::ordered_json EntriesJson(const CacheReport& report);
nlohmann::ordered_json RemovedJson(const CacheReport& report);

// Totals of one class: number of weights, bytes in the model, found and missing; each weight once.
struct ClassSum {
  size_t weights = 0;
  size_t found = 0;
  size_t missing = 0;
  uint64_t bytes = 0;
  uint64_t packed_bytes = 0;
  uint64_t missing_bytes = 0;
};
ClassSum SumOf(const std::vector<CacheWeight>& weights, fbx_cache_kind kind);
std::string ClassesText(const std::vector<CacheWeight>& weights);
nlohmann::ordered_json ClassesJson(const std::vector<CacheWeight>& weights);
// Missing weights with their reasons; with `all`, all weights.
std::string WeightsText(const std::vector<CacheWeight>& weights, bool all);
nlohmann::ordered_json WeightsJson(const std::vector<CacheWeight>& weights);

}  // namespace fusebox::cli
