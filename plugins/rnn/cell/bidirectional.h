// SPDX-License-Identifier: Apache-2.0
// The bidirectional ops: two cells over one input, the second from the last step to the first. Each direction
// runs the kernel of the unidirectional op on another node (DirectionNode).
//
//   operands  0 input; then weights and states of both directions (BidirectionalLayout), states updated in
//             place; then an auxiliary input and its weights, which are not supported
//   results   0 both sequences concatenated with merge_outputs, otherwise 0 forward and 1 backward; both in
//             the order of the input. Then the final states, forward and backward.
#pragma once

#include <array>
#include <string>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/cell/kernel.h"

namespace fusebox::rnn {

using namespace sdk;

// Operand numbers, by direction (0 forward, 1 backward). A unidirectional node has the input, the weights and
// the states, in this order.
struct BidirectionalLayout {
  const char* cell;  // "LSTM"
  uint32_t operands;
  uint32_t weight_count, state_count;
  uint32_t weights[2], states[2];
  uint32_t auxiliary;  // first of the operands that are not supported
};

// One direction of a bidirectional node as a unidirectional node. Borrows what the node borrows.
class DirectionNode {
 public:
  DirectionNode(const BidirectionalLayout& layout, const Node& node, bool merge, bool backward);
  DirectionNode(const DirectionNode&) = delete;
  DirectionNode& operator=(const DirectionNode&) = delete;

  Node node() const { return {host_, &node_}; }
  // Replaces the data of input and output.
  void Bind(void* input, void* output);

 private:
  const fbx_host* host_;
  fbx_node node_;
  fbx_tensor input_{};
  fbx_tensor output_{};
  std::array<const fbx_tensor*, 20> operands_{};
  std::array<const fbx_tensor*, 3> results_{};
};

// Checks operand and result counts; returns the option merge_outputs.
bool CheckBidirectional(const BidirectionalLayout& layout, const Node& node);
void InferBidirectional(const BidirectionalLayout& layout, const Node& node, const SequenceSpec& forward,
                        int64_t forward_width, int64_t backward_width, Infer& out);

// Copies the input with its steps in reverse order.
void ReverseSteps(const SequenceSpec& spec, const std::byte* in, size_t bytes, std::byte* out);
// Concatenates vectors of both directions; `backward` is in reverse order.
void JoinDirections(const SequenceSpec& spec, const std::byte* forward, size_t forward_bytes,
                    const std::byte* backward, size_t backward_bytes, std::byte* out);

// Kernel: the kernel of the unidirectional op, with type Spec and static supports(node).
template <class Kernel, const BidirectionalLayout& kLayout>
class BidirectionalKernel {
 public:
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  using Spec = typename Kernel::Spec;

  struct Shapes {
    bool merge;
    typename Kernel::Shapes forward, backward;
    uint32_t reversed_input, forward_output, backward_output;  // slots
  };

  static void supports(const Node& node) {
    const bool merge = CheckBidirectional(kLayout, node);
    for (const bool backward : {false, true}) {
      try {
        Kernel::supports(DirectionNode(kLayout, node, merge, backward).node());
      } catch (Reject& r) {
        r.subject = std::string(backward ? "backward " : "forward ") + kLayout.cell + ", " + r.subject;
        throw;
      }
    }
  }

  static void infer(const Node& node, Infer& out) {
    const auto spec = [&](bool backward) {
      return ParseSpec<Spec>(DirectionNode(kLayout, node, Merge(node), backward).node());
    };
    const Spec forward = spec(false);
    InferBidirectional(kLayout, node, forward, forward.width(), spec(true).width(), out);
  }

  explicit BidirectionalKernel(const Node& node)
      : forward_(DirectionNode(kLayout, node, Merge(node), false).node()),
        backward_(DirectionNode(kLayout, node, Merge(node), true).node()) {}

  Shapes prepare(const Node& node, Plan& plan) const {
    const bool merge = Merge(node);
    const auto forward = forward_.prepare(DirectionNode(kLayout, node, merge, false).node(), plan);
    const auto backward = backward_.prepare(DirectionNode(kLayout, node, merge, true).node(), plan);
    const size_t vectors = static_cast<size_t>(forward.spec.batch) * static_cast<size_t>(forward.spec.steps);
    const auto scratch = [&](int64_t width) {
      return plan.scratch(vectors * static_cast<size_t>(width) * forward.spec.element_size());
    };
    return {merge,
            forward,
            backward,
            scratch(forward.spec.inputs),
            merge ? scratch(forward.spec.width()) : 0,
            scratch(backward.spec.width())};
  }

  void invoke(const Node& node, const Shapes& shapes) const {
    const Spec& spec = shapes.forward.spec;
    const auto bytes = [&](int64_t width) { return static_cast<size_t>(width) * spec.element_size(); };
    auto* const input = node.in(0).template data<std::byte>();
    auto* const reversed = node.scratch<std::byte>(shapes.reversed_input);
    auto* const forward_output = shapes.merge ? node.scratch<std::byte>(shapes.forward_output)
                                              : node.out(0).template data<std::byte>();
    auto* const backward_output = node.scratch<std::byte>(shapes.backward_output);
    ReverseSteps(spec, input, bytes(spec.inputs), reversed);
    DirectionNode forward(kLayout, node, shapes.merge, false);
    DirectionNode backward(kLayout, node, shapes.merge, true);
    forward.Bind(input, forward_output);
    backward.Bind(reversed, backward_output);
    forward_.invoke(forward.node(), shapes.forward);
    backward_.invoke(backward.node(), shapes.backward);
    JoinDirections(spec, forward_output, shapes.merge ? bytes(spec.width()) : 0, backward_output,
                   bytes(shapes.backward.spec.width()),
                   node.out(shapes.merge ? 0 : 1).template data<std::byte>());
  }

 private:
  static bool Merge(const Node& node) { return node.attrs().b("merge_outputs", false); }

  Kernel forward_, backward_;
};

}  // namespace fusebox::rnn
