// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <numeric>

#include "cli/base/checks.h"
#include "cli/base/command.h"
#include "cli/base/opened.h"
#include "cli/base/plugin_flags.h"
#include "cli/base/print.h"
#include "cli/compare/cut.h"
#include "host/base/table.h"
#include "host/eval/budget.h"
#include "host/graph/npy.h"
#include "host/tflite/tflite.h"

namespace fusebox::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReduceFooter =
    R"(COMMAND is a shell command. {} is the path of a candidate, {inputs} a folder with its inputs in<i>.npy: the values that these
tensors have when kernels run the whole model. A candidate fails if COMMAND ends with the exit status that it has for the whole
model, which must not be 0; --status sets another one.

Examples:
  fusebox reduce model.tflite --fails 'fusebox compare {} --with none' -o small.tflite
  fusebox reduce model.tflite --fails 'fusebox run {} --input-dir {inputs} --delegate xnnpack' -o small.tflite
  fusebox reduce model.tflite --fails './differs.sh {}' --status 1 -o small.tflite)";

struct ReduceFlags {
  std::string model, command, output;
  int status = 0;  // 0: the status for the whole model
  InputFlags inputs;
  PluginFlags plugins;
  bool json = false;
};

// A folder that is removed.
class Scratch {
 public:
  static Result<std::unique_ptr<Scratch>> Create() {
    std::string path = fs::temp_directory_path() / "fusebox-reduce-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) return Invalid(path + ": cannot be created");
    return std::unique_ptr<Scratch>(new Scratch(path));
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

std::string Quoted(const std::string& path) { return "'" + Replaced(path, "'", "'\\''") + "'"; }

// The values of a run of the whole model; none if it fails.
class Values {
 public:
  static Values Of(const ReduceFlags& flags, const std::shared_ptr<Registry>& registry, const Module& whole) {
    Values out;
    const auto run = [&]() -> Status {
      FUSEBOX_ASSIGN(const ModelOptions options,
                     ModelOptionsOf(registry, {.delegates = {"none"}, .weight_cache = {}}));
      FUSEBOX_ASSIGN(Opened opened, OpenModule(Clone(whole), options));
      FUSEBOX_ASSIGN(auto inputs, ReadInputs(flags.inputs, opened));
      FUSEBOX_TRY(opened.session->Prepare());
      FUSEBOX_TRY(SetInputs(*opened.session, inputs, flags.inputs.seed));
      FUSEBOX_TRY(opened.session->Run());
      const Function& f = *whole.functions.front();
      for (size_t i = 0; i < inputs.size(); ++i) out.Add(f.inputs[i], inputs[i]);
      for (ValueId id = 0; id < f.value_count(); ++id)
        if (const auto value = opened.session->value(f.name, id); value && !f.value(id).is_const())
          out.Add(id, *value);
      return {};
    };
    if (const Status done = run(); !done)
      Message("reduce: inputs are generated, since kernels cannot run the whole model: " +
              done.error().message);
    return out;
  }
  const Tensor* Find(ValueId id) const {
    const auto found = values_.find(id);
    return found == values_.end() ? nullptr : &found->second;
  }

 private:
  static Result<Opened> OpenModule(std::unique_ptr<Module> module, const ModelOptions& options) {
    Opened out;
    module->signatures.clear();
    FUSEBOX_ASSIGN(out.model, Model::FromModule(std::move(module), options));
    FUSEBOX_ASSIGN(out.session, Session::Create(out.model, {.memory_limit = MemoryBudget::DefaultLimit() /
                                                                            2,  // values are copied
                                                            .keep_values = true}));
    out.ports = PortsOf(*out.model, *out.session, "");
    return out;
  }
  void Add(ValueId id, const Tensor& value) {
    values_.emplace(id, Tensor{value.type, Buffer::Copy(value.data.bytes())});
  }
  std::map<ValueId, Tensor> values_;
};

class Reduction {
 public:
  Reduction(const ReduceFlags& flags, const Module& whole, const Values& values, std::string folder)
      : flags_(flags),
        whole_(whole),
        values_(values),
        folder_(std::move(folder)),
        kept_(whole.functions.front()->nodes.size(), true) {}

  Status Reduce() {
    FUSEBOX_ASSIGN(const int status, Run(kept_));
    if (status == 0)
      return Invalid(flags_.model +
                     ": the command ends with status 0 for the whole model: " + flags_.command);
    if (flags_.status != 0 && status != flags_.status)
      return Invalid(fmt::format("{}: the command ends with status {} for the whole model, not {}",
                                 flags_.model, status, flags_.status));
    status_ = status;
    FUSEBOX_TRY(Bisect(true));
    FUSEBOX_TRY(Bisect(false));
    return RemoveChunks();
  }

  size_t nodes() const { return static_cast<size_t>(std::ranges::count(kept_, true)); }
  int runs() const { return runs_; }
  int status() const { return status_; }

  // Writes the part that is left to `path`, and its inputs to `folder`.
  Status Write(const std::vector<bool>& kept, const std::string& path, const std::string& folder,
               bool* possible) {
    const auto cut = CutOut(whole_, kept, [&](ValueId id) { return values_.Find(id); });
    *possible = cut.has_value();
    if (!cut) return {};
    FUSEBOX_TRY(tflite::WriteFile(*cut->module, path));
    fs::remove_all(folder);
    fs::create_directories(folder);
    for (size_t i = 0; i < cut->inputs.size(); ++i)
      if (const Tensor* const value = values_.Find(cut->inputs[i]);
          value && value->type.dtype != DType::kString)
        FUSEBOX_TRY(WriteNpy(fmt::format("{}/in{}.npy", folder, i), *value));
    return {};
  }
  const std::vector<bool>& kept() const { return kept_; }

 private:
  // Returns the exit status of the command for these nodes, or 0 if they are no model.
  Result<int> Run(const std::vector<bool>& kept) {
    const std::string path = folder_ + "/candidate.tflite";
    const std::string inputs = folder_ + "/inputs";
    bool possible = false;
    if (const Status written = Write(kept, path, inputs, &possible); !written || !possible) return 0;
    std::string command = Replaced(flags_.command, "{inputs}", Quoted(inputs));
    command = "( " + Replaced(command, "{}", Quoted(path)) + "\n) >/dev/null 2>&1 </dev/null";
    ++runs_;
    const int ended = std::system(command.c_str());
    if (ended == -1) return Internal("no shell");
    return WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
  }

  Result<bool> Fails(const std::vector<bool>& kept) {
    if (kept == kept_) return true;
    FUSEBOX_ASSIGN(const int status, Run(kept));
    if (status != status_) return false;
    kept_ = kept;
    Message(fmt::format("reduce: nodes left: {}, runs: {}", nodes(), runs_));
    return true;
  }

  // Removes nodes from the end, or from the beginning, as long as a half or less of what is left can go.
  Status Bisect(bool from_end) {
    // Numbers of nodes from the other end.
    size_t good = 0;
    size_t bad = kept_.size();  // these fail
    while (bad - good > 1) {
      const size_t middle = good + (bad - good) / 2;
      std::vector<bool> kept = kept_;
      for (size_t n = 0; n < kept.size(); ++n)
        if ((from_end ? n : kept.size() - 1 - n) >= middle) kept[n] = false;
      FUSEBOX_ASSIGN(const bool fails, Fails(kept));
      (fails ? bad : good) = middle;
    }
    return {};
  }

  // Removes runs of nodes anywhere, ever shorter ones, until no single node can go (delta debugging: Zeller,
  // Hildebrandt, 2002).
  Status RemoveChunks() {
    for (size_t size = std::max<size_t>(nodes() / 2, 1);; size = std::max<size_t>(size / 2, 1)) {
      bool removed = false;
      for (size_t first = 0; first < nodes();) {
        std::vector<bool> kept = kept_;
        size_t at = 0;
        for (size_t n = 0; n < kept.size(); ++n)
          if (kept[n] && at++ >= first && at <= first + size) kept[n] = false;
        FUSEBOX_ASSIGN(const bool fails, Fails(kept));
        removed = removed || fails;
        if (!fails) first += size;
      }
      if (size == 1 && !removed) return {};
    }
  }

  const ReduceFlags& flags_;
  const Module& whole_;
  const Values& values_;
  const std::string folder_;
  std::vector<bool> kept_;
  int status_ = 0;
  int runs_ = 0;
};

void Report(const ReduceFlags& flags, const Reduction& reduction, const Module& whole,
            const std::string& inputs) {
  const Function& f = *whole.functions.front();
  Table table({"node", "op", "value"});
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (size_t n = 0; n < f.nodes.size(); ++n) {
    if (!reduction.kept()[n]) continue;
    const Node& node = *f.nodes[n];
    const std::string op(node.is(Op::kCustom) ? std::string_view(node.name) : Name(node.op));
    const std::string value =
        node.results.empty() || node.results[0] == kNoValue ? "" : f.value(node.results[0]).name;
    table.Row({std::to_string(n), op, FirstOfNames(value)});
    nodes.push_back({{"node", n}, {"op", op}, {"value", value}});
  }
  if (flags.json)
    return PrintDocument({{"model", flags.model},
                          {"output", flags.output},
                          {"inputs", inputs},
                          {"status", reduction.status()},
                          {"runs", reduction.runs()},
                          {"before", f.nodes.size()},
                          {"nodes", std::move(nodes)}});
  Print(table.Text());
  Print(fmt::format("nodes kept: {} of {} (status {}, {} runs): {}, inputs in {}\n", reduction.nodes(),
                    f.nodes.size(), reduction.status(), reduction.runs(), flags.output, inputs));
}

Result<Exit> RunReduce(const ReduceFlags& flags) {
  if (flags.command.find("{}") == std::string::npos)
    return Invalid("--fails: the command has no {}, which becomes the path of the model");
  FUSEBOX_ASSIGN(auto registry, OpenRegistry(flags.plugins));
  FUSEBOX_ASSIGN(const auto whole, tflite::ReadFile(flags.model));
  FUSEBOX_ASSIGN(const auto scratch, Scratch::Create());
  const Values values = Values::Of(flags, registry, *whole);
  Reduction reduction(flags, *whole, values, scratch->path());
  FUSEBOX_TRY(reduction.Reduce());
  const std::string inputs = flags.output + ".inputs";
  bool possible = false;
  FUSEBOX_TRY(reduction.Write(reduction.kept(), flags.output, inputs, &possible));
  Report(flags, reduction, *whole, inputs);
  return Exit::kDone;
}

}  // namespace

void AddReduce(CLI::App& root, Action& action) {
  CLI::App* app = root.add_subcommand("reduce", "Find the smallest part of a .tflite file that still fails");
  auto flags = std::make_shared<ReduceFlags>();
  app->add_option("model", flags->model, "The .tflite file")->type_name("MODEL")->required();
  app->add_option("--fails", flags->command, "Shell command that fails for the model; {} is its path")
      ->type_name("COMMAND")
      ->required();
  app->add_option("-o,--output", flags->output,
                  "Where to write the part; its inputs go to the folder FILE.inputs")
      ->type_name("FILE")
      ->required()
      ->check(CheckNotEmpty);
  app->add_option("--status", flags->status, "Exit status of a failure; default: that for the whole model")
      ->type_name("N")
      ->check(CLI::Range(1, 255));
  AddInputFlags(*app, flags->inputs);
  AddPluginFlags(*app, flags->plugins);
  app->add_flag("--json", flags->json, kJsonHelp);
  app->footer(kReduceFooter);
  app->callback([flags, &action] { action = [flags] { return RunReduce(*flags); }; });
}

}  // namespace fusebox::cli
