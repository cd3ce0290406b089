// SPDX-License-Identifier: Apache-2.0
// Running: kernels chosen (Program), threads, state of a session, frames that execute functions (Runner).
//
//   auto program = run::Program::Create(module, registry);
//   auto runner = run::Runner::Create(program, 1);
//   auto outputs = (*runner)->Run("main", inputs);
//
// A Program is immutable and may be used from any thread; a Runner belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "fusebox/abi/ext/progress.h"
#include "host/base/progress.h"
#include "host/plan/plan.h"
#include "host/run/placement.h"

struct pthreadpool;

namespace fusebox::run {

// Every function that an entry reaches, with a kernel for each node, initialized, and what delegates may run
// in their place. An entry with a node that nothing can run leaves no trace but its error.
class Program {
 public:
  // The entries are the main function and those of the signatures. `module` must outlive the program.
  // `delegates` are offered the nodes in that order; what goes wrong with one is a notice. Error: no entry
  // can run; the first node that nothing can run, with who promises its op and where plugins were searched.
  static Result<std::unique_ptr<Program>> Create(const Module& module, std::shared_ptr<Registry> registry,
                                                 const Delegation& delegates = {});
  // With these functions as entries, all of which must be able to run.
  static Result<std::unique_ptr<Program>> Create(const Module& module, std::shared_ptr<Registry> registry,
                                                 std::span<const std::string> entries,
                                                 const Delegation& delegates = {});
  // The first without kernels initialized: only for what its entries say. No error where none can run.
  static std::unique_ptr<Program> Survey(const Module& module, std::shared_ptr<Registry> registry,
                                         const Delegation& delegates = {});
  ~Program();
  Program(const Program&) = delete;

  const Module& module() const { return module_; }
  const plan::Code* Find(std::string_view function) const;  // null: not reached
  // Why an entry cannot run; of any other function nothing.
  Status StatusOf(std::string_view entry) const;
  const std::vector<std::string>& notices() const { return notices_; }
  // With a session's delegates: as they are there, where some may have declined.
  std::vector<Placement> placements(const delegate::Session* = nullptr) const;

  std::span<const std::unique_ptr<delegate::Part>> parts() const { return parts_; }
  std::vector<size_t> PartsOf(const plan::Code& entry) const;  // that a call of it may reach
  // Kernels of a partition are initialized when it first runs by them. Call before planning; any thread.
  Status EnsureInitialized(const plan::Code&) const;

 private:
  // Kernels that wait: a function that runs only where a delegate declines.
  struct Late {
    std::once_flag once;
    plan::Code* code = nullptr;
    Status status;
  };
  // How a function was offered to delegates.
  struct Offered {
    const Function* function;  // as the module has it
    std::vector<delegate::Answer> answers;
    delegate::Outlined outlined;  // its function is null where nobody took anything
  };
  Program(const Module& module, std::shared_ptr<Registry> registry, const Delegation& delegates)
      : module_(module), registry_(std::move(registry)), options_(delegates.options) {}
  friend class ProgramBuilder;
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

// The pool of one session; it is made when first needed. With one thread there is none. Calls from inside a
// task run serially on the caller.
class Threads {
 public:
  explicit Threads(int count);  // at most, and 0: one per core that the process may use
  ~Threads();
  Threads(const Threads&) = delete;
  uint32_t count() const { return count_; }
  void ParallelFor(size_t n, size_t grain, void (*task)(void*, size_t, size_t, uint32_t) noexcept,
                   void* context);
  ::pthreadpool* pool();  // null with one thread

 private:
  uint32_t count_;
  ::pthreadpool* pool_ = nullptr;
};

// What plugins announce and have done, added up for one listener.
class ProgressMeter {
 public:
  explicit ProgressMeter(ProgressListener listener) : listener_(std::move(listener)) {
    progress_.ended = true;
  }
  bool has_listener() const { return listener_ != nullptr; }
  void Begin(std::string_view what, uint64_t bytes) noexcept;
  void Advance(uint64_t bytes) noexcept;
  void End() noexcept;
  static const fbx_progress& Api();  // of a session's calls

 private:
  void Notify() noexcept;
  ProgressListener listener_;
  Progress progress_;
  uint64_t left_ = 0;  // of what began last
};

// fusebox.threads/1, fusebox.pthreadpool/1 and fusebox.resize/1 over such a pool, and fusebox.progress/1
// where somebody listens.
class ThreadedServices : public Services {
 public:
  explicit ThreadedServices(Threads& threads, ProgressMeter* meter = nullptr)
      : threads_(threads), meter_(meter) {}
  const void* Find(std::string_view id) const override;
  Threads& threads() const { return threads_; }
  ProgressMeter* meter() const { return meter_; }  // null: nobody listens

 private:
  Threads& threads_;
  ProgressMeter* meter_;
};

// Resource variables and hash tables of a session. Handles are small numbers, the same for equal names.
class Resources {
 public:
  explicit Resources(const Module& module);
  int64_t Handle(std::string_view container, std::string_view name);
  Status Assign(int64_t handle, const fbx_tensor& value);
  Result<const fbx_tensor*> Read(int64_t handle) const;  // valid until the next Assign
  void Reset();                                          // to the values that the module gives

  int64_t TableHandle(int64_t table_id, DType key, DType value);
  Status Import(int64_t handle, const fbx_tensor& keys, const fbx_tensor& values);
  // results[i] = the value of keys[i], or the default. Strings are packed into `packed`, numbers are written
  // to it as i64.
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

// One result of a call: `tensor` receives type and data. With `memory` set it may have any size, else it has
// its size and place already.
struct Out {
  fbx_tensor* tensor;
  Growable* memory;
};

class Frame;

// Executes functions of a program on one state: variables, plans, memory, threads.
class Runner final : private plan::LoopPlans {
 public:
  static Result<std::unique_ptr<Runner>> Create(const Program& program, int threads,
                                                ProgressListener progress = {});
  ~Runner() override;

  // Values in, values out; the results are copies. For proofs and tests; a session uses Call.
  Result<std::vector<Tensor>> Run(std::string_view function, std::span<const Tensor> inputs);
  // Operands as tensors with types and data. Steady-state calls (same shapes as before) allocate nothing.
  Status Call(const plan::Code& function, std::span<const fbx_tensor* const> inputs,
              std::span<const Out> outputs);
  // Plans the function for input types as far as shapes are known. `inputs` need no data.
  Status Prepare(const plan::Code& function, std::span<const fbx_tensor* const> inputs);

  // Variable tensors and persistent memory to zero, resources and tables to their beginning; CALL_ONCE runs
  // again.
  void Reset();

  std::string Explain() const;  // what has been planned by now
  size_t arena_bytes() const;
  uint32_t threads() const { return threads_.count(); }
  // Who runs each node by now, and which delegates declined what.
  std::vector<Placement> placements() const { return program_.placements(&delegates_); }
  const std::vector<std::string>& notices() const { return delegates_.notices(); }

 private:
  friend class Frame;
  Runner(const Program& program, int threads, ProgressListener progress);
  Frame& FrameOf(const plan::Code& code);
  Result<std::vector<Type>> Plan(const plan::Code& body,
                                 std::span<const fbx_tensor* const> operands) override;
  void Compile(const plan::Code& entry);

  const Program& program_;
  Threads threads_;
  ProgressMeter meter_;
  ThreadedServices services_;
  HostCalls calls_;
  delegate::Session delegates_;
  plan::Context context_;
  std::set<const plan::Code*> compiled_;       // entries
  const plan::Code* last_compiled_ = nullptr;  // spares the steady state a look-up
  Resources resources_;
  std::set<const plan::Code*> called_once_;
  std::map<const plan::Code*, std::unique_ptr<Frame>> frames_;
};

}  // namespace fusebox::run
