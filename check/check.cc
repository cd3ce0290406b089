// SPDX-License-Identifier: Apache-2.0
#include "check/check.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>

#include "check/child.h"
#include "check/tests.h"
#include "check/workload.h"
#include "host/base/json.h"
#include "host/plugin/steps.h"
#include "host/tflite/tflite.h"

namespace fusebox::check {
namespace {

namespace fs = std::filesystem;
using State = Row::State;

std::vector<Test> AllTests() {
  std::vector<Test> all;
  for (const auto tests : {FileTests(), LoadTests(), ProcessTests(), KernelTests(), BodyTests(), AbiTests(),
                           RuleTests(), DelegateTests()})
    all.insert(all.end(), tests.begin(), tests.end());
  return all;
}

std::string GroupOf(std::string_view test) { return std::string(test.substr(0, test.find('.'))); }

Status CheckNames(const std::vector<std::string>& only) {
  std::set<std::string> known;
  for (const Test& test : AllTests()) known.insert({test.name, GroupOf(test.name)});
  const std::vector<std::string> candidates(known.begin(), known.end());
  for (const std::string& name : only)
    if (!known.contains(name))
      return Invalid("no test or group of tests " + name + DidYouMean(name, candidates));
  return {};
}

bool IsSelected(const Test& test, const std::vector<std::string>& only) {
  return only.empty() || std::ranges::find(only, test.name) != only.end() ||
         std::ranges::find(only, GroupOf(test.name)) != only.end();
}

// The child's answer: a digit for the state, then the reason.
std::string Pack(const Finding& finding) {
  return std::string(1, static_cast<char>('0' + static_cast<int>(finding.state))) + finding.why;
}
Finding Unpack(const std::string& text) {
  if (text.empty()) return Failed("the test returned nothing");
  return {static_cast<State>(text[0] - '0'), text.substr(1)};
}

struct Outcome {
  Finding finding;
  bool timed_out = false;
};

Result<Outcome> RunOne(const Test& test, const Subject& subject) {
  if (test.of == Test::Of::kFile) return Outcome{test.run(subject)};
  const auto work = [&] {
    try {
      return Pack(test.run(subject));
    } catch (const std::bad_alloc&) {
      return Pack(Failed("out of memory"));
    }
  };
  FUSEBOX_ASSIGN(const Ended ended, RunInChild(work, {.seconds = subject.options.seconds}));
  if (!ended.finished) return Outcome{Failed(ended.why), ended.timed_out};
  Finding finding = Unpack(ended.result);
  if (finding.state == State::kPassed && test.after != nullptr) finding = test.after(ended);
  return Outcome{std::move(finding)};
}

// Models that the plugin comes without, in files that are removed at the end.
class Synthesized {
 public:
  Synthesized() = default;
  Synthesized(const Synthesized&) = delete;
  ~Synthesized() {
    std::error_code error;
    if (!folder_.empty()) fs::remove_all(folder_, error);
  }
  // Adds a model for each custom op of the manifest that a model can be made for.
  Status Make(const Manifest& manifest, const Options& options) {
    for (const ManifestOp& op : manifest.ops) {
      if (op.kind != FBX_OP_CUSTOM) continue;
      FUSEBOX_ASSIGN(const std::string bytes, SynthesizeModel(manifest, op, options));
      if (bytes.empty()) continue;
      FUSEBOX_TRY(MakeFolder());
      const std::string path = folder_ + "/" + std::to_string(models_.size()) + ".tflite";
      FUSEBOX_TRY(WriteFile(path, std::as_bytes(std::span(bytes))));
      models_.push_back(path);
      names_.push_back(op.name + " (synthesized)");
    }
    return {};
  }
  const std::vector<std::string>& models() const { return models_; }
  std::string NameOf(const std::string& model) const {
    const auto at = std::ranges::find(models_, model);
    return at == models_.end() ? model : names_[static_cast<size_t>(at - models_.begin())];
  }

 private:
  Status MakeFolder() {
    if (!folder_.empty()) return {};
    std::string path = (fs::temp_directory_path() / "fusebox-models-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) return IoError(path + ": " + strerror(errno));
    folder_ = path;
    return {};
  }
  std::string folder_;
  std::vector<std::string> models_, names_;
};

class Runner {
 public:
  Runner(const Manifest& manifest, const Options& options) : manifest_(manifest), options_(options) {}

  Result<std::vector<Row>> Run() {
    FUSEBOX_TRY(FindModels());
    for (const Test& test : AllTests()) {
      if (!IsSelected(test, options_.only)) continue;
      if (const std::string why = WhyNot(test); !why.empty()) {
        AddRow(test, "", NotTested(why), 0);
        continue;
      }
      if (test.of != Test::Of::kModel) {
        FUSEBOX_TRY(Add(test, {manifest_, options_, models_}));
        continue;
      }
      if (models_.empty()) AddRow(test, "", NotTested(kNoModel), 0);
      for (const std::string& model : models_) FUSEBOX_TRY(Add(test, {manifest_, options_, models_, model}));
    }
    return std::move(rows_);
  }

 private:
  static constexpr const char* kNoModel =
      "no model: add .tflite files with its ops or composites to a folder \"models\" beside the manifest, or "
      "pass --model";

  // Returns why a test does not apply to the plugin, or an empty string if it does.
  std::string WhyNot(const Test& test) const {
    const std::string group = GroupOf(test.name);
    if (group == "rule" && manifest_.rules.empty()) return "the plugin has no rules";
    if (group == "kernel" && manifest_.ops.empty()) return "the plugin has no kernels";
    if (group == "body" && manifest_.ops.empty() && manifest_.rules.empty())
      return "the plugin has no fused ops";
    if (group == "delegate" && manifest_.delegates.empty()) return "the plugin has no delegates";
    if (built_in_ && test.of != Test::Of::kFile) return "this host has the plugin built in";
    return {};
  }

  Status FindModels() {
    Config none;
    none.search_default_path = false;
    FUSEBOX_ASSIGN(const auto registry, Registry::Create(none));
    for (const PluginInfo& info : registry->plugins()) built_in_ |= info.manifest.id == manifest_.id;
    models_ = ModelsOf(manifest_, options_);
    for (const std::string& model : models_) FUSEBOX_TRY(tflite::ReadFile(model));
    if (built_in_ || !models_.empty() || manifest_.library.empty()) return {};
    FUSEBOX_TRY(synthesized_.Make(manifest_, options_));
    models_ = synthesized_.models();
    return {};
  }

  Status Add(const Test& test, const Subject& subject) {
    const std::string group = GroupOf(test.name);
    const std::string name = synthesized_.NameOf(subject.model);
    if (does_not_load_ && test.of != Test::Of::kFile) {
      AddRow(test, name, NotTested("the plugin does not load"), 0);
      return {};
    }
    if (timed_out_.contains(group)) {
      AddRow(test, name, NotTested("another test of this group was not done in time"), 0);
      return {};
    }
    const auto start = std::chrono::steady_clock::now();
    FUSEBOX_ASSIGN(Outcome outcome, RunOne(test, subject));
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    if (outcome.timed_out) timed_out_.insert(group);
    if (std::string_view(test.name) == "load.host" && outcome.finding.state == State::kFailed)
      does_not_load_ = true;
    AddRow(test, name, std::move(outcome.finding), spent.count());
    return {};
  }

  void AddRow(const Test& test, std::string subject, Finding finding, double seconds) {
    rows_.push_back({.plugin = manifest_.id,
                     .manifest = manifest_.path,
                     .test = test.name,
                     .subject = std::move(subject),
                     .state = finding.state,
                     .why = std::move(finding.why),
                     .seconds = seconds});
  }

  const Manifest& manifest_;
  const Options& options_;
  Synthesized synthesized_;
  std::vector<std::string> models_;
  std::set<std::string> timed_out_;
  bool does_not_load_ = false;
  bool built_in_ = false;
  std::vector<Row> rows_;
};

}  // namespace

std::string_view Name(Row::State state) {
  switch (state) {
    case State::kPassed: return "passed";
    case State::kFailed: return "failed";
    case State::kNotTested: return "not tested";
  }
  return "?";
}

std::vector<TestName> TestNames() {
  std::vector<TestName> names;
  for (const Test& test : AllTests()) names.push_back({test.name, test.purpose});
  return names;
}

std::vector<std::string> Untested() {
  return {
      "data races on memory that is not an operand, a result or scratch memory: run the plugin's own tests "
      "with a thread sanitizer",
      "ops and composites that no model here has, and values and shapes that its inputs do not take",
      "files written outside of the current folder, HOME and TMPDIR",
  };
}

Result<std::vector<std::string>> FindPlugins(const Config& given, const std::string& path) {
  Config config = given;
  config.plugins = {path};
  config.plugin_path.clear();
  config.search_default_path = false;
  FUSEBOX_ASSIGN(const SearchResult search, Search(config));
  std::vector<std::string> manifests;
  for (const Found& found : search.found) manifests.push_back(found.manifest);
  if (manifests.empty())
    return NotFound(path + ": no plugin here; pass a manifest, a library, or a folder of them");
  return manifests;
}

Result<std::vector<Row>> Check(const std::string& path, const Options& options) {
  FUSEBOX_TRY(CheckNames(options.only));
  FUSEBOX_ASSIGN(const Manifest manifest, ReadManifest(path));
  return Runner(manifest, options).Run();
}

}  // namespace fusebox::check
