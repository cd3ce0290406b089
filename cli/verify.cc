// SPDX-License-Identifier: Apache-2.0
#include "host/verify/verify.h"

#include <CLI/CLI.hpp>

#include "cli/base/checks.h"
#include "cli/base/command.h"
#include "cli/base/plugin_flags.h"
#include "cli/base/print.h"
#include "host/base/table.h"
#include "host/tflite/tflite.h"

namespace fusebox::cli {
namespace {

using Json = nlohmann::ordered_json;
using verify::Verdict;

constexpr const char* kVerifyFooter =
    R"(`convert --keep-bodies` stores the bodies of fused ops. Fused op and body run on values of every class: normal, tiny, large,
zero, one-hot, extremes; the body in f64 if all its ops support it.
Exit code 1: an op differs from its body, or no op with a stored body can be verified.

Examples:
  fusebox verify model.tflite --plugin my_op.so
  fusebox verify model.tflite --seed 7 --json)";

struct VerifyFlags {
  std::string model;
  uint64_t seed = 1;
  PluginFlags plugins;
  bool json = false;
};

std::string_view NameOf(Verdict::Outcome outcome) {
  switch (outcome) {
    case Verdict::Outcome::kAgrees: return "agrees";
    case Verdict::Outcome::kDiffers: return "differs";
    case Verdict::Outcome::kNotVerified: return "not verified";
  }
  return "not verified";
}

void PrintText(const std::vector<verify::Row>& rows) {
  if (rows.empty()) {
    Print("the file contains no body of a fused op\n");
    return;
  }
  Table table({"function", "node", "op", "plugin", "result"});
  for (const verify::Row& row : rows) {
    const std::string why = row.verdict.why.empty() ? "" : ": " + row.verdict.why;
    const bool agrees = row.verdict.outcome == Verdict::Outcome::kAgrees;
    table.Row({row.function, row.node, row.op, row.plugin,
               agrees ? row.verdict.Summary() : std::string(NameOf(row.verdict.outcome)) + why});
  }
  Print(table.Text());
}

void PrintJson(const VerifyFlags& flags, const std::vector<verify::Row>& rows) {
  Json ops = Json::array();
  for (const verify::Row& row : rows) {
    Json cases = Json::array();
    for (const verify::Case& c : row.verdict.cases)
      cases.push_back({{"name", c.name}, {"passed", c.passed}, {"worst", c.worst}, {"where", c.where}});
    ops.push_back({{"function", row.function},
                   {"node", row.node},
                   {"op", row.op},
                   {"plugin", row.plugin},
                   {"outcome", NameOf(row.verdict.outcome)},
                   {"truth", row.verdict.truth},
                   {"reason", row.verdict.why},
                   {"cases", std::move(cases)}});
  }
  PrintDocument(Json{{"model", flags.model}, {"seed", flags.seed}, {"ops", std::move(ops)}});
}

Result<Exit> Verify(const VerifyFlags& flags) {
  FUSEBOX_ASSIGN(auto registry, OpenRegistry(flags.plugins));
  FUSEBOX_ASSIGN(const auto module, tflite::ReadFile(flags.model));
  FUSEBOX_TRY(AttachFused(*module).At(flags.model));
  FUSEBOX_ASSIGN(
      const auto rows,
      verify::VerifyModel(*module, std::move(registry), {.all = true, .seed = flags.seed}).At(flags.model));
  flags.json ? PrintJson(flags, rows) : PrintText(rows);
  const auto any = [&](Verdict::Outcome outcome) {
    return std::ranges::any_of(rows, [&](const verify::Row& row) { return row.verdict.outcome == outcome; });
  };
  const bool verified = rows.empty() || any(Verdict::Outcome::kAgrees);
  return any(Verdict::Outcome::kDiffers) || !verified ? Exit::kNo : Exit::kDone;
}

}  // namespace

void AddVerify(CLI::App& root, Action& action) {
  CLI::App* app = root.add_subcommand(
      "verify", "Compare each fused op of a .tflite file with the body stored in the file");
  auto flags = std::make_shared<VerifyFlags>();
  app->add_option("model", flags->model, "The .tflite file")->type_name("MODEL")->required();
  app->add_option("--seed", flags->seed, "Seed of the values")
      ->type_name("N")
      ->check(CheckWholeNumber)
      ->capture_default_str();
  AddPluginFlags(*app, flags->plugins);
  app->add_flag("--json", flags->json, kJsonHelp);
  app->footer(kVerifyFooter);
  app->callback([flags, &action] { action = [flags] { return Verify(*flags); }; });
}

}  // namespace fusebox::cli
