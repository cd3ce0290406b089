// SPDX-License-Identifier: Apache-2.0
// Graph: a function and its nodes, read-only. Borrowed views, valid until the callback returns.
//
//   for (uint32_t i = 0; i < graph.node_count(); ++i)
//     if (const GraphNode node = graph.node(i); node.op() == "TANH") use(node.in_id(0), node.out_id(0));
#pragma once

#include "fusebox/abi/rule.h"
#include "fusebox/node.hpp"

namespace fusebox::sdk {
inline namespace v1 {

// A node of a graph: its tensors and their value numbers.
class GraphNode : public Node {
 public:
  GraphNode(const fbx_host* host, const fbx_node* node, const fbx_value* ids) : Node(host, node), ids_(ids) {}
  fbx_value in_id(uint32_t i) const { return ids_[i]; }  // FBX_NO_VALUE: absent
  fbx_value out_id(uint32_t i) const { return ids_[in_count() + i]; }

 private:
  const fbx_value* ids_;
};

// A function, the body of a composite, or a partition.
class Graph {
 public:
  Graph(const fbx_host* host, const fbx_graph* graph) : host_(host), graph_(graph) {}
  std::string_view name() const { return to_string_view(graph_->name); }
  uint32_t node_count() const { return graph_->node_count; }
  uint32_t value_count() const { return graph_->value_count; }
  std::span<const fbx_value> inputs() const { return {graph_->inputs, graph_->input_count}; }
  std::span<const fbx_value> outputs() const { return {graph_->outputs, graph_->output_count}; }
  GraphNode node(uint32_t i) const {
    const fbx_value* ids = nullptr;
    const fbx_node* node = graph_->node(graph_, i, &ids);
    if (node == nullptr && i < node_count()) throw std::bad_alloc();
    return {host_, node, ids};
  }
  // Returns a function that a FUNC attribute of a node names (Attrs::s), or nothing if there is none.
  std::optional<Graph> function(std::string_view name) const {
    const fbx_graph* found = graph_->function(graph_, to_fbx_str(name));
    return found ? std::optional(Graph(host_, found)) : std::nullopt;
  }
  Tensor value(fbx_value id) const {
    const fbx_tensor* value = graph_->value(graph_, id);
    if (value == nullptr && id < value_count()) throw std::bad_alloc();
    return Tensor(value);
  }
  const fbx_host* host() const { return host_; }
  const fbx_graph* abi() const { return graph_; }

 private:
  const fbx_host* host_;
  const fbx_graph* graph_;
};

}  // namespace v1
}  // namespace fusebox::sdk
