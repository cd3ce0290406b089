// SPDX-License-Identifier: Apache-2.0
// The delegate "tflite": hosts an external delegate of TensorFlow Lite, which a vendor ships as a library.
//
// Each partition has a separate delegate, so that sessions may run at the same time.
#include <fusebox/delegate.hpp>
#include <fusebox/plugin.hpp>

#include <numeric>

#include "plugins/tflite_delegate/network.h"

namespace fusebox::tflite_delegate {
namespace {

// Delegates run it only together with the readers of its result, whose weights it unpacks.
bool UnpacksWeights(const GraphNode& node) {
  return node.op() == "DEQUANTIZE" && node.in_count() == 1 && node.in(0).is_const();
}

class Delegate {
 public:
  static constexpr std::string_view delegate = "tflite";
  static constexpr bool recompiles = true;

  explicit Delegate(const Attrs& options) : vendor_(options) {}

  void claim(const Graph& graph, Claim& claim) {
    std::vector<uint32_t> nodes;
    for (uint32_t i = 0; i < graph.node_count(); ++i) {
      if (!claim.offered(i)) continue;
      try {
        Network(vendor_, graph, {i}, Network::Purpose::kClaim);
        nodes.push_back(i);
      } catch (const Reject& r) {
        claim.reject(i, r.code, r.why);
      }
    }
    Network network(vendor_, graph, nodes, Network::Purpose::kClaim);
    network.ApplyDelegate();
    const std::string& error = network.last_error();
    for (const uint32_t node : nodes) {
      if (network.replaced().contains(node))
        claim.accept(node, UnpacksWeights(graph.node(node)) ? Accept::kJoin : Accept::kAlone);
      else claim.reject(node, "VENDOR", error.empty() ? "the external delegate leaves it" : error);
    }
  }

  class Partition {
   public:
    Partition(Delegate& delegate, const Graph& graph) {
      std::vector<uint32_t> nodes(graph.node_count());
      std::iota(nodes.begin(), nodes.end(), 0U);
      for (uint32_t i = 0; i < graph.value_count(); ++i) {
        if (!graph.value(i).is_static()) throw Reject{"SHAPE", "external delegates require known dims"};
      }
      network_.emplace(delegate.vendor_, graph, nodes, Network::Purpose::kRun);
      inputs_.assign(graph.inputs().begin(), graph.inputs().end());
      outputs_.assign(graph.outputs().begin(), graph.outputs().end());
      network_->ApplyDelegate();
      network_->Prepare();
    }

    void invoke(const Call& call) {
      for (uint32_t i = 0; i < call.in_count(); ++i) network_->SetData(inputs_[i], call.in(i).data<void>());
      for (uint32_t i = 0; i < call.out_count(); ++i)
        network_->SetData(outputs_[i], call.out(i).data<void>());
      network_->Invoke();
    }

   private:
    std::optional<Network> network_;
    std::vector<fbx_value> inputs_, outputs_;
  };

 private:
  const Vendor vendor_;
};

}  // namespace
}  // namespace fusebox::tflite_delegate

FUSEBOX_PLUGIN("fusebox.tflite_delegate", "1.0.0", fusebox::tflite_delegate::Delegate)
