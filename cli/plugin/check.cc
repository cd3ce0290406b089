// SPDX-License-Identifier: Apache-2.0
#include "cli/plugin/check.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "check/check.h"
#include "cli/base/checks.h"
#include "cli/base/plugin_flags.h"
#include "cli/base/print.h"
#include "host/base/buffer.h"
#include "host/base/table.h"

namespace fusebox::cli {
namespace {

using Json = nlohmann::ordered_json;
using check::Row;

constexpr const char* kFooter =
    R"(Each test runs in a child process with limits on time and memory, so that a fault of the plugin does not end the check.
Models are the .tflite files in the folders "models" and "tests" beside the manifest, and those of --model. Without any, a
model is made for each custom op whose kernel accepts a few f32 tensors. docs/check.md describes the tests.
Exit code 1: a test failed.

Examples:
  fusebox plugin check build/plugins/com.acme.my_op
  fusebox plugin check my_op.so --model model.tflite --junit report.xml
  fusebox plugin check my_op.so --only kernel --seed 7)";

struct CheckFlags {
  std::string path, junit;
  check::Options options;
  PluginFlags plugins;
  bool json = false;
};

std::string Quoted(const std::string& text) {
  if (text.find_first_of(" '\"$\\`&;()<>|*?") == std::string::npos) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// The command that runs this test alone.
std::string Reproduction(const CheckFlags& flags, const Row& row) {
  std::string line = "fusebox plugin check " + Quoted(row.manifest) + " --only " + row.test + " --seed " +
                     std::to_string(flags.options.seed);
  for (const std::string& model : flags.options.models)
    if (row.subject.empty() || row.subject == model) line += " --model " + Quoted(model);
  for (const std::string& plugin : flags.plugins.plugins) line += " --plugin " + Quoted(plugin);
  if (!flags.plugins.config.empty()) line += " --config " + Quoted(flags.plugins.config);
  return line;
}

bool Is(const Row& row, Row::State state) { return row.state == state; }

size_t Count(const std::vector<Row>& rows, Row::State state) {
  return static_cast<size_t>(std::ranges::count(rows, state, &Row::state));
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string SummaryText(const CheckFlags& flags, const std::vector<Row>& rows) {
  std::string text = std::to_string(Count(rows, Row::State::kPassed)) + " passed, " +
                     std::to_string(Count(rows, Row::State::kFailed)) + " failed, " +
                     std::to_string(Count(rows, Row::State::kNotTested)) + " not tested\n";
  for (const Row& row : rows)
    if (Is(row, Row::State::kFailed)) text += "to reproduce: " + Printable(Reproduction(flags, row)) + "\n";
  text += "not tested by any check:\n";
  for (const std::string& line : check::Untested()) text += "  " + line + "\n";
  return text;
}

void PrintText(const CheckFlags& flags, const std::vector<Row>& rows) {
  Table table({"plugin", "test", "model", "result", "reason"});
  for (const Row& row : rows)
    table.Row({row.plugin, row.test, FileName(row.subject), std::string(Name(row.state)), row.why});
  Print(table.Text() + SummaryText(flags, rows));
}

void PrintJson(const CheckFlags& flags, const std::vector<Row>& rows) {
  Json list = Json::array();
  for (const Row& row : rows) {
    Json one{{"plugin", row.plugin},      {"test", row.test},  {"model", row.subject},
             {"result", Name(row.state)}, {"reason", row.why}, {"seconds", row.seconds}};
    if (Is(row, Row::State::kFailed)) one["reproduce"] = Reproduction(flags, row);
    list.push_back(std::move(one));
  }
  PrintDocument(Json{{"path", flags.path},
                     {"seed", flags.options.seed},
                     {"passed", Count(rows, Row::State::kPassed)},
                     {"failed", Count(rows, Row::State::kFailed)},
                     {"not_tested", Count(rows, Row::State::kNotTested)},
                     {"tests", std::move(list)},
                     {"untested", check::Untested()}});
}

std::string XmlText(std::string_view text) {
  std::string out;
  for (const char c : Printable(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string Junit(const CheckFlags& flags, const std::vector<Row>& rows) {
  std::string xml =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"fusebox plugin check\" "
      "tests=\"" +
      std::to_string(rows.size()) + "\" failures=\"" + std::to_string(Count(rows, Row::State::kFailed)) +
      "\" skipped=\"" + std::to_string(Count(rows, Row::State::kNotTested)) + "\">\n";
  for (const Row& row : rows) {
    const std::string name = row.test + (row.subject.empty() ? "" : " " + FileName(row.subject));
    xml += "<testcase classname=\"" + XmlText(row.plugin) + "\" name=\"" + XmlText(name) + "\" time=\"" +
           std::to_string(row.seconds) + "\">";
    if (Is(row, Row::State::kFailed))
      xml +=
          "<failure message=\"" + XmlText(row.why) + "\">" + XmlText(Reproduction(flags, row)) + "</failure>";
    if (Is(row, Row::State::kNotTested)) xml += "<skipped message=\"" + XmlText(row.why) + "\"/>";
    xml += "</testcase>\n";
  }
  return xml + "</testsuite>\n</testsuites>\n";
}

// The tests run in separate folders.
void MakeAbsolute(std::vector<std::string>& paths) {
  for (std::string& path : paths) path = std::filesystem::absolute(path).string();
}

Result<Exit> Check(CheckFlags& flags) {
  MakeAbsolute(flags.options.models);
  MakeAbsolute(flags.plugins.plugins);
  FUSEBOX_ASSIGN(flags.options.config, ReadConfig(flags.plugins));
  MakeAbsolute(flags.options.config.plugin_path);
  FUSEBOX_ASSIGN(const auto manifests,
                 check::FindPlugins(flags.options.config, std::filesystem::absolute(flags.path).string()));
  std::vector<Row> rows;
  for (const std::string& manifest : manifests) {
    FUSEBOX_ASSIGN(const auto of_one, check::Check(manifest, flags.options));
    rows.insert(rows.end(), of_one.begin(), of_one.end());
  }
  if (!flags.junit.empty()) {
    const std::string xml = Junit(flags, rows);
    FUSEBOX_TRY(WriteFile(flags.junit, std::as_bytes(std::span(xml))));
  }
  flags.json ? PrintJson(flags, rows) : PrintText(flags, rows);
  return Count(rows, Row::State::kFailed) > 0 ? Exit::kNo : Exit::kDone;
}

}  // namespace

void AddPluginCheck(CLI::App& plugin, Action& action) {
  CLI::App* app = plugin.add_subcommand("check",
                                        "Test a plugin in child processes: its file, load, kernels, rules, "
                                        "delegates (exit code 1: a test failed)");
  auto flags = std::make_shared<CheckFlags>();
  check::Options& options = flags->options;
  app->add_option("path", flags->path, "Manifest, library or folder of the plugin, or a folder of plugins")
      ->type_name("FILE|DIR")
      ->required();
  app->add_option("--model", options.models, "A .tflite file with its ops or composites; repeatable")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  app->add_option("--only", options.only,
                  "Run this group of tests (kernel) or test (kernel.threads); repeatable")
      ->type_name("NAME");
  app->add_option("--seed", options.seed, "Seed of values and permutations")
      ->type_name("N")
      ->check(CheckWholeNumber)
      ->capture_default_str();
  app->add_option("--timeout", options.seconds, "Limit of one test in seconds")
      ->type_name("S")
      ->check(CLI::Range(0.5, 3600.0))
      ->capture_default_str();
  app->add_option("--junit", flags->junit, "Also write the results in JUnit's XML format")
      ->type_name("FILE")
      ->check(CheckNotEmpty);
  AddPluginFlags(*app, flags->plugins);
  app->add_flag("--json", flags->json, kJsonHelp);
  app->footer(kFooter);
  app->callback([flags, &action] { action = [flags] { return Check(*flags); }; });
}

}  // namespace fusebox::cli
