// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cmath>

#include "cli/checks.h"
#include "cli/command.h"
#include "cli/difference.h"
#include "cli/opened.h"
#include "cli/plugin_flags.h"
#include "cli/print.h"
#include "cli/seeded.h"
#include "host/base/table.h"

namespace fusebox::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCompareFooter =
    R"(Inputs and outputs are matched by name if both models have the name, else by order. Run r uses inputs generated from
seed + r, as in `fusebox run --seed`, and both models keep their state between runs.
An element differs if |a - b| > atol + rtol |b|. Exit code 1: the models differ.

Examples:
  fusebox compare fused.tflite unfused.tflite --runs 10
  fusebox compare a.tflite b.tflite --atol 1e-6 --rtol 0)";

struct CompareFlags {
  std::string a, b;
  SessionOptions session;
  uint64_t seed = 1;
  int runs = 1;
  Tolerance tolerance;
  PluginFlags plugins;
  bool json = false;
};

struct Row {
  std::string name;
  Type type;
  Difference difference;
};

// For each port of `a` the index of its match in `b`, -1: none.
std::vector<int> Match(const std::vector<Port>& a, const std::vector<Port>& b) {
  std::vector<int> partner(a.size(), -1);
  std::vector<bool> taken(b.size(), false);
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size() && partner[i] < 0; ++j) {
      if (taken[j] || a[i].name.empty() || (a[i].name != b[j].name && a[i].tensor != b[j].tensor)) continue;
      partner[i] = static_cast<int>(j);
      taken[j] = true;
    }
  }
  size_t next = 0;
  for (int& index : partner) {
    while (next < b.size() && taken[next]) ++next;
    if (index >= 0 || next == b.size()) continue;
    index = static_cast<int>(next);
    taken[next] = true;
  }
  return partner;
}

// The common type of both; dimensions that are unknown in both stay unknown.
Result<Type> Common(const Type& a, const Type& b) {
  Type out = a.shape.ranked() ? a : b;
  for (size_t d = 0; a.shape.rank() == b.shape.rank() && d < out.shape.dims().size(); ++d) {
    if (out.shape.dims()[d] < 0) out.shape.dims()[d] = b.shape[d];
  }
  if (Compatible(out, a) && Compatible(out, b)) return out;
  return Invalid("takes " + ToString(a) + " in one model and " + ToString(b) + " in the other");
}

Status SetSeeded(Opened& a, Opened& b, const std::vector<int>& partner, uint64_t seed) {
  for (size_t i = 0; i < partner.size(); ++i) {
    const std::string place = "input " + a.ports.inputs[i].name;
    const Port& other = b.ports.inputs[static_cast<size_t>(partner[i])];
    FUSEBOX_ASSIGN(const Type type, Common(a.ports.inputs[i].type, other.type).At(place));
    FUSEBOX_ASSIGN(const Tensor value, SeededTensor(type, seed, i).At(place));
    FUSEBOX_TRY(a.session->SetInput(static_cast<int>(i), value));
    FUSEBOX_TRY(b.session->SetInput(partner[i], value));
  }
  return {};
}

// Adds the differences of one run to the rows. An output of only one model gets its own row.
Status AddRun(const Opened& a, const Opened& b, const std::vector<int>& partner, const Tolerance& tolerance,
              std::vector<Row>& rows) {
  FUSEBOX_ASSIGN(const auto left, CopyOutputs(*a.session));
  FUSEBOX_ASSIGN(const auto right, CopyOutputs(*b.session));
  for (size_t i = 0; i < left.size(); ++i) {
    if (partner[i] < 0) continue;
    FUSEBOX_ASSIGN(const Difference d, Compare(left[i], right[static_cast<size_t>(partner[i])], tolerance));
    rows[i].type = left[i].type;
    rows[i].difference.Add(d);
  }
  return {};
}

std::vector<Row> RowsOf(const Opened& a, const Opened& b, const std::vector<int>& partner) {
  std::vector<Row> rows;
  std::vector<bool> taken(b.ports.outputs.size(), false);
  for (size_t i = 0; i < partner.size(); ++i) {
    const Port& port = a.ports.outputs[i];
    rows.push_back({port.name, port.type, {}});
    if (partner[i] >= 0) {
      taken[static_cast<size_t>(partner[i])] = true;
    } else {
      rows.back().difference.within = false;
      rows.back().difference.where = "only in " + a.path;
    }
  }
  for (size_t j = 0; j < taken.size(); ++j) {
    if (taken[j]) continue;
    const Port& port = b.ports.outputs[j];
    rows.push_back({port.name, port.type, {.within = false, .where = "only in " + b.path}});
  }
  return rows;
}

void PrintText(const CompareFlags& flags, const std::vector<Row>& rows) {
  Table table({"output", "type", "largest difference", "relative", "result", "where"});
  Difference all;
  for (const Row& row : rows) {
    const Difference& d = row.difference;
    table.Row({row.name, ToString(row.type), fmt::format("{:.3g}", d.absolute),
               fmt::format("{:.3g}", d.relative), d.within ? "equal" : "differs", d.where});
    all.Add(d);
  }
  Print(table.Text());
  Print(fmt::format("{}: {} and {}, {} run{}, seed {}: largest difference {:.3g} (atol {:g}, rtol {:g})\n",
                    all.within ? "equal" : "differs", flags.a, flags.b, flags.runs,
                    flags.runs == 1 ? "" : "s", flags.seed, all.absolute, flags.tolerance.atol,
                    flags.tolerance.rtol));
  if (!all.within && std::isfinite(all.atol) && all.atol > 0)
    Print(fmt::format("would be equal with --atol {:.3g} --rtol {:g}\n", all.atol * 1.01,
                      flags.tolerance.rtol));
}

// JSON has no infinity: null.
Json Finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

void PrintJson(const CompareFlags& flags, const std::vector<Row>& rows) {
  Json outputs = Json::array();
  Difference all;
  for (const Row& row : rows) {
    const Difference& d = row.difference;
    outputs.push_back({{"name", row.name},
                       {"type", ToString(row.type)},
                       {"equal", d.within},
                       {"max_absolute", Finite(d.absolute)},
                       {"max_relative", Finite(d.relative)},
                       {"where", d.where}});
    all.Add(d);
  }
  PrintDocument(Json{{"a", flags.a},
                     {"b", flags.b},
                     {"seed", flags.seed},
                     {"runs", flags.runs},
                     {"atol", flags.tolerance.atol},
                     {"rtol", flags.tolerance.rtol},
                     {"equal", all.within},
                     {"max_absolute", Finite(all.absolute)},
                     {"outputs", std::move(outputs)}});
}

Result<Exit> RunCompare(const CompareFlags& flags) {
  FUSEBOX_ASSIGN(auto registry, OpenRegistry(flags.plugins));
  FUSEBOX_ASSIGN(Opened a, Open(flags.a, {.registry = registry}, flags.session));
  FUSEBOX_ASSIGN(Opened b, Open(flags.b, {.registry = registry}, flags.session));
  const std::string place = flags.a + " and " + flags.b;
  if (a.ports.inputs.size() != b.ports.inputs.size())
    return Invalid(fmt::format("{}: {} and {} inputs", place, a.ports.inputs.size(), b.ports.inputs.size()));
  const std::vector<int> inputs = Match(a.ports.inputs, b.ports.inputs),
                         outputs = Match(a.ports.outputs, b.ports.outputs);
  std::vector<Row> rows = RowsOf(a, b, outputs);
  for (int r = 0; r < flags.runs; ++r) {
    FUSEBOX_TRY(SetSeeded(a, b, inputs, flags.seed + static_cast<uint64_t>(r)).At(place));
    FUSEBOX_TRY(a.session->Run());
    FUSEBOX_TRY(b.session->Run());
    FUSEBOX_TRY(AddRun(a, b, outputs, flags.tolerance, rows).At(place));
  }
  flags.json ? PrintJson(flags, rows) : PrintText(flags, rows);
  const bool equal =
      std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.difference.within; });
  return equal ? Exit::kDone : Exit::kNo;
}

}  // namespace

void AddCompare(CLI::App& root, Action& action) {
  CLI::App* app =
      root.add_subcommand("compare", "Run two .tflite files on the same inputs and compare their outputs");
  auto flags = std::make_shared<CompareFlags>();
  app->add_option("model_a", flags->a, "The first .tflite file")->type_name("MODEL_A")->required();
  app->add_option("model_b", flags->b, "The second .tflite file; tolerances are relative to it")
      ->type_name("MODEL_B")
      ->required();
  app->add_option("--signature", flags->session.signature, "Signature to run")->type_name("KEY");
  app->add_option("--seed", flags->seed, "Seed of the first run's inputs")
      ->type_name("N")
      ->check(CheckWholeNumber)
      ->capture_default_str();
  app->add_option("--runs", flags->runs, "Number of runs, each with different inputs")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app->add_option("--atol", flags->tolerance.atol, "Absolute tolerance")
      ->type_name("X")
      ->check(CheckTolerance)
      ->capture_default_str();
  app->add_option("--rtol", flags->tolerance.rtol, "Relative tolerance")
      ->type_name("X")
      ->check(CheckTolerance)
      ->capture_default_str();
  AddPluginFlags(*app, flags->plugins);
  app->add_flag("--json", flags->json, kJsonHelp);
  app->footer(kCompareFooter);
  app->callback([flags, &action] { action = [flags] { return RunCompare(*flags); }; });
}

}  // namespace fusebox::cli
