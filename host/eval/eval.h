// SPDX-License-Identifier: Apache-2.0
// What a node computes, asked of its kernel: who runs it, result types, and values on constants.
//
// Everything here is stateless and works outside any session; the planner and the executor use the same
// pieces (HostCalls, Inference, Block, the resize extension) inside one.
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
#include "host/plugin/plugin.h"

namespace fusebox {

// Heap memory, 64-byte aligned, with 16 readable bytes behind it. It grows and never shrinks.
class Block {
 public:
  Block() = default;
  Block(const Block&) = delete;
  ~Block();
  // At least `bytes`; what it held is lost when it has to grow. True when the address changed.
  bool Reserve(size_t bytes);
  std::byte* data() const { return data_; }
  size_t capacity() const { return capacity_; }

 private:
  void* memory_ = nullptr;  // as malloc gave it
  std::byte* data_ = nullptr;
  size_t capacity_ = 0;
};

// The memory of a tensor whose type changes: results that kernels size, values that control flow carries. The
// tensor points into it.
class Growable {
 public:
  // Gives `tensor` those dims and memory of `bytes`.
  void Resize(fbx_tensor& tensor, const int64_t* dims, int32_t rank, size_t bytes);
  // Makes `tensor` a copy of `from`, data included.
  void Assign(fbx_tensor& tensor, const fbx_tensor& from);

 private:
  Block memory_;
  std::vector<int64_t> dims_;
};

// The hosts that the plugins see during calls of one owner (a session, an evaluation), one per plugin.
class HostCalls {
 public:
  explicit HostCalls(const Services& services) : services_(services) {}
  HostCall& For(const LoadedPlugin&);
  void DropDiags();  // what succeeding calls had to say

 private:
  const Services& services_;
  std::vector<std::unique_ptr<HostCall>> calls_;
};

// Services of a call outside any session: fusebox.threads/1 that runs serially, and fusebox.resize/1.
const Services& SerialServices();

// fusebox.resize/1 finds whom to ask through the node: every node that a kernel is invoked with is one of
// these.
class Resizer {
 public:
  virtual ~Resizer() = default;
  virtual fbx_status Resize(size_t node, uint32_t result, std::span<const int64_t> dims, size_t bytes) = 0;
};
struct ResizableNode {
  fbx_node abi;
  Resizer* resizer;
  size_t index;  // handed back to the resizer
};
const fbx_resize& ResizeApi();

// Bytes that a value of this type takes in memory: ByteSize, and 8 per element of a resource. Nothing for
// strings and types that are not static.
std::optional<size_t> StorageSize(const Type&);
Type TypeOf(const fbx_tensor&);

// Where a kernel's infer leaves its answer.
class Inference {
 public:
  Inference(size_t results, std::vector<Type>& types);  // there; what it held is lost
  const fbx_infer* abi() const { return &abi_; }
  const std::vector<Type>& types() const { return types_; }        // dtype NONE: not answered
  const std::vector<uint32_t>& needed() const { return needed_; }  // operands whose values it asked for

 private:
  static void Set(const fbx_infer*, uint32_t, fbx_dtype, const int64_t*, int32_t) noexcept;
  static void NeedsValue(const fbx_infer*, uint32_t) noexcept;
  fbx_infer abi_;  // first: the callbacks find the object by it
  std::vector<Type>& types_;
  std::vector<uint32_t> needed_;
};
// Asks the kernel. Error: the kernel's, an answer that is missing, or a shape that is not one.
Status CallInfer(const fbx_kernel&, HostCall&, const fbx_node&, Inference&);
// Dimension by dimension, what is known of two descriptions of one type; nothing when they contradict each
// other.
std::optional<Type> Refine(const Type& a, const Type& b);

// How many of the node's results are its own; the final states of its state operands follow.
size_t ProperResults(const Node&);

// The kernel that will run the node: the first of Registry::KernelsFor whose supports() accepts. Error: none
// does, with every candidate's reason, who promises the op, and (for a custom op) where plugins were
// searched. Host ops (control flow, variables) have no kernel: Has(op, kHost).
Result<KernelRef> ChooseKernel(Registry&, const Function&, const Node&);
// The same with a view of the node that the caller has.
Result<KernelRef> ChooseKernel(Registry&, const Function&, const Node&, const NodeView&);
// Functions that a host op runs, in the order of its attributes: CALL {f}, IF {then, else}, WHILE {cond,
// body}, CALL_ONCE {f}, STABLEHLO_COMPOSITE {body}. Error: an attribute or a function is missing.
Result<std::vector<std::string>> Callees(const Module&, const Node&);

// Result types of one node from its operand types; host ops from their functions. Where the kernel knows less
// than the graph already says (a declared result type), the more precise of the two is kept; a contradiction
// is an error.
Status InferNode(Registry&, const Module&, Function&, const Node&);
// All nodes in order, into called functions too (their input types become the call's, when all calls agree).
// Nodes with no kernel keep their declared types. `changed` (may be null) tells whether any type got better.
Status InferTypes(Registry&, Module&, Function&, bool* changed = nullptr);

// The node's results on these operands (absent ones: empty Tensor). Pure nodes only; errors as the kernel
// gives them.
Result<std::vector<Tensor>> Evaluate(Registry&, const Function&, const Node&,
                                     std::span<const Tensor> operands);
// The same with a kernel that is known already.
Result<std::vector<Tensor>> Evaluate(const KernelRef&, HostCalls&, const Function&, const Node&,
                                     std::span<const Tensor> operands);
// The value of SHAPE or RANK for an operand of this shape; the result's dtype says i32 or i64. Nothing for
// other nodes and shapes.
std::optional<Tensor> ShapeValue(const Node&, const Shape& operand, DType result);

struct FoldOptions {
  int64_t max_growth = 1 << 20;        // bytes a folded result may be larger than the operands it replaces
  const Services* services = nullptr;  // what kernels see, with threads perhaps; null: SerialServices()
};
// Replaces pure nodes whose operands are all constant by their values, also SHAPE/RANK of a known shape;
// drops dead pure nodes; frees intermediates as it goes. Returns how many nodes went away.
Result<int> Fold(Registry&, Module&, Function&, const FoldOptions& = {});
// Removes pure nodes whose results nobody reads, and with them what only they read.
int RemoveDead(Function&);

}  // namespace fusebox
