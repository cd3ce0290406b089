// SPDX-License-Identifier: Apache-2.0
// A function or partition as the ops look at it: nodes that know where their operands come from.
#pragma once

#include <optional>
#include <vector>

#include <fusebox/delegate.hpp>

namespace fusebox::xnnpack {

// A graph with the producer of each value. Borrowed like the graph itself.
class Network {
 public:
  // `claiming`: a model is being opened, which has no time to look at the numbers of every channel. What is
  // wrong with those comes out when the partition is made, and gives it back to the kernels.
  explicit Network(const Graph& graph, bool claiming = false);
  const Graph& graph() const { return graph_; }
  bool claiming() const { return claiming_; }
  // The constant behind a value: itself, or what a DEQUANTIZE of f16 reads. Nothing: computed, or an input.
  std::optional<Tensor> Constant(fbx_value id) const;

 private:
  const Graph& graph_;
  const bool claiming_;
  std::vector<uint32_t> producer_;  // by value; the index of a node
};

// A node within its network.
class NetworkNode : public GraphNode {
 public:
  NetworkNode(const Network& network, uint32_t index)
      : GraphNode(network.graph().node(index)), network_(network) {}
  const Network& network() const { return network_; }
  std::optional<Tensor> constant(uint32_t operand) const {
    return has_in(operand) ? network_.Constant(in_id(operand)) : std::nullopt;
  }

 private:
  const Network& network_;
};

}  // namespace fusebox::xnnpack
