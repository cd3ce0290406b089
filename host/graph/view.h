// SPDX-License-Identifier: Apache-2.0
// Views: the graph as plugins see it through the C ABI (fbx_attrs, fbx_tensor, fbx_node, fbx_graph).
//
// A view borrows what it shows and caches the C arrays; keep it as long as the callback that reads it. One
// thread at a time.
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
// The ABI's opaque attributes are the graph's Attrs.
inline const fbx_attrs* AsAbi(const Attrs& attrs) { return reinterpret_cast<const fbx_attrs*>(&attrs); }
inline const Attrs& FromAbi(const fbx_attrs* attrs) { return *reinterpret_cast<const Attrs*>(attrs); }
inline fbx_str AsAbi(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view FromAbi(fbx_str s) { return {s.ptr, s.len}; }

// One tensor. Made of a value or a type it owns the dims and the quantization arrays it points to; what is
// shown in its place later lends it the dims.
class TensorView {
 public:
  TensorView();  // ABSENT
  explicit TensorView(const Value&);
  TensorView(const Type&, const void* data, size_t bytes, uint32_t flags);
  const fbx_tensor* abi() const { return &tensor_; }
  fbx_tensor& edit() { return tensor_; }
  void Show(const Value&);  // in place of what it showed
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

// The mapped files that constants lie in.
class FileViews {
 public:
  const fbx_file* Of(const Value&);  // null: none. As long as this

 private:
  std::map<const MappedFile*, fbx_file> files_;
  std::pair<const void*, const fbx_file*> last_ = {};  // by owner: a model's constants lie in one
};

// A custom op's option bytes: the file's or, where it has none, its map written to `written`. Borrowed from
// either.
std::string_view OptionBytes(const Node&, std::string& written);

// One node with its tensors. `flags` and data of the tensors may be edited by the owner between calls.
class NodeView {
 public:
  NodeView() : node_{} {}  // shows nothing yet
  NodeView(const Function& function, const Node& node) : NodeView() { Show(function, node); }
  NodeView(const NodeView&) = delete;
  NodeView& operator=(const NodeView&) = delete;
  // Shows this node in place of what it showed; many nodes in turn need hardly any memory.
  void Show(const Function&, const Node&);
  const fbx_node* abi() const { return &node_; }
  fbx_node& edit() { return node_; }
  TensorView& operand(size_t i) { return tensors_[i]; }
  TensorView& result(size_t i) { return tensors_[operand_count() + i]; }
  size_t operand_count() const { return node_.operand_count; }
  size_t result_count() const { return node_.result_count; }

 private:
  std::string written_;                    // options that no file has written
  std::unique_ptr<TensorView[]> tensors_;  // operands, then results, then intermediates
  size_t capacity_ = 0;
  std::vector<const fbx_tensor*> pointers_;
  fbx_node node_;
};

// A function and what it reaches, for rules and delegates. Views of values and nodes are made when first
// asked for.
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
