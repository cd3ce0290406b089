// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/object_paths.h"

#include <algorithm>

namespace fusebox::keras {
namespace {

// Names that are prefixes of one another can be joined in many ways; Keras files need a few steps.
constexpr int kMaxSteps = 1000;
constexpr size_t kMaxName = 1024;

std::string Joined(const std::string& group, const std::string& name) {
  return group.empty() ? name : group + "/" + name;
}

}  // namespace

const ObjectPaths::Names& ObjectPaths::NamesOf(const std::string& group) const {
  const auto [it, is_new] = names_.try_emplace(group);
  if (!is_new) return it->second;
  if (const auto children = file_->Children(group))
    for (const std::string& name : *children) {
      std::string plain = name;
      std::ranges::replace(plain, '\\', '/');
      it->second.emplace(std::move(plain), name);
    }
  return it->second;
}

std::optional<std::string> ObjectPaths::Search(const std::string& group, std::string_view rest, bool dataset,
                                               int& steps) const {
  const Names& names = NamesOf(group);
  if (!dataset) {  // a group may exist only as a prefix of names
    const std::string below = std::string(rest.substr(0, kMaxName)) + "/";
    if (const auto it = names.lower_bound(below); it != names.end() && it->first.starts_with(below))
      return group;
  }
  for (size_t end = 0; end < rest.size() && end <= kMaxName && steps > 0; ++end) {
    end = std::min(rest.find('/', end), rest.size());
    --steps;
    const auto it = end <= kMaxName ? names.find(std::string(rest.substr(0, end))) : names.end();
    if (it == names.end()) continue;
    const std::string path = Joined(group, it->second);
    const bool whole = end == rest.size();
    if (whole && (dataset ? file_->IsDataset(path) : file_->IsGroup(path))) return path;
    if (whole || !file_->IsGroup(path)) continue;
    if (auto found = Search(path, rest.substr(end + 1), dataset, steps)) return found;
  }
  return std::nullopt;
}

bool ObjectPaths::HasGroup(std::string path) const {
  while (path.ends_with('/')) path.pop_back();
  int steps = kMaxSteps;
  return file_->IsGroup(path) || Search("", path, false, steps).has_value();
}

std::string ObjectPaths::Dataset(const std::string& path) const {
  int steps = kMaxSteps;
  return file_->IsDataset(path) ? path : Search("", path, true, steps).value_or("");
}

}  // namespace fusebox::keras
