// SPDX-License-Identifier: Apache-2.0
#include "host/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace fusebox {
namespace {

bool IsOn(std::string_view topic) {
  const char* setting = std::getenv("FUSEBOX_LOG");
  if (setting == nullptr) return false;
  std::string_view rest = setting;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    if (word == topic || word == "all") return true;
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return false;
}

}  // namespace

spdlog::logger& Log(std::string_view topic) {
  static std::mutex mutex;
  // Never destroyed: threads that outlive main may still log.
  static auto& loggers = *new std::map<std::string, std::unique_ptr<spdlog::logger>, std::less<>>;
  const std::lock_guard lock(mutex);
  const auto found = loggers.find(topic);
  if (found != loggers.end()) return *found->second;
  static auto& sink = *new auto(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  auto logger = std::make_unique<spdlog::logger>(std::string(topic), sink);
  logger->set_pattern("%L %n: %v");
  logger->set_level(IsOn(topic) ? spdlog::level::debug : spdlog::level::warn);
  return *loggers.emplace(std::string(topic), std::move(logger)).first->second;
}

}  // namespace fusebox
