// SPDX-License-Identifier: Apache-2.0
#include "cli/base/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "cli/base/color.h"
#include "cli/base/crash.h"
#include "cli/base/print.h"
#include "cli/base/tables.h"
#include "cli/base/version.h"
#include "host/base/json.h"
#include "host/base/log_topics.h"

namespace fusebox::cli {
namespace {

constexpr const char* kMainFooter = R"(
Examples:
  fusebox convert saved_model/ -o model.tflite --batch 1 --explain
  fusebox run model.tflite --seed 1 --runs 20
  fusebox compare fused.tflite unfused.tflite
  fusebox inspect model.tflite
  fusebox cache ls
  fusebox plugin list

Exit codes: 0 success; 1 check failed (models differ, not fused, not found); 2 usage error or invalid input; 3 internal error.
Results go to stdout, messages to stderr.)";

constexpr const char* kExitCodes =
    "Exit codes: 0 success; 1 check failed; 2 usage error or invalid input; 3 internal error.";

std::string LogHelp() {
  std::string text = "\nFUSEBOX_LOG=TOPIC,... logs to stderr (warnings are always logged):\n";
  for (const LogTopic& topic : LogTopics()) text += fmt::format("  {:<8} {}\n", topic.name, topic.what);
  return text + fmt::format("  {:<8} all of these", "all");
}

// The innermost selected subcommand: unparsed words belong to it.
const CLI::App& Innermost(const CLI::App& root) {
  const CLI::App* app = &root;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return *app;
}

// Returns the error for the first unparsed word, with the closest known word, or an empty string if there is
// none.
// Options of benchmark_model, and what to write instead.
constexpr std::pair<std::string_view, std::string_view> kOfBenchmarkModel[] = {
    {"--use_xnnpack", "XNNPACK runs what it can; --delegate none leaves it out"},
    {"--use_gpu", "no GPU delegate is installed with Fusebox; --delegate NAME uses one of a plugin"},
    {"--use_nnapi", "there is no NNAPI delegate; --delegate NAME uses one of a plugin"},
    {"--input_layer", "use --shape NAME=1,28,28"},
    {"--input_layer_shape", "use --shape NAME=1,28,28"},
    {"--input_layer_value_files", "use --input NAME=FILE.npy"},
    {"--xnnpack_weight_cache_file_path", "use --weight-cache FILE"},
};

std::string Instead(std::string_view option) {
  const auto* const found =
      std::ranges::find(kOfBenchmarkModel, option, [](const auto& pair) { return pair.first; });
  return found == std::end(kOfBenchmarkModel) ? std::string() : "; " + std::string(found->second);
}

std::string UnknownWord(const CLI::App& root) {
  const CLI::App& app = Innermost(root);
  std::vector<std::string> left = app.remaining(false);
  if (left.empty()) left = root.remaining(true);
  if (left.empty()) return {};
  const std::string word = left.front().substr(0, left.front().find('='));
  std::vector<std::string> known;
  if (word.starts_with("-")) {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    const std::string instead = Instead(word);
    return "unknown option " + word + (instead.empty() ? DidYouMean(word, known) : instead);
  }
  for (const CLI::App* sub : app.get_subcommands({})) known.push_back(sub->get_name());
  return (known.empty() ? "unexpected argument " : "unknown command ") + word + DidYouMean(word, known);
}

void Prepare(CLI::App& app) {
  // UnknownWord reports unparsed words.
  app.allow_extras();
  app.get_formatter()->column_width(34);
  const std::string footer = app.get_footer();
  if (app.get_subcommands({}).empty() && footer.find("Exit code") == footer.npos)
    app.footer(footer + (footer.empty() ? "" : "\n\n") + kExitCodes);
  for (CLI::App* sub : app.get_subcommands({})) Prepare(*sub);
}

int BadUsage(const CLI::App& root, const std::string& what) {
  std::string path;
  for (const CLI::App* app = &Innermost(root); app; app = app->get_parent())
    path.insert(0, " " + app->get_name());
  ErrorMessage(what + "\nhelp:" + path + " --help");
  return static_cast<int>(Exit::kBadInput);
}

int Perform(const Action& action) {
  Result<Exit> done = action();
  // Before a message, so that both are in order on a terminal.
  const Status flushed = Flush();
  if (done && !flushed) done = std::unexpected(flushed.error());
  if (done) return static_cast<int>(*done);
  ErrorMessage(done.error().message);
  return static_cast<int>(done.error().code == Code::kInternal ? Exit::kInternal : Exit::kBadInput);
}

int Parse(int argc, char** argv, const std::function<void(CLI::App& root, Action& action)>& add) {
  CLI::App root("Convert models to .tflite, fuse their composites with plugins, and run them.", "fusebox");
  root.set_version_flag("-v,--version", VersionText(),
                        "Print the versions of Fusebox, its ABI and its libraries");
  root.footer(kMainFooter + 1 + LogHelp());
  root.require_subcommand(1);
  Action action;
  add(root, action);
  AddColorFlag(root);
  Prepare(root);
  const std::string_view word = argc == 2 ? argv[1] : "";
  if (word == kTablesWord) {
    PrintDocument(TablesOf(root));
    return 0;
  }
  if (word == kHelpWord) {
    Print(HelpOf(root));
    return 0;
  }
  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return root.exit(asked);
  } catch (const CLI::ParseError& error) {
    const std::string unknown = UnknownWord(root);
    return BadUsage(root, unknown.empty() ? error.what() : unknown);
  }
  if (const std::string unknown = UnknownWord(root); !unknown.empty()) return BadUsage(root, unknown);
  const char* const log = std::getenv("FUSEBOX_LOG");
  if (const Status topics = CheckLogSetting(log == nullptr ? "" : log); !topics)
    return BadUsage(root, topics.error().message);
  StyleOutput();
  return Perform(action);
}

// An allocation may also fail where no exception can leave: in a destructor of the JSON library.
[[noreturn]] void EndWithoutMemory() {
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
    std::fputs("fusebox: out of memory\n", stderr);
    std::_Exit(static_cast<int>(Exit::kBadInput));
  } catch (...) {
    std::abort();
  }
  std::abort();
}

}  // namespace

void EndIfMemoryIsMissing() { std::set_terminate(EndWithoutMemory); }

int RunCommandLine(int argc, char** argv, const std::function<void(CLI::App& root, Action& action)>& add) {
  ReportPluginCrashes();
  EndIfMemoryIsMissing();
  std::signal(SIGXFSZ, SIG_IGN);  // writing beyond `ulimit -f` then fails with EFBIG
  try {
    return Parse(argc, argv, add);
  } catch (const std::bad_alloc&) {
    std::fputs("fusebox: out of memory\n", stderr);
    return static_cast<int>(Exit::kBadInput);
  } catch (const std::exception& error) {
    ErrorMessage(std::string("internal error: ") + error.what());
  }
  return static_cast<int>(Exit::kInternal);
}

}  // namespace fusebox::cli
