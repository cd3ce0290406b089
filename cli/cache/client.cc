// SPDX-License-Identifier: Apache-2.0
#include "cli/cache/client.h"

#include <set>
#include <type_traits>

#include "host/graph/view.h"
#include "host/run/run.h"

namespace fusebox::cli {
namespace {

std::string Text(fbx_str text) { return std::string(FromAbi(text)); }

// Collects the reports of the service.
class Gathering {
 public:
  explicit Gathering(bool entries)
      : sink_{.head = FBX_HEAD(fbx_cache_sink),
              .store = Store,
              .segment = Segment,
              .entry = entries ? Entry : nullptr,
              .weight = Weight,
              .fact = Fact,
              .removed = Removed} {}
  const fbx_cache_sink* sink() const { return &sink_; }
  CacheReport Take() { return std::move(report_); }

 private:
  static CacheReport& Of(const fbx_cache_sink* sink) {
    return const_cast<Gathering*>(reinterpret_cast<const Gathering*>(sink))->report_;
  }
  static void Store(const fbx_cache_sink* sink, const fbx_cache_store* s) noexcept {
    Of(sink).path = Text(s->path);
    Of(sink).single_file = s->single_file != 0;
  }
  static void Segment(const fbx_cache_sink* sink, const fbx_cache_segment* s) noexcept {
    Of(sink).segments.push_back({.id = Text(s->id),
                                 .path = Text(s->path),
                                 .why = Text(s->why),
                                 .writer = Text(s->writer),
                                 .state = s->state,
                                 .bytes = s->bytes,
                                 .entry_count = s->entry_count,
                                 .packed_bytes = s->packed_bytes,
                                 .created = s->created,
                                 .used = s->used});
  }
  static void Entry(const fbx_cache_sink* sink, const fbx_cache_entry* e) noexcept {
    Of(sink).entries.push_back({.segment = Text(e->segment),
                                .identity = Text(e->identity),
                                .family = Text(e->family),
                                .recipe = Text(e->recipe),
                                .bytes = e->bytes,
                                .shared = e->shared,
                                .current = e->current});
  }
  static void Weight(const fbx_cache_sink* sink, const fbx_cache_weight* w) noexcept {
    Of(sink).weights.push_back({.location = Text(w->location),
                                .op = Text(w->op),
                                .identity = Text(w->identity),
                                .recipe = Text(w->recipe),
                                .segment = Text(w->segment),
                                .code = Text(w->code),
                                .why = Text(w->why),
                                .kind = w->kind,
                                .found = w->found != 0,
                                .bytes = w->bytes,
                                .packed_bytes = w->packed_bytes});
  }
  static void Fact(const fbx_cache_sink* sink, fbx_str name, fbx_str value) noexcept {
    Of(sink).facts.emplace_back(Text(name), Text(value));
  }
  static void Removed(const fbx_cache_sink* sink, fbx_str path, uint64_t bytes) noexcept {
    Of(sink).removed.push_back({Text(path), bytes});
  }

  fbx_cache_sink sink_;  // first: callbacks cast from it
  CacheReport report_;
};

static_assert(std::is_standard_layout_v<Gathering>);

}  // namespace

uint64_t CacheReport::bytes() const {
  uint64_t sum = 0;
  for (const CacheSegment& s : segments) sum += s.bytes;
  return sum;
}

Result<CacheClient> CacheClient::Open(std::shared_ptr<Registry> registry) {
  const Registry::ServiceRef service = registry->FindService(FBX_EXT_CACHE);
  const auto* table = static_cast<const fbx_cache*>(service.table);
  if (!FBX_HAS(table, flush)) {
    return NotFound("no plugin provides a weight cache (xnnpack does); add it with --plugin" +
                    SearchedText(*registry));
  }
  CacheClient client;
  client.registry_ = std::move(registry);
  client.table_ = table;
  client.call_ = std::make_unique<HostCall>(*service.plugin, nullptr);
  return client;
}

std::string CacheClient::PathOf(const std::string& given) const {
  if (!given.empty()) return given;
  std::vector<std::string> ignored;
  const auto delegates = registry_->Delegates(std::nullopt, {}, ignored);
  if (delegates) {
    for (const DelegateRef& ref : delegates->used) {
      const std::string path(ref.options->str("weight_cache_path", ""));
      if (ref.plugin == &call_->plugin() && !path.empty()) return path;
    }
  }
  return "auto";
}

Result<CacheReport> CacheClient::Query(bool entries, const Function& function) {
  Gathering gathering(entries);
  const fbx_status status = function(call_->abi(), gathering.sink());
  if (status == FBX_NOT_APPLICABLE) {
    CacheReport report = gathering.Take();
    for (const Diag& diag : call_->TakeDiags()) {
      report.none += (report.none.empty() ? "" : "; ") + diag.message;
      report.none_code = diag.code;
    }
    return report;
  }
  FUSEBOX_TRY(call_->Check(status));
  return gathering.Take();
}

Result<CacheReport> CacheClient::List(const std::string& path, bool entries) {
  return Query(entries, [&](const fbx_host* h, auto sink) { return table_->list(h, AsAbi(path), sink); });
}

Result<CacheReport> CacheClient::Verify(const std::string& path) {
  return Query(false, [&](const fbx_host* h, auto sink) { return table_->verify(h, AsAbi(path), sink); });
}

Result<CacheReport> CacheClient::Collect(const std::string& path, uint64_t max_bytes) {
  return Query(
      false, [&](const fbx_host* h, auto sink) { return table_->collect(h, AsAbi(path), max_bytes, sink); });
}

Result<CacheReport> CacheClient::Remove(const std::string& path, const std::vector<std::string>& ids) {
  std::vector<fbx_str> names;
  for (const std::string& id : ids) names.push_back(AsAbi(id));
  return Query(false, [&](const fbx_host* h, auto sink) {
    return table_->remove(h, AsAbi(path), names.data(), names.size(), sink);
  });
}

Result<CacheReport> CacheClient::Clear(const std::string& path) {
  return Query(false, [&](const fbx_host* h, auto sink) { return table_->clear(h, AsAbi(path), sink); });
}

Result<CacheReport> CacheClient::Facts() {
  return Query(false, [&](const fbx_host* h, auto sink) { return table_->facts(h, sink); });
}

Result<CacheReport> CacheClient::Explain(const std::string& path, const Model& model) {
  CacheReport all;
  for (const auto& part : model.program().parts()) {
    if (&part->delegate->plugin() != &call_->plugin()) continue;
    const GraphView view(model.module(), *part->function);
    FUSEBOX_ASSIGN(CacheReport report, Query(false, [&](const fbx_host* h, auto sink) {
                     return table_->explain(h, AsAbi(path), view.abi(), sink);
                   }));
    if (!report.none.empty()) return Internal(delegate::ToString(*part) + ": " + report.none);
    std::move(report.weights.begin(), report.weights.end(), std::back_inserter(all.weights));
  }
  return all;
}

Status CacheClient::Flush(const std::string& path) {
  return call_->Check(table_->flush(call_->abi(), AsAbi(path)));
}

}  // namespace fusebox::cli
