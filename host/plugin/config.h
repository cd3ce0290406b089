// SPDX-License-Identifier: Apache-2.0
// Config: which plugins a registry finds and may run, and their options.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/base/status.h"
#include "host/graph/graph.h"

namespace fusebox {

// fusebox.json plus command line options.
struct Config {
  std::string path = {};                      // of the file; empty: none
  std::vector<std::string> plugins = {};      // --plugin: a manifest, a library, or a folder; searched first
  std::vector<std::string> plugin_path = {};  // folders; relative to the file
  std::vector<std::string> allow = {};        // globs over plugin ids; empty: all
  std::vector<std::string> deny = {};         // globs over plugin ids; wins over allow
  // plugin id -> SHA-256 of the files that may run under it: its libraries; without any, its manifest
  std::map<std::string, std::vector<std::string>> pins = {};
  // Ed25519 keys, each as the Base64 line of its PEM file. A manifest needs a signature by one of them, and
  // its library a SHA-256 in it. Empty: no signature is needed.
  std::vector<std::string> require_signed = {};
  std::map<std::string, Attrs> options = {};  // by plugin id
  // op or composite name -> plugin ids, best first
  std::map<std::string, std::vector<std::string>> prefer = {};
  struct Delegate {
    std::string name;
    Attrs options = {};
  };
  std::optional<std::vector<Delegate>> delegates = {};  // in this order; nothing: the default delegates
  bool search_default_path = true;                      // environment, user and system folders
};
Result<Config> ReadConfig(const std::string& path);
// Parses the same from text: its keys replace keys of `config`. `name` stands in messages.
Result<Config> ParseConfig(const std::string& name, std::string json, Config config = {});
// The text of a configuration file that finds the same plugins from any folder. Without delegates.
std::string TextOf(const Config& config);
// "xnnpack" or "xnnpack:{JSON object}", as on the command line; or "{JSON object}", options by delegate, as
// in the API.
Result<Config::Delegate> ParseDelegate(std::string_view text);
Result<std::map<std::string, Attrs>> ParseDelegateOptions(std::string_view json);

}  // namespace fusebox
