// SPDX-License-Identifier: Apache-2.0
// Trace: what a program did when, as spans on threads. Written in Chrome's trace event format, which Perfetto
// and speedscope read too.
//
//   Trace trace;
//   const Trace::Recording recording(trace);  // of this thread
//   ...
//   { TraceSpan span("read"); span.Arg("file", path); ... }
//   trace.Write(file);
//
// Sessions and models that are created while a trace records on their thread refer to it as long as they
// live. Without a trace, a span reads a thread-local pointer and does nothing else. Add, Describe: any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "host/base/buffer.h"
#include "host/base/progress.h"

namespace fusebox {

class Trace {
 public:
  using Value = std::variant<uint64_t, std::string, std::vector<std::string>>;
  // Common properties of spans.
  struct Kind {
    std::string name, category;
    std::vector<std::pair<std::string, Value>> args = {};
    auto operator<=>(const Kind&) const = default;
  };
  using KindId = uint32_t;  // 0: none, which is not recorded

  static constexpr size_t kMostSpans = 500'000;
  explicit Trace(size_t most_spans = kMostSpans);
  Trace(const Trace&) = delete;

  static uint64_t Now();     // ns, monotonic
  static uint32_t Thread();  // a number of the calling thread, unique in this process
  static Trace* Current();   // of this thread; null: none

  // Makes a trace the current one of this thread.
  class Recording {
   public:
    explicit Recording(Trace& trace);
    Recording(const Recording&) = delete;
    ~Recording();

   private:
    Trace* const outer_;
  };

  // Later spans belong to this process: viewers show each one apart.
  void EnterProcess(std::string name);
  KindId Describe(const Kind&) noexcept;  // equal kinds have one id; 0: no memory
  // Adds a span of the calling thread.
  void Add(KindId kind, uint64_t start_ns, uint64_t end_ns) noexcept {
    Add(kind, Thread(), start_ns, end_ns);
  }
  void Add(KindId kind, uint32_t thread, uint64_t start_ns, uint64_t end_ns) noexcept;
  void NameWorker(uint32_t thread, uint32_t worker) noexcept;  // "worker 1", unless it has a name

  size_t dropped() const;  // spans after the first `most_spans`
  // Spans of a thread nest in the file: the end of one that overlaps another is moved.
  Status Write(AtomicFile& file) const;

 private:
  struct Event {
    KindId kind;
    uint32_t process, thread;
    uint64_t start_ns, end_ns;  // since the origin
  };
  std::vector<Event> Nested() const;

  const uint64_t origin_;
  const size_t most_;
  mutable std::mutex mutex_;  // of the rest
  std::map<Kind, KindId> ids_;
  std::vector<const Kind*> kinds_;  // by id
  std::vector<Event> events_;
  std::vector<std::string> processes_;
  std::map<uint32_t, std::string> threads_;
  size_t dropped_ = 0;
};

// A span of this thread from construction to destruction, in the current trace, if any.
class TraceSpan {
 public:
  explicit TraceSpan(std::string_view name, std::string_view category = "stage",
                     Trace* trace = Trace::Current())
      : trace_(trace) {
    if (trace != nullptr) Begin(name, category);
  }
  TraceSpan(const TraceSpan&) = delete;
  ~TraceSpan() {
    if (trace_ != nullptr) End();
  }
  explicit operator bool() const { return trace_ != nullptr; }
  // Only while a trace records: test the span first, where the value costs time.
  void Arg(std::string_view key, Trace::Value value);

 private:
  void Begin(std::string_view name, std::string_view category);
  void End();
  Trace* const trace_;
  Trace::Kind kind_;
  uint64_t start_ns_ = 0;
};

// Records each piece of work that reports its progress as a span of the current trace; without a trace:
// `next` itself.
ProgressListener Traced(ProgressListener next);

}  // namespace fusebox
