// SPDX-License-Identifier: Apache-2.0
// Each bad plugin of the table is reported with the exact text and status that the table has.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "host/base/buffer.h"
#include "host/tflite/tflite.h"
#include "tests/faults/bad_plugins.h"

namespace fusebox {
namespace {

#if defined(__x86_64__)
constexpr const char *kMachine = "linux-x86_64", *kOther = "linux-aarch64", *kGlibc = "GLIBC_2.2.5";
#else
constexpr const char *kMachine = "linux-aarch64", *kOther = "linux-x86_64", *kGlibc = "GLIBC_2.17";
#endif

constexpr char kManifest[] = R"({"manifest_version": "1.0",
 "plugin": {"id": "fault.any", "version": "1.0.0", "namespace": "fault"},
 "abi": {"major": 1},
 "libraries": [{"path": "any.so", "platform": "MACHINE"}],
 "provides": {
   "rules": [{"id": "fault.any.rule", "implements": ["fault.composite"]}],
   "ops": [{"custom": "fault.any", "version": 1,
            "options_schema": {"additionalProperties": false, "properties": {"alpha": {"type": "number", "minimum": 0}}}}]}}
)";

struct Finished {
  int status = -1;
  std::string out, err;
};

// Runs the fusebox command with files of this folder.
Finished Fusebox(const std::vector<std::string>& arguments, const std::string& folder) {
  const std::string out = folder + "/stdout.txt", err = folder + "/stderr.txt";
  std::string line = "FUSEBOX_PLUGIN_PATH= " FUSEBOX_COMMAND;
  for (const std::string& argument : arguments) line += " '" + argument + "'";
  const int status = std::system((line + " >" + out + " 2>" + err).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, ReadTextFile(out).value_or(""),
          ReadTextFile(err).value_or("")};
}

// An empty folder of this test.
std::string NewFolder() {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(info->test_suite_name()) + "." + info->name();
  std::ranges::replace(name, '/', '.');
  const std::string folder = testing::TempDir() + "fusebox_bad/" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return std::filesystem::canonical(folder).string();
}

std::string Replace(std::string text, const std::string& from, const std::string& to, bool all = false) {
  for (size_t at = text.find(from); !from.empty() && at != std::string::npos;
       at = all ? text.find(from, at + to.size()) : std::string::npos)
    text.replace(at, from.size(), to);
  return text;
}

// The text without what depends on the machine, and with short names for what is in each text.
std::string Readable(std::string text, const std::string& folder) {
  const std::string rule = "model/y: fault.composite is not fused by rule fault.any.rule of fault.any 1.0.0";
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {folder, "DIR"},
           {kMachine, "MACHINE"},
           {kOther, "OTHER"},
           {kGlibc, "GLIBC"},
           {"DIR/fault.any/fusebox-plugin.json", "MANIFEST"},
           {"DIR/fault.any/any.so", "LIBRARY"},
           {"DIR/op.tflite: function main: node 0 fault.any (model/y)", "NODE"},
           {rule, "RULE"}})
    text = Replace(std::move(text), from, to, true);
  return text;
}

std::string Edited(const std::string& text, const std::string& from, const std::string& to) {
  EXPECT_NE(text.find(from), std::string::npos) << from;
  return Replace(text, from, to);
}

// y = alpha * x as the op, or as the composite, whose body is RELU.
std::string WriteModel(Op op, const std::string& path, const std::string& name = {}) {
  Module module;
  Function& f = module.Add("main");
  const Type type{DType::kF32, {2}};
  Node& node = f.AddNode(op, {f.AddInput(type, "x")}, {type});
  node.name = !name.empty() ? name : op == Op::kCustom ? "fault.any" : "fault.composite";
  node.version = 1;
  f.value(node.results[0]).name = "model/y";
  f.outputs = node.results;
  if (op == Op::kStablehloComposite) {
    node.body = "body";
    Function& body = module.Add("body");
    body.outputs = body.AddNode(Op::kRelu, {body.AddInput(type, "x")}, {type}).results;
  } else {
    node.attrs.Set("alpha", 2.0);
  }
  const Status written = tflite::WriteFile(module, path);
  EXPECT_TRUE(written) << written.error().message;
  return path;
}

void WritePlugin(const BadPlugin& bad, const std::string& folder) {
  std::filesystem::create_directories(folder);
  const std::string edited = Edited(kManifest, bad.manifest, bad.replaced);
  std::ofstream(folder + "/fusebox-plugin.json")
      << Replace(Replace(edited, "MACHINE", kMachine), "OTHER", kOther);
  if (bad.library == "all" && bad.patched.empty()) return;
  std::string library = bad.patched;
  if (bad.library != "all") {
    library = ReadTextFile(FUSEBOX_FAULTY "/any/any.so").value_or("");
    const size_t at = library.find(bad.library);
    ASSERT_NE(at, std::string::npos);
    library.replace(at + bad.offset, bad.patched.size(), bad.patched);
  }
  std::ofstream(folder + "/any.so", std::ios::binary) << library;
}

Finished Execute(const BadPlugin& bad, const std::string& folder) {
  std::vector<std::string> line;
  switch (bad.command) {
    case Command::kWhy: line = {"plugin", "why", "fault.any"}; break;
    case Command::kList: line = {"plugin", "list", "--load"}; break;
    case Command::kRun: line = {"run", WriteModel(Op::kCustom, folder + "/op.tflite")}; break;
    case Command::kComposite:
      line = {"run", WriteModel(Op::kStablehloComposite, folder + "/composite.tflite")};
      break;
    case Command::kConvert:
      line = {"convert", WriteModel(Op::kCustom, folder + "/op.tflite"), "-o", folder + "/out.tflite"};
      break;
  }
  line.insert(line.end(), {"--plugin", folder});
  setenv("FUSEBOX_FAULT", bad.fault.c_str(), 1);
  Finished done = Fusebox(line, folder);
  unsetenv("FUSEBOX_FAULT");
  done.out = Readable(done.out, folder);
  done.err = Readable(done.err, folder);
  return done;
}

// The line that holds the plugin's manifest, with one space between columns.
std::string RowOf(const std::string& table) {
  const size_t at = table.find("fault.any"), end = table.find('\n', at);
  std::string row;
  for (const char c : at == std::string::npos ? "" : table.substr(at, end - at + 1))
    if (c != ' ' || row.back() != ' ') row += c;
  return row;
}

class BadPlugins : public testing::TestWithParam<BadPlugin> {};

TEST_P(BadPlugins, AreReportedWithFilePlaceReasonAndRemedy) {
  const BadPlugin& bad = GetParam();
  const std::string folder = NewFolder();
  WritePlugin(bad, folder + "/fault.any");
  const Finished done = Execute(bad, folder);
  const std::string text = bad.command == Command::kWhy    ? done.out
                           : bad.command == Command::kList ? RowOf(done.out)
                                                           : done.err;
  EXPECT_EQ(text, bad.command == Command::kWhy ? "MANIFEST: broken: " + bad.text + "\n" : bad.text);
  EXPECT_EQ(done.status, bad.status) << done.out << done.err;
}

constexpr auto kNameOf = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Manifest, BadPlugins, testing::ValuesIn(BadManifests()), kNameOf);
INSTANTIATE_TEST_SUITE_P(Library, BadPlugins, testing::ValuesIn(BadLibraries()), kNameOf);
INSTANTIATE_TEST_SUITE_P(Run, BadPlugins, testing::ValuesIn(BadRuns()), kNameOf);

TEST(TwoPlugins, WithOneIdAreThatWhichIsFoundFirst) {
  const std::string folder = NewFolder();
  WritePlugin({}, folder + "/fault.any");
  WritePlugin({}, folder + "/second");
  const Finished done = Execute({.command = Command::kWhy}, folder);
  EXPECT_EQ(done.out,
            "MANIFEST: ok: its library opens and matches its manifest\n"
            "DIR/second/fusebox-plugin.json: shadowed: by MANIFEST\n");
  EXPECT_EQ(done.status, 0);
}

TEST(TwoPlugins, ForOneCompositeAreBothUnused) {
  const std::string folder = NewFolder();
  WritePlugin({}, folder + "/fault.any");
  std::filesystem::create_directories(folder + "/fault.two");
  std::ofstream(folder + "/fault.two/fusebox-plugin.json")
      << R"({"manifest_version": "1.0", "plugin": {"id": "fault.two", "version": "1.0.0", "namespace": "fault"},
 "abi": {"major": 1}, "provides": {"rules": [{"id": "fault.two.rule", "implements": ["fault.composite"],
   "emits": [{"builtin": "ABS"}], "rewrite": {}}]}})";
  const Finished done = Execute({.command = Command::kComposite}, folder);
  EXPECT_EQ(done.err,
            "W fusion: model/y: composite fault.composite: both fault.any (MANIFEST) and fault.two "
            "(DIR/fault.two/fusebox-plugin.json) have a rule for it; set the preferred one in fusebox.json: "
            "\"prefer\": {\"fault.composite\": [\"fault.any\", \"fault.two\"]}\n");
  EXPECT_EQ(done.status, 0);
}

TEST(OpenPlugin, ThatAllUsersCanReplaceIsRefused) {
  const std::string folder = NewFolder();
  WritePlugin({}, folder + "/fault.any");
  std::filesystem::permissions(folder + "/fault.any", std::filesystem::perms::all);
  const Finished done = Execute({.command = Command::kRun}, folder);
  EXPECT_EQ(done.status, 2);
  EXPECT_EQ(done.err,
            "W loader: plugin fault.any (MANIFEST) is broken: every user can replace its code; run chmod o-w "
            "DIR/fault.any\n"
            "fusebox: NODE: no kernel for fault.any(f32[2]); plugins were searched in DIR\n");
}

TEST(OpenPlugin, AFolderThatAllUsersCanWriteToIsOneLine) {
  const std::string folder = NewFolder();
  WritePlugin({}, folder + "/fault.any");
  WritePlugin({}, folder + "/second");
  std::filesystem::permissions(folder, std::filesystem::perms::all);
  const Finished done = Execute({.command = Command::kRun}, folder);
  EXPECT_EQ(done.err.substr(0, done.err.find('\n')),
            "W loader: each of the plugins fault.any, second is broken: every user can replace its code; run "
            "chmod o-w DIR");
  EXPECT_EQ(done.err.find("W loader", 1), std::string::npos) << done.err;
}

TEST(ThrowingPlugin, IsAnErrorThatNamesTheNode) {
  const std::string folder = NewFolder();
  const std::string model = WriteModel(Op::kCustom, folder + "/throws.tflite", "fault.throws.late");
  const Finished done = Fusebox({"run", model, "--plugin", FUSEBOX_FAULTY "/throws"}, folder);
  EXPECT_EQ(
      Readable(done.err, folder),
      "fusebox: DIR/throws.tflite: function main: node 0 fault.throws.late (model/y): plugin fault.throws: "
      "EXCEPTION: an exception of unknown type\n");
  EXPECT_EQ(done.status, 3);
}

TEST(SoundPlugin, IsUsableByAllCommandsOfTheTable) {
  for (const Command command :
       {Command::kWhy, Command::kList, Command::kRun, Command::kComposite, Command::kConvert}) {
    const std::string folder = NewFolder();
    const BadPlugin sound{.name = "sound", .command = command};
    WritePlugin(sound, folder + "/fault.any");
    const Finished done = Execute(sound, folder);
    EXPECT_EQ(done.status, 0) << done.out << done.err;
    EXPECT_EQ(done.err, "");
  }
}

}  // namespace
}  // namespace fusebox
