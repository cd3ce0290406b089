// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cmath>

#include "cli/base/checks.h"
#include "cli/base/command.h"
#include "cli/base/opened.h"
#include "cli/base/plugin_flags.h"
#include "cli/base/print.h"
#include "cli/compare/layers.h"
#include "cli/inspect/inspect.h"
#include "host/base/table.h"
#include "host/fusion/fusion.h"
#include "host/verify/cases.h"

namespace fusebox::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCompareFooter =
    R"(Inputs and outputs are matched by name if both models have the name, else by order. Run r uses inputs generated from
seed + r, as in `fusebox run --seed`, and both models keep their state between runs.
An element differs if |a - b| > atol + rtol |b|. Without --atol and --rtol, the tolerances of the rules that fused ops of
either model apply too, if they are larger. Exit code 1: the models differ.
--layers also compares the result of each node, matched by name, else by position, as real numbers: quantized values are
dequantized. "error" is the rms of the difference, relative to that of the second model's values.

Examples:
  fusebox compare fused.tflite unfused.tflite --runs 10
  fusebox compare model.tflite --with none --layers        # XNNPACK beside kernels, node by node
  fusebox compare model.tflite --with f64 --layers         # beside the same model in double precision
  fusebox compare int8.tflite float.tflite --layers --atol 0.1 --html layers.html
  fusebox compare a.tflite b.tflite --atol 1e-6 --rtol 0)";

struct CompareFlags {
  std::string a, b, with;
  SessionOptions session;
  uint64_t seed = 1;
  int runs = 1;
  Tolerance tolerance;
  bool tolerance_given = false;
  PluginFlags plugins;
  DelegateFlags delegates;
  bool json = false;
  bool layers = false;
  std::string html;
};

bool IsF64(const CompareFlags& flags) { return flags.with == "f64"; }

struct Row {
  std::string name;
  Type type;
  Difference difference;
};

// Returns for each port of `a` the index of its match in `b`, or -1 if it has none.
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

// Plans both before the values, which may be large, are generated.
Status SetSeeded(Opened& a, Opened& b, const std::vector<int>& partner, uint64_t seed) {
  std::vector<Tensor> values;
  for (size_t i = 0; i < partner.size(); ++i) {
    const std::string place = "input " + a.ports.inputs[i].name;
    const Type own = a.ports.inputs[i].type;
    const auto other = static_cast<size_t>(partner[i]);
    Type theirs = b.ports.inputs[other].type;
    if (own.dtype == DType::kF32 && theirs.dtype == DType::kF64) theirs.dtype = DType::kF32;
    FUSEBOX_ASSIGN(const Type type, Common(own, theirs).At(place));
    FUSEBOX_ASSIGN(values.emplace_back(), SeededValue(type, seed, i).At(place));
    FUSEBOX_TRY(ShapeInput(*a.session, i, values[i]));
    FUSEBOX_TRY(ShapeInput(*b.session, other, values[i]));
  }
  FUSEBOX_TRY(a.session->Prepare());
  FUSEBOX_TRY(b.session->Prepare());
  FUSEBOX_TRY(SetInputs(*a.session, values, seed));
  for (size_t i = 0; i < partner.size(); ++i) {
    if (b.ports.inputs[static_cast<size_t>(partner[i])].type.dtype == values[i].type.dtype) {
      FUSEBOX_TRY(b.session->SetInput(partner[i], values[i]));
      continue;
    }
    FUSEBOX_ASSIGN(const std::span<std::byte> wide, b.session->InputData(partner[i]));
    std::ranges::copy(values[i].data.As<float>(), reinterpret_cast<double*>(wide.data()));
  }
  return {};
}

// Adds the differences of one run to the rows. An output of only one model gets its own row.
Status AddRun(const Opened& a, const Opened& b, const std::vector<int>& partner, const Tolerance& tolerance,
              std::vector<Row>& rows) {
  FUSEBOX_ASSIGN(const auto left, Outputs(*a.session));
  FUSEBOX_ASSIGN(const auto right, Outputs(*b.session));
  for (size_t i = 0; i < left.size(); ++i) {
    if (partner[i] < 0) continue;
    const Tensor& other = right[static_cast<size_t>(partner[i])];
    FUSEBOX_ASSIGN(const Difference d, Compare(left[i], other, tolerance));
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

std::string NameOfB(const CompareFlags& flags) {
  return flags.with.empty() ? flags.b : flags.a + " with " + flags.with;
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
                    all.within ? "equal" : "differs", flags.a, NameOfB(flags), flags.runs,
                    flags.runs == 1 ? "" : "s", flags.seed, all.absolute, flags.tolerance.atol,
                    flags.tolerance.rtol));
  if (!all.within && std::isfinite(all.atol) && all.atol > 0)
    Print(fmt::format("would be equal with --atol {:.3g} --rtol {:g}\n", all.atol * 1.01,
                      flags.tolerance.rtol));
}

// JSON has no infinity: null.
Json Finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

void PrintJson(const CompareFlags& flags, const std::vector<Row>& rows, std::span<const Layer> layers) {
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
  Json out = {{"a", flags.a},
              {"b", NameOfB(flags)},
              {"seed", flags.seed},
              {"runs", flags.runs},
              {"atol", flags.tolerance.atol},
              {"rtol", flags.tolerance.rtol},
              {"equal", all.within},
              {"max_absolute", Finite(all.absolute)},
              {"outputs", std::move(outputs)}};
  if (flags.layers) out["layers"] = ToJson(layers);
  PrintDocument(out);
}

struct Side {
  ModelOptions options;
  Opened opened;
};

Result<Side> OpenSide(const CompareFlags& flags, const std::shared_ptr<Registry>& registry,
                      const std::string& path, const DelegateFlags& delegates) {
  Side out;
  FUSEBOX_ASSIGN(out.options, ModelOptionsOf(registry, delegates));
  FUSEBOX_ASSIGN(out.opened, Open(path, out.options, flags.session));
  return out;
}

// The model in double precision, on kernels.
Result<Side> OpenF64(const CompareFlags& flags, const std::shared_ptr<Registry>& registry) {
  FUSEBOX_ASSIGN(
      Side out,
      OpenSide(flags, registry, flags.a,
               {.delegates = {"none"}, .weight_cache = {}, .import_ops = flags.delegates.import_ops}));
  std::unique_ptr<Module> module = Clone(out.opened.model->module());
  verify::RetypeToF64(*module);
  verify::RetypeWeightsToF64(*module);
  out.options.name = flags.a + " in f64";
  FUSEBOX_ASSIGN(out.opened.model, Model::FromModule(std::move(module), out.options));
  FUSEBOX_ASSIGN(out.opened.session, Session::Create(out.opened.model, flags.session));
  out.opened.ports = PortsOf(*out.opened.model, *out.opened.session, flags.session.signature);
  return out;
}

Result<Side> OpenSecond(const CompareFlags& flags, const std::shared_ptr<Registry>& registry) {
  if (IsF64(flags)) return OpenF64(flags, registry);
  if (flags.with.empty()) return OpenSide(flags, registry, flags.b, flags.delegates);
  return OpenSide(flags, registry, flags.a,
                  {{flags.with}, flags.delegates.weight_cache, flags.delegates.import_ops});
}

Result<std::vector<Layer>> RunLayers(const CompareFlags& flags, const Side& a, const Side& b,
                                     const std::vector<int>& inputs) {
  FUSEBOX_ASSIGN(Exposed left, Expose(a.opened, a.options, flags.session));
  FUSEBOX_ASSIGN(Exposed right, Expose(b.opened, b.options, flags.session));
  const std::vector<int> partners = MatchLayers(left.layers, right.layers);
  std::vector<Squares> squares(partners.size());
  for (int r = 0; r < flags.runs; ++r) {
    FUSEBOX_TRY(SetSeeded(left.opened, right.opened, inputs, flags.seed + static_cast<uint64_t>(r)));
    FUSEBOX_TRY(left.opened.session->Run());
    FUSEBOX_TRY(right.opened.session->Run());
    FUSEBOX_TRY(AddLayers(left, right, partners, flags.tolerance, squares));
  }
  return std::move(left.layers);
}

Status WriteHtml(const CompareFlags& flags, const Side& a, std::span<const Layer> layers) {
  if (!flags.b.empty()) FUSEBOX_TRY(RequireNotRead("--html", flags.html, flags.b));
  const Json json = {{"with", NameOfB(flags)},
                     {"atol", flags.tolerance.atol},
                     {"rtol", flags.tolerance.rtol},
                     {"rows", ToJson(layers)}};
  return WriteLayersPage(flags.html, *a.opened.model, a.options, FunctionOf(a.opened), json);
}

// A fused op may differ from its body by the tolerance of its rule.
void AllowForRules(const Model& model, Registry& registry, Tolerance& tolerance) {
  for (const auto& f : model.module().functions) {
    for (const auto& node : f->nodes) {
      const fbx_tolerance of_rule = ToleranceOf(registry, *node);
      tolerance.atol = std::max(tolerance.atol, of_rule.atol);
      tolerance.rtol = std::max(tolerance.rtol, of_rule.rtol);
    }
  }
}

Result<Exit> RunCompare(CompareFlags flags) {
  if (flags.b.empty() == flags.with.empty())
    return Invalid("compare: needs two models, or one model and --with");
  FUSEBOX_ASSIGN(auto registry, OpenRegistry(flags.plugins));
  FUSEBOX_ASSIGN(Side first, OpenSide(flags, registry, flags.a, flags.delegates));
  FUSEBOX_ASSIGN(Side second, OpenSecond(flags, registry));
  Opened& a = first.opened;
  Opened& b = second.opened;
  for (const Opened* of : {&a, &b})
    if (!flags.tolerance_given) AllowForRules(*of->model, *registry, flags.tolerance);
  const std::string place = flags.a + " and " + NameOfB(flags);
  if (a.ports.inputs.size() != b.ports.inputs.size())
    return Invalid(fmt::format("{}: {} and {} inputs", place, a.ports.inputs.size(), b.ports.inputs.size()));
  const std::vector<int> inputs = Match(a.ports.inputs, b.ports.inputs);
  const std::vector<int> outputs = Match(a.ports.outputs, b.ports.outputs);
  std::vector<Row> rows = RowsOf(a, b, outputs);
  for (int r = 0; r < flags.runs; ++r) {
    FUSEBOX_TRY(SetSeeded(a, b, inputs, flags.seed + static_cast<uint64_t>(r)).At(place));
    FUSEBOX_TRY(a.session->Run());
    FUSEBOX_TRY(b.session->Run());
    FUSEBOX_TRY(AddRun(a, b, outputs, flags.tolerance, rows).At(place));
  }
  std::vector<Layer> layers;
  if (flags.layers) {
    FUSEBOX_ASSIGN(layers, RunLayers(flags, first, second, inputs).At(place));
  }
  if (!flags.html.empty()) FUSEBOX_TRY(WriteHtml(flags, first, layers));
  if (flags.layers && !flags.json) Print(ToText(layers, flags.tolerance) + "\n");
  flags.json ? PrintJson(flags, rows, layers) : PrintText(flags, rows);
  const auto equal = [](const auto& row) { return row.difference.within; };
  return std::ranges::all_of(rows, equal) && std::ranges::all_of(layers, equal) ? Exit::kDone : Exit::kNo;
}

}  // namespace

void AddCompare(CLI::App& root, Action& action) {
  CLI::App* app =
      root.add_subcommand("compare", "Run two .tflite files on the same inputs and compare their outputs");
  auto flags = std::make_shared<CompareFlags>();
  app->add_option("model_a", flags->a, "The first .tflite file")->type_name("MODEL_A")->required();
  app->add_option("model_b", flags->b, "The second .tflite file; tolerances are relative to it")
      ->type_name("MODEL_B");
  app->add_option(
         "--with", flags->with,
         "Instead of a second model, the first one with another delegate (none, NAME or NAME:{JSON}), or "
         "in double precision on kernels (f64)")
      ->type_name("WHAT")
      ->check(CheckNotEmpty);
  CLI::Option* layers = app->add_flag("--layers", flags->layers, "Also compare the result of each node");
  app->add_option("--html", flags->html,
                  "Write a page with the graph of MODEL_A and the differences of its nodes")
      ->type_name("FILE")
      ->check(CheckNotEmpty)
      ->needs(layers);
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
  AddMemoryLimit(*app, flags->session);
  AddPluginFlags(*app, flags->plugins);
  AddDelegateFlags(*app, flags->delegates);
  app->add_flag("--json", flags->json, kJsonHelp);
  app->footer(kCompareFooter);
  app->callback([flags, app, &action] {
    flags->tolerance_given = app->count("--atol") + app->count("--rtol") > 0;
    action = [flags] { return RunCompare(*flags); };
  });
}

}  // namespace fusebox::cli
