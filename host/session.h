// SPDX-License-Identifier: Apache-2.0
// Session: plan, memory, state and threads to run a Model. One thread at a time, except Cancel; several
// sessions may share one Model.
//
//   session->SetInput(0, tensor);  session->Run();  session->output(0)
//
// Input shapes may change between runs. The session keeps a plan per shape.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "host/base/progress.h"
#include "host/base/status.h"
#include "host/graph/types.h"
#include "host/model.h"
#include "host/plan/memory_plan.h"
#include "host/run/node_time.h"
#include "host/threads/thread_pool.h"
#include "host/verify/shadow.h"

namespace fusebox {

struct SessionOptions {
  std::string signature;  // empty: the only one, or the main function's
  int threads = 1;        // maximum of one Run, including the calling thread; 0: one per core of the process
  ProgressListener progress = {};  // of packing weights, if a delegate reports it
  // Bytes of inputs, outputs, intermediate values, state and scratch memory. 0: all sessions of the process
  // share half of what was available to it when this was first needed. Memory that plugins allocate
  // themselves, such as packed weights, does not count, and neither does bound memory.
  size_t memory_limit = 0;
  std::shared_ptr<ThreadPool> pool = {};  // set: its threads run the session, and `threads` is not used
  bool keep_values = false;               // for value(): no two values share memory, which takes more of it
  bool profile = false;                   // for times()
  int shadow = 0;  // N: every N-th call of a fused op also runs its body, for shadows(); 0: none
};

class Session {
 public:
  // Error: an unknown signature, or one that cannot run (Model::entries lists those that can).
  static Result<std::unique_ptr<Session>> Create(std::shared_ptr<const Model>, const SessionOptions& = {});
  ~Session();

  struct Slot {
    std::string name;
    Type type;  // as declared, or as resized; -1: a variable dim
  };
  const std::vector<Slot>& inputs() const;  // in signature order
  const std::vector<Slot>& outputs() const;
  Result<int> FindInput(std::string_view name) const;
  Result<int> FindOutput(std::string_view name) const;

  const std::string& signature() const;  // of Run; empty: a main function without signature
  // Selects the signature of Run. State is kept; input values are dropped.
  Status SelectSignature(std::string_view key);

  // Copies the value in. Its dtype must match and its dims must be compatible; the error names the input and
  // both types. Bools are bytes 0 and 1.
  Status SetInput(int index, const Tensor& value);
  // Memory of an input, to fill in place, if its shape is known. Valid until the next SetInput, Resize, or
  // Run with other shapes.
  Result<std::span<std::byte>> InputData(int index);
  // Sets the dims of an input, of the declared rank. Fixed dims may change too (a batch of 8 instead of 1),
  // until SelectSignature. If an op does not support the new dims, Prepare and Run fail. If a delegate
  // cannot reshape a partition that it compiled for the declared dims, the partition falls back to kernels.
  Status Resize(int index, const Shape& shape);

  // Runs read an input from, and write an output to, memory of the caller, which stays valid until it is
  // unbound, by an empty span. The shapes of the inputs must be known, and the size of the tensor fixed by
  // them: no strings, no result whose shape depends on data. The span has the bytes of the tensor, or 16 more
  // that are only readable. The memory is used without a copy if it is aligned to 64 bytes and those 16 bytes
  // are part of the span, or in one page with its last byte (as with most memory from an allocator), or only
  // kernels of the plugin cpu use the tensor, which read no further; otherwise Run copies, and the session
  // keeps its own memory too. Memory of two outputs must not overlap. An input and an output may have the
  // same memory: then an op that can updates it in place, such as DYNAMIC_UPDATE_SLICE of a KV cache. Run
  // fails if an op reads the input when the output is written, or later. BindOutput prepares. Also unbound:
  // an input by SetInput; an input that gets another shape, and then all outputs; everything by
  // SelectSignature. An unbound input reads as zeros.
  Status BindInput(int index, std::span<std::byte> memory);
  Status BindOutput(int index, std::span<std::byte> memory);

  // Plans if needed, then runs. On failure, inputs are unchanged, and outputs and state undefined.
  Status Run();
  // Ends the Run or Prepare in progress, or the next one if there is none; it fails with Code::kCancelled.
  // Long work ends at its next step: a node, a partition of a delegate, an iteration of a loop, a chunk of a
  // parallel loop, or where a plugin checks. Outputs and state are then undefined until ResetState.
  // Wait-free. Any thread.
  void Cancel();
  // Plans without running: checks shapes, and reserves the memory of all functions and outputs whose shapes
  // are known. Touches none of it: call it before filling large inputs.
  Status Prepare();
  // Types of the outputs for the current shapes of the inputs, after Prepare. A shape that depends on data is
  // unranked.
  Result<std::vector<Type>> OutputTypes();

  // A view of output `index` after Run, valid until the next Run. Tensor.data borrows session memory, or the
  // bound memory.
  Result<Tensor> output(int index) const;
  // A view of any value of the model as the last Run left it, with SessionOptions::keep_values; of a function
  // that ran several times (a loop's body), of the last time; a state operand reads as its final state. Valid
  // until the next call that changes the session. `name`: of the first value with that name, in the function
  // of the signature before others; `index`: a ValueId of the function in Model::module. Error: it was not
  // computed, or in a partition of a delegate.
  Result<Tensor> value(std::string_view name) const;
  Result<Tensor> value(std::string_view function, int index) const;
  const Function& function() const;  // of the signature

  // Zeroes variable tensors and persistent memory of kernels. Resets resource variables and hash tables to
  // their initial values.
  void ResetState();

  // Returns what runs each node so far, and the notices of this session: delegates that declined, threads
  // that were asked for beyond the cores of the process.
  std::vector<Placement> placements() const;
  std::vector<std::string> notices() const;

  // With SessionOptions::profile: the nodes that ran so far, by function of the model, and in order there.
  std::vector<NodeTime> times() const;

  // With SessionOptions::shadow: the fused ops with a body, in the order of their first calls. The first
  // drift of each is logged too.
  std::vector<verify::ShadowRow> shadows() const;

  // The plan for the current shapes as text, for --explain: node, op, result types, kernel, memory.
  std::string Explain() const;
  // The arenas of the same plans, one per segment.
  std::vector<MemoryPlan> memory_plans() const;
  size_t arena_bytes() const;
  int threads() const;  // of Run

 private:
  Session();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fusebox
