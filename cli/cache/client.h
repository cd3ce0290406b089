// SPDX-License-Identifier: Apache-2.0
// Client of a plugin's service fusebox.cache/1, with its reports as plain values.
#pragma once

#include <fusebox/abi/ext/cache.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/base/plugin_flags.h"
#include "host/model.h"

namespace fusebox::cli {

struct CacheSegment {
  std::string id, path, why, writer;
  fbx_cache_state state = FBX_CACHE_BAD;
  uint64_t bytes = 0;
  uint64_t entry_count = 0;
  uint64_t packed_bytes = 0;
  int64_t created = 0;
  int64_t used = 0;
  // Damaged and renamed; stays in the store until gc.
  bool put_aside() const { return id.ends_with(".bad"); }
};
struct CacheEntry {
  std::string segment, identity, family, recipe;
  uint64_t bytes = 0;
  uint32_t shared = 0;
  int current = -1;  // 1: valid for this machine; 0: not; -1: unknown
};
struct CacheWeight {
  std::string location, op, identity, recipe, segment, code, why;
  fbx_cache_kind kind = FBX_CACHE_PRIVATE;
  bool found = false;
  uint64_t bytes = 0;
  uint64_t packed_bytes = 0;
};
struct CacheFile {
  std::string path;
  uint64_t bytes = 0;
};

struct CacheReport {
  std::string none;       // why there is no cache at the path; empty: there is one
  std::string none_code;  // the same as a code
  std::string path;
  bool single_file = false;
  std::vector<CacheSegment> segments;
  std::vector<CacheEntry> entries;
  std::vector<CacheWeight> weights;
  std::vector<CacheFile> removed;
  std::vector<std::pair<std::string, std::string>> facts;
  uint64_t bytes() const;  // of all segments
};

// Options that turn off the cache, whatever the configuration.
inline constexpr const char* kNoCache = R"({"xnnpack": {"weight_cache_path": ""}})";

class CacheClient {
 public:
  // Error: no plugin provides the service; lists the searched directories.
  static Result<CacheClient> Open(std::shared_ptr<Registry> registry);

  // `given`, else weight_cache_path of the configuration, else "auto".
  std::string PathOf(const std::string& given) const;

  Result<CacheReport> List(const std::string& path, bool entries = false);
  Result<CacheReport> Verify(const std::string& path);
  Result<CacheReport> Collect(const std::string& path, uint64_t max_bytes);
  Result<CacheReport> Remove(const std::string& path, const std::vector<std::string>& ids);
  Result<CacheReport> Clear(const std::string& path);
  Result<CacheReport> Facts();
  // Reports the weights of the partitions of the plugin's delegate, each weight once per node.
  Result<CacheReport> Explain(const std::string& path, const Model& model);
  // Logs warnings for weights that could not be stored.
  Status Flush(const std::string& path);

 private:
  CacheClient() = default;
  using Function = std::function<fbx_status(const fbx_host*, const fbx_cache_sink*)>;
  Result<CacheReport> Query(bool entries, const Function& function);

  std::shared_ptr<Registry> registry_;
  const fbx_cache* table_ = nullptr;
  std::unique_ptr<HostCall> call_;
};

}  // namespace fusebox::cli
