// SPDX-License-Identifier: Apache-2.0
#include "doors/external_delegate/settings.h"

#include <charconv>
#include <sstream>
#include <stdexcept>

namespace fusebox::external_delegate {
namespace {

constexpr std::string_view kKnown = "plugin_path, config, weight_cache_path, claim, engine, threads, explain";

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) throw std::runtime_error("a path holds a control character");
    out += c;
  }
  return out + '"';
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, separator);) {
    if (!word.empty()) out.push_back(word);
  }
  return out;
}

std::string PathList(const std::string& text) {
  std::string out;
  for (const std::string& folder : Split(text, ':')) out += (out.empty() ? "" : ", ") + Quoted(folder);
  return "{\"plugin_path\": [" + out + "]}";
}

[[noreturn]] void Refuse(const std::string& key, const std::string& value, std::string_view expected) {
  throw std::runtime_error("option " + key + ": '" + value + "' is not " + std::string(expected));
}

}  // namespace

Settings ReadSettings(char** keys, char** values, size_t count) {
  Settings out;
  RegistryOptions registry;
  for (size_t i = 0; i < count; ++i) {
    const std::string key = keys[i];
    const std::string value = values[i];
    if (key == "plugin_path") {
      registry.config = PathList(value);
    } else if (key == "config") {
      registry.file = value;
    } else if (key == "weight_cache_path") {
      out.delegate_options = "{\"xnnpack\": {\"weight_cache_path\": " + Quoted(value) + "}}";
    } else if (key == "claim") {
      for (std::string& op : Split(value, ',')) out.claim.insert(std::move(op));
    } else if (key == "engine") {
      if (value != "all" && value != "fused") Refuse(key, value, "fused or all");
      out.all = value == "all";
    } else if (key == "threads") {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out.threads);
      if (error != std::errc() || end != value.data() + value.size() || out.threads < 0)
        Refuse(key, value, "a number of threads");
    } else if (key == "explain") {
      if (value != "0" && value != "1") Refuse(key, value, "0 or 1");
      out.explain = value == "1";
    } else {
      throw std::runtime_error("option '" + key + "' does not exist; there are " + std::string(kKnown));
    }
  }
  if (registry.file.empty() && registry.config.empty()) return out;
  Result<Registry> made = Registry::Create(registry);
  if (!made) throw std::runtime_error(made.error().message);
  out.registry = *std::move(made);
  return out;
}

}  // namespace fusebox::external_delegate
