// SPDX-License-Identifier: Apache-2.0
// Evaluation of nodes outside a session: kernel choice, type inference, constant folding. Stateless.
//
// The planner and the executor share the parts HostCalls, Inference, Block and the resize extension.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fusebox/abi/ext/resize.h"
#include "host/graph/graph.h"
#include "host/graph/view.h"
#include "host/plugin/registry.h"

namespace fusebox {

// Heap memory, 64-byte aligned, followed by 16 readable bytes. It grows and never shrinks.
class Block {
 public:
  Block() = default;
  Block(const Block&) = delete;
  ~Block() { Free(); }
  // Reserves at least `bytes`; growing discards the contents. True if the address changed: then the memory is
  // zero, if wanted, without touching more of it than needed. Throws NoMemory.
  bool Reserve(size_t bytes, bool zeroed = false);
  void Free();
  std::byte* data() const { return data_; }
  size_t capacity() const { return capacity_; }

 private:
  void* memory_ = nullptr;  // from malloc
  std::byte* data_ = nullptr;
  size_t capacity_ = 0;
};

// Memory of a tensor whose type changes: results that kernels size, values of control flow. The tensor points
// into it.
class Growable {
 public:
  // Sets the dims of `tensor` and gives it `bytes` of memory. Returns Block::Reserve.
  bool Resize(fbx_tensor& tensor, const int64_t* dims, int32_t rank, size_t bytes, bool zeroed = false);
  // Makes `tensor` a copy of `from`, data included.
  void Assign(fbx_tensor& tensor, const fbx_tensor& from);
  bool Reserve(size_t bytes) { return memory_.Reserve(bytes); }
  void Free() { memory_.Free(); }

 private:
  Block memory_;
  std::vector<int64_t> dims_;
};

// The fbx_hosts for calls of one owner (a session, an evaluation), one per plugin.
class HostCalls {
 public:
  explicit HostCalls(const Services& services) : services_(services) {}
  HostCall& For(const LoadedPlugin&);
  void DropDiags();  // diagnostics of successful calls

 private:
  const Services& services_;
  std::vector<std::unique_ptr<HostCall>> calls_;
};

// Services of a call outside a session: serial fusebox.threads/1, and fusebox.resize/1.
const Services& SerialServices();

// Implements fusebox.resize/1 for one owner. Kernels are invoked only with ResizableNodes, through which the
// extension finds its Resizer.
class Resizer {
 public:
  virtual ~Resizer() = default;
  virtual fbx_status Resize(size_t node, uint32_t result, std::span<const int64_t> dims, size_t bytes) = 0;
};
struct ResizableNode {
  fbx_node abi;
  Resizer* resizer;
  size_t index;  // argument for the resizer
};
const fbx_resize& ResizeApi();

// Bytes of a value of this type in memory: ByteSize, and 8 per element of a resource. Nothing for strings and
// types that are not static.
std::optional<size_t> StorageSize(const Type&);
Type TypeOf(const fbx_tensor&);

// Receives the results of a kernel's infer.
class Inference {
 public:
  Inference(size_t results, std::vector<Type>& types);  // clears `types`
  const fbx_infer* abi() const { return &abi_; }
  const std::vector<Type>& types() const { return types_; }        // dtype NONE: not set
  const std::vector<uint32_t>& needed() const { return needed_; }  // operands of needs_value
  using Quants = std::vector<std::shared_ptr<const Quant>>;
  const Quants& quants() const { return quants_; }  // per result, or fewer
  const Status& failure() const { return failure_; }

 private:
  static Inference& Of(const fbx_infer*);
  static void Failed(const fbx_infer*);
  static void Set(const fbx_infer*, uint32_t, fbx_dtype, const int64_t*, int32_t);
  static void NeedsValue(const fbx_infer*, uint32_t);
  static void SetQuant(const fbx_infer*, uint32_t, const fbx_quant*);
  fbx_infer abi_;  // first: callbacks cast from it
  std::vector<Type>& types_;
  std::vector<uint32_t> needed_;
  Quants quants_;
  Status failure_;  // of a callback
};
// Calls infer. Error: from the kernel, a missing result, or an invalid shape.
Status CallInfer(const fbx_kernel&, HostCall&, const fbx_node&, Inference&);

// A node that the infer of its kernel accepts: the only way to the kernel's init, which may rely on what
// supports and infer check. It borrows all that it is made of.
class Accepted {
 public:
  static Result<Accepted> Make(const fbx_kernel&, HostCall&, const fbx_node&, Inference&);
  // Same, before the shapes of a run are known. If infer rejects the declared shapes, which a file may store
  // wrongly, the operands that are not constant lose theirs. Error: infer rejects the constants, too.
  // `results`: ProperResults.
  static Result<Accepted> Declared(const fbx_kernel&, HostCall&, NodeView&, size_t results);
  Status Init(void** instance) const;  // null: the kernel has no init

 private:
  Accepted(const fbx_kernel& kernel, HostCall& call, const fbx_node& node)
      : kernel_(&kernel), call_(&call), node_(&node) {}
  const fbx_kernel* kernel_;
  HostCall* call_;
  const fbx_node* node_;
};
// Merges two descriptions of one type, dimension by dimension. Nothing: they contradict.
std::optional<Type> Refine(const Type& a, const Type& b);

// Number of results without the final states, which follow.
size_t ProperResults(const Node&);

// The kernel for the node: the first of Registry::KernelsFor whose supports() accepts it. Error: none does;
// the message has each candidate's reason, the plugins that list the op, and (custom ops) the searched
// directories. Host ops (control flow, variables) have no kernel: Has(op, kHost).
Result<KernelRef> ChooseKernel(Registry&, const Function&, const Node&);
// Same, with an existing view of the node.
Result<KernelRef> ChooseKernel(Registry&, const Function&, const Node&, const NodeView&);
// Functions that a host op runs, in the order of its attributes: CALL {f}, IF {then, else}, WHILE {cond,
// body}, CALL_ONCE {f}, STABLEHLO_COMPOSITE {body}. Error: an attribute or a function is missing.
Result<std::vector<std::string>> Callees(const Module&, const Node&);

// Infers result types of one node from its operand types; of a host op from its functions. Merges them with
// the declared types; a contradiction is an error.
Status InferNode(Registry&, const Module&, Function&, const Node&);
// Infers all nodes in order, called functions included. A function with a single call takes its input types
// from the call; a loop body only if it returns the same types. Nodes without kernel keep their declared
// types. `changed` (may be null): whether any type changed.
Status InferTypes(Registry&, Module&, Function&, bool* changed = nullptr);

// Computes the node's results for these operands (absent ones: empty Tensor). Only pure nodes. Returns errors
// of the kernel.
Result<std::vector<Tensor>> Evaluate(Registry&, const Function&, const Node&,
                                     std::span<const Tensor> operands);
// Same, with a known kernel.
Result<std::vector<Tensor>> Evaluate(const KernelRef&, HostCalls&, const Function&, const Node&,
                                     std::span<const Tensor> operands);
// The value of SHAPE or RANK for an operand of this shape; `result` is i32 or i64. Nothing for other nodes
// and shapes.
std::optional<Tensor> ShapeValue(const Node&, const Shape& operand, DType result);

struct FoldOptions {
  int64_t max_growth = 1 << 20;        // limit of result bytes minus operand bytes
  const Services* services = nullptr;  // of the kernels' calls; null: SerialServices()
};
// Replaces pure nodes with constant operands by their values, and SHAPE/RANK of a known shape. Removes dead
// pure nodes and frees intermediates. Returns the number of removed nodes.
Result<int> Fold(Registry&, Module&, Function&, const FoldOptions& = {});
// Replaces the last node by its values, if it is pure and its operands are constant; their memory stays.
void FoldLast(Registry&, Module&, Function&);
// Removes pure nodes whose results are not read, transitively.
int RemoveDead(Function&);

}  // namespace fusebox
