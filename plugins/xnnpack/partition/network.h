// SPDX-License-Identifier: Apache-2.0
// Network: a function or partition with the producer of each value.
#pragma once

#include <optional>
#include <vector>

#include <fusebox/delegate.hpp>

namespace fusebox::xnnpack {

using namespace sdk;

// Returns whether readers of a DEQUANTIZE of this constant unpack it themselves: f16, and i8 with scales per
// tensor or per channel.
bool IsUnpacked(Tensor stored);

// Borrows the graph.
class Network {
 public:
  // `claiming`: while a model is opened, skips checks of per-channel numbers to save time. Creating the
  // partition finds those errors, and the nodes fall back to kernels.
  explicit Network(const Graph& graph, bool claiming = false);
  const Graph& graph() const { return graph_; }
  bool claiming() const { return claiming_; }
  // Returns the constant of a value: itself, or the operand of a DEQUANTIZE that its readers unpack. Returns
  // nothing for a computed value or an input.
  std::optional<Tensor> Constant(fbx_value id) const;

 private:
  const Graph& graph_;
  const bool claiming_;
  std::vector<uint32_t> producer_;  // by value; the index of a node
};

// A node in its network.
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
