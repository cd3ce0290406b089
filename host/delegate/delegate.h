// SPDX-License-Identifier: Apache-2.0
// Delegates run partitions of functions: create -> claim -> partition -> outline, once per Model; compile ->
// prepare -> invoke, per session.
//
// Nothing here fails a model: whatever a delegate declines goes to the kernels, and the reason is kept.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/eval/eval.h"

namespace fusebox::delegate {

// A delegate of one Model, with its options. Any thread, as far as the delegate promises.
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

// What became of one node.
struct Answer {
  int delegate = -1;   // number of the one that takes it; -1: none
  bool joins = false;  // in partitions with other nodes only
  std::string why;     // what those that do not take it gave as reasons
};
// Asks the delegates in turn; what an earlier one takes is not offered to the next. One answer per node.
// `notices` receives what the delegates got wrong.
std::vector<Answer> Claim(const Module&, const Function&, Instances, HostCalls&,
                          std::vector<std::string>& notices);

// An order of execution, and which runs of it are partitions.
struct Schedule {
  struct Run {
    int delegate = -1;          // -1: a single node that stays where it is
    std::vector<size_t> nodes;  // numbers, ascending
  };
  std::vector<Run> runs;
};
// The largest partitions that no path leaves and enters again. Nodes with effects keep their order among each
// other. Where nodes do not end in a partition after all, their answer is changed to say why.
Schedule Partition(const Function&, std::span<Answer>);

// Where the nodes of a function that was taken apart came from, for messages.
struct Origin {
  std::string function;
  std::vector<size_t> nodes;  // by node; kNoNode: a PARTITION
};
inline constexpr size_t kNoNode = SIZE_MAX;

// A partition of a Model.
struct Part {
  const Instance* delegate;
  size_t number;  // among those of the Model
  std::unique_ptr<Function> function;
  Origin origin;
};
std::string ToString(const Part&);  // "xnnpack (partition 0)"

// A function with one PARTITION node in place of each of `parts`, which are appended. Constants are shared.
struct Outlined {
  std::unique_ptr<Function> function;
  Origin origin;
  std::vector<int> part;  // by node: its number in `parts`; -1: an ordinary node
};
Outlined Outline(const Function&, const Schedule&, Instances, std::vector<std::unique_ptr<Part>>& parts);

// The partitions of one session: compiled and prepared. One thread at a time.
class Session {
 public:
  Session(const Module& module, std::span<const std::unique_ptr<Part>> parts, HostCalls& calls);
  ~Session();
  Session(const Session&) = delete;

  // Compiles those that are new, then lets their delegates finish.
  void Compile(std::span<const size_t> numbers);
  bool runs(size_t part) const { return slots_[part].state == kReady; }
  const std::string& why(size_t part) const { return slots_[part].why; }  // it does not run (any more)
  const Part& part(size_t number) const { return *parts_[number]; }
  const std::vector<std::string>& notices() const { return notices_; }

  // It is not to run from now on, for a reason of the host's.
  void Refuse(size_t part, std::string_view why);
  // Prepares for the shapes of `call`. Returns a number for them, which Invoke compares; 0: declined, here or
  // before.
  uint64_t Prepare(size_t part, const fbx_call& call, const fbx_plan& plan);
  // Whether the last preparation is another one.
  bool stale(size_t part, uint64_t prepared) const { return slots_[part].prepared != prepared; }
  // False: it failed, and the partition is declined from now on.
  bool Invoke(size_t part, const fbx_call& call) {
    Slot& slot = slots_[part];
    const fbx_status status = slot.delegate->invoke(slot.call->abi(), slot.partition, &call);
    return status == FBX_OK || Failed(part, status);
  }

 private:
  enum State { kNew, kReady, kDeclined };
  struct Slot {
    State state = kNew;
    const fbx_delegate* delegate = nullptr;
    HostCall* call = nullptr;
    void* partition = nullptr;
    uint64_t prepared = 0;
    std::string why;
  };
  struct Opened {
    const Instance* delegate;
    void* session = nullptr;
    bool unfinished = false;
  };
  Result<Opened*> Open(const Instance&);
  Status CompileOne(size_t part);
  void ReleaseModel(std::span<const size_t> parts) const;
  void Finish(Opened&);
  Status PrepareOne(Slot&, const fbx_call&, const fbx_plan&);
  bool Failed(size_t part, fbx_status);
  void Decline(size_t part, std::string_view step, const Error&);

  const Module& module_;
  std::span<const std::unique_ptr<Part>> parts_;
  HostCalls& calls_;
  std::vector<Slot> slots_;
  std::vector<Opened> opened_;
  std::vector<std::string> notices_;
  uint64_t count_ = 0;
};

}  // namespace fusebox::delegate
