// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/rnn/bidirectional_kernel.h"

#include <algorithm>
#include <array>
#include <string>

#include "plugins/rnn/cell/directions.h"
#include "plugins/rnn/cell/operand_checks.h"

namespace fusebox::rnn {
namespace {

constexpr uint32_t kBothOperands = 12, kAuxiliary = 9;
constexpr uint32_t kBothStates[] = {4, 8};  // forward, backward

// One direction as the node of an RNN. Borrows what the node borrows; without memory of its own for input and
// result those of the node are left.
class RnnDirection {
 public:
  RnnDirection(const Node& node, bool backward) : host_(node.host()), node_(*node.abi()) {
    const fbx_tensor* const* const from = node.abi()->operands;
    operands_[0] = from[0];
    std::copy_n(from + (backward ? 5 : 1), 4, operands_.begin() + 1);
    node_.operands = operands_.data();
    node_.operand_count = kRnnOperands;
    node_.result_count = 0;
  }
  RnnDirection(const RnnDirection&) = delete;

  Node node() const { return {host_, &node_}; }
  // For a run: where the direction reads, where it writes, and its final state where that is a result.
  void Set(void* input, void* output, const fbx_tensor* state) {
    input_ = output_ = *operands_[0];
    input_.data = input;
    output_.data = output;
    operands_[0] = &input_;
    results_ = {&output_, state};
    node_.results = results_.data();
    node_.result_count = state ? 2 : 1;
  }

 private:
  const fbx_host* host_;
  fbx_node node_;
  fbx_tensor input_{}, output_{};
  std::array<const fbx_tensor*, kRnnOperands> operands_;
  std::array<const fbx_tensor*, 2> results_{};
};

RnnSpec DirectionSpec(const Node& node, bool backward) {
  const RnnDirection direction(node, backward);
  try {
    return RnnSpec(direction.node());
  } catch (Reject& r) {
    r.subject = (backward ? "backward RNN, " : "forward RNN, ") + r.subject;
    throw;
  }
}

// Before the cells are looked at, which count on them.
bool CheckBoth(const Node& node) {
  if (node.in_count() != kBothOperands)
    throw Reject{"ARITY", "has " + std::to_string(node.in_count()) + " operands, expected 12"};
  for (uint32_t i = kAuxiliary; i < kBothOperands; ++i)
    if (node.has_in(i)) RefuseOperand("OPERANDS", "is there: auxiliary inputs are not done", i);
  const bool merge = node.attrs().b("merge_outputs", false);
  const uint32_t outputs = merge ? 1 : 2;
  if (node.out_count() != outputs && node.out_count() != outputs + 2)
    throw Reject{"ARITY", "has " + std::to_string(node.out_count()) + " results, expected " +
                              std::to_string(outputs) + ", and 2 states"};
  return merge;
}

struct BothSpec {
  // Throws Reject for what is not done or does not fit together.
  explicit BothSpec(const Node& node)
      : merge(CheckBoth(node)), forward(DirectionSpec(node, false)), backward(DirectionSpec(node, true)) {}

  bool merge;
  RnnSpec forward, backward;  // of the same batch, steps, inputs and type
};

// Null: the state is not among the results.
const fbx_tensor* StateResult(const Node& node, bool merge, bool backward) {
  const uint32_t result = (merge ? 1 : 2) + (backward ? 1 : 0);
  return result < node.out_count() ? node.out(result).abi() : nullptr;
}

}  // namespace

void BidirectionalRnnKernel::supports(const Node& node) { BothSpec{node}; }

void BidirectionalRnnKernel::infer(const Node& node, Infer& out) {
  const auto spec = ParseSpec<BothSpec>(node);
  const RnnSpec& f = spec.forward;
  const auto set = [&](uint32_t result, int64_t width) {
    if (f.time_major) out.set(result, f.dtype, {f.steps, f.batch, width});
    else out.set(result, f.dtype, {f.batch, f.steps, width});
  };
  const int64_t ahead = f.cells, back = spec.backward.cells;
  uint32_t next = 0;
  if (spec.merge) {
    set(next++, ahead < 0 || back < 0 ? -1 : ahead + back);
  } else {
    set(next++, ahead);
    set(next++, back);
  }
  for (const uint32_t state : kBothStates)
    if (next < node.out_count()) out.like(next++, node.in(state));
}

BidirectionalRnnKernel::BidirectionalRnnKernel(const Node& node)
    : forward_(RnnDirection(node, false).node()), backward_(RnnDirection(node, true).node()) {}

BidirectionalRnnKernel::Shapes BidirectionalRnnKernel::prepare(const Node& node, Plan& plan) const {
  const auto spec = ParseSpec<BothSpec>(node);
  const RnnSpec &f = spec.forward, &b = spec.backward;
  const size_t element = f.dtype == FBX_F64 ? sizeof(double) : sizeof(float);
  const size_t row = static_cast<size_t>(f.batch) * static_cast<size_t>(f.steps) * element;
  const auto rows = [&](int64_t width) { return plan.scratch(row * static_cast<size_t>(width)); };
  return {spec.merge,
          forward_.prepare(RnnDirection(node, false).node(), plan),
          backward_.prepare(RnnDirection(node, true).node(), plan),
          rows(f.inputs),
          spec.merge ? rows(f.cells) : 0,
          rows(b.cells)};
}

template <class T>
void BidirectionalRnnKernel::Run(const Node& node, const Shapes& shapes) const {
  const RnnSpec& spec = shapes.forward.spec;
  const auto n = static_cast<size_t>(spec.inputs), u = static_cast<size_t>(spec.cells),
             v = static_cast<size_t>(shapes.backward.spec.cells);
  T* const x = node.in(0).data<T>();
  T* const reversed = node.scratch<T>(shapes.reversed);
  T* const ahead = shapes.merge ? node.scratch<T>(shapes.ahead) : node.out(0).data<T>();
  T* const back = node.scratch<T>(shapes.back);
  ForPlaces(spec, n, [&](size_t at, size_t from) { std::copy_n(x + from * n, n, reversed + at * n); });
  RnnDirection forward(node, false), backward(node, true);
  forward.Set(x, ahead, StateResult(node, shapes.merge, false));
  backward.Set(reversed, back, StateResult(node, shapes.merge, true));
  forward_.invoke(forward.node(), shapes.forward);
  backward_.invoke(backward.node(), shapes.backward);
  JoinDirections(spec, ahead, shapes.merge ? u : 0, back, v, node.out(shapes.merge ? 0 : 1).data<T>());
}

void BidirectionalRnnKernel::invoke(const Node& node, const Shapes& shapes) const {
  return shapes.forward.spec.dtype == FBX_F64 ? Run<double>(node, shapes) : Run<float>(node, shapes);
}

}  // namespace fusebox::rnn
