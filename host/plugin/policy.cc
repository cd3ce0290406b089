// SPDX-License-Identifier: Apache-2.0
#include <fnmatch.h>

#include <filesystem>

#include "host/plugin/steps.h"

namespace fusebox {
namespace {

const std::string* FirstMatch(const std::vector<std::string>& globs, const std::string& id) {
  for (const std::string& glob : globs) {
    if (Matches(glob, id)) return &glob;
  }
  return nullptr;
}

}  // namespace

bool Matches(const std::string& glob, const std::string& id) {
  return fnmatch(glob.c_str(), id.c_str(), 0) == 0;
}

Result<Policy> Policy::Create(const Config& config, const std::string& system_file) {
  Policy policy;
  policy.lists_.push_back(
      {config.path.empty() ? "the configuration" : config.path, config.allow, config.deny});
  std::error_code error;
  if (!std::filesystem::exists(system_file, error)) {
    if (error) return IoError(system_file + ": " + error.message());
    return policy;
  }
  FUSEBOX_ASSIGN(const Document document, ReadConfigDocument(system_file));
  for (const auto& [key, value] : document.value.items()) {
    if (key != "allow" && key != "deny" && key != "$schema")
      return document.Complain("/" + EscapePointer(key), "a policy has only the keys \"allow\" and \"deny\"");
  }
  policy.lists_.push_back({system_file, document.value.value("allow", std::vector<std::string>()),
                           document.value.value("deny", std::vector<std::string>())});
  return policy;
}

std::string Policy::Denies(std::string_view id, bool built_in) const {
  const std::string text(id);
  for (const Lists& lists : lists_) {
    if (const std::string* glob = FirstMatch(lists.deny, text))
      return lists.source + " denies \"" + *glob + "\"";
    if (!built_in && !lists.allow.empty() && !FirstMatch(lists.allow, text))
      return lists.source + ": not in its \"allow\" list";
  }
  return {};
}

}  // namespace fusebox
