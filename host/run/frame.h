// SPDX-License-Identifier: Apache-2.0
// Frame: state of one function of a session: view, plans by shape, memory. A function with several callers
// has one frame; functions are not recursive.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "host/run/profile.h"
#include "host/run/run.h"

namespace fusebox::run {

class Frame final : public Resizer {
 public:
  Frame(const plan::Code& code, Runner& runner);

  Status Call(std::span<const fbx_tensor* const> inputs, std::span<const Out> outputs);
  // Plans this function and its callees. `done`: plans already visited by this preparation, since a function
  // may have many callers.
  Status Prepare(std::span<const fbx_tensor* const> inputs, std::set<const void*>& done);
  // Plans only this function, as far as shapes are known. Returns the types of its outputs: unranked if
  // unknown. Not while it runs.
  Result<std::vector<Type>> PlanOnce(std::span<const fbx_tensor* const> inputs);
  void Reset();
  fbx_status Resize(size_t node, uint32_t result, std::span<const int64_t> dims, size_t bytes) override;

  uint64_t last_call() const { return last_call_; }  // number of the runner's call that ran it last
  const fbx_tensor& ValueOf(ValueId id) { return view_.tensor(id); }
  void AddTimes(std::vector<NodeTime>& rows);

  std::string Explain() const;
  void AddMemory(std::vector<MemoryPlan>& plans) const;
  size_t arena_bytes() const;

 private:
  static constexpr size_t kPlansKept = 8;

  // A segment, the known shapes or values that it was planned for (`key`), and its successors.
  struct Plan {
    std::string key;
    std::unique_ptr<plan::Segment> segment;
    std::vector<std::unique_ptr<Plan>> next;
  };
  // Memory of the n-th segment of a path; later segments do not touch it.
  struct Level {
    Block arena;
    const plan::Segment* bound = nullptr;
  };
  // An unpacked constant.
  struct Kept {
    Block memory;
    bool done = false;
  };
  // Values that a WHILE carries: two sets, read and written in turn.
  struct Loop {
    std::vector<Growable> memory[2];
    std::vector<fbx_tensor> tensors[2];
    std::vector<const fbx_tensor*> current;
    std::vector<Out> outs;
    std::vector<bool> passed_through;  // the body returns that value unchanged
    fbx_tensor condition{};
    Growable condition_memory;
  };
  struct HostNode {
    std::vector<Frame*> callees;
    std::vector<Out> outs;
    std::unique_ptr<Loop> loop;
    int64_t handle = -1;
    std::vector<fbx_tensor> shadows;  // of results of a body that runs for an op with state operands
    std::vector<Growable> shadow_memory;
  };

  void ForEachSegment(const std::function<void(const plan::Segment&)>& visit) const;
  void MakeVariables();
  void MakeHostNode(size_t index, HostNode& host);
  Status Usable() const;
  Status BindInputs(std::span<const fbx_tensor* const> inputs);
  void MakeKey(const plan::Segment& before);
  Result<Plan*> FirstPlan(std::span<const fbx_tensor* const> inputs);
  Result<Plan*> FindPlan(std::vector<std::unique_ptr<Plan>>& plans, size_t begin);
  bool Reserve(Level& level, const plan::Segment& segment) const;
  Status Bind(size_t level, plan::Segment& segment, std::span<const Out> outputs);
  void BindTypes(plan::Segment& segment);
  void Unbind();
  Status BindOutput(const plan::Place& place, std::span<const Out> outputs);
  Status CheckShared(size_t output, int input, ValueId first) const;
  Status RunSteps(plan::Segment& segment);
  Status RunStep(plan::Step& step);
  fbx_status Invoke(const plan::Step& step);
  Status RunTimed(plan::Step& step);
  void DescribeTraced(const plan::Step& step, Profile::Record& record);
  Status RunWatched(plan::Step& step);
  Status RunForwarded(plan::Step& step);
  NodeTime TimeOf(size_t node);
  uint64_t BytesOf(size_t node);
  bool RunPart(plan::Step& step);
  Status CopyStates(const plan::Step& step);
  Status CheckSized(const plan::Step& step);
  Status ReturnOutputs(std::span<const Out> outputs);
  static Status CheckStored(const fbx_tensor& result, const fbx_tensor& value);
  Status Store(ValueId result, const fbx_tensor& value);

  Frame& BodyOf(size_t node);
  Status RunHost(const plan::Step& step);
  Status RunCall(size_t node, Frame& callee, size_t first_operand);
  Status RunIf(size_t node);
  Status RunWhile(size_t node);
  Status RunCallOnce(size_t node);
  Status RunVariable(const plan::Step& step);
  Status ShowVariable(const plan::Step& step, const fbx_tensor& value);
  Status RunTable(size_t node);
  Result<int64_t> HandleOf(const fbx_tensor& tensor) const;

  const plan::Code& code_;
  const Function& function_;
  Runner& runner_;
  plan::View view_;
  std::vector<HostNode> host_nodes_;                  // by node; most are empty
  std::vector<std::unique_ptr<Growable>> growables_;  // by value
  std::map<ValueId, Kept> kept_;
  std::vector<bool> dynamic_;   // by value: its memory is its growable
  std::vector<bool> returned_;  // by output: already written in place
  const bool has_parts_;
  std::vector<std::unique_ptr<Block>> variable_memory_;  // in the order of code.variables
  std::vector<std::unique_ptr<Plan>> plans_;
  std::vector<Plan*> path_;  // of the current call
  std::vector<std::unique_ptr<Level>> levels_;
  std::string key_;
  uint64_t last_call_ = 0;
  std::vector<Profile::Record> records_;  // by node; empty: no profile
};

// Sets a value's element type, shape and bytes, but not its memory: a callee's view of a caller's tensor.
void BindTensor(fbx_tensor& to, const fbx_tensor& from);

}  // namespace fusebox::run
