// SPDX-License-Identifier: Apache-2.0
#include "host/base/log_topics.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <string>
#include <vector>

#include "host/base/json.h"

namespace fusebox {

std::span<const LogTopic> LogTopics() {
  static constexpr LogTopic kTopics[] = {
      {"config", "plugins and delegates that a configuration names, but that are not here"},
      {"fold", "why nodes with constant operands are not computed"},
      {"fusion", "why composites are not fused"},
      {"loader", "libraries of plugins that are opened, and plugins that are broken"},
      {"plugin", "messages of plugins, and services that they go without"},
      {"shadow", "calls of fused ops that differ from their bodies"},
      {"tflite", "names of a file that are ignored"},
  };
  return kTopics;
}

Status CheckLogSetting(std::string_view value) {
  std::vector<std::string> known = {"all"};
  std::string list;
  for (const LogTopic& topic : LogTopics()) {
    known.emplace_back(topic.name);
    list += fmt::format("\n  {:<7} {}", topic.name, topic.what);
  }
  for (const auto part : std::views::split(value, ',')) {
    const std::string word(part.begin(), part.end());
    if (word.empty() || std::ranges::find(known, word) != known.end()) continue;
    return Invalid(fmt::format("FUSEBOX_LOG={}: no topic {}{}; topics (all: each of them):{}", value, word,
                               DidYouMean(word, known), list));
  }
  return {};
}

}  // namespace fusebox
