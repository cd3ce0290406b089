// SPDX-License-Identifier: Apache-2.0
// The index of a folder of plugins: it holds all of a manifest, and is used only for the file that it was
// made of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/plugin/steps.h"
#include "tests/host/plugin/folder.h"

namespace fusebox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PluginIndex : public testing::Test {
 protected:
  void SetUp() override {
    manifest_ = folder_.Write("p/a/fusebox-plugin.json", RunnableManifest());
    index_ = folder_.path() + "/p/fusebox-plugins.index";
  }
  // Writes an index that says something else than the manifest, to see who is asked.
  std::string WriteOther() {
    auto manifest = ReadManifest(manifest_);
    EXPECT_TRUE(manifest) << manifest.error().message;
    manifest->description = "from the index";
    const std::string text = IndexText({*manifest});
    std::filesystem::remove(index_);
    folder_.Write("p/fusebox-plugins.index", text);
    return text;
  }
  bool IsUsed(bool indexed = true) const {
    const auto read = ManifestReader(indexed).Read(manifest_);
    EXPECT_TRUE(read) << read.error().message;
    return read && read->description == "from the index";
  }

  Folder folder_;
  std::string manifest_, index_;
};

TEST_F(PluginIndex, StandsForTheManifest) {
  EXPECT_FALSE(IsUsed());
  WriteOther();
  EXPECT_TRUE(IsUsed());
  EXPECT_FALSE(IsUsed(false)) << "a signature covers the manifest only";
  const auto read = ManifestReader(true).Read(manifest_);
  EXPECT_EQ(read->path, manifest_);
  EXPECT_EQ(read->library, ReadManifest(manifest_)->library);
}

TEST_F(PluginIndex, IsNotUsedForAnotherText) {
  WriteOther();
  folder_.Write("p/a/fusebox-plugin.json", RunnableManifest() + "\n");
  EXPECT_FALSE(IsUsed());
}

// The text is read if the file is not the one that the index was made of.
TEST_F(PluginIndex, IsUsedForTheFileThatItWasMadeOf) {
  WriteOther();
  const auto time = std::filesystem::last_write_time(manifest_);
  const auto write = [&](const std::string& text, auto changed) {
    folder_.Write("p/a/fusebox-plugin.json", text);
    std::filesystem::last_write_time(manifest_, changed);
  };
  const std::string text = RunnableManifest();
  const std::string same_size = With(text, "\"license\"", "\"licens_\"");  // no manifest
  write(same_size, time);
  EXPECT_TRUE(IsUsed());
  write(same_size, std::chrono::floor<std::chrono::seconds>(time));
  EXPECT_TRUE(IsUsed()) << "an archive keeps whole seconds";
  write(text, time + std::chrono::seconds(1));
  EXPECT_TRUE(IsUsed()) << "it has the same text";
  for (const auto changed : {time + std::chrono::nanoseconds(1000), time - std::chrono::seconds(1)}) {
    write(same_size, changed);
    EXPECT_FALSE(ManifestReader(true).Read(manifest_));
  }
}

TEST_F(PluginIndex, HoldsTheRestUntilItIsNeeded) {
  WriteOther();
  const auto whole = ReadManifest(manifest_);
  ASSERT_TRUE(whole && !whole->ops.empty());
  IndexedRest rest;
  auto read = ManifestReader(true).Read(manifest_, &rest);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->id, whole->id);
  EXPECT_TRUE(read->ops.empty());
  for (const ManifestOp& op : whole->ops) {
    EXPECT_TRUE(rest.MayHave(op.kind, op.name)) << op.name;
    EXPECT_FALSE(rest.MayHave(op.kind, op.name.substr(1)));
    EXPECT_FALSE(rest.MayHave(op.kind == FBX_OP_BUILTIN ? FBX_OP_CUSTOM : FBX_OP_BUILTIN, op.name));
  }
  rest.Complete(*read);
  EXPECT_EQ(read->ops, whole->ops);
  EXPECT_EQ(read->rules, whole->rules);
  EXPECT_EQ(read->text, whole->text);
}

TEST_F(PluginIndex, ChangesNoAnswerOfARegistry) {
  Config config;
  config.search_default_path = false;
  config.plugin_path = {folder_.path() + "/p"};
  const auto ask = [&] {  // a registry that has answered nothing yet
    auto registry = Registry::Create(config);
    EXPECT_TRUE(registry) << registry.error().message;
    return *std::move(registry);
  };
  const std::string name = "my_custom_fused_op";
  const auto answers = [&] {
    std::string text;
    for (const std::string& who : ask()->WhoProvides(FBX_OP_CUSTOM, name)) text += who + "\n";
    std::vector<SkippedRule> skipped;
    EXPECT_TRUE(ask()->RulesFor(name, 0, {}, &skipped));
    for (const SkippedRule& rule : skipped) text += rule.rule + ": " + rule.why + "\n";
    Function f("f");
    Node& node = f.AddNode(Op::kCustom, {}, {});
    node.name = name;
    const Status status = ask()->CheckOptions(node);
    text += status ? "good options" : status.error().message;
    return std::tuple(text, ask()->plugins().front().manifest, ask()->PluginsFor(name).front().manifest);
  };
  const auto before = answers();
  ASSERT_TRUE(WriteIndex(folder_.path() + "/p"));
  const auto after = answers();
  EXPECT_EQ(std::get<0>(before), std::get<0>(after));
  EXPECT_THAT(std::get<0>(after), HasSubstr("option"));
  EXPECT_TRUE(before == after);
}

TEST_F(PluginIndex, IsNotUsedWhereOthersCanWriteIt) {
  WriteOther();
  chmod(index_.c_str(), 0666);
  EXPECT_FALSE(IsUsed());
  chmod(index_.c_str(), 0644);
  EXPECT_TRUE(IsUsed());
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(chown(index_.c_str(), 1234, 1234), 0);
  EXPECT_FALSE(IsUsed());
}

TEST_F(PluginIndex, IsNotUsedWhenDamagedOrOfAnotherVersion) {
  const std::string text = WriteOther();
  for (size_t size = 0; size < text.size(); size += 7) {
    folder_.Write("p/fusebox-plugins.index", text.substr(0, size));
    ASSERT_FALSE(IsUsed()) << size << " bytes";
  }
  for (size_t at = 0; at < text.size(); at += 7) {
    std::string flipped = text;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    folder_.Write("p/fusebox-plugins.index", flipped);
    ASSERT_FALSE(IsUsed()) << "byte " << at;
  }
  folder_.Write("p/fusebox-plugins.index", With(text, "index 2 ", "index 9 "));
  EXPECT_FALSE(IsUsed());
}

TEST_F(PluginIndex, HoldsEveryMember) {
  std::vector<std::string> names;
  for (const char* folder : {"/plugins", "/samples/plugins"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::string(FUSEBOX_SOURCE_DIR) + folder)) {
      const std::string own = entry.path().string() + "/fusebox-plugin.json";
      if (!std::filesystem::exists(own)) continue;
      std::string text = Slurp(own);
      if (text.find("\"libraries\"") == std::string::npos)
        text = With(text, "\"provides\"",
                    "\"libraries\": [{\"platform\": \"" + kPlatform +
                        "\", \"path\": \"x.so\", \"requires_cpu\": [\"avx2\"]}], \"provides\"");
      names.push_back(folder_.Write("q/" + entry.path().filename().string() + "/fusebox-plugin.json", text));
    }
  }
  names.push_back(folder_.Write("q/example/fusebox-plugin.json", ExampleManifest()));
  ASSERT_GT(names.size(), 10U);
  const auto written = WriteIndex(folder_.path() + "/q");
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written->plugins, names.size()) << testing::PrintToString(written->left_out);
  ManifestReader reader(true);
  for (const std::string& name : names) {
    const auto parsed = ReadManifest(name);
    const auto read = reader.Read(name);
    ASSERT_TRUE(parsed && read) << name;
    EXPECT_TRUE(*read == *parsed) << name;
  }
}

TEST_F(PluginIndex, LeavesOutInvalidManifests) {
  folder_.Write("p/b/fusebox-plugin.json", "{}");
  const auto written = WriteIndex(folder_.path() + "/p");
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(written->plugins, 1U);
  EXPECT_THAT(written->left_out, ElementsAre(HasSubstr("p/b/fusebox-plugin.json:1:1: lacks the key")));
  const auto none = WriteIndex(folder_.path() + "/nothing");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("contains a fusebox-plugin.json"));
}

// Sealed libraries and links are looked at anew.
TEST_F(PluginIndex, ChecksLibrariesAnew) {
  ASSERT_TRUE(WriteIndex(folder_.path() + "/p"));
  const auto before = ManifestReader(true).Read(manifest_);
  ASSERT_TRUE(before) << before.error().message;
  std::filesystem::create_directories(std::filesystem::path(before->library).parent_path());
  std::filesystem::create_symlink("/bin/sh", before->library);
  const auto after = ManifestReader(true).Read(manifest_);
  ASSERT_FALSE(after);
  EXPECT_THAT(after.error().message, HasSubstr("it is a link out of the plugin's folder"));
}

}  // namespace
}  // namespace fusebox
