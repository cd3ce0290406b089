// SPDX-License-Identifier: Apache-2.0
// Running a module: Program (kernels chosen), Threads, session state, Runner (executes functions).
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
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "fusebox/abi/ext/forward.h"
#include "fusebox/abi/ext/progress.h"
#include "host/base/progress.h"
#include "host/eval/budget.h"
#include "host/plan/plan.h"
#include "host/run/missing.h"
#include "host/run/node_time.h"
#include "host/run/observer.h"
#include "host/run/placement.h"
#include "host/run/thread_pool.h"

namespace fusebox::run {

// All functions that an entry reaches, with an initialized kernel or a delegate for each node. An entry with
// a node that nothing can run is dropped; only its error is kept.
class Program {
 public:
  // The entries are the main function and the functions of signatures. `module` must outlive the program.
  // Nodes are offered to `delegates` in order; failures of a delegate become notices. Error: no entry can
  // run; names the first node without kernel, the plugins that list its op, and the searched directories.
  static Result<std::unique_ptr<Program>> Create(const Module& module, std::shared_ptr<Registry> registry,
                                                 const Delegation& delegates = {},
                                                 Missing missing = Missing::kWarn);
  // Same, with these functions as entries. Fails if one cannot run.
  static Result<std::unique_ptr<Program>> Create(const Module& module, std::shared_ptr<Registry> registry,
                                                 std::span<const std::string> entries,
                                                 const Delegation& delegates = {});
  // Same as the first, without initialized kernels: only to list entries. Not an error if none can run.
  static std::unique_ptr<Program> Survey(const Module& module, std::shared_ptr<Registry> registry,
                                         const Delegation& delegates = {});
  ~Program();
  Program(const Program&) = delete;

  const Module& module() const { return module_; }
  const plan::Code* Find(std::string_view function) const;  // null: not reached
  // Why an entry cannot run. OK for any other function.
  Status StatusOf(std::string_view entry) const;
  const std::vector<std::string>& notices() const { return notices_; }
  const DelegateOptions& delegate_options() const { return options_; }
  // With a session: takes into account the delegates that declined there.
  std::vector<Placement> placements(const delegate::Session* = nullptr) const;

  std::span<const std::unique_ptr<delegate::Part>> parts() const { return parts_; }
  const plan::Code& CodeOf(size_t part) const { return *part_codes_[part]; }  // kernels that run a partition
  std::vector<size_t> PartsOf(const plan::Code& entry) const;                 // that a call may reach
  // Initializes the kernels of a partition on its first fallback. Call before planning; any thread.
  Status EnsureInitialized(const plan::Code&) const;
  // Where a session has a value of a function of the module: in the function, and in a partition. Empty:
  // nothing reaches the function, or computes the value.
  struct Home {
    const plan::Code* code;
    ValueId id;
    int part;  // -1: none
  };
  std::vector<Home> HomesOf(const Function&, ValueId) const;
  std::span<const std::unique_ptr<plan::Code>> codes() const { return codes_; }

 private:
  // Kernels initialized on demand: of a function that runs only if a delegate declines. Also of a branch or
  // a loop's body without `code`, whose kernels cannot be initialized: `status` ends a run that needs it.
  struct Late {
    std::once_flag once;
    plan::Code* code = nullptr;
    Status status;
  };
  // Claims of delegates for a function.
  struct Offered {
    const Function* function;  // of the module
    std::vector<delegate::Answer> answers;
    delegate::Outlined outlined;  // null function: no node was claimed
  };
  Program(const Module& module, std::shared_ptr<Registry> registry, const Delegation& delegates)
      : module_(module), registry_(std::move(registry)), options_(delegates.options) {}
  friend class ProgramBuilder;
  static std::set<const plan::Code*> CalledBy(const plan::Code&);  // whenever it runs; itself included
  static void FreeInstances(std::span<const std::unique_ptr<plan::Code>>);
  Placement PlacementOf(const plan::Code&, size_t unit, const Function&, size_t node) const;
  void AddPlacements(const plan::Code&, const delegate::Session*, std::vector<Placement>&) const;

  const Module& module_;
  std::shared_ptr<Registry> registry_;
  DelegateOptions options_;
  std::vector<std::unique_ptr<delegate::Instance>> delegates_;
  std::vector<std::unique_ptr<delegate::Part>> parts_;
  std::vector<plan::Code*> part_codes_;  // by part
  std::map<const plan::Code*, std::unique_ptr<Offered>> offered_;
  std::map<const plan::Code*, std::unique_ptr<Late>> late_;
  std::vector<std::unique_ptr<plan::Code>> codes_;
  std::map<std::string, plan::Code*, std::less<>> by_name_;
  std::map<std::string, Status, std::less<>> refused_;  // entries that cannot run
  std::vector<std::string> notices_;
};

// The threads of one session. Calls from inside a task run serially on the calling thread.
class Threads {
 public:
  explicit Threads(int count);  // a new pool; arguments of ThreadPool::Create, which are valid
  // Chunks that have not begun when `cancelled` is set are left out. Null: never.
  Threads(std::shared_ptr<ThreadPool> pool, const std::atomic<bool>* cancelled)
      : pool_(std::move(pool)), cancelled_(cancelled) {}
  uint32_t count() const { return static_cast<uint32_t>(pool_->threads()); }
  void ParallelFor(size_t n, size_t grain, void (*task)(void*, size_t, size_t, uint32_t) noexcept,
                   void* context);
  ::pthreadpool* pool() { return pool_->pool(); }  // null with one thread

 private:
  std::shared_ptr<ThreadPool> pool_;
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

// Memory that the nodes of a plugin share within a session, by name. Addresses stay the same.
class SharedMemory {
 public:
  // Zeroed when created. Error: an empty name, no bytes, or another size than before. Throws std::bad_alloc.
  Result<void*> Acquire(const LoadedPlugin& plugin, std::string_view name, size_t bytes);
  void Clear();

 private:
  struct Piece {
    size_t bytes;
    Block memory = {};
  };
  std::map<std::pair<const LoadedPlugin*, std::string>, std::unique_ptr<Piece>> pieces_;
};

class Runner;
const fbx_forward& ForwardApi();  // for calls of a session

// In addition fusebox.forward/1 and, in the phases of fusebox.caller/1, that extension, and
// fusebox.resources/1 for a session.
class CallerServices final : public ThreadedServices {
 public:
  // `options`: of the model's delegates. `memory`: of the session; null: none. `runner`: of the session;
  // null: none. All must outlive this.
  CallerServices(Threads& threads, const DelegateOptions& options, const CallState& state = {},
                 SharedMemory* memory = nullptr, Runner* runner = nullptr)
      : ThreadedServices(threads, state), options_(options), memory_(memory), runner_(runner) {}
  const void* Find(std::string_view id) const override;
  Runner* runner() const { return runner_; }
  // In a phase, a plugin whose delegates are off for this model is loaded for its services only if it was
  // given options.
  bool MayLoad(const Manifest& provider) const override;

  // A phase. Phases nest; the end of the outermost one calls `done` of the kept objects, last one first.
  class Phase {
   public:
    explicit Phase(CallerServices& services) : services_(services) { ++services.phases_; }
    ~Phase();
    Phase(const Phase&) = delete;

   private:
    CallerServices& services_;
  };

 private:
  struct Kept {
    const void* key;
    void* object;
    void (*done)(void*, void*) noexcept;
    void* user;
  };
  friend struct CallerFunctions;

  const DelegateOptions& options_;
  SharedMemory* const memory_;
  Runner* const runner_;
  int phases_ = 0;
  mutable std::mutex mutex_;  // of kept_
  mutable std::vector<Kept> kept_;
};

// Resource variables and hash tables of a session. Handles are small numbers, equal for equal names.
class Resources {
 public:
  explicit Resources(const Module& module);
  int64_t Handle(std::string_view container, std::string_view name);
  Status Assign(int64_t handle, const fbx_tensor& value);
  Result<const fbx_tensor*> Read(int64_t handle) const;  // valid until the next Assign
  void Reset();                                          // to the initial values of the module

  int64_t TableHandle(int64_t table_id, DType key, DType value);
  Status Import(int64_t handle, const fbx_tensor& keys, const fbx_tensor& values);
  // results[i] = the value of keys[i], or the default. `packed` receives the packed strings, or the numbers
  // as i64.
  Status Lookup(int64_t handle, const fbx_tensor& keys, const fbx_tensor& otherwise,
                std::string& packed) const;
  Result<int64_t> TableSize(int64_t handle) const;

 private:
  struct Slot {
    std::string name;
    fbx_tensor tensor{};
    Growable memory;
    bool assigned = false;
  };
  struct Table {
    int64_t id;
    DType key, value;
    bool imported = false;
    std::unordered_map<std::string, int64_t> numbers;
    std::unordered_map<int64_t, std::string> strings;
  };
  void Initialize(Slot& slot);
  const Module& module_;
  std::map<std::string, int64_t, std::less<>> handles_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Table> tables_;
};

// One result of a call: `tensor` receives type and data. If `memory` is set, the result may have any size;
// otherwise size and address are fixed.
struct Out {
  fbx_tensor* tensor;
  Growable* memory;
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
  const std::vector<std::string>& notices() const { return delegates_.notices(); }

 private:
  friend class Frame;
  Runner(const Program& program, std::shared_ptr<ThreadPool> pool, const RunnerOptions& options);
  Frame& FrameOf(const plan::Code& code);
  Result<std::vector<Type>> Plan(const plan::Code& body,
                                 std::span<const fbx_tensor* const> operands) override;
  Status Compile(const plan::Code& entry);
  template <class Work>
  Status Within(const plan::Code& function, const Work& work);
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
