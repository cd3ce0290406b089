// SPDX-License-Identifier: Apache-2.0
// Profile: measures the nodes of one session, and collects the spans of plugins. In a trace too, if one
// records.
#pragma once

#include <mutex>
#include <vector>

#include "fusebox/abi/ext/profile.h"
#include "host/base/trace.h"
#include "host/run/node_time.h"

namespace fusebox::run {

class Threads;

class Profile {
 public:
  // Times of one node.
  struct Record {
    uint64_t runs = 0;
    uint64_t total_ns = 0;
    bool delegated = false;  // the last run
    Trace::KindId traced = 0;
    std::vector<SpanTime> spans;
  };

  // One run of a node, while it lives. Runs nest.
  class Timing {
   public:
    Timing(Profile& profile, Record& record)
        : profile_(profile), record_(record), outer_(profile.current_), start_(Trace::Now()) {
      profile.current_ = this;
    }
    ~Timing() {
      const uint64_t end = Trace::Now();
      record_.total_ns += end - start_;
      ++record_.runs;
      if (profile_.trace_ != nullptr) profile_.trace_->Add(record_.traced, start_, end);
      profile_.current_ = outer_;
    }
    Timing(const Timing&) = delete;

   private:
    friend class Profile;
    Profile& profile_;
    Record& record_;
    const Timing* const outer_;
    const uint64_t start_;
  };

  explicit Profile(Trace* trace = nullptr) : trace_(trace) {}
  Trace* trace() const { return trace_; }  // null: none
  // Adds a span to the current node, if any, and to the trace. Any thread that works for it.
  void Add(const fbx_span& span) noexcept;
  // Threads::ParallelFor, with the time of each worker at the current node in the trace.
  void TraceLoop(Threads&, size_t n, size_t grain, void (*task)(void*, size_t, size_t, uint32_t) noexcept,
                 void* context) noexcept;
  static const fbx_profile& Api();

 private:
  void AddToTrace(const fbx_span* span) noexcept;

  Trace* const trace_;
  const Timing* current_ = nullptr;
  std::mutex mutex_;
};

}  // namespace fusebox::run
