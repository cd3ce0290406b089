// SPDX-License-Identifier: Apache-2.0
// Copies of the plugins of this build, to change them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "host/plugin/registry.h"
#include "host/plugin/seal.h"
#include "tests/host/plugin/folder.h"

namespace fusebox {

inline std::string BuiltLibrary(const std::string& name) {
  return FUSEBOX_BUILD_DIR "/plugins/fusebox." + name + "/" + kPlatform + "/" + name + ".so";
}

class Plugins : public testing::Test {
 protected:
  void SetUp() override { setenv("XDG_CONFIG_HOME", (Root() + "/config").c_str(), 1); }
  void TearDown() override { unsetenv("XDG_CONFIG_HOME"); }

  std::string Root() const { return std::filesystem::path(folder_.path()).lexically_normal(); }
  // The folder of a copy of fusebox.NAME.
  std::string Copy(const std::string& name) const {
    const std::string to = Root() + "/plugins/" + name;
    std::filesystem::create_directories(to);
    std::filesystem::copy(FUSEBOX_BUILD_DIR "/plugins/fusebox." + name, to,
                          std::filesystem::copy_options::recursive);
    return to;
  }
  static std::string Manifest(const std::string& plugin) { return plugin + "/fusebox-plugin.json"; }
  static std::string Library(const std::string& plugin) {
    return plugin + "/" + kPlatform + "/" + std::filesystem::path(plugin).filename().string() + ".so";
  }
  // Writes the hash of the library into the manifest.
  static void WriteSeal(const std::string& plugin) {
    const auto facts = FactsOfLibrary(Library(plugin));
    ASSERT_TRUE(facts) << facts.error().message;
    Write(Manifest(plugin),
          With(Slurp(Manifest(plugin)), ".so\"", ".so\", \"sha256\": \"" + facts->sha256 + "\""));
  }
  static void Write(const std::string& file, const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
  }

  // "ok", or why the only plugin at this path cannot be used, after it was loaded.
  static std::string Load(const std::string& path, Config config = {}) {
    config.plugins = {path};
    config.search_default_path = false;
    const auto registry = Registry::Create(config);
    if (!registry) return registry.error().message;
    const Status loaded = (*registry)->LoadNamed();
    EXPECT_EQ((*registry)->plugins()[0].state == PluginInfo::State::kOk, loaded.has_value());
    return loaded ? "ok" : (*registry)->plugins()[0].why;
  }

  Folder folder_;
};

}  // namespace fusebox
