// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "cli/base/print.h"
#include "cli/base/progress.h"
#include "cli/cache/cache.h"
#include "cli/cache/text.h"
#include "host/base/table.h"
#include "host/session.h"

namespace fusebox::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CacheModelFlags {
  std::string model;
  int threads = 1;
  PluginFlags plugins;
  DelegateFlags delegates;
  bool all = false;
  bool json = false;
};

// A model whose delegate stores packed weights in `path`, and the client of that cache.
struct CachingModel {
  CacheClient client;
  std::string path;
  std::shared_ptr<const Model> model;
};

// `pack`: open with the cache. Otherwise without, so that kernels do not pack and store.
Result<CachingModel> OpenCaching(const CacheModelFlags& flags, bool pack) {
  FUSEBOX_ASSIGN(auto registry, OpenRegistry(flags.plugins));
  FUSEBOX_ASSIGN(CacheClient client, CacheClient::Open(registry));
  CachingModel out{std::move(client), {}, nullptr};
  out.path = out.client.PathOf(flags.delegates.weight_cache);
  DelegateFlags delegates = flags.delegates;
  delegates.weight_cache = out.path;
  FUSEBOX_ASSIGN(ModelOptions options, ModelOptionsOf(std::move(registry), delegates));
  if (!pack) options.delegate_options = kNoCache;
  FUSEBOX_ASSIGN(out.model, Model::Open(flags.model, options));
  PrintNotices(flags.model, out.model->notices());
  return out;
}

uint64_t Missing(const std::vector<CacheWeight>& weights) {
  return SumOf(weights, FBX_CACHE_CACHED).missing + SumOf(weights, FBX_CACHE_REPACKED).missing;
}

// Sessions pack in Prepare. Unknown dims become 1: packed bytes do not depend on them.
Status PackAll(const CacheModelFlags& flags, const CachingModel& cache, ProgressBar& bar) {
  std::vector<std::string> keys;
  for (const Model::Entry& entry : cache.model->entries()) {
    if (!entry.status && !entry.signature.empty())
      Message(flags.model + ": nothing is packed for signature " + entry.signature +
              ", which cannot run: " + entry.status.error().message);
    if (entry.status && (keys.empty() || !entry.signature.empty())) keys.push_back(entry.signature);
  }
  FUSEBOX_ASSIGN(const auto session,
                 Session::Create(cache.model, {keys.front(), flags.threads, bar.listener()}));
  for (const std::string& key : keys) {
    FUSEBOX_TRY(session->SelectSignature(key));
    for (size_t i = 0; i < session->inputs().size(); ++i) {
      Shape shape = session->inputs()[i].type.shape;
      if (!shape.ranked() || shape.is_static()) continue;
      for (int64_t& dim : shape.dims()) dim = std::max<int64_t>(dim, 1);
      FUSEBOX_TRY(session->Resize(static_cast<int>(i), shape));
    }
    if (const Status ready = session->Prepare(); !ready)
      Message(ready.error().message + "; the packed weights do not depend on it");
  }
  PrintNotices(flags.model, session->notices());
  return {};
}

Result<Exit> Build(const CacheModelFlags& flags) {
  FUSEBOX_ASSIGN(CachingModel cache, OpenCaching(flags, true));
  FUSEBOX_ASSIGN(const CacheReport before, cache.client.Explain(cache.path, *cache.model));
  ProgressBar bar;
  const ClassSum cached = SumOf(before.weights, FBX_CACHE_CACHED);
  const ClassSum repacked = SumOf(before.weights, FBX_CACHE_REPACKED);
  bar.Expect(cached.missing_bytes + (Missing(before.weights) > 0 ? repacked.bytes : 0));
  if (Missing(before.weights) > 0) FUSEBOX_TRY(PackAll(flags, cache, bar));
  const Status kept = cache.client.Flush(cache.path);
  bar.Finish();
  if (!kept) Message(kept.error().message);
  FUSEBOX_ASSIGN(const CacheReport after, cache.client.Explain(cache.path, *cache.model));
  FUSEBOX_ASSIGN(const CacheReport store, cache.client.List(cache.path));
  const uint64_t missing = Missing(after.weights);
  if (flags.json) {
    PrintDocument(Json{{"model", flags.model},
                       {"cache", store.none.empty() ? Json(store.path) : Json()},
                       {"packed_bytes_of_model", bar.done()},
                       {"classes", ClassesJson(after.weights)},
                       {"cache_bytes", store.bytes()},
                       {"warm", missing == 0}});
  } else {
    Print(ClassesText(after.weights));
    Print(store.none.empty() ? fmt::format("{}: {}\n", Printable(store.path), BytesText(store.bytes()))
                             : Printable(store.none) + "\n");
  }
  if (missing > 0) Message(fmt::format("{} weights are not in the cache", missing));
  return missing == 0 ? Exit::kDone : Exit::kNo;
}

// Files of the store that are not used.
std::string UnusedText(const CacheReport& store) {
  std::string text;
  for (const CacheSegment& s : store.segments)
    if (s.state == FBX_CACHE_BAD || s.state == FBX_CACHE_UNUSABLE)
      text += fmt::format("not used: {}: {}\n", Printable(s.path), Printable(s.why));
  return text;
}

// Returns whether weights can be stored. They cannot if the path is not a directory, or if there is no home
// directory.
bool CanKeep(const CacheReport& store, const std::string& path) {
  std::error_code none;
  const bool in_the_way = std::filesystem::exists(path, none) && !std::filesystem::is_directory(path, none);
  return store.none.empty() || (store.none_code != "no-home" && !in_the_way);
}

Result<Exit> Doctor(const CacheModelFlags& flags) {
  FUSEBOX_ASSIGN(CachingModel cache, OpenCaching(flags, false));
  FUSEBOX_ASSIGN(const CacheReport store, cache.client.List(cache.path));
  FUSEBOX_ASSIGN(const CacheReport facts, cache.client.Facts());
  FUSEBOX_ASSIGN(const CacheReport report, cache.client.Explain(cache.path, *cache.model));
  const uint64_t missing = Missing(report.weights);
  if (flags.json) {
    Json out{{"model", flags.model}, {"warm", missing == 0}, {"cache", StoreJson(store)}};
    out["machine"] = FactsJson(facts);
    out["classes"] = ClassesJson(report.weights);
    out["weights"] = WeightsJson(report.weights);
    PrintDocument(out);
    return missing == 0 ? Exit::kDone : Exit::kNo;
  }
  std::string text = store.none.empty()
                         ? fmt::format("cache: {}, {}\n", Printable(store.path), BytesText(store.bytes()))
                         : "cache: " + Printable(store.none) + "\n";
  text += FactsText(facts) + UnusedText(store) + "\n" + WeightsText(report.weights, flags.all) +
          ClassesText(report.weights);
  const ClassSum cached = SumOf(report.weights, FBX_CACHE_CACHED);
  if (cached.weights + SumOf(report.weights, FBX_CACHE_REPACKED).weights == 0)
    text +=
        "XNNPACK packs no weights of this model that a cache could store; kernels of other plugins were not "
        "checked\n";
  else if (missing == 0) text += "the next start finds all of them\n";
  else if (CanKeep(store, cache.path))
    text += fmt::format("the next start packs {} of them; `fusebox cache build` packs them now\n", missing);
  else
    text += fmt::format(
        "the next start packs {} of them, and this cache cannot store them; choose another with "
        "--weight-cache\n",
        missing);
  Print(text);
  return missing == 0 ? Exit::kDone : Exit::kNo;
}

using PerformOn = Result<Exit> (*)(const CacheModelFlags&);
CLI::App* AddOne(CLI::App& cache, Action& action, const char* name, const char* help, PerformOn perform,
                 std::shared_ptr<CacheModelFlags>& flags) {
  CLI::App* app = cache.add_subcommand(name, help);
  flags = std::make_shared<CacheModelFlags>();
  app->add_option("model", flags->model, "The .tflite file")->type_name("MODEL")->required();
  AddPluginFlags(*app, flags->plugins);
  AddDelegateFlags(*app, flags->delegates);
  app->add_flag("--json", flags->json, kJsonHelp);
  app->callback([flags, perform, &action] { action = [flags, perform] { return perform(*flags); }; });
  return app;
}

}  // namespace

void AddCacheBuild(CLI::App& cache, Action& action) {
  std::shared_ptr<CacheModelFlags> flags;
  CLI::App* app =
      AddOne(cache, action, "build",
             "Pack a model's weights before its first start (exit code 1: not all are stored)", Build, flags);
  app->add_option("--threads", flags->threads, "Threads that pack; 0: one per core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app->footer(
      R"(Packs weights for all signatures. Without --weight-cache, the cache of --config is used, else auto.

Examples:
  fusebox cache build model.tflite
  fusebox cache build model.tflite --weight-cache /var/cache/app/weights/)");
}

void AddCacheDoctor(CLI::App& cache, Action& action) {
  std::shared_ptr<CacheModelFlags> flags;
  CLI::App* app = AddOne(cache, action, "doctor",
                         "Predict cache hits of the next start of a model and explain misses (exit code 1)",
                         Doctor, flags);
  app->add_flag("--all", flags->all, "List all weights, not only misses");
  app->footer(
      R"(Nothing is packed or written. Classes: cached weights are packed once; repacked ones at every start and then shared; private
ones belong to one session.

Examples:
  fusebox cache doctor model.tflite
  fusebox cache doctor model.tflite --weight-cache cache/ --json | jq '.weights[] | select(.found | not)')");
}

}  // namespace fusebox::cli
