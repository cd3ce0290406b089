// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/report/explain.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "plugins/xnnpack/cache/inspect.h"
#include "plugins/xnnpack/library.h"
#include "plugins/xnnpack/packing/pack_provider.h"
#include "plugins/xnnpack/partition/op.h"

namespace fusebox::xnnpack {

namespace {

// Contents of a store, indexed by the parts of a key.
class Contents {
 public:
  explicit Contents(const std::string& path) {
    cache::Note ignored;  // a missing store is empty
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
    const auto [first, last] = by_identity_.equal_range(key.identity);
    const auto at = std::find_if(
        first, last, [&](const auto& item) { return item.second.record->fingerprint == key.fingerprint; });
    return at == last ? nullptr : at->second.segment;
  }

  // {code, sentence} for a miss.
  std::pair<std::string, std::string> WhyMissing(const cache::Key& key, const PackNote& wanted) const {
    if (const cache::SegmentView* const segment = Holding(key))
      return {"damaged", "found, but segment " + segment->id + " is damaged"};
    if (const auto at = by_identity_.find(key.identity); at != by_identity_.end()) {
      const std::string& theirs = at->second.note.library;
      if (!theirs.empty() && theirs != wanted.library)
        return {"library", "packed by another build of XNNPACK (" + theirs + "), this is " + wanted.library};
      return {"fingerprint",
              "this XNNPACK packs small ops of this family differently than the one that packed it"};
    }
    if (const auto at = by_source_.find(wanted.source); at != by_source_.end())
      return {"cpu",
              "packed for a CPU with " + Words(at->second.note.cpu) + ", this one has " + Words(wanted.cpu)};
    if (by_recipe_.contains(wanted.recipe + wanted.cpu))
      return {"weights", "packed for other weights or another bias, not for these"};
    return {"absent", "never packed"};
  }

 private:
  struct Entry {
    const cache::SegmentView* segment;
    const cache::Record* record;
    PackNote note;
  };
  static std::string Words(std::string cpu) {
    while (cpu.ends_with(' ')) cpu.pop_back();
    return cpu.empty() ? "no relevant extensions" : cpu;
  }

  std::optional<cache::StoreView> view_;
  std::multimap<cache::Digest, Entry> by_identity_;
  std::multimap<std::string, Entry> by_source_, by_recipe_;
};

bool IsWeight(fbx_dtype dtype) {
  return dtype == FBX_F32 || dtype == FBX_F16 || dtype == FBX_I8 || dtype == FBX_U8 || dtype == FBX_I4;
}

// The constants of a node whose op registers none.
uint64_t PrivateBytes(const NetworkNode& node) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < node.in_count(); ++i)
    if (const auto constant = node.constant(i); constant && IsWeight(constant->dtype()))
      bytes += constant->bytes();
  return bytes;
}

class Explainer {
 public:
  explicit Explainer(const std::string& path)
      : contents_(path), weights_(std::make_shared<ModelWeights>(OpenStore(path, cache::Mode::kReadOnly))) {}

  std::vector<WeightReport> Run(const Graph& graph) {
    const Network network(graph);
    PackProvider provider(weights_);
    Subgraph subgraph(network, provider, {});
    for (uint32_t i = 0; i < graph.node_count(); ++i) {
      const NetworkNode node(network, i);
      const Operation* const operation = FindOperation(node.op());
      if (operation == nullptr) throw Reject{"OP", "XNNPACK has no such op", std::string(node.op())};
      subgraph.Defining(node);
      operation->supports(node);
      operation->define(node, subgraph);
      Report(node, provider);
      provider.ForgetSources();
    }
    return std::move(reports_);
  }

 private:
  WeightReport About(const NetworkNode& node) const {
    return {.location = std::string(to_string_view(node.abi()->location)), .op = std::string(node.op())};
  }

  // The weights that the op registered, as when it is created.
  void Report(const NetworkNode& node, const PackProvider& provider) {
    if (provider.registered().empty()) {
      WeightReport report = About(node);
      report.bytes = PrivateBytes(node);
      // Without a cache, a constant that a node only unpacks counts for its reader.
      if (report.bytes > 0 && node.op() != "DEQUANTIZE") reports_.push_back(std::move(report));
      return;
    }
    for (const auto& [address, entry] : provider.registered()) {
      const PackNote note = NoteOf(*weights_, entry.request());
      WeightReport report = About(node);
      report.identity = cache::Hex(entry.key.identity);
      report.recipe = note.what;
      report.kind =
          entry.recipe.family() == Family::kTransposedConvolution ? FBX_CACHE_REPACKED : FBX_CACHE_CACHED;
      report.bytes = entry.kernel->bytes;
      report.found = entry.index != SIZE_MAX;
      if (report.found) {
        report.packed_bytes = provider.SizeOf(entry.index);
        if (const cache::SegmentView* const segment = contents_.Holding(entry.key))
          report.segment = segment->id;
      } else {
        std::tie(report.code, report.why) = contents_.WhyMissing(entry.key, note);
      }
      reports_.push_back(std::move(report));
    }
  }

  const Contents contents_;
  const std::shared_ptr<ModelWeights> weights_;
  std::vector<WeightReport> reports_;
};

}  // namespace

std::vector<WeightReport> ExplainWeights(const std::string& path, const Graph& graph) {
  RequireLibrary();
  return Explainer(path).Run(graph);
}

}  // namespace fusebox::xnnpack
