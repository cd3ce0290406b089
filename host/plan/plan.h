// SPDX-License-Identifier: Apache-2.0
// Planning: from a function and input shapes to steps with memory. analyze -> view -> shapes -> memory ->
// prepare -> segment.
//
// Shapes depend on the inputs, and some sizes on data (WHERE, a reshape to a computed shape). So a function
// is planned in segments: a segment ends where shapes are unknown, and the next one is planned when the run
// gets there. Values of a segment are in one arena, which later segments do not touch.
#pragma once

#include <climits>
#include <forward_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/delegate/delegate.h"
#include "host/eval/budget.h"
#include "host/eval/eval.h"
#include "host/plan/memory_plan.h"

namespace fusebox::plan {

struct Code;
class VariableUses;

// How one node runs. Chosen once per Model. Neither kernel nor callee: the executor runs the op (variables).
struct Unit {
  KernelRef kernel;
  bool only_infers = false;        // the kernel declines the node, only infers shapes: a delegate runs it
  const void* instance = nullptr;  // from the kernel's init
  std::vector<const Code*>
      callees;             // functions to run: CALL {f}, IF {then, else}, WHILE {cond, body}, a body {body}
  bool runs_body = false;  // a composite, or a fused op without kernel: runs callees[0]
  int part = -1;           // a PARTITION: its number; callees[0] runs if its delegate does not

  // The first callees that run whenever the node runs. A branch or the body of a loop may never run: an error
  // in it counts only when it does.
  std::span<const Code* const> always_called(const Node& node) const {
    const bool chooses = !runs_body && node.is(Op::kIf);
    const bool loops = !runs_body && node.is(Op::kWhile);
    return std::span(callees).first(chooses ? 0 : loops ? 1 : callees.size());
  }
};

// An operand that a node updates in place, and the value of its final state.
struct StateUse {
  size_t operand;
  ValueId from, to;
  bool copy;          // `from` is a constant, an input, or read later: copy it to the memory of `to` first
  bool kept = false;  // `from` is in a variable tensor: itself one, or left in one by another op
};

// Definition and uses of a value. Nodes by index, -1: none.
struct ValueUse {
  static constexpr int kAlways = INT_MAX;  // last use of an output
  int defined = -1;                        // index of its node; none: constant, input or variable
  int last_use = -1;                       // the last node that reads it
  int output = -1;                         // the first output with this value
  bool is_input = false;
};

// A function prepared for planning: kernels and all facts that need no shapes. Immutable, any thread.
struct Code {
  const Module* module = nullptr;
  const Function* function = nullptr;
  std::vector<Unit> units;                    // by node
  std::vector<std::vector<StateUse>> states;  // by node
  std::vector<ValueUse> values;               // by value
  std::vector<ValueId> variables;             // variable tensors without definition: the session keeps them
  const delegate::Origin* origin = nullptr;   // of the nodes of an outlined function

  const ValueUse& use(ValueId id) const { return values[static_cast<size_t>(id)]; }
  const std::string& name() const { return origin != nullptr ? origin->function : function->name; }
  std::string Describe(size_t node) const;                // in terms of the model
  std::string DescribeValue(ValueId, const Type&) const;  // "'x', f32[1,8]"
};
// Sets everything but the units. `origin`, if any, must outlive the code.
Code Analyze(const Module&, const Function&, const delegate::Origin* origin = nullptr);

// A function as kernels see it: one tensor per value, one node per node, pointers resolved. The final state
// replaces its state operand, so that the kernel updates the right memory.
class View {
 public:
  explicit View(const Code&);
  ~View();
  View(const View&) = delete;
  fbx_tensor& tensor(ValueId id) { return tensors_[static_cast<size_t>(id)].edit(); }
  void SetType(ValueId id, const Type& type) { tensors_[static_cast<size_t>(id)].SetType(type); }
  ResizableNode& node(size_t index) { return nodes_[index]; }
  ValueId value_count() const { return static_cast<ValueId>(tensors_.size()); }
  const VariableUses& variables();  // made by the first call; all segments share them

 private:
  const Code& code_;
  std::unique_ptr<const VariableUses> variables_;
  std::vector<TensorView> tensors_;
  TensorView absent_;
  TensorView unread_{Type{DType::kF32, Shape{0}}, nullptr, 0,
                     0};                     // stands for absent operands of an op whose kept body runs
  std::vector<const fbx_tensor*> pointers_;  // operands and results of all nodes
  std::vector<ResizableNode> nodes_;
  std::forward_list<std::string> written_;  // options not stored in the file
};

// Stores plans of loop functions.
class LoopPlans {
 public:
  virtual ~LoopPlans() = default;
  // Plans `body` for operands of these types, for later runs. Returns the types of its outputs: unranked if
  // they depend on data.
  virtual Result<std::vector<Type>> Plan(const Code& body, std::span<const fbx_tensor* const> operands) = 0;
};

// Environment of kernel calls, while planning and while running.
struct Context {
  HostCalls& calls;
  uint32_t threads = 1;
  delegate::Session* delegates = nullptr;  // of the session; null: kernels run the partitions
  LoopPlans* loops = nullptr;              // of the session; null: infers types and keeps no plan
  bool keep_values = false;                // no memory is used for two values
  Reservation* inside = nullptr;  // for values inside of partitions, which share it; null: not counted
};

// Planning result for one node.
struct NodeShapes {
  enum Kind {
    kStatic,      // a step; all results have sizes
    kKnown,       // no step: `values` are the results in every run of this plan
    kDynamic,     // a step whose results are sized when it runs
    kNeedsValue,  // cannot be planned before the values of `needed` operands are known
  } kind = kStatic;
  std::vector<Type> types;
  std::vector<Tensor> values;
  std::vector<ValueId> needed;
  delegate::Misfit misfit;  // of a partition
};
// Infers from the types (and known values) of the operands in `view`. Overwrites `found` and reuses its
// memory.
Status FindShapes(const Code&, size_t node, View& view, Context&, NodeShapes& found);

// A piece of memory, in use from node `first` to node `last`.
struct Request {
  size_t bytes;
  int first, last;
  size_t offset = 0;
};
// Assigns each request an offset, a multiple of 64. Requests with overlapping lifetimes do not overlap, and
// 16 bytes after each may be read. Returns the total size. Places the largest first, each into the tightest
// gap.
size_t Arrange(std::span<Request>);

// Location of one value of a segment.
struct Place {
  enum Kind {
    kArena,     // at offset `at`
    kOutput,    // memory of the caller's output number `at`
    kAlias,     // where value number `at` lives
    kKnown,     // in `known`
    kKept,      // in session memory that all plans share: its step runs once
    kVariable,  // in the memory of a resource variable, known when its READ_VARIABLE runs
    kDynamic,   // heap memory that its node requests
  } kind;
  ValueId value;
  Type type;
  size_t bytes;
  size_t at;
  Buffer known;
};

// One node to run.
struct Step {
  size_t node;
  const fbx_kernel* kernel = nullptr;  // null: a host op, or a body
  HostCall* call = nullptr;
  const void* instance = nullptr;
  void* state = nullptr;
  bool dynamic = false;
  bool once = false;  // it unpacks a constant, and its result is kept
  int part = -1;      // a partition that its delegate has prepared
  std::vector<const StateUse*> copies;
  std::vector<ValueId> in_variable;  // of a READ_VARIABLE: values in the variable's memory; none: it copies
  PluginCall invoke{};               // what a call of the kernel records
  uint64_t prepared = 0;             // id of the partition's preparation in the delegate's session
  fbx_call delegated{};              // its tensors
  delegate::Misfit misfit;           // of the partition (NodeShapes)
  struct Slot {
    bool persistent;
    size_t bytes;
    size_t at;  // offset in the arena, or index into Segment::persistent
  };
  std::vector<Slot> slots;
  std::vector<void*> scratch;  // addresses of the slots, set when memory is bound
};

// A sequence of nodes whose shapes are known together.
struct Segment {
  Segment() = default;
  Segment(const Segment&) = delete;
  ~Segment();  // frees the states of its steps

  size_t begin = 0;
  size_t end = 0;
  std::vector<Step> steps;
  std::vector<Place> places;
  size_t arena_bytes = 0;
  std::vector<std::unique_ptr<Block>> persistent;
  // Why it ends early: after a node that sized `pending` results, or before one that needs the values of
  // `pending`.
  bool needs_values = false;
  std::vector<ValueId> pending;

  void Reset();  // zeroes persistent memory and resets kernels
};
// Plans from node `begin` on. `view` holds types, constants and known values of all earlier nodes; the types
// of the segment are added. Errors name the node.
Result<std::unique_ptr<Segment>> PlanSegment(const Code&, View& view, size_t begin, Context&);

// Returns an error if an input and an output cannot have the same memory, since the input is read when the
// output is written, or later. `first`: the first value in the output's memory; kNoValue: the output is
// copied there after the last node.
Status CheckShared(const Code&, ValueId input, ValueId first);

// One row per node, "f32[1,8] arena 128" and so on, for --explain.
std::string ToText(const Code&, const Segment&, const delegate::Session* = nullptr);
// Its arena, for tools.
MemoryPlan PlanOf(const Code&, const Segment&);

}  // namespace fusebox::plan
