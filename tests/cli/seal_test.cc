// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "cli/plugin/json_edit.h"
#include "host/base/buffer.h"
#include "tests/cli/command.h"
#include "tests/host/plugin/folder.h"

namespace fusebox::cli_test {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class Sealing : public testing::Test {
 protected:
  void SetUp() override {
    setenv("XDG_CONFIG_HOME", Path("config").c_str(), 1);
    fs::copy(PluginFolder("fusebox.null"), plugin_ = Path("null"), fs::copy_options::recursive);
    manifest_ = plugin_ + "/fusebox-plugin.json";
    for (const auto& entry : fs::recursive_directory_iterator(plugin_))
      if (entry.path().extension() == ".so") library_ = entry.path();
  }
  void TearDown() override { unsetenv("XDG_CONFIG_HOME"); }

  static std::string Text(const std::string& file) { return ReadTextFile(file).value_or("no such file"); }
  static void Append(const std::string& file) { std::ofstream(file, std::ios::app) << "\n"; }
  nlohmann::json Row() const {
    return Fusebox({"plugin", "list", "--plugin", plugin_, "--json"}).Json()["plugins"][0];
  }
  // The output of "plugin why"; "ok" if the plugin can be used.
  std::string Why(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> line = {"plugin", "why", plugin_};
    line.insert(line.end(), more.begin(), more.end());
    const Finished done = Fusebox(line);
    return done.status == 0 ? "ok" : done.out + done.err;
  }

  std::string plugin_, manifest_, library_;
};

TEST_F(Sealing, WritesHashBuildIdAndAbiAndNothingElse) {
  const std::string before = Text(manifest_);
  EXPECT_EQ(Row()["seal"], "unsealed");
  const Finished done = Fusebox({"plugin", "seal", plugin_});
  EXPECT_EQ(done.status, 0);
  EXPECT_EQ(done.err, "fusebox: sealed " + library_ + "\n");
  const std::string after = Text(manifest_);
  const size_t same = before.find("\"libraries\"");
  EXPECT_EQ(after.substr(0, same), before.substr(0, same));
  const nlohmann::json library = nlohmann::json::parse(after)["libraries"][0];
  EXPECT_EQ(library["sha256"].get<std::string>().size(), 64u);
  EXPECT_GE(library["build_id"].get<std::string>().size(), 16u);
  EXPECT_EQ(library["abi"]["major"], 1);
  EXPECT_EQ(Row()["seal"], "sealed");
  EXPECT_EQ(Fusebox({"plugin", "seal", manifest_}).status, 0);
  EXPECT_EQ(Text(manifest_), after);
  EXPECT_THAT(Fusebox({"plugin", "list", "--plugin", plugin_}).out, HasSubstr(" | sealed "));
}

TEST_F(Sealing, AnAlteredLibraryIsRefused) {
  ASSERT_EQ(Fusebox({"plugin", "seal", plugin_}).status, 0);
  EXPECT_EQ(Why(), "ok");
  Append(library_);
  EXPECT_EQ(Row()["seal"], "altered");
  EXPECT_THAT(Why(),
              HasSubstr("it is not the library that its manifest was sealed with; install the plugin again"));
  const Finished run = Fusebox({"run", WriteAddModel("add.tflite", 1), "--plugin", plugin_});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("run fusebox plugin seal " + manifest_));
}

TEST_F(Sealing, RefusesWhatIsNoPlugin) {
  std::ofstream(library_) << "no library";
  const Finished text = Fusebox({"plugin", "seal", plugin_});
  EXPECT_EQ(text.status, 2);
  EXPECT_THAT(text.err, HasSubstr(library_ + ": it exports no fusebox_entry_v1"));
  fs::remove(library_);
  EXPECT_THAT(Fusebox({"plugin", "seal", plugin_}).err, HasSubstr("No such file"));
  std::ofstream(manifest_) << R"({"manifest_version": "1.0", "abi": {"major": 1}, "provides": {},
    "plugin": {"id": "t.none", "version": "1.0.0", "namespace": "t"}})";
  EXPECT_THAT(Fusebox({"plugin", "seal", plugin_}).err, HasSubstr("the plugin has no library to seal"));
}

TEST_F(Sealing, APinIsInThePolicyOfTheUser) {
  const Finished done = Fusebox({"plugin", "pin", "fusebox.null", "--plugin", plugin_});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.err, "fusebox: " + Path("config/fusebox/policy.json") + ": fusebox.null is pinned to " +
                          manifest_ + "\n");
  EXPECT_EQ(Why(), "ok");
  Append(library_);
  EXPECT_THAT(Why(), HasSubstr("it is not what " + Path("config/fusebox/policy.json") +
                               " pins; if you trust it, run fusebox plugin pin fusebox.null\n"));
  EXPECT_EQ(Fusebox({"plugin", "pin", manifest_}).status, 0);
  EXPECT_EQ(Why(), "ok");
  const Finished unknown = Fusebox({"plugin", "pin", "fusebox.nul", "--plugin", plugin_});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean \"fusebox.null\"?"));
}

TEST_F(Sealing, APinMayBeTheFirstLineOfAConfiguration) {
  const std::string config = Path("new/pinned.json");
  ASSERT_EQ(Fusebox({"plugin", "pin", "fusebox.null", "--plugin", plugin_, "--config", config}).status, 0);
  EXPECT_EQ(Why({"--config", config}), "ok");
  Append(library_);
  EXPECT_THAT(Why({"--config", config}), HasSubstr("it is not what " + config + " pins"));
}

TEST_F(Sealing, APinInAConfigurationLeavesItsTextAlone) {
  const std::string config = Path("fusebox.json"),
                    begin = "{\"deny\": [\"t.*\"],\n \"x-note\": \"a } \\\" {\"";
  std::ofstream(config) << begin << "}\n";
  ASSERT_EQ(Fusebox({"plugin", "pin", plugin_, "--config", config}).status, 0);
  EXPECT_THAT(Text(config), testing::StartsWith(begin + ",\n \"pins\": {\n  \"fusebox.null\": [\""));
  EXPECT_EQ(Why({"--config", config}), "ok");
  Append(library_);
  EXPECT_THAT(Why({"--config", config}), HasSubstr("run fusebox plugin pin fusebox.null --config " + config));
  EXPECT_EQ(Why(), "ok");
}

TEST(JsonEdit, ReplacesOneKey) {
  using cli::WithKey;
  EXPECT_EQ(WithKey("{}\n", "a", "[1]"), "{\n \"a\": [1]}\n");
  EXPECT_EQ(WithKey("{\"b\": 1 }", "a", "[1]"), "{\"b\": 1,\n \"a\": [1] }");
  EXPECT_EQ(WithKey("{\"b\": {\"a\": 2}, \n\"a\" : {\"x\": [\"]}\\\"\"]}, \"c\": 3}", "a", "[1]"),
            "{\"b\": {\"a\": 2}, \n\"a\" : [1], \"c\": 3}");
}

// Signs with libcrypto.
class Signer {
 public:
  explicit Signer(unsigned char seed) : library_(dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL)) {
    std::string secret(32, static_cast<char>(seed));
    key_ = Call<void*(int, void*, const char*, size_t)>("EVP_PKEY_new_raw_private_key")(1087, nullptr,
                                                                                        secret.data(), 32);
  }
  ~Signer() { Call<void(void*)>("EVP_PKEY_free")(key_); }
  Signer(const Signer&) = delete;

  // As openssl pkey -pubout writes it.
  std::string PublicKey() const {
    const std::string header("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12);
    std::string raw(32, '\0'), text(61, '\0');
    size_t size = raw.size();
    Call<int(void*, char*, size_t*)>("EVP_PKEY_get_raw_public_key")(key_, raw.data(), &size);
    Call<int(char*, const char*, int)>("EVP_EncodeBlock")(text.data(), (header + raw).data(), 44);
    return text.substr(0, 60);
  }
  void Sign(const std::string& file) const {
    const std::string text = ReadTextFile(file).value_or("");
    std::string signature(64, '\0');
    size_t size = signature.size();
    void* const context = Call<void*()>("EVP_MD_CTX_new")();
    Call<int(void*, void*, void*, void*, void*)>("EVP_DigestSignInit")(context, nullptr, nullptr, nullptr,
                                                                       key_);
    Call<int(void*, char*, size_t*, const char*, size_t)>("EVP_DigestSign")(context, signature.data(), &size,
                                                                            text.data(), text.size());
    Call<void(void*)>("EVP_MD_CTX_free")(context);
    std::ofstream(file + ".sig", std::ios::binary) << signature;
  }

 private:
  template <class F>
  F* Call(const char* name) const {
    return reinterpret_cast<F*>(dlsym(library_, name));
  }
  void* library_;
  void* key_;
};

TEST_F(Sealing, RequiredSignaturesAreThoseOfTheListedKeys) {
  const Signer mine(1), other(2);
  const std::string config = Path("fusebox.json");
  std::ofstream(config) << "{\"require_signed\": [\"" << mine.PublicKey() << "\"]}";
  const auto why = [&] { return Why({"--config", config}); };
  EXPECT_THAT(why(),
              HasSubstr("it is not signed, which \"require_signed\" of " + config + " demands (" + manifest_ +
                        ".sig: No such file or directory); have it signed with one of these keys"));
  mine.Sign(manifest_);
  EXPECT_THAT(
      why(), HasSubstr("its manifest is signed, but not sealed, so " + library_ +
                       " may be any library; run fusebox plugin seal " + manifest_ + ", then sign it again"));
  EXPECT_THAT(Fusebox({"plugin", "seal", plugin_}).err,
              HasSubstr(".sig: the manifest has changed; sign it again"));
  const std::string wrong =
      manifest_ + ".sig: it is not a signature of this manifest by a key of \"require_signed\" of " + config +
      "; install the plugin again";
  EXPECT_THAT(why(), HasSubstr(wrong));
  other.Sign(manifest_);
  EXPECT_THAT(why(), HasSubstr(wrong));
  mine.Sign(manifest_);
  EXPECT_EQ(why(), "ok");
  Append(library_);
  EXPECT_THAT(why(), HasSubstr("it is not the library that its manifest was sealed with"));
  Append(manifest_);
  EXPECT_THAT(why(), HasSubstr(wrong));
  std::ofstream(config) << R"({"require_signed": ["AAAA"]})";
  EXPECT_THAT(why(), HasSubstr("require_signed/0: \"AAAA\" does not match"));
}

TEST_F(Sealing, CoversLibrariesThatAreFoundByOrigin) {
  fs::copy(FUSEBOX_BUNDLED, plugin_ = Path("bundled"), fs::copy_options::recursive);
  manifest_ = plugin_ + "/fusebox-plugin.json";
  const std::string helper = plugin_ + "/lib/libbundled_helper.so";
  std::ofstream(manifest_) << R"({"manifest_version": "1.0", "abi": {"major": 1}, "provides": {},
    "plugin": {"id": "t.bundled", "version": "1.0.0", "namespace": "t"},
    "libraries": [{"platform": ")"
                           << kPlatform << R"(", "path": "bundled.so"}]})";
  EXPECT_EQ(Why(), "ok");
  ASSERT_EQ(Fusebox({"plugin", "seal", plugin_}).status, 0);
  const nlohmann::json bundled = nlohmann::json::parse(Text(manifest_))["libraries"][0]["bundled"];
  ASSERT_EQ(bundled.size(), 1u);
  EXPECT_EQ(bundled[0]["path"], "lib/libbundled_helper.so");
  EXPECT_EQ(Why(), "ok");
  EXPECT_EQ(Row()["seal"], "sealed");
  Append(helper);
  EXPECT_EQ(Row()["seal"], "altered");
  EXPECT_THAT(Why(), HasSubstr(helper + ": it is not the library that its manifest was sealed with"));
  ASSERT_EQ(Fusebox({"plugin", "seal", plugin_}).status, 0);
  EXPECT_EQ(Why(), "ok");
}

TEST_F(Sealing, RefusesALibraryThatASealedPluginWouldNotFind) {
  const fs::path beside = fs::path(library_).parent_path() / "lib";
  fs::create_directory(beside);
  fs::copy(library_, beside / "libbundled_helper.so");  // its name is another one, or none
  fs::copy(FUSEBOX_BUNDLED "/bundled.so", library_, fs::copy_options::overwrite_existing);
  const Finished done = Fusebox({"plugin", "seal", plugin_});
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err,
              HasSubstr("/lib/libbundled_helper.so: a sealed plugin does not find it; link it with "
                        "-Wl,-soname,libbundled_helper.so, and install it inside of the plugin's folder"));
}

// The folder of an installation, whose program this is.
TEST_F(Sealing, PluginsOfTheInstallationNeedNoSignature) {
  if (geteuid() != 0) GTEST_SKIP() << "only root installs";
  const std::string program = Path("prefix/bin/fusebox"), installed = Path("prefix/lib/fusebox/plugins");
  fs::create_directories(Path("prefix/bin"));
  fs::create_directories(installed);
  fs::copy_file(FUSEBOX_COMMAND, program);
  fs::copy(plugin_, installed + "/null", fs::copy_options::recursive);
  const std::string config = Path("fusebox.json");
  std::ofstream(config) << "{\"require_signed\": [\"" << Signer(1).PublicKey() << "\"]}";
  const auto why = [&](const std::string& plugin, const std::string& of) {
    const Finished done = Fusebox({"plugin", "why", plugin, "--config", config}, of);
    return done.status == 0 ? "ok" : done.out + done.err;
  };
  const std::string unsigned_text = "it is not signed, which \"require_signed\" of " + config + " demands";
  EXPECT_EQ(why(installed + "/null", program), "ok");
  EXPECT_THAT(why(installed + "/null", FUSEBOX_COMMAND), HasSubstr(unsigned_text)) << "another installation";
  EXPECT_THAT(why(plugin_, program), HasSubstr(unsigned_text));
  ASSERT_EQ(chown(Path("prefix/lib").c_str(), 12345, 0), 0);
  EXPECT_THAT(why(installed + "/null", program), HasSubstr(unsigned_text)) << "not root's alone";
}

}  // namespace
}  // namespace fusebox::cli_test
