// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>
#include <deque>

#include "host/run/frame.h"
#include "host/run/profile.h"
#include "host/threads/forks.h"

namespace fusebox::run {

// Calls `work` within the budget; an allocation that fails becomes an error. One Cancel ends one call: the
// one in progress, or the next.
template <class Work>
Status Runner::Within(const plan::Code& function, const Work& work) {
  FUSEBOX_TRY(AfterFork());
  const MemoryBudget::Scope scope(budget_);
  Status status;
  running_ = true;
  if (!cancelled()) status = CatchNoMemory([&] { return "function " + function.name(); }, work);
  running_ = false;
  calls_.DropDiags();
  if (!cancelled()) return status;
  cancelled_.store(false, std::memory_order_relaxed);
  return Cancelled();
}

// In the child of a fork, partitions have the threads of the parent, so that they are compiled again. State
// and plans stay.
Status Runner::AfterFork() {
  if (forks_ == Forks()) [[likely]]
    return {};
  if (running_)
    return Invalid("the process forked while another thread ran this session; create a session in the child");
  forks_ = Forks();
  if (threads_.count() == 1) return {};
  delegates_.Restart();
  compiled_.clear();
  last_compiled_ = nullptr;
  return {};
}

std::unexpected<Error> Runner::Cancelled() { return Fail(Code::kCancelled, "the run was cancelled"); }

Runner::Runner(const Program& program, std::shared_ptr<ThreadPool> pool, const RunnerOptions& options)
    : forks_(Forks()),
      wanted_(options.pool == nullptr ? options.threads : 0),
      keep_values_(options.keep_values),
      profile_(options.profile ? std::make_unique<Profile>(Trace::Current()) : nullptr),
      observer_(options.observer),
      budget_(options.memory_limit),
      inside_(budget_),
      program_(program),
      threads_(std::move(pool), &cancelled_),
      meter_(options.progress),
      services_(threads_, program.delegate_options(),
                {meter_.has_listener() ? &meter_ : nullptr, profile_.get(), &cancelled_}, &memory_, this),
      calls_(services_),
      delegates_(program.module(), program.parts(), calls_),
      context_{.calls = calls_,
               .threads = threads_.count(),
               .delegates = &delegates_,
               .loops = this,
               .keep_values = keep_values_,
               .inside = &inside_},
      resources_(program.module()) {}

Runner::~Runner() = default;

Result<std::unique_ptr<Runner>> Runner::Create(const Program& program, const RunnerOptions& options) {
  std::shared_ptr<ThreadPool> pool = options.pool;
  if (pool == nullptr) {
    FUSEBOX_ASSIGN(pool, ThreadPool::Create(options.threads));
  }
  return std::unique_ptr<Runner>(new Runner(program, std::move(pool), options));
}

Result<std::unique_ptr<Runner>> Runner::Create(const Program& program, int threads) {
  return Create(program, RunnerOptions{.threads = threads});
}

Frame& Runner::FrameOf(const plan::Code& code) {
  if (const auto found = frames_.find(&code); found != frames_.end()) return *found->second;
  auto frame = std::make_unique<Frame>(code, *this);  // creates the frames of its callees first
  return *frames_.emplace(&code, std::move(frame)).first->second;
}

Result<std::vector<Type>> Runner::Plan(const plan::Code& body, std::span<const fbx_tensor* const> operands) {
  return FrameOf(body).PlanOnce(operands);
}

// Compiles all partitions that this entry may reach before any is planned: delegates rely on it in finish.
Status Runner::Compile(const plan::Code& entry) {
  if (last_compiled_ == &entry) return {};
  if (!compiled_.contains(&entry)) {
    const TraceSpan span("compile");
    const CallerServices::Phase phase(services_);
    delegates_.Compile(program_.PartsOf(entry));
  }
  calls_.DropDiags();
  if (cancelled()) return Cancelled();
  compiled_.insert(&entry);
  last_compiled_ = &entry;
  return {};
}

Status Runner::Call(const plan::Code& function, std::span<const fbx_tensor* const> inputs,
                    std::span<const Out> outputs) {
  ++calls_made_;
  const TraceSpan span("invoke", "stage", profile_ != nullptr ? profile_->trace() : nullptr);
  return Within(function, [&]() -> Status {
    FUSEBOX_TRY(Compile(function));
    return FrameOf(function).Call(inputs, outputs);
  });
}

Status Runner::Prepare(const plan::Code& function, std::span<const fbx_tensor* const> inputs) {
  return Within(function, [&]() -> Status {
    FUSEBOX_TRY(Compile(function));
    std::set<const void*> done;
    return FrameOf(function).Prepare(inputs, done);
  });
}

Result<std::vector<Type>> Runner::OutputTypes(const plan::Code& function,
                                              std::span<const fbx_tensor* const> inputs) {
  std::vector<Type> types;
  FUSEBOX_TRY(Within(function, [&]() -> Status {
    FUSEBOX_TRY(Compile(function));
    FUSEBOX_ASSIGN(types, FrameOf(function).PlanOnce(inputs));
    return {};
  }));
  return types;
}

Result<std::vector<Tensor>> Runner::Run(std::string_view name, std::span<const Tensor> inputs) {
  const plan::Code* code = program_.Find(name);
  if (code == nullptr) return NotFound(fmt::format("no function {} in the program", name));
  std::deque<TensorView> views;
  std::vector<const fbx_tensor*> operands;
  for (const Tensor& input : inputs) {
    operands.push_back(views.emplace_back(input.type, input.data.data(), input.data.size(), 0u).abi());
  }
  std::vector<fbx_tensor> tensors(code->function->outputs.size());
  std::vector<Growable> memory(tensors.size());
  std::vector<Out> outs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].head = FBX_HEAD(fbx_tensor);
    outs.push_back({&tensors[i], &memory[i]});
  }
  FUSEBOX_TRY(Call(*code, operands, outs));
  std::vector<Tensor> results;
  for (const fbx_tensor& tensor : tensors) {
    results.push_back(
        {TypeOf(tensor), Buffer::Copy({static_cast<const std::byte*>(tensor.data), tensor.bytes})});
    // The next run of a verification may reuse this memory, and must not find results there.
    if (tensor.bytes > 0) std::memset(tensor.data, 0xff, tensor.bytes);
  }
  return results;
}

void Runner::Reset() {
  for (const auto& [code, frame] : frames_) frame->Reset();
  resources_.Reset();
  memory_.Clear();
  called_once_.clear();
}

std::vector<std::string> Runner::notices() const {
  std::vector<std::string> notices = delegates_.notices();
  if (wanted_ > static_cast<int>(threads())) {
    notices.push_back(fmt::format(
        "runs use {} thread{} instead of {}: more than the process has cores (CPU affinity and the "
        "cgroup's CPU quota) would wait for each other",
        threads(), threads() == 1 ? "" : "s", wanted_));
  }
  return notices;
}

bool Runner::has_run(std::string_view function) const {
  const auto frame = frames_.find(program_.Find(function));
  return frame != frames_.end() && frame->second->last_call() > 0;
}

std::string Runner::Explain() const {
  std::string text;
  for (const auto& [code, frame] : frames_) text += frame->Explain();
  return text;
}

std::vector<MemoryPlan> Runner::memory_plans() const {
  std::vector<MemoryPlan> plans;
  for (const auto& code : program_.codes()) {
    if (const auto frame = frames_.find(code.get()); frame != frames_.end()) frame->second->AddMemory(plans);
  }
  return plans;
}

size_t Runner::arena_bytes() const {
  size_t bytes = 0;
  for (const auto& [code, frame] : frames_) bytes += frame->arena_bytes();
  return bytes;
}

}  // namespace fusebox::run
