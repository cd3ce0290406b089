// SPDX-License-Identifier: Apache-2.0
#include "host/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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

LogLevel LevelOf(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug: return LogLevel::kDebug;
    case spdlog::level::info: return LogLevel::kInfo;
    case spdlog::level::warn: return LogLevel::kWarning;
    default: return LogLevel::kError;
  }
}

// Passes lines to the sink of the program, if any, else to stderr.
class Output final : public spdlog::sinks::sink {
 public:
  void Set(LogSink sink) {
    const std::lock_guard lock(mutex_);
    custom_ = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
  }
  void log(const spdlog::details::log_msg& line) override {
    const std::lock_guard lock(mutex_);
    const auto custom = custom_;  // lives through the call, even if it sets another
    if (custom == nullptr) return Stderr().log(line);
    (*custom)(LevelOf(line.level), {line.logger_name.data(), line.logger_name.size()},
              {line.payload.data(), line.payload.size()});
  }
  void flush() override { Stderr().flush(); }
  void set_pattern(const std::string& pattern) override { Stderr().set_pattern(pattern); }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    Stderr().set_formatter(std::move(formatter));
  }

 private:
  // Made for the first line: most programs write none, and reading a pattern takes as long as opening a file.
  spdlog::sinks::sink& Stderr() {
    const std::lock_guard lock(mutex_);
    if (!stderr_) stderr_.emplace().set_pattern("%L %n: %v");
    return *stderr_;
  }

  std::recursive_mutex mutex_;  // the custom sink may log
  std::shared_ptr<const LogSink> custom_;
  std::optional<spdlog::sinks::stderr_sink_mt> stderr_;
};

// Never destroyed: threads that outlive main may still log.
const std::shared_ptr<Output>& TheOutput() {
  static auto& output = *new auto(std::make_shared<Output>());
  return output;
}

}  // namespace

void SetLogSink(LogSink sink) { TheOutput()->Set(std::move(sink)); }

spdlog::logger& Log(std::string_view topic) {
  static std::mutex mutex;
  static auto& loggers = *new std::map<std::string, std::unique_ptr<spdlog::logger>, std::less<>>;
  const std::lock_guard lock(mutex);
  const auto found = loggers.find(topic);
  if (found != loggers.end()) return *found->second;
  auto logger = std::make_unique<spdlog::logger>(std::string(topic), TheOutput());
  logger->set_level(IsOn(topic) ? spdlog::level::debug : spdlog::level::warn);
  return *loggers.emplace(std::string(topic), std::move(logger)).first->second;
}

}  // namespace fusebox
