// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/page/page.h"

namespace fusebox::cli::page {
namespace {

constexpr size_t kLeastGroup = 40;

// "model/block_3/conv;..." of the first named result.
std::string_view NameOf(const Function& function, size_t node) {
  for (const ValueId id : function.nodes[node]->results) {
    if (id == kNoValue || function.value(id).name.empty()) continue;
    const std::string_view name = function.value(id).name;
    return name.substr(0, name.find(';'));
  }
  return {};
}

// The scopes that both names are in: "model/block_3/".
std::string_view CommonScope(std::string_view a, std::string_view b) {
  size_t end = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i)
    if (a[i] == '/') end = i + 1;
  return a.substr(0, end);
}

// Where a group that begins at `begin` ends best: where the fewest scopes go on, near the wished size.
size_t EndOf(const Function& function, size_t begin, size_t wish) {
  const size_t count = function.nodes.size();
  if (count - begin <= wish + wish / 2) return count;
  size_t best = begin + wish;
  auto depth = [&](size_t end) {
    const auto scope = CommonScope(NameOf(function, end - 1), NameOf(function, end));
    return std::ranges::count(scope, '/');
  };
  for (size_t step = 1; step <= wish / 2; ++step)
    for (const size_t end : {begin + wish - step, begin + wish + step})
      if (end < count && depth(end) < depth(best)) best = end;
  return best;
}

std::string TitleOf(const Function& function, size_t begin, size_t end) {
  std::string_view scope = NameOf(function, begin);
  for (size_t i = begin; i < end; ++i) scope = CommonScope(scope, NameOf(function, i));
  if (scope.empty()) return fmt::format("nodes {} to {}", begin, end - 1);
  return std::string(scope.substr(0, scope.size() - 1));
}

}  // namespace

std::vector<Group> GroupsOf(const Function& function) {
  const size_t count = function.nodes.size();
  const size_t wish = std::max(kLeastGroup, static_cast<size_t>(std::sqrt(static_cast<double>(count))));
  std::vector<Group> groups;
  for (size_t begin = 0; begin < count;) {
    const size_t end = EndOf(function, begin, wish);
    groups.push_back({begin, end, TitleOf(function, begin, end)});
    begin = end;
  }
  return groups;
}

}  // namespace fusebox::cli::page
