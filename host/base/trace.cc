// SPDX-License-Identifier: Apache-2.0
#include "host/base/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <nlohmann/json.hpp>
#include <set>

namespace fusebox {
namespace {

thread_local Trace* current_trace = nullptr;

constexpr size_t kBlock = size_t{1} << 16;  // bytes of one Append

// Names may hold any bytes: invalid UTF-8 becomes replacement characters.
template <class T>
std::string Json(const T& value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Microseconds with all digits of the nanoseconds, so that spans nest in the file as they do here.
std::string Micros(uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

// Returns the text that all spans of a kind share: "name", "cat", "args".
std::string Text(const Trace::Kind& kind) {
  std::string text = fmt::format(R"("name":{},"cat":{},"args":{{)", Json(kind.name), Json(kind.category));
  const char* separator = "";
  for (const auto& [key, value] : kind.args) {
    text += separator + Json(key) + ":" + std::visit([](const auto& v) { return Json(v); }, value);
    separator = ",";
  }
  return text + "}";
}

std::string Metadata(const char* what, uint32_t process, uint32_t thread, const std::string& name) {
  return fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what, process,
                     thread, Json(name));
}

// Writes the elements of a JSON array, one per line.
class Lines {
 public:
  explicit Lines(AtomicFile& file) : file_(file) {}
  Status Add(const std::string& line) {
    text_ += (first_ ? "\n" : ",\n") + line;
    first_ = false;
    return text_.size() < kBlock ? Status() : Flush();
  }
  Status Flush() {
    const Status status = file_.Append(std::as_bytes(std::span(text_)));
    text_.clear();
    return status;
  }

 private:
  AtomicFile& file_;
  std::string text_;
  bool first_ = true;
};

Status Append(AtomicFile& file, std::string_view text) { return file.Append(std::as_bytes(std::span(text))); }

}  // namespace

Trace::Trace(size_t most_spans) : origin_(Now()), most_(most_spans), kinds_{nullptr}, processes_{"fusebox"} {
  threads_.emplace(Thread(), "main");
}

uint64_t Trace::Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

uint32_t Trace::Thread() {
  static std::atomic<uint32_t> last = 0;
  thread_local const uint32_t number = ++last;
  return number;
}

Trace* Trace::Current() { return current_trace; }

Trace::Recording::Recording(Trace& trace) : outer_(std::exchange(current_trace, &trace)) {}
Trace::Recording::~Recording() { current_trace = outer_; }

void Trace::EnterProcess(std::string name) {
  const std::lock_guard lock(mutex_);
  if (events_.empty()) processes_.clear();  // nothing belongs to the unnamed one
  processes_.push_back(std::move(name));
}

Trace::KindId Trace::Describe(const Kind& kind) noexcept try {
  const std::lock_guard lock(mutex_);
  const auto [at, added] = ids_.try_emplace(kind, static_cast<KindId>(kinds_.size()));
  if (added) kinds_.push_back(&at->first);
  return at->second;
} catch (const std::bad_alloc&) {
  return 0;
}

void Trace::Add(KindId kind, uint32_t thread, uint64_t start_ns, uint64_t end_ns) noexcept {
  if (kind == 0) return;
  const uint64_t start = std::max(start_ns, origin_) - origin_;
  const uint64_t end = std::max(end_ns, origin_) - origin_;
  const std::lock_guard lock(mutex_);
  if (events_.size() >= most_) {
    ++dropped_;
    return;
  }
  try {
    events_.push_back({.kind = kind,
                       .process = static_cast<uint32_t>(processes_.size()),
                       .thread = thread,
                       .start_ns = start,
                       .end_ns = std::max(start, end)});
  } catch (const std::bad_alloc&) {
    ++dropped_;
  }
}

void Trace::NameWorker(uint32_t thread, uint32_t worker) noexcept try {
  const std::lock_guard lock(mutex_);
  if (!threads_.contains(thread)) threads_.emplace(thread, fmt::format("worker {}", worker));
} catch (const std::bad_alloc&) {
  return;  // the thread has a number
}

size_t Trace::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

// Sorted by process, thread and start, outer spans first. A span ends 1 ns before the next one and before the
// one around it: viewers add ts and dur in floating point.
std::vector<Trace::Event> Trace::Nested() const {
  std::vector<Event> events(events_.rbegin(), events_.rend());  // of two equal ones, the outer one ends last
  std::ranges::stable_sort(events, [](const Event& a, const Event& b) {
    return std::tie(a.process, a.thread, a.start_ns, b.end_ns) <
           std::tie(b.process, b.thread, b.start_ns, a.end_ns);
  });
  std::vector<Event*> open;
  for (Event& event : events) {
    if (!open.empty() && (open[0]->process != event.process || open[0]->thread != event.thread)) open.clear();
    while (!open.empty() && open.back()->end_ns <= event.start_ns) open.pop_back();
    const uint64_t limit = open.empty() ? event.end_ns : std::min(event.end_ns, open.back()->end_ns);
    event.end_ns = std::max(event.start_ns, std::max<uint64_t>(limit, 1) - 1);
    open.push_back(&event);
  }
  return events;
}

Status Trace::Write(AtomicFile& file) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts(1);
  for (size_t i = 1; i < kinds_.size(); ++i) texts.push_back(Text(*kinds_[i]));
  const std::vector<Event> events = Nested();
  std::set<std::pair<uint32_t, uint32_t>> threads;
  for (const Event& event : events) threads.emplace(event.process, event.thread);

  FUSEBOX_TRY(Append(file, R"({"displayTimeUnit":"ns","traceEvents":[)"));
  Lines lines(file);
  for (uint32_t i = 0; i < processes_.size(); ++i)
    FUSEBOX_TRY(lines.Add(Metadata("process_name", i + 1, 0, processes_[i])));
  for (const auto& [process, thread] : threads) {
    const auto named = threads_.find(thread);
    const std::string name = named == threads_.end() ? fmt::format("thread {}", thread) : named->second;
    FUSEBOX_TRY(lines.Add(Metadata("thread_name", process, thread, name)));
  }
  for (const Event& event : events) {
    // Viewers may end a span of no length before it begins: it is an instant.
    const uint64_t duration = event.end_ns - event.start_ns;
    const std::string shape = duration > 0 ? R"("ph":"X","dur":)" + Micros(duration) : R"("ph":"i","s":"t")";
    FUSEBOX_TRY(lines.Add(fmt::format(R"({{{},"pid":{},"tid":{},"ts":{},{}}})", shape, event.process,
                                      event.thread, Micros(event.start_ns), texts[event.kind])));
  }
  FUSEBOX_TRY(lines.Flush());
  return Append(file, fmt::format("\n],\"otherData\":{{\"dropped\":{}}}}}\n", dropped_));
}

void TraceSpan::Arg(std::string_view key, Trace::Value value) {
  if (trace_ != nullptr) kind_.args.emplace_back(key, std::move(value));
}

void TraceSpan::Begin(std::string_view name, std::string_view category) {
  kind_.name = name;
  kind_.category = category;
  start_ns_ = Trace::Now();
}

void TraceSpan::End() {
  const uint64_t end = Trace::Now();
  trace_->Add(trace_->Describe(kind_), start_ns_, end);
}

ProgressListener Traced(ProgressListener next) {
  Trace* const trace = Trace::Current();
  if (trace == nullptr) return next;
  return [trace, next = std::move(next), start = uint64_t{0},
          before = uint64_t{0}](const Progress& now) mutable {
    if (!now.ended && start == 0) {
      start = Trace::Now();
      before = now.done;
    } else if (now.ended && start != 0) {
      trace->Add(trace->Describe({now.what, "pack", {{"bytes", now.done - before}}}), start, Trace::Now());
      start = 0;
    }
    if (next) next(now);
  };
}

}  // namespace fusebox
