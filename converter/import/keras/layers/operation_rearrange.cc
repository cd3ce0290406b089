// SPDX-License-Identifier: Apache-2.0
// rearrange: names the axes of a tensor, and splits, permutes and merges them.
#include <algorithm>
#include <map>

#include "converter/import/keras/layers/operation.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;
// Names per dimension; one in parentheses has several, or none.
using Groups = std::vector<std::vector<std::string>>;

// Returns no groups for a text that is none.
Groups ParseGroups(std::string_view text) {
  Groups out;
  bool open = false;
  std::string name;
  const auto close = [&] {
    if (name.empty()) return;
    if (!open) out.emplace_back();
    out.back().push_back(name);
    name.clear();
  };
  for (const char letter : std::string(text) + " ") {
    const bool word = std::isalnum(static_cast<unsigned char>(letter)) || letter == '_';
    if (word) {
      name += letter;
      continue;
    }
    close();
    if (letter == ' ') continue;
    if (letter != (open ? ')' : '(')) return {};
    open = !open;
    if (open) out.emplace_back();
  }
  return open ? Groups{} : out;
}

std::vector<std::string> Names1(const Groups& groups) {
  std::vector<std::string> out;
  for (const auto& group : groups) out.insert(out.end(), group.begin(), group.end());
  return out;
}

}  // namespace

void Rearrange(LayerCall& c, std::string_view) {
  const ValueId x = TensorArgument(c, 0, {"tensor"});
  const std::string pattern = TextArgument(c, 1, {"pattern"}, "");
  const size_t arrow = pattern.find("->");
  if (arrow == std::string::npos) return c.emit().Refuse("its pattern " + pattern);
  const Groups from = ParseGroups(std::string_view(pattern).substr(0, arrow));
  const Groups to = ParseGroups(std::string_view(pattern).substr(arrow + 2));
  const std::vector<std::string> names = Names1(from);
  const std::vector<std::string> wanted = Names1(to);
  const int rank = c.emit().rank(x);
  if (!c.emit().ok()) return;
  if (std::ssize(from) != rank || !std::ranges::is_permutation(names, wanted))
    return c.emit().Refuse("its pattern " + pattern + " for " + ToString(c.emit().type(x)));
  std::map<std::string, Extent> sizes;
  for (const std::string& name : names)
    if (!sizes.emplace(name, Extent{IntArgument(c, kKeywordOnly, {name.c_str()}, Shape::kUnknown)}).second)
      return c.emit().Refuse("its pattern " + pattern);
  for (int i = 0; i < rank; ++i) {
    int64_t rest = c.emit().dim(x, i);
    std::string open;
    for (const std::string& name : from[static_cast<size_t>(i)]) {
      const int64_t size = sizes[name].size;
      if (size > 0 && rest > 0) rest = rest % size == 0 ? rest / size : 0;
      if (size < 0 && !open.empty()) return c.emit().Refuse("an axis of unknown size in " + pattern);
      if (size < 0) open = name;
    }
    if (rest == 0 || (open.empty() && rest > 1)) return c.emit().Reject("its sizes for " + pattern);
    const bool whole = from[static_cast<size_t>(i)].size() == 1;
    if (!open.empty()) sizes[open] = whole ? c.emit().size(x, i) : Extent{rest};
  }
  std::vector<Extent> split;
  for (const std::string& name : names) split.push_back(sizes[name]);
  std::vector<int64_t> perm;
  for (const std::string& name : wanted) perm.push_back(std::ranges::find(names, name) - names.begin());
  std::vector<Extent> merged;
  for (const auto& group : to) {
    Extent size{1};
    for (const std::string& name : group)
      size = group.size() == 1                       ? sizes[name]
             : size.size < 0 || sizes[name].size < 0 ? Extent{}
                                                     : Extent{size.size * sizes[name].size};
    merged.push_back(size);
  }
  c.AddOutput(c.emit().Reshape(c.emit().Transpose(c.emit().Reshape(x, split), perm), merged));
}

}  // namespace fusebox::keras
