// SPDX-License-Identifier: Apache-2.0
// What `fusebox cache` prints: tables for people, JSON for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/cache_client.h"

namespace fusebox::cli {

// "unverified", "verified", "bad", "unusable".
std::string StateName(fbx_cache_state state);
// "cached", "repacked", "private".
std::string KindName(fbx_cache_kind kind);

// The store in one line, then a row per segment.
std::string SegmentsText(const CacheReport& report);
std::string EntriesText(const CacheReport& report);
// A line per file and their sum; `verb` is what became of them.
std::string RemovedText(const CacheReport& report, const std::string& verb);

std::string FactsText(const CacheReport& facts);
nlohmann::ordered_json FactsJson(const CacheReport& facts);  // names with _ for spaces

// {"path", "single_file", "bytes", "segments": [...]}; `path` is null where there is no cache.
nlohmann::ordered_json StoreJson(const CacheReport& report);
nlohmann::ordered_json EntriesJson(const CacheReport& report);
nlohmann::ordered_json RemovedJson(const CacheReport& report);

// Per class: how many weights, their bytes in the model, found and missing; each weight once.
struct ClassSum {
  size_t weights = 0, found = 0, missing = 0;
  uint64_t bytes = 0, packed_bytes = 0, missing_bytes = 0;
};
ClassSum SumOf(const std::vector<CacheWeight>& weights, fbx_cache_kind kind);
std::string ClassesText(const std::vector<CacheWeight>& weights);
nlohmann::ordered_json ClassesJson(const std::vector<CacheWeight>& weights);
// Those that are not found, each with its reason; all with `all`.
std::string WeightsText(const std::vector<CacheWeight>& weights, bool all);
nlohmann::ordered_json WeightsJson(const std::vector<CacheWeight>& weights);

}  // namespace fusebox::cli
