// SPDX-License-Identifier: Apache-2.0
// Damaged manifests and configurations: refused or read, never a crash (most telling under the sanitizers).
#include <gtest/gtest.h>

#include <random>

#include "host/plugin/registry.h"
#include "tests/host/plugin/folder.h"
#include "tests/testing/refusal.h"

namespace fusebox {
namespace {

std::string Damage(std::string text, std::mt19937& random) {
  static constexpr std::string_view kLikely = "{}[]\",:\\0123456789-eE.\ntrufalsn*/~^$x";
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  for (size_t changes = 1 + below(4); changes > 0 && !text.empty(); --changes) {
    const size_t at = below(text.size());
    switch (below(5)) {
      case 0: text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
      case 1: text[at] = kLikely[below(kLikely.size())]; break;
      case 2: text.erase(at, 1 + below(20)); break;
      case 3: text.insert(at, text.substr(below(text.size()), 1 + below(40))); break;
      default: text.resize(at); break;
    }
  }
  return text;
}

// How many of the damaged texts are accepted.
template <class F>
int Survivors(const std::string& text, F&& read) {
  constexpr int kRounds = 600;
  const Folder folder;
  std::mt19937 random(7);
  int accepted = 0;
  for (int i = 0; i < kRounds; ++i) {
    const std::string damaged = Damage(text, random);
    const auto result = read(folder.Write("damaged.json", damaged));
    accepted += result.has_value();
    if (result) continue;
    EXPECT_NE(result.error().message.find("damaged.json"), std::string::npos)
        << result.error().message << "\n"
        << damaged;
  }
  return accepted;
}

TEST(Damage, NeverCrashesTheReaderOfManifests) { EXPECT_LT(Survivors(ExampleManifest(), ReadManifest), 300); }
TEST(Damage, NeverCrashesTheReaderOfConfigurations) {
  EXPECT_LT(Survivors(ExampleConfig(), ReadConfig), 300);
}

TEST(Damage, NeverCrashesTheRegistry) {
  const Folder folder;
  std::mt19937 random(11);
  int configured = 0, found = 0;
  for (int i = 0; i < 200; ++i) {
    // One of the two is whole; hardly any pair of damaged files is read.
    const bool whole = i % 2 == 0;
    folder.Write("plugins/a/fusebox-plugin.json",
                 whole ? ExampleManifest() : Damage(ExampleManifest(), random));
    auto config =
        ReadConfig(folder.Write("fusebox.json", whole ? Damage(ExampleConfig(), random) : ExampleConfig()));
    EXPECT_TRUE(SucceedsOrBlamesInput(config));
    if (!config) continue;
    ++configured;
    config->search_default_path = false;
    config->plugin_path = {folder.path() + "/plugins"};
    const auto registry = Registry::Create(*config);
    EXPECT_TRUE(SucceedsOrBlamesInput(registry));
    if (!registry) continue;
    Attrs attrs;
    attrs.Set("example_option", 3);
    Node op{.name = "my_custom_fused_op", .attrs = attrs};
    (*registry)->FillOptions(op);
    // Its library is missing, so a rule that the manifest still promises is skipped.
    std::vector<SkippedRule> skipped;
    const auto rules = (*registry)->RulesFor("my_custom_fused_op", 1, attrs, &skipped);
    EXPECT_TRUE(SucceedsOrBlamesInput(rules));
    EXPECT_TRUE(!rules || rules->empty());
    found += !skipped.empty();
    EXPECT_TRUE(SucceedsOrBlamesInput((*registry)->CheckOptions(op)));
  }
  // Some damage does no harm, some does.
  EXPECT_GT(configured, 100);
  EXPECT_LT(configured, 190);
  EXPECT_GT(found, 0);
  EXPECT_LT(found, configured);
}

}  // namespace
}  // namespace fusebox
