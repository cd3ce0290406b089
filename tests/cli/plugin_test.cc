// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "host/tflite/tflite.h"
#include "tests/cli/command.h"

namespace fusebox::cli_test {
namespace {

using testing::HasSubstr;
using testing::Not;

#if defined(__x86_64__)
const std::string kLibrary = "/linux-x86_64/rnn.so";  // in the folder of fusebox.rnn
#else
const std::string kLibrary = "/linux-aarch64/rnn.so";
#endif

nlohmann::json Find(const nlohmann::json& plugins, const std::string& id) {
  for (const nlohmann::json& plugin : plugins) {
    if (plugin["id"] == id) return plugin;
  }
  return nullptr;
}

// A folder with the rnn plugin's manifest and a library that is none.
std::string WriteBrokenPlugin() {
  const std::string folder = Path("broken");
  std::filesystem::create_directories(std::filesystem::path(folder + kLibrary).parent_path());
  std::filesystem::copy_file(PluginFolder("fusebox.rnn") + "/fusebox-plugin.json",
                             folder + "/fusebox-plugin.json");
  std::ofstream(folder + kLibrary) << "this is no library";
  return folder;
}

TEST(Plugin, ListOpensNothingUnlessAsked) {
  const std::string rnn = PluginFolder("fusebox.rnn");
  const nlohmann::json idle =
      Find(Fusebox({"plugin", "list", "--plugin", rnn, "--json"}).Json()["plugins"], "fusebox.rnn");
  EXPECT_EQ(idle["state"], "ok");
  EXPECT_EQ(idle["loaded"], false);
  const Finished done = Fusebox({"plugin", "list", "--plugin", rnn, "--json", "--load"});
  EXPECT_EQ(Find(done.Json()["plugins"], "fusebox.rnn")["loaded"], true);
  EXPECT_EQ(Find(done.Json()["plugins"], "fusebox.cpu")["built_in"], true);
}

TEST(Plugin, ListShowsThePlatformThatFits) {
  std::filesystem::create_directories(Path("t.op"));
  const auto list = [](const std::string& libraries) {
    std::ofstream(Path("t.op") + "/fusebox-plugin.json")
        << R"({"manifest_version": "1.0", "abi": {"major": 1}, "plugin": {"id": "t.op", "version": "1.0.0",
          "namespace": "t"}, "libraries": [)"
        << libraries << R"(], "provides": {"ops": [{"custom": "t.op"}]}})";
    return Fusebox({"plugin", "list", "--plugin", Path("t.op")}).out;
  };
  const std::string mine = kLibrary.substr(1, kLibrary.find('/', 1) - 1);
  const std::string other = mine == "linux-x86_64" ? "linux-aarch64" : "linux-x86_64";
  const auto entry = [](const std::string& platform) {
    return R"({"platform": ")" + platform + R"(", "path": ")" + platform + R"(/op.so"})";
  };
  EXPECT_THAT(list(entry(other) + ", " + entry(mine)), HasSubstr(" | " + mine + " "));
  const std::string none = list(entry(other));
  EXPECT_THAT(none, HasSubstr(" | only " + other + " "));
  EXPECT_THAT(none, HasSubstr("it has no library for " + mine + ", only for " + other));
  const nlohmann::json json =
      Find(Fusebox({"plugin", "list", "--plugin", Path("t.op"), "--json"}).Json()["plugins"], "t.op");
  EXPECT_EQ(json["platforms"][0]["platform"], other);
  EXPECT_EQ(json["platforms"][0]["used"], false);
}

TEST(Plugin, InspectTakesAnIdOrAPath) {
  const std::string rnn = PluginFolder("fusebox.rnn");
  for (const std::vector<std::string>& line : std::vector<std::vector<std::string>>{
           {"plugin", "inspect", rnn, "--json"},
           {"plugin", "inspect", rnn + kLibrary, "--json"},
           {"plugin", "inspect", "fusebox.rnn", "--plugin", rnn, "--json"}}) {
    const Finished done = Fusebox(line);
    ASSERT_EQ(done.status, 0) << done.err;
    const nlohmann::json json = done.Json();
    ASSERT_EQ(json["plugins"].size(), 1u);
    EXPECT_EQ(json["plugins"][0]["provides"]["rules"][0]["id"], "fusebox.keras_lstm");
    EXPECT_EQ(json["plugins"][0]["loaded"], false);
  }
  const Finished text = Fusebox({"plugin", "inspect", rnn});
  EXPECT_THAT(text.out, HasSubstr("UNIDIRECTIONAL_SEQUENCE_LSTM"));
}

TEST(Plugin, InspectOfAnUnknownIdSaysWhereItLooked) {
  const Finished done = Fusebox({"plugin", "inspect", "fusebox.rn", "--plugin", PluginFolder("fusebox.rnn")});
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("did you mean \"fusebox.rnn\"?"));
  EXPECT_THAT(done.err, HasSubstr(PluginFolder("fusebox.rnn")));
}

TEST(Plugin, WhichNamesRulesAndKernels) {
  const std::string rnn = PluginFolder("fusebox.rnn");
  const Finished rule = Fusebox({"plugin", "which", "lstm_42", "--plugin", rnn});
  EXPECT_EQ(rule.status, 0);
  EXPECT_THAT(rule.out, HasSubstr("rule fusebox.keras_lstm"));
  const Finished kernel = Fusebox({"plugin", "which", "UNIDIRECTIONAL_SEQUENCE_LSTM", "--plugin", rnn});
  EXPECT_THAT(kernel.out, HasSubstr("kernel UNIDIRECTIONAL_SEQUENCE_LSTM"));
  const Finished nobody = Fusebox({"plugin", "which", "no_such_op"});
  EXPECT_EQ(nobody.status, 1);
  EXPECT_THAT(nobody.out, HasSubstr("no plugin has a rule or a kernel for no_such_op"));
  EXPECT_THAT(nobody.out, Not(HasSubstr("did you mean")));
  const Finished part = Fusebox({"plugin", "which", "sequence_lstm", "--plugin", rnn});
  EXPECT_EQ(part.status, 1);
  EXPECT_THAT(
      part.out,
      HasSubstr("sequence_lstm; did you mean BIDIRECTIONAL_SEQUENCE_LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM"));
}

TEST(Plugin, ImportersAreListedAndChecked) {
  const std::string sample = FUSEBOX_SOURCE_DIR "/samples/plugins/keras_layers";
  const Finished inspect = Fusebox({"plugin", "inspect", sample, "--json"});
  ASSERT_EQ(inspect.status, 0) << inspect.err;
  const nlohmann::json importers = inspect.Json()["plugins"][0]["provides"]["importers"];
  ASSERT_EQ(importers.size(), 2u);
  EXPECT_EQ(importers[0]["classes"][0], "acme>GatedDense");
  EXPECT_EQ(importers[0]["composite"], "acme.gated_dense");
  EXPECT_THAT(Fusebox({"plugin", "inspect", sample}).out, HasSubstr("acme>TransformerBlock"));
  const Finished which = Fusebox({"plugin", "which", "acme>GatedDense", "--plugin", sample});
  EXPECT_EQ(which.status, 0) << which.out;
  EXPECT_THAT(which.out, HasSubstr("importer acme>GatedDense | com.acme.keras_layers 1.0.0"));
  const Finished check = Fusebox({"plugin", "check", sample});
  EXPECT_EQ(check.status, 0) << check.out << check.err;
  std::filesystem::create_directories(Path("bad"));
  std::ofstream(Path("bad") + "/fusebox-plugin.json")
      << R"({"manifest_version": "1.0", "abi": {"major": 1}, "plugin": {"id": "t.bad", "version": "1.0.0", "namespace": "t"},
        "provides": {"importers": [{"classes": ["A"], "inputs": ["x"], "outputs": ["y"],
          "ops": [{"op": "Neg", "inputs": ["z"], "results": ["y"]}]}]}})";
  const Finished bad = Fusebox({"plugin", "check", Path("bad")});
  EXPECT_NE(bad.status, 0) << bad.out;
  EXPECT_THAT(bad.out + bad.err, HasSubstr("provides/importers/0/ops/0/inputs/0: no value z before"));
}

// A plugin that says it has a kernel of t.op; its library is never opened.
std::string WritePlugin(const std::string& id, int priority) {
  std::filesystem::create_directories(Path(id));
  const std::string library = R"(", "path": "none.so"})";
  std::ofstream(Path(id) + "/fusebox-plugin.json")
      << R"({"manifest_version": "1.0", "abi": {"major": 1}, "plugin": {"id": ")" << id
      << R"(", "version": "1.0.0", "namespace": "t", "priority": )" << priority
      << R"(}, "libraries": [{"platform": "linux-x86_64)" << library << R"(, {"platform": "linux-aarch64)"
      << library << R"(], "provides": {"ops": [{"custom": "t.op"}]}})";
  return Path(id);
}

TEST(Plugin, WhichNamesTheKernelFirstThatIsAskedFirst) {
  const std::string b = WritePlugin("t.b", 0), a = WritePlugin("t.a", 0), c = WritePlugin("t.c", 1);
  std::ofstream(Path("fusebox.json")) << R"({"prefer": {"t.op": ["t.a"]}})";
  const auto order = [&](std::vector<std::string> more) {
    std::vector<std::string> line = {"plugin", "which",    "t.op", "--json",   "--plugin",
                                     b,        "--plugin", a,      "--plugin", c};
    line.insert(line.end(), more.begin(), more.end());
    std::string ids;
    const nlohmann::json json = Fusebox(line).Json();
    for (const nlohmann::json& row : json["providers"]) ids += row["plugin"].get<std::string>() + ";";
    return ids;
  };
  EXPECT_EQ(order({}), "t.c 1.0.0;t.b 1.0.0;t.a 1.0.0;");
  EXPECT_EQ(order({"--config", Path("fusebox.json")}), "t.a 1.0.0;t.c 1.0.0;t.b 1.0.0;");
}

TEST(Plugin, WhyGivesTheSystemsReason) {
  EXPECT_EQ(Fusebox({"plugin", "why", "fusebox.rnn", "--plugin", PluginFolder("fusebox.rnn")}).status, 0);
  const Finished broken = Fusebox({"plugin", "why", "fusebox.rnn", "--plugin", WriteBrokenPlugin()});
  EXPECT_EQ(broken.status, 1);
  EXPECT_THAT(broken.out, HasSubstr("broken"));
  EXPECT_THAT(broken.out, HasSubstr("rnn.so"));
  const Finished unknown = Fusebox({"plugin", "why", "com.nobody"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.out, HasSubstr("not found"));
}

// A model with one op of that name.
std::string WriteCustomModel(const std::string& op) {
  Module module;
  Function& f = module.Add("main");
  const Type type{DType::kF32, {2}};
  Node& node = f.AddNode(Op::kCustom, {f.AddInput(type, "x")}, {type});
  node.name = op;
  node.version = 1;
  f.outputs = node.results;
  const Status written = tflite::WriteFile(module, Path("custom.tflite"));
  EXPECT_TRUE(written) << written.error().message;
  return Path("custom.tflite");
}

TEST(Plugin, WithABrokenManifestIsNamedWhereItIsMissed) {
  std::filesystem::create_directories(Path("plugins/t.broken"));
  const std::string manifest = Path("plugins/t.broken/fusebox-plugin.json");
  std::ofstream(manifest) << R"({"manifest_version": "1.0", "abbi": {"major": 1},
    "plugin": {"id": "t.broken", "version": "1.0.0", "namespace": "t"}, "provides": {"ops": [{"custom": "t.op"}]}})";
  const std::string why = manifest + ":1:29: abbi: unknown key \"abbi\"; did you mean \"abi\"?";
  const Finished named = Fusebox({"plugin", "why", "t.broken", "--plugin", Path("plugins")});
  EXPECT_EQ(named.status, 1);
  EXPECT_THAT(named.out, HasSubstr("broken: " + why));
  const Finished run = Fusebox({"run", WriteCustomModel("t.op"), "--plugin", Path("plugins")});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("W loader: plugin t.broken is broken: " + why));
  EXPECT_THAT(run.err, HasSubstr("listed in the manifest of t.broken 1.0.0 (broken: " + why));
}

TEST(Plugin, WhyTakesAPathToo) {
  const std::string folder = PluginFolder("fusebox.rnn"), manifest = folder + "/fusebox-plugin.json";
  for (const std::string& path : {folder, manifest, folder + kLibrary}) {
    const Finished done = Fusebox({"plugin", "why", path});
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_THAT(done.out, HasSubstr(manifest + ": ok: its library opens"));
    EXPECT_EQ(std::ranges::count(done.out, '\n'), 1) << "only the plugins at the path";
  }
  const nlohmann::json json = Fusebox({"plugin", "why", folder, "--json"}).Json();
  EXPECT_EQ(json["path"], folder);
  EXPECT_EQ(json["plugins"].size(), 1);
  const Finished broken = Fusebox({"plugin", "why", WriteBrokenPlugin() + "/fusebox-plugin.json"});
  EXPECT_EQ(broken.status, 1);
  EXPECT_THAT(broken.out, HasSubstr("broken"));
  EXPECT_EQ(Fusebox({"plugin", "why", Path("none.so")}).status, 2);
}

TEST(Plugin, WhyNamesTheLineThatDenies) {
  std::ofstream(Path("fusebox.json")) << R"({"deny": ["fusebox.rnn"]})";
  const Finished done = Fusebox({"plugin", "why", "fusebox.rnn", "--plugin", PluginFolder("fusebox.rnn"),
                                 "--config", Path("fusebox.json")});
  EXPECT_EQ(done.status, 1);
  EXPECT_THAT(done.out, HasSubstr("denied"));
  EXPECT_THAT(done.out, HasSubstr("fusebox.json"));
}

TEST(Plugin, ANamedPluginThatCannotOpenStopsTheCommand) {
  const Finished done = Fusebox({"run", WriteAddModel("add.tflite", 1), "--plugin", WriteBrokenPlugin()});
  EXPECT_EQ(done.status, 2);
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.err, HasSubstr("fusebox.rnn"));
  EXPECT_THAT(done.err, HasSubstr("rnn.so"));
}

}  // namespace
}  // namespace fusebox::cli_test
