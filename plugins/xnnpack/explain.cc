// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/explain.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "plugins/xnnpack/cache/inspect.h"
#include "plugins/xnnpack/pack_provider.h"
#include "plugins/xnnpack/library.h"
#include "plugins/xnnpack/ops/op.h"

namespace fusebox::xnnpack {

namespace {

// What lies in a store, by all that an entry that is looked for may have in common with one that is there.
class Contents {
 public:
  explicit Contents(const std::string& path) {
    cache::Note ignored;  // a store that is not there has nothing in it
    view_ = cache::Inspect(path, ignored);
    if (!view_) return;
    for (const cache::SegmentView& s : view_->segments) {
      if (!s.segment || s.state == cache::SegmentView::State::kUnusable) continue;
      for (const cache::Record& r : s.segment->records()) {
        PackNote note = PackNote::Parse(s.segment->RecipeOf(r));
        const Entry entry{&s, &r, note};
        by_identity_.emplace(r.identity, entry);
        if (!note.source.empty()) by_source_.emplace(note.source, entry);
        if (!note.recipe.empty()) by_recipe_.emplace(note.recipe + note.cpu, entry);
      }
    }
  }

  const cache::SegmentView* Holding(const cache::Key& key) const {
    const auto [first, last] = by_identity_.equal_range(key.identity.keyed);
    const auto at = std::find_if(
        first, last, [&](const auto& item) { return item.second.record->fingerprint == key.fingerprint; });
    return at == last ? nullptr : at->second.segment;
  }

  // {code, sentence} for an entry that a look-up does not find.
  std::pair<std::string, std::string> WhyMissing(const cache::Key& key, const PackNote& wanted) const {
    if (const cache::SegmentView* const segment = Holding(key))
      return {"damaged", "it is there, but segment " + segment->id + " is damaged"};
    if (const auto at = by_identity_.find(key.identity.keyed); at != by_identity_.end()) {
      const std::string& theirs = at->second.note.library;
      if (!theirs.empty() && theirs != wanted.library)
        return {"library", "packed by another build of XNNPACK (" + theirs + "), this is " + wanted.library};
      return {"fingerprint",
              "this XNNPACK packs small ops of its family otherwise than the one that packed it"};
    }
    if (const auto at = by_source_.find(wanted.source); at != by_source_.end())
      return {"cpu",
              "packed for a CPU with " + Words(at->second.note.cpu) + ", this one has " + Words(wanted.cpu)};
    if (by_recipe_.contains(wanted.recipe + wanted.cpu))
      return {"weights", "other weights, or another bias, are packed in this way; not these"};
    return {"absent", "nothing like it has been packed"};
  }

 private:
  struct Entry {
    const cache::SegmentView* segment;
    const cache::Record* record;
    PackNote note;
  };
  static std::string Words(std::string cpu) {
    while (cpu.ends_with(' ')) cpu.pop_back();
    return cpu.empty() ? "no extensions that matter" : cpu;
  }

  std::optional<cache::StoreView> view_;
  std::multimap<cache::Digest, Entry> by_identity_;
  std::multimap<std::string, Entry> by_source_, by_recipe_;
};

// A store that is asked for keys as when ops are defined, remembers them, and has nothing.
class Recorder final : public PackStore, public std::enable_shared_from_this<Recorder> {
 public:
  struct Asked {
    cache::Key key;
    PackNote note;
    Family family;
    uint64_t bytes;
  };
  explicit Recorder(std::shared_ptr<PackStore> keys) : keys_(std::move(keys)) {}
  std::unique_ptr<PackWriter> Open() override;
  cache::Key KeyOf(const Fingerprints& fingerprints, const PackRequest& request) override {
    const cache::Key key = keys_->KeyOf(fingerprints, request);
    asked_.push_back(
        {key, keys_->NoteOf(fingerprints, request), request.recipe.family(), request.kernel->bytes});
    return key;
  }
  PackNote NoteOf(const Fingerprints& fingerprints, const PackRequest& request) override {
    return keys_->NoteOf(fingerprints, request);
  }
  void Packed(const fbx_tensor&) override {}
  std::vector<Asked> Take() { return std::exchange(asked_, {}); }

 private:
  std::shared_ptr<PackStore> keys_;
  std::vector<Asked> asked_;
};

class Nothing final : public PackWriter {
  std::optional<PackedBlob> Find(const cache::Key&) override { return std::nullopt; }
  void* Reserve(size_t) override { return nullptr; }
  void* ReserveScratch(size_t) override { return nullptr; }
  PackedBlob Insert(const cache::Key&, void*, size_t, const PackRequest&, const Fingerprints&,
                    uint32_t) override {
    return {};
  }
  PackedBlob Keep(void*, size_t) override { return {}; }
  void Discard(void*) override {}
  void Distrust(const cache::Key&) override {}
  void Commit() override {}
};

std::unique_ptr<PackWriter> Recorder::Open() { return std::make_unique<Nothing>(); }

bool IsWeight(fbx_dtype dtype) {
  return dtype == FBX_F32 || dtype == FBX_F16 || dtype == FBX_I8 || dtype == FBX_U8 || dtype == FBX_I4;
}

// The constants of a node whose op asked for none of them.
uint64_t PrivateBytes(const Site& site) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < site.in_count(); ++i)
    if (const auto constant = site.constant(i); constant && IsWeight(constant->dtype()))
      bytes += constant->bytes();
  return bytes;
}

class Explainer {
 public:
  explicit Explainer(const std::string& path)
      : contents_(path),
        store_(OpenWeightStore(path, true, cache::Mode::kReadOnly)),
        recorder_(std::make_shared<Recorder>(MakeFileStore(store_))) {}

  std::vector<WeightReport> Run(const Graph& graph) {
    const Network network(graph);
    PackProvider provider(recorder_, Fingerprints::Measured());
    Subgraph subgraph(network, provider, {});
    for (uint32_t i = 0; i < graph.node_count(); ++i) {
      const Site site(network, i);
      const Operation* const operation = FindOperation(site.op());
      if (operation == nullptr) throw Reject{"OP", "XNNPACK has no such op", std::string(site.op())};
      subgraph.Defining(site);
      operation->supports(site);
      operation->define(site, subgraph);
      Report(site, recorder_->Take());
      provider.ForgetSources();
    }
    return std::move(reports_);
  }

 private:
  WeightReport About(const Site& site) const {
    return {.location = std::string(view(site.abi()->location)), .op = std::string(site.op())};
  }

  void Report(const Site& site, const std::vector<Recorder::Asked>& asked) {
    if (asked.empty()) {
      WeightReport report = About(site);
      report.bytes = PrivateBytes(site);
      // In a partition without a cache, constants that only unpack others are those of their reader.
      if (report.bytes > 0 && site.op() != "DEQUANTIZE") reports_.push_back(std::move(report));
      return;
    }
    for (const Recorder::Asked& a : asked) {
      WeightReport report = About(site);
      report.identity = cache::Hex(a.key.identity.keyed);
      report.recipe = a.note.what;
      report.kind = a.family == Family::kTransposedConvolution ? FBX_CACHE_REPACKED : FBX_CACHE_CACHED;
      report.bytes = a.bytes;
      if (const auto blob = store_->Lookup(a.key)) {
        report.found = true;
        report.packed_bytes = blob->bytes.size();
        if (const cache::SegmentView* const segment = contents_.Holding(a.key)) report.segment = segment->id;
      } else {
        std::tie(report.code, report.why) = contents_.WhyMissing(a.key, a.note);
      }
      reports_.push_back(std::move(report));
    }
  }

  const Contents contents_;
  const std::shared_ptr<cache::Store> store_;
  const std::shared_ptr<Recorder> recorder_;
  std::vector<WeightReport> reports_;
};

}  // namespace

std::vector<WeightReport> ExplainWeights(const std::string& path, const Graph& graph) {
  RequireLibrary();
  return Explainer(path).Run(graph);
}

}  // namespace fusebox::xnnpack
