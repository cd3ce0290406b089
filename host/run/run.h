// SPDX-License-Identifier: Apache-2.0
// Running a module: Program (kernels chosen), then Runner (executes its functions on one state).
//
//   auto program = run::Program::Create(module, registry);
//   auto runner = run::Runner::Create(program, 1);
//   auto outputs = (*runner)->Run("main", inputs);
//
// A Program is immutable, any thread. A Runner is used by one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "host/eval/budget.h"
#include "host/run/caller.h"
#include "host/run/node_time.h"
#include "host/run/observer.h"
#include "host/run/program.h"
#include "host/run/resources.h"

namespace fusebox::run {

// One result of a call: `tensor` receives type and data. If `memory` is set, the result may have any size;
// otherwise size and address are fixed.
struct Out {
  fbx_tensor* tensor;
  Growable* memory;
  int input = -1;  // the number of an input in the same memory; -1: none
};

class Frame;

struct RunnerOptions {
  std::shared_ptr<ThreadPool> pool = {};  // null: a new one, of `threads`
  int threads = 1;
  ProgressListener progress = {};
  size_t memory_limit = 0;  // bytes; 0: MemoryBudget::DefaultLimit
  bool keep_values = false;
  bool profile = false;
  Observer* observer = nullptr;  // outlives the runner; null: none
};

// Executes functions of a program on one state: variables, plans, memory, threads.
class Runner final : private plan::LoopPlans {
 public:
  static Result<std::unique_ptr<Runner>> Create(const Program& program, const RunnerOptions& options);
  static Result<std::unique_ptr<Runner>> Create(const Program& program, int threads);
  ~Runner() override;

  // Returns copies of the results. For verification and tests; a session uses Call.
  Result<std::vector<Tensor>> Run(std::string_view function, std::span<const Tensor> inputs);
  // Operands are tensors with types and data. Calls with known shapes allocate nothing.
  Status Call(const plan::Code& function, std::span<const fbx_tensor* const> inputs,
              std::span<const Out> outputs);
  // Plans the function for input types as far as shapes are known. `inputs` need no data.
  Status Prepare(const plan::Code& function, std::span<const fbx_tensor* const> inputs);
  // Plans this function only. The types of its outputs: unranked if they depend on data.
  Result<std::vector<Type>> OutputTypes(const plan::Code& function,
                                        std::span<const fbx_tensor* const> inputs);
  // Ends the Call, Prepare or OutputTypes in progress, or the next one. Any thread.
  void Cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  // fusebox.forward/1: prepares or runs the kernels of the partition whose delegate prepares or invokes.
  std::optional<size_t> ForwardedPart(
      delegate::Session::Activity) const;  // nothing: none, or forwarded already
  Status PrepareForward(size_t part, const fbx_call& call);
  Status RunForward(size_t part, const fbx_call& call, const fbx_host* host, const fbx_forward_watch* watch);

  // Sets variable tensors to their initial values, zeroes persistent and shared memory, resets resources and
  // tables; CALL_ONCE runs again.
  void Reset();

  // A value of a function of the module, as the last Call left it; not a constant. Requires keep_values.
  // Valid until the next call of this runner.
  Result<const fbx_tensor*> ValueOf(const Function& function, ValueId id) const;
  std::vector<NodeTime> times() const;  // requires profile
  bool has_run(std::string_view function) const;

  std::string Explain() const;  // all plans so far
  std::vector<MemoryPlan> memory_plans() const;
  size_t arena_bytes() const;
  uint32_t threads() const { return threads_.count(); }
  MemoryBudget& budget() { return budget_; }  // of all memory of the session
  // Returns what runs each node so far, and declined partitions.
  std::vector<Placement> placements() const { return program_.placements(&delegates_); }
  std::vector<std::string> notices() const;

 private:
  friend class Frame;
  Runner(const Program& program, std::shared_ptr<ThreadPool> pool, const RunnerOptions& options);
  Frame& FrameOf(const plan::Code& code);
  Result<std::vector<Type>> Plan(const plan::Code& body,
                                 std::span<const fbx_tensor* const> operands) override;
  Status Compile(const plan::Code& entry);
  template <class Work>
  Status Within(const plan::Code& function, const Work& work);
  Status AfterFork();
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  static std::unexpected<Error> Cancelled();

  class KernelsOnly;
  // A function whose nodes a delegate watches.
  struct Watched {
    const plan::Code* code = nullptr;  // null: none
    const fbx_host* host = nullptr;
    const fbx_forward_watch* watch = nullptr;
  };

  std::atomic<bool> cancelled_ = false;
  uint32_t forks_;        // in the last call
  bool running_ = false;  // a call is in progress
  const int wanted_;      // threads of the options
  const bool keep_values_;
  uint64_t calls_made_ = 0;
  std::unique_ptr<Profile> profile_;  // null: off
  Observer* const observer_;          // null: none
  MemoryBudget budget_;               // before the members whose memory takes from it
  Reservation inside_;                // of partitions
  const Program& program_;
  Threads threads_;
  ProgressMeter meter_;
  SharedMemory memory_;
  CallerServices services_;
  HostCalls calls_;
  delegate::Session delegates_;
  plan::Context context_;
  std::set<const plan::Code*> compiled_;       // entries
  const plan::Code* last_compiled_ = nullptr;  // skips the look-up in the steady state
  Resources resources_;
  std::set<const plan::Code*> called_once_;
  std::map<const plan::Code*, std::unique_ptr<Frame>> frames_;
  Watched watched_;
  std::vector<Out> forward_outs_;  // of RunForward
};

}  // namespace fusebox::run
