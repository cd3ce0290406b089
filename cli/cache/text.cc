// SPDX-License-Identifier: Apache-2.0
#include "cli/cache/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "cli/base/print.h"
#include "cli/base/progress.h"
#include "host/base/table.h"

namespace fusebox::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr fbx_cache_kind kKinds[] = {FBX_CACHE_CACHED, FBX_CACHE_REPACKED, FBX_CACHE_PRIVATE};

// Shortens long ids; segments stay distinguishable.
std::string Short(const std::string& id) { return id.size() > 20 ? id.substr(0, 12) : id; }

std::string Date(int64_t seconds) {
  const auto time = static_cast<time_t>(seconds);
  struct tm local;
  char text[32];
  if (seconds <= 0 || localtime_r(&time, &local) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &local) == 0)
    return "-";
  return text;
}

std::string Plural(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string Answer(const CacheWeight& w) {
  if (w.kind == FBX_CACHE_PRIVATE) return "never cached";
  return w.found ? "found" : w.code;
}

}  // namespace

std::string StateName(fbx_cache_state state) {
  switch (state) {
    case FBX_CACHE_UNVERIFIED: return "unverified";
    case FBX_CACHE_VERIFIED: return "verified";
    case FBX_CACHE_BAD: return "bad";
    case FBX_CACHE_UNUSABLE: return "unusable";
    default: return "unknown";
  }
}

std::string KindName(fbx_cache_kind kind) {
  switch (kind) {
    case FBX_CACHE_CACHED: return "cached";
    case FBX_CACHE_REPACKED: return "repacked";
    case FBX_CACHE_PRIVATE: return "private";
    default: return "unknown";
  }
}

std::string SegmentsText(const CacheReport& report) {
  std::string text =
      fmt::format("{}: {}, {}, {}\n", Printable(report.path), report.single_file ? "a file" : "a directory",
                  Plural(report.segments.size(), "segment"), BytesText(report.bytes()));
  if (report.segments.empty()) return text;
  Table table({"segment", "state", "size", "entries", "packed", "created", "last use", "writer", "reason"});
  for (const CacheSegment& s : report.segments)
    table.Row({Short(s.id), StateName(s.state), BytesText(s.bytes), std::to_string(s.entry_count),
               BytesText(s.packed_bytes), Date(s.created), Date(s.used), s.writer, s.why});
  return text + table.Text();
}

std::string EntriesText(const CacheReport& report) {
  Table table({"segment", "family", "weights", "packed", "shared by", "for this machine"});
  for (const CacheEntry& e : report.entries)
    table.Row({Short(e.segment), e.family, e.recipe, BytesText(e.bytes),
               e.shared > 1 ? std::to_string(e.shared) : "-",
               e.current < 0   ? "?"
               : e.current > 0 ? "yes"
                               : "no"});
  return table.empty() ? "" : table.Text();
}

std::string RemovedText(const CacheReport& report, const std::string& verb) {
  std::string text;
  uint64_t bytes = 0;
  for (const CacheFile& f : report.removed) {
    bytes += f.bytes;
    text += fmt::format("{} {} ({})\n", verb, Printable(f.path), BytesText(f.bytes));
  }
  return text + fmt::format("{} {}, {}\n", verb, Plural(report.removed.size(), "file"), BytesText(bytes));
}

std::string FactsText(const CacheReport& facts) {
  std::string text;
  for (const auto& [name, value] : facts.facts) text += Printable(name + ": " + value) + "\n";
  return text;
}

Json FactsJson(const CacheReport& facts) {
  Json object = Json::object();
  for (auto [name, value] : facts.facts) {
    std::replace(name.begin(), name.end(), ' ', '_');
    object[name] = value;
  }
  return object;
}

Json StoreJson(const CacheReport& report) {
  Json segments = Json::array();
  for (const CacheSegment& s : report.segments)
    segments.push_back({{"id", s.id},
                        {"path", s.path},
                        {"state", StateName(s.state)},
                        {"reason", s.why},
                        {"bytes", s.bytes},
                        {"entries", s.entry_count},
                        {"packed_bytes", s.packed_bytes},
                        {"created", s.created},
                        {"used", s.used},
                        {"writer", s.writer}});
  return {{"path", report.none.empty() ? Json(report.path) : Json()},
          {"single_file", report.single_file},
          {"bytes", report.bytes()},
          {"segments", std::move(segments)}};
}

Json EntriesJson(const CacheReport& report) {
  Json entries = Json::array();
  for (const CacheEntry& e : report.entries)
    entries.push_back({{"segment", e.segment},
                       {"identity", e.identity},
                       {"family", e.family},
                       {"weights", e.recipe},
                       {"bytes", e.bytes},
                       {"shared_by", e.shared},
                       {"for_this_machine", e.current < 0 ? Json() : Json(e.current > 0)}});
  return entries;
}

Json RemovedJson(const CacheReport& report) {
  Json files = Json::array();
  for (const CacheFile& f : report.removed) files.push_back({{"path", f.path}, {"bytes", f.bytes}});
  return files;
}

ClassSum SumOf(const std::vector<CacheWeight>& weights, fbx_cache_kind kind) {
  ClassSum sum;
  std::set<std::string> seen;
  for (const CacheWeight& w : weights) {
    if (w.kind != kind || (!w.identity.empty() && !seen.insert(w.identity).second)) continue;
    ++sum.weights;
    sum.bytes += w.bytes;
    sum.packed_bytes += w.packed_bytes;
    if (kind == FBX_CACHE_PRIVATE) continue;
    ++(w.found ? sum.found : sum.missing);
    if (!w.found) sum.missing_bytes += w.bytes;
  }
  return sum;
}

std::string ClassesText(const std::vector<CacheWeight>& weights) {
  Table table({"class", "weights", "in the model", "found", "packed", "missing", "of the model"});
  for (const fbx_cache_kind kind : kKinds) {
    const ClassSum s = SumOf(weights, kind);
    const bool asked = kind != FBX_CACHE_PRIVATE;
    table.Row({KindName(kind), std::to_string(s.weights), BytesText(s.bytes),
               asked ? std::to_string(s.found) : "-", asked ? BytesText(s.packed_bytes) : "-",
               asked ? std::to_string(s.missing) : "-", asked ? BytesText(s.missing_bytes) : "-"});
  }
  return table.Text();
}

Json ClassesJson(const std::vector<CacheWeight>& weights) {
  Json classes = Json::object();
  for (const fbx_cache_kind kind : kKinds) {
    const ClassSum s = SumOf(weights, kind);
    classes[KindName(kind)] = {{"weights", s.weights}, {"bytes", s.bytes},
                               {"found", s.found},     {"packed_bytes", s.packed_bytes},
                               {"missing", s.missing}, {"missing_bytes", s.missing_bytes}};
  }
  return classes;
}

std::string WeightsText(const std::vector<CacheWeight>& weights, bool all) {
  Table table({"node", "op", "weights", "class", "bytes", "answer", "reason"});
  for (const CacheWeight& w : weights) {
    const bool missing = !w.found && w.kind != FBX_CACHE_PRIVATE;
    if (!all && !missing) continue;
    table.Row({FirstOfNames(w.location), w.op, w.recipe.empty() ? "-" : w.recipe, KindName(w.kind),
               BytesText(w.bytes), Answer(w), w.found ? "in segment " + Short(w.segment) : w.why});
  }
  return table.empty() ? "" : table.Text() + "\n";
}

Json WeightsJson(const std::vector<CacheWeight>& weights) {
  Json list = Json::array();
  for (const CacheWeight& w : weights)
    list.push_back({{"node", w.location},
                    {"op", w.op},
                    {"weights", w.recipe},
                    {"identity", w.identity},
                    {"class", KindName(w.kind)},
                    {"found", w.found},
                    {"bytes", w.bytes},
                    {"packed_bytes", w.packed_bytes},
                    {"segment", w.segment},
                    {"code", w.code},
                    {"reason", w.why}});
  return list;
}

}  // namespace fusebox::cli
