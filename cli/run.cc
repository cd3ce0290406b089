// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>

#include "cli/base/checks.h"
#include "cli/base/command.h"
#include "cli/base/elements.h"
#include "cli/base/opened.h"
#include "cli/base/plugin_flags.h"
#include "cli/base/print.h"
#include "cli/base/progress.h"
#include "cli/base/trace_file.h"
#include "cli/bench/statistics.h"
#include "cli/output_dir.h"
#include "host/base/table.h"
#include "host/verify/shadow_json.h"

namespace fusebox::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShown = 8;  // per output

constexpr const char* kRunFooter =
    R"(Inputs without a file are generated from --seed (SplitMix64): floats in [-1, 1), 8-bit and 16-bit integers over their
whole range, wider ones 0 to 3. Unknown dimensions are 1.

Examples:
  fusebox run model.tflite --seed 3 --runs 20
  fusebox run model.tflite --input image=cat.npy --output-dir out
  fusebox run model.tflite --shape image=8,224,224,3 --runs 20
  fusebox run model.tflite --plugin build/dev/plugins --explain
  fusebox run model.tflite --plugin build/dev/plugins --delegate none
  fusebox run model.tflite --plugin build/dev/plugins --weight-cache auto)";

struct RunFlags {
  std::string model, output_dir, trace;
  SessionOptions session;
  InputFlags inputs;
  PluginFlags plugins;
  DelegateFlags delegates;
  Missing missing = Missing::kWarn;
  int runs = 1;
  bool explain = false;
  bool json = false;
};

struct Measured {
  std::vector<Tensor> inputs;
  std::vector<std::vector<Tensor>> runs;  // only the last one, if the others are not needed
  double median_us = 0;
};

// State is kept between runs.
Result<Measured> RunAll(const RunFlags& flags, Opened& opened, ProgressBar& bar) {
  using Clock = std::chrono::steady_clock;
  Measured out;
  FUSEBOX_ASSIGN(out.inputs, ReadInputs(flags.inputs, opened));
  FUSEBOX_TRY(opened.session->Prepare());
  FUSEBOX_TRY(SetInputs(*opened.session, out.inputs, flags.inputs.seed));
  bar.Finish();
  std::vector<double> times;
  for (int r = 0; r < flags.runs; ++r) {
    const Clock::time_point start = Clock::now();
    FUSEBOX_TRY(opened.session->Run());
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    if (flags.output_dir.empty() && r + 1 < flags.runs) continue;
    FUSEBOX_ASSIGN(auto outputs, Outputs(*opened.session));
    for (Tensor& output : outputs)
      if (r + 1 < flags.runs) output.data = Buffer::Copy(output.data.bytes());
    out.runs.push_back(std::move(outputs));
  }
  out.median_us = Median(times);
  return out;
}

std::string Fusions(const Model& model) {
  if (model.fusions().empty()) return {};
  Table table({"site", "rule", "plugin", "result"});
  for (const SiteReport& site : model.fusions()) {
    const std::string place = SiteText(site);
    for (const RuleReport& rule : site.rules) {
      std::string result(Name(rule.outcome));
      for (const std::string& reason : rule.reasons) result += ": " + reason;
      table.Row({place, rule.rule, rule.plugin + " " + rule.plugin_version, result});
    }
    if (site.rules.empty()) table.Row({place, "-", "-", site.why});
  }
  return table.Text() + "\n";
}

std::string Placements(const Session& session) {
  Table table({"function", "node", "op", "runner", "reason"});
  for (const Placement& row : session.placements())
    table.Row({row.function, FirstOfNames(row.node), row.op, row.runner, row.why});
  return table.Text() + "\n";
}

// "; --signature KEY selects another (infer, train)".
std::string Others(const Opened& opened) {
  std::string keys;
  for (const Model::Entry& entry : opened.model->entries()) {
    if (!entry.status || entry.signature.empty() || entry.signature == opened.session->signature()) continue;
    keys += (keys.empty() ? "" : ", ") + entry.signature;
  }
  return keys.empty() ? "; no other can run" : "; --signature KEY selects another (" + Printable(keys) + ")";
}

// The signatures that cannot run, if the user selected none.
std::vector<std::string> Refused(const RunFlags& flags, const Model& model) {
  std::vector<std::string> out;
  for (const Model::Entry& entry : model.entries()) {
    if (!entry.status && !entry.signature.empty() && flags.session.signature.empty())
      out.push_back("signature " + entry.signature + " cannot run: " + entry.status.error().message);
  }
  return out;
}

std::string Shadows(const Session& session) {
  Table table({"fused op", "node", "plugin", "calls", "compared", "worst error", "result"});
  for (const verify::ShadowRow& row : session.shadows()) {
    const std::string result = !row.why.empty()  ? "not compared: " + row.why
                               : row.drifted > 0 ? fmt::format("differs {} times: {}", row.drifted, row.where)
                                                 : "agrees";
    table.Row({row.op, FirstOfNames(row.node), row.plugin, std::to_string(row.calls),
               std::to_string(row.compared), fmt::format("{:.1e}", row.worst), result});
  }
  return table.empty() ? "no fused op with a body was called\n" : table.Text();
}

bool Drifted(const Session& session) {
  return std::ranges::any_of(session.shadows(), [](const auto& row) { return row.drifted > 0; });
}

Status PrintText(const RunFlags& flags, const Opened& opened, const Measured& measured) {
  if (flags.explain)
    Print(Fusions(*opened.model) + Placements(*opened.session) + opened.session->Explain() + "\n");
  if (const size_t count = opened.model->module().signatures.size(); count > 1)
    Print(fmt::format(
        "signature {}, one of {}{}\n\n",
        opened.session->signature().empty() ? "(none: the main subgraph)" : opened.session->signature(),
        count, Others(opened)));
  Table table({"output", "dtype", "shape", "first values"});
  const std::vector<Tensor>& outputs = measured.runs.back();
  for (size_t i = 0; i < outputs.size(); ++i) {
    FUSEBOX_ASSIGN(const std::string values, FirstElements(outputs[i], kShown));
    const Type& type = outputs[i].type;
    table.Row({opened.ports.outputs[i].name, std::string(Name(type.dtype)), ToString(type.shape), values});
  }
  Print(table.Text());
  // One run also packs weights and touches memory for the first time.
  const std::string what =
      flags.runs == 1 ? "first run" : fmt::format("median latency of {} runs", flags.runs);
  Print(fmt::format("{}: {:.1f} us ({} thread{})\n", what, measured.median_us, opened.session->threads(),
                    opened.session->threads() == 1 ? "" : "s"));
  if (flags.session.shadow > 0) Print("\n" + Shadows(*opened.session));
  return {};
}

Json Described(const Port& port, const Tensor& value) {
  return {{"name", port.name}, {"dtype", Name(value.type.dtype)}, {"shape", value.type.shape.dims()}};
}

Status PrintJson(const RunFlags& flags, const Opened& opened, const Measured& measured) {
  Json inputs = Json::array();
  Json outputs = Json::array();
  Json placements = Json::array();
  for (size_t i = 0; i < measured.inputs.size(); ++i)
    inputs.push_back(Described(opened.ports.inputs[i], measured.inputs[i]));
  for (size_t i = 0; i < measured.runs.back().size(); ++i) {
    const Tensor& value = measured.runs.back()[i];
    outputs.push_back(Described(opened.ports.outputs[i], value));
    FUSEBOX_ASSIGN(outputs.back()["first_values"], FirstElementsJson(value, kShown));
  }
  for (const Placement& row : opened.session->placements())
    placements.push_back({{"function", row.function},
                          {"node", row.node},
                          {"op", row.op},
                          {"runner", row.runner},
                          {"reason", row.why}});
  Json out = {{"model", opened.path},
              {"signature", opened.session->signature()},
              {"inputs", std::move(inputs)},
              {"outputs", std::move(outputs)},
              {"runs", flags.runs},
              {"threads", opened.session->threads()},
              {"median_us", measured.median_us},
              {"notices", opened.model->notices()}};
  for (const std::string& notice : opened.session->notices()) out["notices"].push_back(notice);
  for (std::string& refused : Refused(flags, *opened.model)) out["notices"].push_back(std::move(refused));
  if (flags.explain) out["placements"] = std::move(placements);
  if (const auto shadows = opened.session->shadows(); !shadows.empty())
    out["shadows"] = verify::ToJson(shadows);
  PrintDocument(out);
  return {};
}

Result<Exit> Run(const RunFlags& flags) {
  FUSEBOX_ASSIGN(auto registry, OpenRegistry(flags.plugins));
  FUSEBOX_ASSIGN(ModelOptions options, ModelOptionsOf(std::move(registry), flags.delegates));
  options.missing = flags.missing;
  ProgressBar bar;
  SessionOptions session = flags.session;
  if (!flags.delegates.weight_cache.empty()) session.progress = bar.listener();
  FUSEBOX_ASSIGN(Opened opened, Open(flags.model, options, session));
  FUSEBOX_ASSIGN(const Measured measured, RunAll(flags, opened, bar));
  PrintNotices(opened.path, opened.session->notices());
  PrintNotices(opened.path, Refused(flags, *opened.model));
  if (!flags.output_dir.empty())
    FUSEBOX_TRY(WriteOutputDir(flags.output_dir, opened.ports, measured.inputs, measured.runs));
  FUSEBOX_TRY(flags.json ? PrintJson(flags, opened, measured) : PrintText(flags, opened, measured));
  return Drifted(*opened.session) ? Exit::kNo : Exit::kDone;
}

}  // namespace

void AddRun(CLI::App& root, Action& action) {
  CLI::App* app = root.add_subcommand("run", "Run a .tflite file and print its outputs");
  auto flags = std::make_shared<RunFlags>();
  app->add_option("model", flags->model, "The .tflite file")->type_name("MODEL")->required();
  app->add_option("--signature", flags->session.signature,
                  "Signature to run; default: the first one in the file")
      ->type_name("KEY")
      ->check(CheckNotEmpty);
  AddInputFlags(*app, flags->inputs);
  app->add_option("--output-dir", flags->output_dir, "Folder for in<i>.npy, run<r>.out<i>.npy and io.json")
      ->type_name("DIR")
      ->check(CheckNotEmpty);
  app->add_option("--runs", flags->runs, "Number of runs with the same inputs")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app->add_option("--threads", flags->session.threads,
                  "Threads per run, at most one per available core; 0: one per core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app->add_option(
         "--shadow", flags->session.shadow,
         "Also run the body at every N-th call of a fused op, and compare (exit code 1: they differ)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000'000));
  app->add_option("--missing", flags->missing,
                  "If the plugin of a fused op or composite is missing: run its body with a notice (warn), "
                  "(fused ops) without one (body), or fail (error)")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Missing>{{"warn", Missing::kWarn},
                                                                         {"body", Missing::kBody},
                                                                         {"error", Missing::kError}})
                      .description("{warn,body,error}"))
      ->type_name("WHAT")
      ->default_str("warn");
  AddMemoryLimit(*app, flags->session);
  AddPluginFlags(*app, flags->plugins);
  AddDelegateFlags(*app, flags->delegates);
  app->add_flag("--explain", flags->explain,
                "Show what was fused at load, which plugin runs each node and why, and the plan");
  app->add_flag("--json", flags->json, kJsonHelp);
  app->footer(kRunFooter);
  AddTraceFlag(*app, flags->trace,
               "Write what happened when (open, plan, runs, nodes, threads) for Perfetto, chrome://tracing "
               "or speedscope");
  app->callback([flags, &action] {
    action = [flags]() -> Result<Exit> {
      FUSEBOX_TRY(RequireTraceApart(flags->trace, {flags->model}, {}));
      return RunTraced(flags->trace, [&] { return Run(*flags); });
    };
  });
}

}  // namespace fusebox::cli
