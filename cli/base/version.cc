// SPDX-License-Identifier: Apache-2.0
#include "cli/base/version.h"

#include <flatbuffers/base.h>
#include <fmt/format.h>
#include <spdlog/version.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "fusebox/abi/base.h"

namespace fusebox::cli {
namespace {

std::string Dotted(int major, int minor, int patch) { return fmt::format("{}.{}.{}", major, minor, patch); }

// "XNNPACK=libXNNPACK.so.0.20241108;..." of the build: libraries that have no version in a header.
std::vector<std::pair<std::string, std::string>> Libraries() {
  std::vector<std::pair<std::string, std::string>> out;
  std::string_view rest = FUSEBOX_LIBRARIES;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
    const size_t equals = entry.find('=');
    out.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return out;
}

}  // namespace

std::string VersionText() {
  std::string text =
      fmt::format("fusebox {}\nplugin ABI {}.{}\n.tflite format TFL3, version 3\ncompiler {}\nbuilt with\n",
                  FUSEBOX_VERSION, FBX_ABI_MAJOR, FBX_ABI_MINOR, FUSEBOX_COMPILER);
  auto libraries = Libraries();
  libraries.emplace_back("CLI11", CLI11_VERSION);
  libraries.emplace_back("flatbuffers", Dotted(FLATBUFFERS_VERSION_MAJOR, FLATBUFFERS_VERSION_MINOR,
                                               FLATBUFFERS_VERSION_REVISION));
  libraries.emplace_back("fmt", Dotted(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100));
  libraries.emplace_back("nlohmann-json", Dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                                 NLOHMANN_JSON_VERSION_PATCH));
  libraries.emplace_back("spdlog", Dotted(SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH));
  for (const auto& [name, version] : libraries) text += fmt::format("  {:<14}{}\n", name, version);
  text.pop_back();
  return text;
}

}  // namespace fusebox::cli
