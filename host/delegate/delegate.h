// SPDX-License-Identifier: Apache-2.0
// Delegates run partitions of functions. Once per Model: create -> claim -> place -> partition -> outline.
// Per session: compile -> prepare -> invoke.
//
// A delegate never makes a model fail: declined nodes fall back to kernels, and the reason is kept.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/eval/eval.h"
#include "host/plugin/call.h"

namespace fusebox::delegate {

// A delegate of one Model, with its options. Thread-safe as far as the delegate is.
class Instance {
 public:
  static Result<std::unique_ptr<Instance>> Create(DelegateRef ref, HostCalls& calls);
  ~Instance();
  Instance(const Instance&) = delete;
  std::string_view name() const { return FromAbi(ref_.delegate->name); }
  const fbx_delegate& abi() const { return *ref_.delegate; }
  const LoadedPlugin& plugin() const { return *ref_.plugin; }
  void* self() const { return self_; }

 private:
  explicit Instance(DelegateRef ref) : ref_(std::move(ref)) {}
  DelegateRef ref_;
  void* self_ = nullptr;
};
using Instances = std::span<const std::unique_ptr<Instance>>;

// Claim result for one node.
struct Answer {
  int delegate = -1;   // index of the claiming delegate; -1: none
  bool joins = false;  // only in a partition with other nodes
  std::string why;     // reasons of the delegates that declined
  // Set by Place: both estimates of a node, in ns. Text is made of them only for a reader.
  struct Estimated {
    std::string_view delegate;
    double on_delegate = 0;
    double on_kernels = 0;
    bool stays = false;  // on kernels
  };
  std::optional<Estimated> estimated;
};
std::string ToString(const Answer&);  // the reasons and estimates
// Queries the delegates in order. A node that one claims is not offered to the next. One answer per node.
// Appends errors of delegates to `notices`. `refused`: by node, why it is not offered to any (Settle).
std::vector<Answer> Claim(const Module&, const Function&, std::span<const std::string> refused, Instances,
                          HostCalls&, std::vector<std::string>& notices);

// Estimates of fusebox.cost/1, in ns; negative: none.
double CostOf(const KernelRef&, HostCalls&, const fbx_node&);
struct Part;
double CostOf(const Module&, const Part&, HostCalls&);  // its nodes and borders, if all have estimates
// Leaves claimed nodes on kernels where that takes less, by the estimates of both sides: the answer is reset
// and gets the reason. Nodes without both estimates stay.
void Place(Registry&, const Module&, const Function&, Instances, HostCalls&, std::span<Answer>);

// An execution order and its partitions.
struct Schedule {
  struct Run {
    int delegate = -1;          // -1: a single node without delegate
    std::vector<size_t> nodes;  // indices, ascending
  };
  std::vector<Run> runs;
};
// The largest convex partitions. Nodes with effects keep their order. For nodes that end up in no partition,
// the answer is reset and gets the reason.
Schedule Partition(const Function&, std::span<Answer>);

// The original nodes of an outlined function, for messages.
struct Origin {
  std::string function;
  std::vector<size_t> nodes;  // by node; kNoNode: a PARTITION
};
inline constexpr size_t kNoNode = SIZE_MAX;

// A partition of a Model.
struct Part {
  const Instance* delegate;
  size_t number;  // index in the Model
  std::unique_ptr<Function> function;
  Origin origin;
};
std::string ToString(const Part&);  // "xnnpack (partition 0)"

// A function with PARTITION nodes in place of `parts`, which are appended. Constants are shared.
struct Outlined {
  std::unique_ptr<Function> function;
  Origin origin;
  std::vector<int> part;  // by node: index in `parts`; -1: an ordinary node
};
Outlined Outline(const Function&, const Schedule&, Instances, std::vector<std::unique_ptr<Part>>& parts);

// How values of a partition differ from the types that its function declares.
struct Misfit {
  std::string what;           // empty: they do not
  std::vector<Shape> shapes;  // otherwise: of all values, by id
  explicit operator bool() const { return !what.empty(); }
};

// The partitions of one session, compiled and prepared. One thread at a time.
class Session {
 public:
  Session(const Module& module, std::span<const std::unique_ptr<Part>> parts, HostCalls& calls);
  ~Session();
  Session(const Session&) = delete;

  // Compiles new partitions, then calls finish of their delegates. If the run is cancelled, none is compiled.
  void Compile(std::span<const size_t> numbers);
  // Drops all partitions, so that Compile compiles them again.
  void Restart();
  bool runs(size_t part) const { return slots_[part].runs(); }
  const std::string& why(size_t part) const { return slots_[part].why; }  // reason of decline
  const Part& part(size_t number) const { return *parts_[number]; }
  // Returns whether the partition is compiled when its dims are known, as the delegate has declined its
  // function, which leaves dims unknown. Then every value with unknown dims is a misfit.
  bool needs_dims(size_t part) const { return slots_[part].needs_dims(); }
  const std::vector<std::string>& notices() const { return notices_; }

  // Returns the partition whose prepare or invoke runs, or nothing if none runs.
  enum class Activity { kNone, kPrepare, kInvoke };
  std::optional<size_t> active(Activity what) const {
    return activity_ == what ? std::optional(active_) : std::nullopt;
  }

  // Prepares for the shapes of `call`; for a misfit, reshapes or recompiles the partition. Returns an id of
  // the shapes for `stale` and `Invoke`, or 0 if the delegate declined, now or before.
  uint64_t Prepare(size_t part, const fbx_call& call, const fbx_plan& plan, const Misfit& misfit = {});
  // Returns whether another preparation followed.
  bool stale(size_t part, uint64_t prepared) const { return PreparedAs(slots_[part], prepared) == nullptr; }
  // Requires a preparation that is not stale. Returns false if the delegate failed and is declined from now
  // on, or if the run was cancelled.
  bool Invoke(size_t part, uint64_t prepared, const fbx_call& call) {
    Slot& slot = slots_[part];
    const InCall in(*slot.call, "delegate", slot.delegate->name);
    const Active active(*this, part, Activity::kInvoke);
    const fbx_status status = slot.delegate->invoke(slot.call->abi(), slot.delegate->user,
                                                    PreparedAs(slot, prepared)->partition, &call);
    return status == FBX_OK || Failed(part, status);
  }

 private:
  class Active {
   public:
    Active(Session& session, size_t part, Activity what) : session_(session) {
      session.active_ = part;
      session.activity_ = what;
    }
    ~Active() { session_.activity_ = Activity::kNone; }
    Active(const Active&) = delete;

   private:
    Session& session_;
  };
  enum State { kNew, kReady, kDeclined };
  // The partition, compiled for the types of its function or, from the second one on, for other dims.
  struct Form {
    void* partition = nullptr;  // null: kernels run it; of the first one, whatever its delegate made it
    uint64_t prepared = 0;
    std::unique_ptr<Function> function;  // null: of the Part
  };
  struct Slot {
    State state = kNew;
    const fbx_delegate* delegate = nullptr;
    HostCall* call = nullptr;
    std::vector<Form> forms;
    bool awaits_dims = false;  // the first form is not compiled
    std::string why;
    bool fresh() const { return state == kReady && forms.front().prepared == 0 && forms.size() == 1; }
    bool needs_dims() const { return state == kReady && awaits_dims; }
    bool runs() const {
      if (state != kReady) return false;
      if (!awaits_dims || forms.size() == 1) return true;
      for (const Form& form : forms)
        if (form.partition != nullptr) return true;
      return false;
    }
  };
  // Returns null if there is none. No preparation has the id 0.
  static const Form* PreparedAs(const Slot& slot, uint64_t prepared) {
    for (const Form& form : slot.forms)
      if (prepared != 0 && form.prepared == prepared) return &form;
    return nullptr;
  }
  struct Opened {
    const Instance* delegate;
    void* session = nullptr;
    bool unfinished = false;
  };
  Result<Opened*> Open(const Instance&);
  Status CompileOne(size_t part);
  void ReleaseModel(std::span<const size_t> parts) const;
  Status CompileForm(Opened&, const Part&, decltype(fbx_delegate::compile), const Function&, Form&);
  Status CallFinish(Opened&);
  bool Finish(Opened&);
  void Forget(std::span<const size_t> numbers);
  Form* FormFor(size_t part, const fbx_call&, const Misfit&);
  Form* Recompile(size_t part, const Misfit&);
  void DropForm(size_t part, Form&, const Error&);
  Status CompileFor(const Misfit&, Opened&, const Part&, Form&);
  Status Reshape(Slot&, const fbx_call&);
  Status PrepareOne(size_t part, const Form&, const fbx_call&, const fbx_plan&);
  bool Failed(size_t part, fbx_status);
  static bool IsCancelled(const Status& status) { return !status && status.error().code == Code::kCancelled; }
  static void Destroy(Slot&);
  void Notice(size_t part, const std::string& why);
  void Decline(size_t part, std::string_view step, const Error&);

  const Module& module_;
  std::span<const std::unique_ptr<Part>> parts_;
  HostCalls& calls_;
  std::vector<Slot> slots_;
  std::vector<Opened> opened_;
  std::vector<std::string> notices_;
  uint64_t count_ = 0;
  Activity activity_ = Activity::kNone;
  size_t active_ = 0;
};

}  // namespace fusebox::delegate
