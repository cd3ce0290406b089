// SPDX-License-Identifier: Apache-2.0
// Views of the graph for plugins, through the C ABI (fbx_attrs, fbx_tensor, fbx_node, fbx_graph).
//
// A view borrows its source and caches the C arrays. Keep it until the callback returns. One thread at a
// time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fusebox/abi/rule.h"
#include "host/graph/graph.h"

namespace fusebox {

const fbx_attr_api& AttrApi();
// The opaque fbx_attrs is the graph's Attrs.
inline const fbx_attrs* AsAbi(const Attrs& attrs) { return reinterpret_cast<const fbx_attrs*>(&attrs); }
inline const Attrs& FromAbi(const fbx_attrs* attrs) { return *reinterpret_cast<const Attrs*>(attrs); }
inline fbx_str AsAbi(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view FromAbi(fbx_str s) { return {s.ptr, s.len}; }

// A copy. Error: the numbers contradict each other. Verify compares them with the tensor.
Result<std::shared_ptr<const Quant>> FromAbi(const fbx_quant*);

// One tensor. Constructed from a value or type, it owns copies of dims and quantization arrays; Show borrows
// the dims.
class TensorView {
 public:
  TensorView();  // ABSENT
  explicit TensorView(const Value&);
  TensorView(const Type&, const void* data, size_t bytes, uint32_t flags);
  const fbx_tensor* abi() const { return &tensor_; }
  fbx_tensor& edit() { return tensor_; }
  void Show(const Value&);  // replaces the current tensor
  void ShowAbsent();
  void SetType(const Type&);
  TensorView(const TensorView&) = delete;
  TensorView& operator=(const TensorView&) = delete;

 private:
  fbx_tensor tensor_;
  Dims dims_;
  std::shared_ptr<const Quant> quant_;
  fbx_quant abi_quant_;
};

// Finds the mapped files of constants.
class FileViews {
 public:
  const fbx_file* Of(const Value&);  // null: not mapped. Lives as long as this

 private:
  std::map<const MappedFile*, fbx_file> files_;
  std::pair<const void*, const fbx_file*> last_ = {};  // by owner: usually one file per model
};

// Returns a custom op's option bytes: the file's bytes, else its map, written to `written`. Borrowed from
// either.
std::string_view OptionBytes(const Node&, std::string& written);

// One node with its tensors. The owner may edit flags and data of the tensors between calls.
class NodeView {
 public:
  NodeView() : node_{} {}  // empty
  NodeView(const Function& function, const Node& node) : NodeView() { Show(function, node); }
  NodeView(const NodeView&) = delete;
  NodeView& operator=(const NodeView&) = delete;
  // Replaces the current node, reusing memory.
  void Show(const Function&, const Node&);
  const fbx_node* abi() const { return &node_; }
  fbx_node& edit() { return node_; }
  TensorView& operand(size_t i) { return tensors_[i]; }
  TensorView& result(size_t i) { return tensors_[operand_count() + i]; }
  size_t operand_count() const { return node_.operand_count; }
  size_t result_count() const { return node_.result_count; }

 private:
  std::string written_;                    // options not stored in the file
  std::unique_ptr<TensorView[]> tensors_;  // operands, then results, then intermediates
  size_t capacity_ = 0;
  std::vector<const fbx_tensor*> pointers_;
  fbx_node node_;
};

// A function and its callees, for rules and delegates. Views of values and nodes are created on first use.
class GraphView {
 public:
  GraphView(const Module&, const Function&);
  ~GraphView();
  const fbx_graph* abi() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fusebox
