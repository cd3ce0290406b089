// SPDX-License-Identifier: Apache-2.0
// From a function and input shapes to steps over memory: analyze -> view -> shapes -> memory -> prepare ->
// segment.
//
// Shapes are known only when inputs are, and sizes that hang on data (WHERE, a reshape to a computed shape)
// only when the run reaches them. So a function is planned in segments: a segment goes as far as shapes are
// known, and the next one is planned when the run gets there. Values of a segment live in one arena, which
// later segments leave alone.
#pragma once

#include <climits>
#include <forward_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/delegate/delegate.h"
#include "host/eval/eval.h"

namespace fusebox::plan {

struct Code;

// Who runs one node. Chosen once per Model; neither kernel nor callee: an op the executor does itself
// (variables).
struct Unit {
  KernelRef kernel;
  bool only_infers = false;        // the kernel knows the op, but would not run this node: a delegate has to
  const void* instance = nullptr;  // what the kernel's init made
  std::vector<const Code*>
      callees;             // functions to run: CALL {f}, IF {then, else}, WHILE {cond, body}, a body {body}
  bool runs_body = false;  // a composite, or a fused op without kernel: callees[0] in its place
  int part = -1;           // a PARTITION: its number; callees[0] runs where its delegate does not
};

// One operand that a node updates in place, and the value that names its final state.
struct StateUse {
  size_t operand;
  ValueId from, to;
  bool
      copy;  // `from` is a constant, an input, or read later: its value is copied to the memory of `to` first
  bool kept = false;  // `from` lives in a variable tensor: it is one, or what another op left in one
};

// Where a value comes from and goes to. Nodes by number, -1: none.
struct ValueUse {
  static constexpr int kAlways = INT_MAX;  // last use of an output
  int defined = -1;                        // its node; none: constant, input or variable
  int last_use = -1;                       // the last node that reads it
  int output = -1;                         // the first output that it is
  bool is_input = false;
};

// A function made ready for planning: who runs what, and what can be said without shapes. Immutable, any
// thread.
struct Code {
  const Module* module = nullptr;
  const Function* function = nullptr;
  std::vector<Unit> units;                    // by node
  std::vector<std::vector<StateUse>> states;  // by node
  std::vector<ValueUse> values;               // by value
  std::vector<ValueId> variables;             // variable tensors that nothing defines: the session keeps them
  const delegate::Origin* origin = nullptr;   // of the nodes of a function that the host has taken apart

  const ValueUse& use(ValueId id) const { return values[static_cast<size_t>(id)]; }
  const std::string& name() const { return origin != nullptr ? origin->function : function->name; }
  std::string Describe(size_t node) const;  // as the model has it
};
// Everything but the units. `origin`, if any, must outlive the code.
Code Analyze(const Module&, const Function&, const delegate::Origin* origin = nullptr);

// A function as its kernels see it: one tensor per value, one node per node, pointers resolved. The final
// state of a state operand stands in place of the operand, so that the kernel updates the right memory.
class View {
 public:
  explicit View(const Code&);
  View(const View&) = delete;
  fbx_tensor& tensor(ValueId id) { return tensors_[static_cast<size_t>(id)].edit(); }
  void SetType(ValueId id, const Type& type) { tensors_[static_cast<size_t>(id)].SetType(type); }
  ResizableNode& node(size_t index) { return nodes_[index]; }
  ValueId value_count() const { return static_cast<ValueId>(tensors_.size()); }

 private:
  std::vector<TensorView> tensors_;
  TensorView absent_;
  TensorView unread_{Type{DType::kF32, Shape{0}}, nullptr, 0,
                     0};                     // absent of an op whose kept body runs: what stands for it there
  std::vector<const fbx_tensor*> pointers_;  // operands and results of all nodes
  std::vector<ResizableNode> nodes_;
  std::forward_list<std::string> written_;  // options that no file has written
};

// Keeps the plans of the functions that loops run.
class LoopPlans {
 public:
  virtual ~LoopPlans() = default;
  // Plans `body` for operands of these types, to be run for them later, and tells the types of its outputs:
  // unranked where they hang on data.
  virtual Result<std::vector<Type>> Plan(const Code& body, std::span<const fbx_tensor* const> operands) = 0;
};

// Where calls of kernels are made from, while planning and while running.
struct Context {
  HostCalls& calls;
  uint32_t threads = 1;
  delegate::Session* delegates = nullptr;  // of the session; null: partitions run by their kernels
  LoopPlans* loops = nullptr;              // of the session; null: types are looked for and no plan is kept
};

// What planning finds out about one node.
struct NodeShapes {
  enum Kind {
    kStatic,      // a step; all results have sizes
    kKnown,       // no step: `values` are the results in every run of this plan
    kDynamic,     // a step whose results get their sizes when it runs
    kNeedsValue,  // cannot be planned before the values of `needed` operands are there
  } kind = kStatic;
  std::vector<Type> types;
  std::vector<Tensor> values;
  std::vector<ValueId> needed;
  std::string misfit;  // of a partition: a value in it is not what the model declares, for which its delegate
                       // has laid it out
};
// From the types (and known values) of the operands as they stand in `view`. What `found` held is lost; its
// memory is used.
Status FindShapes(const Code&, size_t node, View& view, Context&, NodeShapes& found);

// A piece of memory that is in use from node `first` to node `last`.
struct Request {
  size_t bytes;
  int first, last;
  size_t offset = 0;
};
// Gives each request an offset, a multiple of 64, such that what is in use at the same time does not overlap
// and 16 bytes behind each piece may be read; returns the size of the whole. Largest first, each into the
// tightest gap.
size_t Arrange(std::span<Request>);

// Where one value of a segment lives.
struct Place {
  enum Kind {
    kArena,    // at offset `at`
    kOutput,   // memory of the caller's output number `at`
    kAlias,    // where value number `at` lives
    kKnown,    // in `known`
    kKept,     // in memory of the session that all plans share: its step runs once
    kDynamic,  // heap memory that its node asks for
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
  int part = -1;          // a partition that its delegate has been prepared for
  uint64_t prepared = 0;  // what the delegate's session calls that preparation
  fbx_call delegated{};   // its tensors
  bool dynamic = false;
  bool once = false;  // it unpacks a constant, and its one result stays
  std::vector<const StateUse*> copies;
  struct Slot {
    bool persistent;
    size_t bytes;
    size_t at;  // offset in the arena, or index into Segment::persistent
  };
  std::vector<Slot> slots;
  std::vector<void*> scratch;  // the slots' addresses, filled in when memory is bound
};

// A run of nodes whose shapes are known together.
struct Segment {
  Segment() = default;
  Segment(const Segment&) = delete;
  ~Segment();  // frees the states of its steps

  size_t begin = 0, end = 0;
  std::vector<Step> steps;
  std::vector<Place> places;
  size_t arena_bytes = 0;
  std::vector<std::unique_ptr<Block>> persistent;
  // Why it ends before the function does: after a node that sized `pending` results, or before one that needs
  // the values of `pending`.
  bool needs_values = false;
  std::vector<ValueId> pending;

  void Reset();  // persistent memory to zero, kernels forget
};
// Plans from node `begin` on. `view` holds types (and constants, and values known by now) of everything
// before; it receives the types of the segment. Errors name the node.
Result<std::unique_ptr<Segment>> PlanSegment(const Code&, View& view, size_t begin, Context&);

// One row per node, "f32[1,8] arena 128" and so on, for --explain.
std::string ToText(const Code&, const Segment&, const delegate::Session* = nullptr);

}  // namespace fusebox::plan
