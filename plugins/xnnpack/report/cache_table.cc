// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/report/cache_table.h"

#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plugins/xnnpack/cache/inspect.h"
#include "plugins/xnnpack/library.h"
#include "plugins/xnnpack/packing/fingerprint.h"
#include "plugins/xnnpack/packing/pack_key.h"
#include "plugins/xnnpack/report/explain.h"

namespace fusebox::xnnpack {

namespace {

using cache::Note;
using cache::SegmentView;
using cache::StoreView;
using Sink = const fbx_cache_sink*;

[[noreturn]] void Throw(const Note& why) {
  if (why.code == "missing" || why.code == "no-cache" || why.code == "no-home")
    throw Reject{why.code, why.message};
  throw Error{why.code == "no-segment" ? FBX_INVALID : FBX_IO, why.message};
}

fbx_cache_state StateOf(SegmentView::State state) {
  switch (state) {
    case SegmentView::State::kUnverified: return FBX_CACHE_UNVERIFIED;
    case SegmentView::State::kVerified: return FBX_CACHE_VERIFIED;
    case SegmentView::State::kBad: return FBX_CACHE_BAD;
    case SegmentView::State::kUnusable: return FBX_CACHE_UNUSABLE;
  }
  return FBX_CACHE_BAD;
}

// Number of records per blob.
std::map<uint64_t, uint32_t> Shares(const cache::Segment& segment) {
  std::map<uint64_t, uint32_t> shares;
  for (const cache::Record& r : segment.records()) ++shares[r.offset];
  return shares;
}

void ReportSegment(Sink sink, const StoreView& store, const SegmentView& s) {
  if (!FBX_HAS(sink, segment)) return;
  const std::string path = store.PathOf(s);
  fbx_cache_segment out{};
  out.head = FBX_HEAD(fbx_cache_segment);
  out.id = to_fbx_str(s.id);
  out.path = to_fbx_str(path);
  out.state = StateOf(s.state);
  out.why = to_fbx_str(s.why.message);
  out.bytes = s.bytes;
  out.used = s.used_s;
  if (s.segment) {
    const cache::Superblock& super = s.segment->superblock();
    out.writer = to_fbx_str(super.writer);
    out.entry_count = super.entry_count;
    out.created = static_cast<int64_t>(super.created_s);
    std::map<uint64_t, uint32_t> left = Shares(*s.segment);
    for (const cache::Record& r : s.segment->records())
      if (left.erase(r.offset) > 0) out.packed_bytes += r.size;
  }
  sink->segment(sink, &out);
}

// Returns the fingerprints of all forms of the family; 4-bit weights exist only for fully connected ops.
std::vector<uint64_t> FingerprintsOf(Family family) {
  const size_t forms = family == Family::kFullyConnected ? kForms : static_cast<size_t>(Form::kDynamicInt4);
  std::vector<uint64_t> out;
  for (size_t form = 0; form < forms; ++form) out.push_back(FingerprintOf(family, static_cast<Form>(form)));
  return out;
}

std::set<uint64_t> AllFingerprints() {
  RequireLibrary();
  std::set<uint64_t> all;
  for (size_t family = 0; family < kFamilies; ++family)
    for (const uint64_t f : FingerprintsOf(static_cast<Family>(family))) all.insert(f);
  return all;
}

void ReportEntries(Sink sink, const SegmentView& s, const std::set<uint64_t>& fingerprints) {
  if (!FBX_HAS(sink, entry) || !s.segment) return;
  std::map<uint64_t, uint32_t> shares = Shares(*s.segment);
  for (const cache::Record& r : s.segment->records()) {
    const auto family = static_cast<Family>(r.family);
    const bool known = r.family < kFamilies;
    const PackNote note = PackNote::Parse(s.segment->RecipeOf(r));
    const std::string identity = Hex(r.identity);
    fbx_cache_entry out{};
    out.head = FBX_HEAD(fbx_cache_entry);
    out.segment = to_fbx_str(s.id);
    out.identity = to_fbx_str(identity);
    out.family = to_fbx_str(known ? FamilyName(family) : "kernel");
    out.recipe = to_fbx_str(note.what);
    out.bytes = r.size;
    out.shared = shares[r.offset];
    out.current = -1;
    if (known) out.current = fingerprints.contains(r.fingerprint) && note.cpu == CpuText();
    sink->entry(sink, &out);
  }
}

void Report(Sink sink, const StoreView& store) {
  if (FBX_HAS(sink, store)) {
    const fbx_cache_store out{FBX_HEAD(fbx_cache_store), to_fbx_str(store.dirs->path),
                              store.dirs->single_file};
    sink->store(sink, &out);
  }
  const auto fingerprints = FBX_HAS(sink, entry) ? AllFingerprints() : std::set<uint64_t>();
  for (const SegmentView& s : store.segments) {
    ReportSegment(sink, store, s);
    ReportEntries(sink, s, fingerprints);
  }
}

void Report(Sink sink, const std::vector<cache::Removed>& removed) {
  if (!FBX_HAS(sink, removed)) return;
  for (const cache::Removed& r : removed) sink->removed(sink, to_fbx_str(r.path), r.bytes);
}

fbx_status List(const fbx_host* host, fbx_str path, Sink sink) noexcept {
  return call_guarded(host, [&] {
    Note why;
    const auto store = cache::Inspect(std::string(to_string_view(path)), why);
    if (!store) Throw(why);
    Report(sink, *store);
  });
}

fbx_status Verify(const fbx_host* host, fbx_str path, Sink sink) noexcept {
  return call_guarded(host, [&] {
    Note why;
    std::vector<cache::Removed> put_aside;
    const auto store = cache::VerifyAll(std::string(to_string_view(path)), put_aside, why);
    if (!store) Throw(why);
    Report(sink, *store);
    Report(sink, put_aside);
  });
}

template <class F>
fbx_status Remove(const fbx_host* host, Sink sink, const F& remove) noexcept {
  return call_guarded(host, [&] {
    Note why;
    std::vector<cache::Removed> removed;
    const bool done = remove(removed, why);
    Report(sink, removed);
    if (!done) Throw(why);
  });
}

fbx_status Collect(const fbx_host* host, fbx_str path, uint64_t max_bytes, Sink sink) noexcept {
  return Remove(host, sink, [&](auto& removed, Note& why) {
    return cache::CollectGarbage(std::string(to_string_view(path)), max_bytes, removed, why);
  });
}

fbx_status RemoveSegments(const fbx_host* host, fbx_str path, const fbx_str* ids, size_t count,
                          Sink sink) noexcept {
  return Remove(host, sink, [&](auto& removed, Note& why) {
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) names.emplace_back(to_string_view(ids[i]));
    return cache::RemoveSegments(std::string(to_string_view(path)), names, removed, why);
  });
}

fbx_status Clear(const fbx_host* host, fbx_str path, Sink sink) noexcept {
  return Remove(host, sink, [&](auto& removed, Note& why) {
    return cache::RemoveStore(std::string(to_string_view(path)), removed, why);
  });
}

fbx_status Facts(const fbx_host* host, Sink sink) noexcept {
  return call_guarded(host, [&] {
    if (!FBX_HAS(sink, fact)) return;
    RequireLibrary();
    const auto report = [&](std::string_view name, std::string_view value) {
      sink->fact(sink, to_fbx_str(name), to_fbx_str(value));
    };
    report("library", "XNNPACK " + LibraryBuildText());
    const std::string_view cpu = CpuText();
    report("cpu", cpu.substr(0, cpu.find_last_not_of(' ') + 1));
    for (size_t i = 0; i < kFamilies; ++i) {
      const auto family = static_cast<Family>(i);
      const std::vector<uint64_t> forms = FingerprintsOf(family);
      const cache::Digest digest = cache::Hash(std::as_bytes(std::span(forms)));
      report("fingerprint of " + std::string(FamilyName(family)), cache::Hex(digest).substr(16));
    }
  });
}

fbx_status Explain(const fbx_host* host, fbx_str path, const fbx_graph* graph, Sink sink) noexcept {
  return call_guarded(host, [&] {
    if (!FBX_HAS(sink, weight)) return;
    for (const WeightReport& r : ExplainWeights(std::string(to_string_view(path)), Graph(host, graph))) {
      const fbx_cache_weight out{.head = FBX_HEAD(fbx_cache_weight),
                                 .location = to_fbx_str(r.location),
                                 .op = to_fbx_str(r.op),
                                 .identity = to_fbx_str(r.identity),
                                 .recipe = to_fbx_str(r.recipe),
                                 .kind = r.kind,
                                 .found = r.found,
                                 .bytes = r.bytes,
                                 .packed_bytes = r.packed_bytes,
                                 .segment = to_fbx_str(r.segment),
                                 .code = to_fbx_str(r.code),
                                 .why = to_fbx_str(r.why)};
      sink->weight(sink, &out);
    }
  });
}

fbx_status Flush(const fbx_host* host, fbx_str path) noexcept {
  return call_guarded(host, [&] {
    const auto store = OpenStore(std::string(to_string_view(path)));
    store->Flush();
    const cache::Stats stats = store->stats();
    if (stats.fallback_reason.empty()) return;
    for (const Note& note : store->notes()) emit_diag(host, FBX_NOTE, note.code, note.message);
    throw Error{FBX_IO, "some weights could not be stored (" + stats.fallback_reason + ")"};
  });
}

}  // namespace

const void* CacheTable::table() noexcept {
  static constexpr fbx_cache kTable{.head = FBX_HEAD(fbx_cache),
                                    .list = List,
                                    .verify = Verify,
                                    .collect = Collect,
                                    .remove = RemoveSegments,
                                    .clear = Clear,
                                    .facts = Facts,
                                    .explain = Explain,
                                    .flush = Flush};
  return &kTable;
}

}  // namespace fusebox::xnnpack
