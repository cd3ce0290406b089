// SPDX-License-Identifier: Apache-2.0
#include "cli/cache/cache.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <set>

#include "cli/base/command.h"
#include "cli/base/print.h"
#include "cli/base/progress.h"
#include "cli/cache/text.h"
#include "host/base/table.h"

namespace fusebox::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kPathHelp =
    "Cache file or directory, or auto; default: weight_cache_path of --config, else auto (the user's cache "
    "directory)";

struct CacheFlags {
  std::string cache, model;
  std::vector<std::string> segments;
  uint64_t max_bytes = 0;
  PluginFlags plugins;
  bool all = false;
  bool json = false;
};

// A cache given by the user must exist; the default one may not exist yet.
Status MustBeThere(const CacheFlags& flags, const CacheReport& report) {
  if (report.none.empty()) return {};
  if (!flags.cache.empty()) return NotFound(report.none);
  Message(report.none);
  return {};
}

struct OpenedCache {
  CacheClient client;
  std::string path;
};
Result<OpenedCache> OpenCache(const CacheFlags& flags) {
  FUSEBOX_ASSIGN(auto registry, OpenRegistry(flags.plugins));
  FUSEBOX_ASSIGN(CacheClient client, CacheClient::Open(std::move(registry)));
  std::string path = client.PathOf(flags.cache);
  return OpenedCache{std::move(client), std::move(path)};
}

Result<Exit> List(const CacheFlags& flags) {
  FUSEBOX_ASSIGN(OpenedCache cache, OpenCache(flags));
  FUSEBOX_ASSIGN(const CacheReport report, cache.client.List(cache.path));
  FUSEBOX_TRY(MustBeThere(flags, report));
  if (flags.json) PrintDocument(StoreJson(report));
  else if (report.none.empty()) Print(SegmentsText(report));
  return Exit::kDone;
}

// The segments that the given prefixes select; each must match exactly one.
Result<std::vector<std::string>> Chosen(const CacheFlags& flags, const CacheReport& report) {
  std::vector<std::string> ids;
  for (const std::string& word : flags.segments) {
    std::vector<std::string> fit;
    for (const CacheSegment& s : report.segments) {
      if (s.id == word) fit = {s.id};
      if (s.id == word) break;
      if (s.id.starts_with(word)) fit.push_back(s.id);
    }
    if (fit.empty()) return NotFound(report.path + ": no segment " + word + "; see `fusebox cache ls`");
    if (fit.size() > 1)
      return Invalid(fmt::format("{}: {} segments begin with {}", report.path, fit.size(), word));
    ids.push_back(fit.front());
  }
  return ids;
}

Result<Exit> Info(const CacheFlags& flags) {
  FUSEBOX_ASSIGN(OpenedCache cache, OpenCache(flags));
  FUSEBOX_ASSIGN(CacheReport report, cache.client.List(cache.path, true));
  FUSEBOX_TRY(MustBeThere(flags, report));
  FUSEBOX_ASSIGN(const CacheReport facts, cache.client.Facts());
  if (!flags.segments.empty()) {
    FUSEBOX_ASSIGN(const auto ids, Chosen(flags, report));
    const auto other = [&](const std::string& id) {
      return std::find(ids.begin(), ids.end(), id) == ids.end();
    };
    std::erase_if(report.segments, [&](const CacheSegment& s) { return other(s.id); });
    std::erase_if(report.entries, [&](const CacheEntry& e) { return other(e.segment); });
  }
  if (flags.json) {
    Json out = StoreJson(report);
    out["entries"] = EntriesJson(report);
    out["machine"] = FactsJson(facts);
    PrintDocument(out);
  } else if (report.none.empty()) {
    Print(SegmentsText(report) + "\n" + EntriesText(report) + FactsText(facts));
  }
  return Exit::kDone;
}

Result<Exit> Verify(const CacheFlags& flags) {
  FUSEBOX_ASSIGN(OpenedCache cache, OpenCache(flags));
  FUSEBOX_ASSIGN(const CacheReport report, cache.client.Verify(cache.path));
  FUSEBOX_TRY(MustBeThere(flags, report));
  const auto bad = [](const CacheSegment& s) { return s.state == FBX_CACHE_BAD && !s.put_aside(); };
  const auto count = std::count_if(report.segments.begin(), report.segments.end(), bad);
  if (flags.json) {
    Json out = StoreJson(report);
    out["bad"] = count;
    out["put_aside"] = RemovedJson(report);
    PrintDocument(out);
  } else if (report.none.empty()) {
    Print(SegmentsText(report));
    for (const CacheSegment& s : report.segments)
      if (bad(s)) Print("bad: " + Printable(s.path + ": " + s.why) + "\n");
    if (!report.removed.empty()) Print(RemovedText(report, "put aside"));
  }
  return count > 0 ? Exit::kNo : Exit::kDone;
}

Result<Exit> Collect(const CacheFlags& flags) {
  if (flags.max_bytes > INT64_MAX)
    return Invalid("--max-bytes: must be a size of at least 0, such as 500M or 1G");
  FUSEBOX_ASSIGN(OpenedCache cache, OpenCache(flags));
  FUSEBOX_ASSIGN(const CacheReport before, cache.client.List(cache.path));
  FUSEBOX_TRY(MustBeThere(flags, before));
  if (!before.none.empty()) return Exit::kDone;
  FUSEBOX_ASSIGN(const CacheReport gone, cache.client.Collect(cache.path, flags.max_bytes));
  FUSEBOX_ASSIGN(const CacheReport after, cache.client.List(cache.path));
  if (flags.json) {
    PrintDocument(Json{{"path", before.path},
                       {"bytes_before", before.bytes()},
                       {"bytes", after.bytes()},
                       {"removed", RemovedJson(gone)}});
    return Exit::kDone;
  }
  Print(RemovedText(gone, "removed") + fmt::format("{}: {} before, {} now\n", Printable(before.path),
                                                   BytesText(before.bytes()), BytesText(after.bytes())));
  if (after.single_file && after.bytes() > flags.max_bytes)
    Message(after.path + ": gc does not shrink a single file; remove it with `fusebox cache rm`");
  return Exit::kDone;
}

Result<std::vector<std::string>> OfModel(const CacheFlags& flags, OpenedCache& cache) {
  ModelOptions options{.registry = nullptr, .delegate_options = kNoCache};
  FUSEBOX_ASSIGN(options.registry, OpenRegistry(flags.plugins));
  FUSEBOX_ASSIGN(CacheClient client, CacheClient::Open(options.registry));
  FUSEBOX_ASSIGN(const auto model, Model::Open(flags.model, options));
  FUSEBOX_ASSIGN(const CacheReport report, client.Explain(cache.path, *model));
  std::set<std::string> ids;
  for (const CacheWeight& w : report.weights)
    if (w.found && !w.segment.empty()) ids.insert(w.segment);
  return std::vector<std::string>(ids.begin(), ids.end());
}

Result<Exit> Remove(const CacheFlags& flags) {
  if (int{flags.all} + int{!flags.segments.empty()} + int{!flags.model.empty()} != 1)
    return Invalid("nothing selected; use one of --all, --segment ID or --model MODEL");
  FUSEBOX_ASSIGN(OpenedCache cache, OpenCache(flags));
  FUSEBOX_ASSIGN(const CacheReport before, cache.client.List(cache.path));
  if (!before.none.empty()) return NotFound(before.none);
  CacheReport gone;
  if (flags.all) {
    FUSEBOX_ASSIGN(gone, cache.client.Clear(cache.path));
  } else {
    std::vector<std::string> ids;
    if (flags.model.empty()) {
      FUSEBOX_ASSIGN(ids, Chosen(flags, before));
    } else {
      FUSEBOX_ASSIGN(ids, OfModel(flags, cache));
    }
    FUSEBOX_ASSIGN(gone, cache.client.Remove(cache.path, ids));
  }
  if (flags.json) PrintDocument(Json{{"path", before.path}, {"removed", RemovedJson(gone)}});
  else Print(RemovedText(gone, "removed"));
  return Exit::kDone;
}

using Perform = Result<Exit> (*)(const CacheFlags&);
CLI::App* AddOne(CLI::App& cache, Action& action, const char* name, const char* help, Perform perform,
                 std::shared_ptr<CacheFlags>& flags) {
  CLI::App* app = cache.add_subcommand(name, help);
  flags = std::make_shared<CacheFlags>();
  app->add_option("cache,--weight-cache", flags->cache, kPathHelp)->type_name("CACHE");
  AddPluginFlags(*app, flags->plugins);
  app->add_flag("--json", flags->json, kJsonHelp);
  app->callback([flags, perform, &action] { action = [flags, perform] { return perform(*flags); }; });
  return app;
}

void AddSegments(CLI::App& app, CacheFlags& flags, const char* help) {
  app.add_option("--segment", flags.segments, help)->type_name("ID")->allow_extra_args(false);
}

}  // namespace

void AddCache(CLI::App& root, Action& action) {
  CLI::App* cache = root.add_subcommand(
      "cache", "Inspect, verify and clean the on-disk weight cache; diagnose cache misses");
  cache->require_subcommand(1);
  cache->footer(R"(Examples:
  fusebox cache build model.tflite --weight-cache cache/
  fusebox cache doctor model.tflite --weight-cache cache/
  fusebox cache ls
  fusebox cache verify cache/
  fusebox cache gc --max-bytes 1G
  fusebox cache rm cache/ --model model.tflite)");
  std::shared_ptr<CacheFlags> flags;
  AddOne(*cache, action, "ls", "List the files of a cache with size, state and last use", List, flags);
  CLI::App* info =
      AddOne(*cache, action, "info", "List every entry of a cache: op, types, size and packer", Info, flags);
  AddSegments(*info, *flags, "Only this segment: its id or a prefix of it (repeatable)");
  AddOne(*cache, action, "verify", "Verify every byte; damaged files are listed and renamed (exit code 1)",
         Verify, flags);
  CLI::App* gc =
      AddOne(*cache, action, "gc",
             "Remove leftovers, entries replaced by upgrades, and the least recently used", Collect, flags);
  flags->max_bytes = 8'000'000'000;
  gc->add_option("--max-bytes", flags->max_bytes, "Size limit, such as 500M or 1G (or 1Gi); default: 8G")
      ->transform(CLI::AsSizeValue(true));
  CLI::App* rm =
      AddOne(*cache, action, "rm", "Remove segments or the whole cache; processes that use them keep them",
             Remove, flags);
  rm->add_flag("--all", flags->all, "Remove everything, and directories that become empty");
  AddSegments(*rm, *flags, "Remove this segment: its id or a prefix of it (repeatable)");
  rm->add_option("--model", flags->model,
                 "Remove the segments with weights of this model; models that share them pack again")
      ->type_name("MODEL");
  AddCacheBuild(*cache, action);
  AddCacheDoctor(*cache, action);
}

}  // namespace fusebox::cli
