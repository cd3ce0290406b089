// SPDX-License-Identifier: Apache-2.0
// Services of a session, which its calls share: threads, progress, profile, cancellation; and the extensions
// over them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "fusebox/abi/ext/progress.h"
#include "host/base/progress.h"
#include "host/plan/plan.h"
#include "host/threads/thread_pool.h"

namespace fusebox::run {

// The threads of one session. Calls from inside a task run serially on the calling thread.
class Threads {
 public:
  // A new pool with the first use, which is in one thread. Arguments of ThreadPool::Create, which are valid.
  explicit Threads(int count) : wanted_(count) {}
  // Chunks that have not begun when `cancelled` is set are left out. Null: never.
  Threads(std::shared_ptr<ThreadPool> pool, const std::atomic<bool>* cancelled)
      : pool_(std::move(pool)), cancelled_(cancelled) {}
  uint32_t count() const { return static_cast<uint32_t>(made().threads()); }
  void ParallelFor(size_t n, size_t grain, void (*task)(void*, size_t, size_t, uint32_t) noexcept,
                   void* context);
  ::pthreadpool* pool() { return made().pool(); }  // null with one thread

 private:
  ThreadPool& made() const {
    if (pool_ == nullptr) pool_ = *ThreadPool::Create(wanted_);
    return *pool_;
  }

  const int wanted_ = 0;
  mutable std::shared_ptr<ThreadPool> pool_;
  const std::atomic<bool>* cancelled_ = nullptr;
};

// Adds up the progress of several plugins for one listener.
class ProgressMeter {
 public:
  explicit ProgressMeter(ProgressListener listener) : listener_(std::move(listener)) {
    progress_.ended = true;
  }
  bool has_listener() const { return listener_ != nullptr; }
  void Begin(std::string_view what, uint64_t bytes) noexcept;
  void Advance(uint64_t bytes) noexcept;
  void End() noexcept;
  static const fbx_progress& Api();  // for calls of a session

 private:
  void Notify() noexcept;
  ProgressListener listener_;
  Progress progress_;
  uint64_t left_ = 0;  // of the last begin
};

class Profile;

// State that the calls of one session share.
struct CallState {
  ProgressMeter* meter = nullptr;                // null: no listener
  Profile* profile = nullptr;                    // null: no profile
  const std::atomic<bool>* cancelled = nullptr;  // null: never
};

// fusebox.threads/1, fusebox.pthreadpool/1 and fusebox.resize/1 over a thread pool; fusebox.progress/1 if
// there is a listener, fusebox.profile/1 if there is a profile.
class ThreadedServices : public Services {
 public:
  explicit ThreadedServices(Threads& threads, const CallState& state = {})
      : threads_(threads), state_(state) {}
  const void* Find(std::string_view id) const override;
  const std::atomic<bool>* cancelled() const override { return state_.cancelled; }
  Threads& threads() const { return threads_; }
  ProgressMeter* meter() const { return state_.meter; }
  Profile* profile() const { return state_.profile; }

 private:
  Threads& threads_;
  const CallState state_;
};

}  // namespace fusebox::run
