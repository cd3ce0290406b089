// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <set>

#include "cli/base/checks.h"
#include "cli/base/command.h"
#include "cli/base/inputs.h"
#include "cli/base/plugin_flags.h"
#include "cli/base/print.h"
#include "cli/base/progress.h"
#include "cli/base/trace_file.h"
#include "converter/passes/pass.h"
#include "converter/words.h"
#include "host/base/buffer.h"
#include "host/base/json.h"
#include "host/base/table.h"

namespace fusebox::cli {
namespace {

using converter::Conversion, converter::Meaning, converter::Report, converter::Words;
using converter::kComposites, converter::kEndTypes, converter::kKeepBodies, converter::kPlaceholders,
    converter::kQuantize, converter::kVerify;

constexpr const char* kConvertFooter =
    R"(INPUT is the folder of a TensorFlow SavedModel, a frozen graph of TensorFlow 1 (.pb or .pbtxt), a Keras file of a whole model
(.h5, .hdf5 or .keras), or a .tflite file, whose Flex ops, loops and composites are translated, fused and optimized. If the
conversion fails, no model is written.

Exit code 1: no signature converts; with --verify strict, an op differs from its body, the body is too inexact to show it, or
a rule failed (the file is written with the composite's own body);
or a composite is not fused with --require-full-fusion (no file is written).

Examples:
  fusebox convert saved_model -o model.tflite --batch 1 --explain
  fusebox convert saved_model -o model.tflite --plugin my_op.so --verify strict
  fusebox convert saved_model -o plain.tflite --composites inline
  fusebox convert frozen.pb -o model.tflite --inputs image --outputs scores --shape image=1,224,224,3)";

struct ConvertFlags {
  std::string input, output, report, dump_after, trace;
  std::vector<std::string> signatures, inputs, outputs, shapes;
  int64_t batch = 0;  // 0: not given
  std::string composites = "fuse";
  std::string keep_bodies = "custom";
  std::string verify = "sample";
  std::string quantize = "none";
  bool per_channel_fc = false;
  std::string input_type = "float32";
  std::string output_type = "float32";
  std::string calibration;
  std::string placeholders = "fuse";
  uint64_t verify_seed = 1;
  PluginFlags plugins;
  bool explain = false;
  bool json = false;
  bool quiet = false;
  bool require_full_fusion = false;
  bool verify_given = false;
};

// Adds an option with a fixed set of values.
template <class T>
void AddChoice(CLI::App& app, const char* flag, std::string& value, const Words<T>& words, const char* help) {
  std::vector<std::string> names;
  for (const auto& [name, meaning] : words) names.push_back(name);
  app.add_option(flag, value, help)->check(CLI::IsMember(names))->type_name("")->capture_default_str();
}

Status CheckPass(const std::string& wanted) {
  std::vector<std::string> names;
  std::string list;
  for (const converter::Pass& pass : converter::Passes()) {
    if (pass.name == wanted) return {};
    names.emplace_back(pass.name);
    list += fmt::format("\n  {:<17}  {}", pass.name, pass.what);
  }
  return Invalid("--dump-after " + wanted + ": no such pass" + DidYouMean(wanted, names) +
                 "; passes:" + list);
}

// Rejects options that exclude each other.
Status CheckTogether(const ConvertFlags& flags) {
  if (flags.placeholders == "error" && flags.verify == "off")
    return Invalid("--placeholders error has no effect with --verify off");
  if (flags.composites == "fuse") return {};
  const auto idle = [&](const std::string& option) {
    return Invalid(option + " has no effect with --composites " + flags.composites + ", which fuses nothing");
  };
  if (flags.require_full_fusion) return idle("--require-full-fusion");
  if (flags.verify_given && flags.verify != "off") return idle("--verify " + flags.verify);
  if (flags.keep_bodies == "all") return idle("--keep-bodies all");
  if (flags.placeholders == "error") return idle("--placeholders error");
  return {};
}

Result<converter::Options> OptionsOf(const ConvertFlags& flags) {
  FUSEBOX_TRY(CheckTogether(flags));
  converter::Options options;
  options.signatures = flags.signatures;
  options.inputs = flags.inputs;
  options.outputs = flags.outputs;
  if (flags.batch > 0) options.batch = flags.batch;
  for (const std::string& text : flags.shapes) {
    FUSEBOX_ASSIGN(auto named, ParseShape(text));
    if (!options.shapes.insert(std::move(named)).second) return Invalid("--shape " + text + ": given twice");
  }
  options.composites = Meaning(kComposites, flags.composites);
  options.keep_bodies = Meaning(kKeepBodies, flags.keep_bodies);
  options.verify = Meaning(kVerify, flags.verify);
  options.verify_seed = flags.verify_seed;
  options.placeholders = Meaning(kPlaceholders, flags.placeholders);
  options.quantization = Meaning(kQuantize, flags.quantize);
  options.calibration = flags.calibration;
  options.per_channel_fc = flags.per_channel_fc;
  options.input_type = Meaning(kEndTypes, flags.input_type);
  options.output_type = Meaning(kEndTypes, flags.output_type);
  if (!flags.dump_after.empty()) {
    FUSEBOX_TRY(CheckPass(flags.dump_after));
    options.after_pass = [wanted = flags.dump_after](std::string_view pass, const Module& module) {
      if (pass == wanted) Print(ToText(module));
    };
  }
  FUSEBOX_ASSIGN(options.registry, OpenRegistry(flags.plugins));
  return options;
}

void MessageEach(const Report& report) {
  for (const auto& [signature, why] : report.refused)
    Message("signature " + signature + " is refused: " + why);
  for (const std::string& note : report.notes) Message(note);
}

// Reports the fused ops that differ from their bodies and the rules that failed, and how to reproduce.
void MessageFailed(const ConvertFlags& flags, const Report& report) {
  using enum RuleReport::Outcome;
  for (const SiteReport& site : report.sites) {
    for (const RuleReport& rule : site.rules) {
      if (rule.outcome != kDiffers && (site.fused || rule.outcome != kError)) continue;
      std::string text = SiteText(site) + " keeps its body: rule " + rule.rule + " of " + rule.plugin + ": " +
                         std::string(Name(rule.outcome));
      for (const std::string& reason : rule.reasons) text += ": " + reason;
      Message(text);
    }
  }
  Message("to reproduce: fusebox convert " + flags.input + " -o OUT --verify " + flags.verify +
          " --verify-seed " + std::to_string(flags.verify_seed) + ", with the same plugins");
}

// Reports composites that cannot be verified: sample fuses them, strict only placeholders.
void MessageUnverified(const Report& report) {
  for (const SiteReport& site : report.sites) {
    if (!site.verification.empty() && !site.compared)
      Message(SiteText(site) + ": " + (site.fused ? "fused, " : "not fused: ") + site.verification);
  }
}

// Reports composites that were not fused; true if there are any.
bool MessageUnfused(const Report& report) {
  bool any = false;
  for (const SiteReport& site : report.sites) {
    if (site.fused) continue;
    any = true;
    Message("not fused: " + SiteText(site) + ": " + site.why);
  }
  return any;
}

// True if there were several signatures and none converts: a check failure. If there is only one, or the user
// selected some, it is an input error.
bool NoneConverts(const ConvertFlags& flags, const Report& report) {
  return flags.signatures.empty() && report.signatures.empty() && report.refused.size() > 1;
}

Result<converter::Converted> ConvertShowingProgress(Conversion& conversion) {
  ProgressBar bar(std::chrono::seconds(1));
  conversion.options.progress = bar.listener();
  auto converted = conversion.Convert();
  conversion.options.progress = nullptr;
  return converted;
}

int Sum(const std::vector<std::pair<std::string, int>>& counts) {
  return std::accumulate(counts.begin(), counts.end(), 0,
                         [](int sum, const auto& count) { return sum + count.second; });
}

// "1 of 2 composites fused (keras.lstm by fusebox.rnn), 1 verified"
std::string FusionSummary(const Report& report) {
  std::set<std::string> by;
  size_t fused = 0;
  size_t verified = 0;
  for (const SiteReport& site : report.sites) {
    if (!site.fused) continue;
    ++fused;
    if (site.compared) ++verified;
    const std::string name(WithoutUuid(site.composite));
    const std::string plugin = site.rules.empty() ? "" : site.rules.back().plugin;
    by.insert(plugin.empty() ? name : name + " by " + plugin);
  }
  std::string text = fmt::format("{} of {} composites fused", fused, report.sites.size());
  if (!by.empty()) text += fmt::format(" ({})", fmt::join(by, ", "));
  return fused == 0 ? text : text + fmt::format(", {} verified", verified);
}

void PrintSummary(const ConvertFlags& flags, const Report& report, std::chrono::duration<double> time) {
  if (flags.quiet || flags.json || !flags.dump_after.empty()) return;
  std::error_code ignored;
  Print(fmt::format("{}: {}, {} ops -> {}{}; {:.1f} s\n", Printable(flags.output),
                    BytesText(std::filesystem::file_size(flags.output, ignored)), Sum(report.ops_before),
                    Sum(report.ops_after), report.sites.empty() ? "" : ", " + FusionSummary(report),
                    time.count()));
}

// Opened, not committed; nothing if no report is requested.
Result<std::optional<AtomicFile>> BeginReport(const ConvertFlags& flags, const Report& report) {
  if (flags.report.empty()) return std::nullopt;
  FUSEBOX_ASSIGN(AtomicFile begun, AtomicFile::Create(flags.report));
  const std::string json = ToJson(report);
  FUSEBOX_TRY(begun.Append(std::as_bytes(std::span(json))));
  return std::optional(std::move(begun));
}

// Reports why nothing was converted, also to the report file.
Result<Exit> Failed(const ConvertFlags& flags, const Report& report, const Error& error) {
  MessageEach(report);
  if (!flags.explain) {
    for (const converter::UnsupportedOps& u : report.unsupported)
      Message(u.op + " (" + std::to_string(u.count) + ", first at " + u.first + "): " + u.reason);
  }
  FUSEBOX_ASSIGN(auto report_file, BeginReport(flags, report));
  if (report_file) FUSEBOX_TRY(report_file->Commit());
  if (!NoneConverts(flags, report)) return std::unexpected(error);
  Message("no signature converts");
  return Exit::kNo;
}

Result<Exit> Convert(const ConvertFlags& flags) {
  const auto start = std::chrono::steady_clock::now();
  auto made = converter::FromPath(flags.input);
  if (!made && flags.json) Print(ToJson(Report{.source = flags.input, .error = made.error().message}));
  FUSEBOX_ASSIGN(Conversion conversion, std::move(made));
  FUSEBOX_ASSIGN(conversion.options, OptionsOf(flags));
  auto converted = ConvertShowingProgress(conversion);
  const Report& report = converted ? converted->report : conversion.report();
  if (flags.explain) Print(ToText(report));
  if (flags.json) Print(ToJson(report));
  if (!converted) return Failed(flags, report, converted.error());
  if (!flags.explain) MessageEach(report);
  MessageUnverified(report);

  // Opened before the model is written: if the report cannot be written, no model is left either.
  FUSEBOX_ASSIGN(auto report_file, BeginReport(flags, report));
  const bool short_of_fusion = flags.require_full_fusion && MessageUnfused(report);
  if (!short_of_fusion) FUSEBOX_TRY(converted->Write(flags.output));
  if (report_file) FUSEBOX_TRY(report_file->Commit());
  if (!short_of_fusion) PrintSummary(flags, report, std::chrono::steady_clock::now() - start);
  if (report.verification_failed) MessageFailed(flags, report);
  const bool refuted = report.verification_failed && flags.verify == "strict";
  return short_of_fusion || refuted ? Exit::kNo : Exit::kDone;
}

// Adds the files, the signatures and the shapes.
void AddSource(CLI::App& app, ConvertFlags& flags) {
  app.add_option("input", flags.input, "Folder of a SavedModel, frozen graph, Keras file, or .tflite file")
      ->type_name("INPUT")
      ->required();
  app.add_option("-o,--output", flags.output, "Output file")
      ->type_name("OUT.tflite")
      ->check(CheckNotEmpty)
      ->required();
  app.add_option("--signature", flags.signatures,
                 "Signature to convert, or a function of a SavedModel's objects (repeatable); default: every "
                 "signature that converts")
      ->type_name("KEY")
      ->check(CheckNotEmpty)
      ->allow_extra_args(false);
  app.add_option("--inputs", flags.inputs,
                 "Tensors of a frozen graph that are its inputs, in order; default: its placeholders")
      ->type_name("NODE[:N],...")
      ->delimiter(',')
      ->check(CheckNotEmpty)
      ->allow_extra_args(false);
  app.add_option("--outputs", flags.outputs,
                 "Tensors of a frozen graph that are its outputs, in order; default: the nodes that no "
                 "other node reads")
      ->type_name("NODE[:N],...")
      ->delimiter(',')
      ->check(CheckNotEmpty)
      ->allow_extra_args(false);
  app.add_option("--batch", flags.batch, "Set every unknown first dimension of the inputs to N")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{INT32_MAX}));
  app.add_option("--shape", flags.shapes, "Set the shape of one input (repeatable)")
      ->type_name("NAME=1,28,28")
      ->allow_extra_args(false);
}

}  // namespace

void AddConvert(CLI::App& root, Action& action) {
  CLI::App* app = root.add_subcommand("convert", kConvertPurpose);
  auto flags = std::make_shared<ConvertFlags>();
  AddSource(*app, *flags);
  AddPluginFlags(*app, flags->plugins);
  AddChoice(*app, "--composites", flags->composites, kComposites,
            "Fuse composites, keep them with their body, or inline all");
  AddChoice(*app, "--keep-bodies", flags->keep_bodies, kKeepBodies,
            "Keep the bodies of fused ops in the file: none, those of custom ops, all");
  AddChoice(*app, "--verify", flags->verify, kVerify,
            "Compare each fused op with its body and reject fusions that differ");
  AddChoice(*app, "--placeholders", flags->placeholders, kPlaceholders,
            "Fuse composites whose body is a placeholder, which cannot be verified, or fail");
  app->add_option("--verify-seed", flags->verify_seed, "Seed of the values that --verify uses")
      ->type_name("N")
      ->check(CheckWholeNumber)
      ->capture_default_str();
  AddChoice(
      *app, "--quantize", flags->quantize, kQuantize,
      "Store weights as 16-bit floats or as 8-bit integers (dynamic), or compute in 8-bit integers, or with "
      "16-bit activations and 8-bit weights");
  app->add_option(
         "--calibration", flags->calibration,
         "Folder of input samples for int8 and int16x8: NAME.npy or in0.npy.. (samples along the first "
         "dimension), or NAME.0.npy..")
      ->type_name("DIR")
      ->check(CheckNotEmpty);
  app->add_flag("--per-channel-fc", flags->per_channel_fc,
                "With int8 and int16x8: a scale per row of the weights of FULLY_CONNECTED; TensorFlow Lite "
                "before 2.11 computes wrong results");
  AddChoice(*app, "--input-type", flags->input_type, kEndTypes,
            "Type of inputs that are floats, with int8 (int8, uint8) or int16x8 (int16)");
  AddChoice(*app, "--output-type", flags->output_type, kEndTypes,
            "Type of outputs that are floats, the same");
  CLI::Option* const json = app->add_flag("--json", flags->json, kJsonHelp);
  app->add_flag("--explain", flags->explain,
                "Show which composites were fused or why not, variables, and ops before and after")
      ->excludes(json);
  app->add_flag("--quiet", flags->quiet, "Print no summary of the file that was written");
  app->add_option("--report", flags->report,
                  "Write the report of --json to a file, even if the conversion fails")
      ->type_name("FILE.json")
      ->check(CheckNotEmpty);
  app->add_flag("--require-full-fusion", flags->require_full_fusion,
                "Exit with 1 if a composite is not fused");
  app->add_option("--dump-after", flags->dump_after, "Print the graph after this pass")
      ->type_name("PASS")
      ->excludes(json);
  AddTraceFlag(*app, flags->trace,
               "Write what took how long (reading, each pass and what it changed, verification, writing) for "
               "Perfetto, "
               "chrome://tracing or speedscope, even if the conversion fails");
  app->footer(kConvertFooter);
  app->callback([app, flags, &action] {
    flags->verify_given = app->count("--verify") > 0;
    action = [flags]() -> Result<Exit> {
      FUSEBOX_TRY(RequireApart(flags->input, flags->output, flags->report));
      FUSEBOX_TRY(RequireTraceApart(flags->trace, {flags->input}, {flags->output, flags->report}));
      return RunTraced(flags->trace, [&] { return Convert(*flags); });
    };
  });
}

}  // namespace fusebox::cli
