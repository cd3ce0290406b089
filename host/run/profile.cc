// SPDX-License-Identifier: Apache-2.0
#include "host/run/profile.h"

#include <algorithm>
#include <memory>
#include <new>
#include <optional>

#include "host/graph/cost.h"
#include "host/run/frame.h"

namespace fusebox::run {
namespace {

// Returns the operand of which the op reads as much as it writes, not all.
std::optional<size_t> PartlyRead(const Node& node) {
  for (const Op op : {Op::kGather, Op::kGatherNd, Op::kSlice, Op::kStridedSlice})
    if (node.is(op)) return 0;
  return node.is(Op::kEmbeddingLookup) ? std::optional<size_t>(1) : std::nullopt;
}

constexpr size_t kMostSpans = 1000;  // of a node, by name and worker

Profile* ProfileOf(const fbx_host* host) {
  const auto* services = dynamic_cast<const ThreadedServices*>(HostCall::From(host).services());
  return services == nullptr ? nullptr : services->profile();
}

int32_t Enabled(const fbx_host* host) noexcept { return ProfileOf(host) != nullptr ? 1 : 0; }
uint64_t NowOf(const fbx_host*) noexcept { return Trace::Now(); }
void AddSpan(const fbx_host* host, const fbx_span* span) noexcept {
  if (Profile* const profile = ProfileOf(host); profile != nullptr && span != nullptr) profile->Add(*span);
}

}  // namespace

void Profile::Add(const fbx_span& span) noexcept {
  if (trace_ != nullptr) AddToTrace(&span);
  const std::lock_guard lock(mutex_);
  if (current_ == nullptr) return;  // not in invoke
  std::vector<SpanTime>& spans = current_->record_.spans;
  const auto same = [&](const SpanTime& s) {
    return s.worker == span.worker && s.name == FromAbi(span.name);
  };
  auto found = std::ranges::find_if(spans, same);
  if (found == spans.end()) {
    if (spans.size() >= kMostSpans) return;
    try {
      found = spans.insert(found, {std::string(FromAbi(span.name)), span.worker});
    } catch (const std::bad_alloc&) {
      return;
    }
  }
  ++found->count;
  found->total_ns += span.duration_ns;
  found->bytes += span.bytes;
  found->flops += span.flops;
}

void Profile::AddToTrace(const fbx_span* span) noexcept try {
  uint64_t start = FBX_HAS(span, start_ns) ? span->start_ns : 0;
  if (start == 0) start = Trace::Now() - span->duration_ns;
  const uint64_t end = start + span->duration_ns;
  if (current_ != nullptr) start = std::max(start, current_->start_);  // measured by another clock
  Trace::Kind kind{std::string(FromAbi(span->name)), "span"};
  if (span->bytes > 0) kind.args.emplace_back("bytes", span->bytes);
  if (span->flops > 0) kind.args.emplace_back("flops", span->flops);
  trace_->Add(trace_->Describe(kind), start, end);
} catch (const std::bad_alloc&) {
  return;  // the trace lacks it
}

namespace {

// A parallel loop, and when each worker was at it.
struct TracedLoop {
  struct alignas(64) Worker {  // written by its thread only
    uint32_t thread = 0;       // 0: it ran no chunk
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
  };
  void (*task)(void*, size_t, size_t, uint32_t) noexcept;
  void* context;
  std::unique_ptr<Worker[]> workers;
};

void RunTraced(void* context, size_t begin, size_t end, uint32_t worker) noexcept {
  auto& loop = *static_cast<TracedLoop*>(context);
  TracedLoop::Worker& mine = loop.workers[worker];
  if (mine.thread == 0) mine = {Trace::Thread(), Trace::Now()};
  loop.task(loop.context, begin, end, worker);
  mine.end_ns = Trace::Now();
}

}  // namespace

void Profile::TraceLoop(Threads& threads, size_t n, size_t grain,
                        void (*task)(void*, size_t, size_t, uint32_t) noexcept, void* context) noexcept {
  const uint32_t count = threads.count();
  TracedLoop loop{task, context,
                  std::unique_ptr<TracedLoop::Worker[]>(new (std::nothrow) TracedLoop::Worker[count])};
  if (loop.workers == nullptr || current_ == nullptr) return threads.ParallelFor(n, grain, task, context);
  const Trace::KindId kind = current_->record_.traced;
  threads.ParallelFor(n, grain, RunTraced, &loop);
  for (uint32_t i = 0; i < count; ++i) {
    const TracedLoop::Worker& worker = loop.workers[i];
    if (worker.thread == 0 || worker.thread == Trace::Thread()) continue;  // this thread has the node's span
    trace_->NameWorker(worker.thread, i);
    trace_->Add(kind, worker.thread, worker.start_ns, worker.end_ns);
  }
}

const fbx_profile& Profile::Api() {
  static constexpr fbx_profile kProfile{FBX_HEAD(fbx_profile), Enabled, NowOf, AddSpan};
  return kProfile;
}

Status Frame::RunTimed(plan::Step& step) {
  Profile::Record& record = records_[step.node];
  if (runner_.profile_->trace() != nullptr) DescribeTraced(step, record);
  const Profile::Timing timing(*runner_.profile_, record);
  Status status = RunStep(step);
  record.delegated = step.part >= 0 && runner_.delegates_.runs(static_cast<size_t>(step.part));
  return status;
}

// For the trace, before the first run, and if a delegate has declined since.
void Frame::DescribeTraced(const plan::Step& step, Profile::Record& record) {
  const bool delegated = step.part >= 0 && runner_.delegates_.runs(static_cast<size_t>(step.part));
  if (record.traced != 0 && record.delegated == delegated) return;
  record.delegated = delegated;
  const NodeTime row = TimeOf(step.node);
  Trace::Kind kind{row.op, "node", {{"name", row.name}, {"function", row.function}, {"node", row.node}}};
  if (row.nodes > 1) kind.args.emplace_back("nodes", row.nodes);
  std::vector<std::string> names;
  std::vector<std::string> types;
  for (const ValueId id : function_.nodes[step.node]->results) {
    if (id == kNoValue) continue;
    names.push_back(function_.value(id).name);
    types.push_back(ToString(TypeOf(view_.tensor(id))));
  }
  kind.args.emplace_back("outputs", std::move(names));
  kind.args.emplace_back("types", std::move(types));
  kind.args.emplace_back("run by", row.runner);
  record.traced = runner_.profile_->trace()->Describe(kind);
}

uint64_t Frame::BytesOf(size_t index) {
  const Node& node = *function_.nodes[index];
  const auto bytes_of = [&](ValueId id) { return id == kNoValue ? 0 : uint64_t{view_.tensor(id).bytes}; };
  uint64_t written = 0;
  for (const ValueId id : node.results) written += bytes_of(id);
  uint64_t read = 0;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const uint64_t bytes = bytes_of(node.operands[i]);
    read += PartlyRead(node) == i ? std::min(bytes, written) : bytes;
  }
  return read + written;
}

NodeTime Frame::TimeOf(size_t index) {
  const Node& node = *function_.nodes[index];
  const plan::Unit& unit = code_.units[index];
  const Profile::Record& record = records_[index];
  NodeTime row{.function = code_.name(), .node = index, .name = node.location.name};
  row.runs = record.runs;
  row.total_ns = record.total_ns;
  row.spans = record.spans;
  row.bytes = BytesOf(index);
  row.flops = ArithmeticOps(function_, node).value_or(0);
  row.runner = unit.kernel ? unit.kernel.plugin->id() : unit.runs_body ? "body" : "host";
  row.op = node.is(Op::kCustom) ? std::string_view(node.name) : Name(node.op);
  if (unit.kernel) row.estimate_ns = delegate::CostOf(unit.kernel, runner_.calls_, view_.node(index).abi);
  if (unit.part >= 0) {
    const delegate::Part& part = runner_.delegates_.part(static_cast<size_t>(unit.part));
    if (record.delegated) row.estimate_ns = delegate::CostOf(*code_.module, part, runner_.calls_);
    row.node = part.origin.nodes.front();
    row.nodes = part.origin.nodes.size();
    row.flops = 0;
    for (const auto& inner : part.function->nodes)
      row.flops += ArithmeticOps(*part.function, *inner).value_or(0);
    if (record.delegated) row.runner = ToString(part);
  } else if (code_.origin != nullptr) {
    row.node = code_.origin->nodes[index];
  }
  return row;
}

void Frame::AddTimes(std::vector<NodeTime>& rows) {
  for (size_t i = 0; i < records_.size(); ++i) {
    if (records_[i].runs > 0) rows.push_back(TimeOf(i));
  }
}

std::vector<NodeTime> Runner::times() const {
  std::vector<NodeTime> rows;
  for (const auto& code : program_.codes()) {
    if (const auto frame = frames_.find(code.get()); frame != frames_.end()) frame->second->AddTimes(rows);
  }
  return rows;
}

}  // namespace fusebox::run
