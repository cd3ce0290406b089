// SPDX-License-Identifier: Apache-2.0
// Captures the plugin's messages about the weights of a session.
#pragma once

#include <spdlog/sinks/ostream_sink.h>

#include <regex>
#include <sstream>
#include <vector>

#include "host/base/log.h"

namespace fusebox::xnnpack_test {

struct WeightBytes {
  uint64_t packed = 0, found = 0, shared = 0;
};

inline WeightBytes ReadWeightBytes(const std::string& text) {
  WeightBytes bytes;
  const std::regex line("bytes: (\\d+) packed, (\\d+) found, (\\d+) shared");
  for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at)
    bytes = {std::stoull((*at)[1]), std::stoull((*at)[2]), std::stoull((*at)[3])};
  return bytes;
}

class Said {
 public:
  Said() : before_(Log("plugin").sinks()), level_(Log("plugin").level()) {
    Log("plugin").sinks() = {std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)};
    Log("plugin").set_level(spdlog::level::debug);
  }
  Said(const Said&) = delete;
  ~Said() {
    Log("plugin").sinks() = before_;
    Log("plugin").set_level(level_);
  }
  std::string text() const { return text_.str(); }
  WeightBytes bytes() const { return ReadWeightBytes(text()); }  // from the last message

 private:
  std::ostringstream text_;
  std::vector<spdlog::sink_ptr> before_;
  spdlog::level::level_enum level_;
};

}  // namespace fusebox::xnnpack_test
