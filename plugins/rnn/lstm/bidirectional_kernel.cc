// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm/bidirectional_kernel.h"

#include <algorithm>

#include "plugins/rnn/cell/batch_rows.h"
#include "plugins/rnn/cell/directions.h"
#include "plugins/rnn/cell/operand_checks.h"
#include "plugins/rnn/cell/state_memory.h"
#include "plugins/rnn/lstm/hybrid.h"
#include "plugins/rnn/lstm/packed.h"
#include "plugins/rnn/lstm/reference.h"

namespace fusebox::rnn {
void BidirectionalKernel::supports(const Node& node) {
  const BidirectionalSpec spec(node);
  for (const bool backward : {false, true}) {
    const LstmSpec& cell = backward ? spec.backward : spec.forward;
    if (cell.arithmetic == Arithmetic::kHybrid) HybridLstm::Check(cell, DirectionNode(node, backward).node());
  }
}

void BidirectionalKernel::infer(const Node& node, Infer& out) {
  const auto spec = ParseSpec<BidirectionalSpec>(node);
  const LstmSpec& f = spec.forward;
  const auto set = [&](uint32_t result, int64_t width) {
    if (f.time_major) {
      out.set(result, f.dtype, {f.steps, f.batch, width});
    } else {
      out.set(result, f.dtype, {f.batch, f.steps, width});
    }
  };
  const int64_t ahead = f.outputs, back = spec.backward.outputs;
  uint32_t next = 0;
  if (spec.merge) {
    set(next++, ahead < 0 || back < 0 ? -1 : ahead + back);
  } else {
    set(next++, ahead);
    set(next++, back);
  }
  for (uint32_t state = 0; state < 4 && next < node.out_count(); ++state, ++next)
    out.like(next, node.in(kForwardStates + state));
}

BidirectionalKernel::Cell BidirectionalKernel::MakeCell(const Node& node, const LstmSpec& spec,
                                                        bool backward) {
  const DirectionNode direction(node, backward);
  Cell cell;
  if (spec.arithmetic == Arithmetic::kHybrid)
    cell.hybrid = std::make_unique<const HybridLstm>(spec, direction.node());
  else if (PackedLstm::Takes(spec)) cell.packed = std::make_unique<const PackedLstm>(spec, direction.node());
  return cell;
}

size_t BidirectionalKernel::ScratchBytes(const Cell& cell, const LstmSpec& spec, size_t chunk,
                                         uint32_t threads) {
  if (cell.packed) return cell.packed->ScratchBytes(spec, chunk);
  const size_t rows = ScratchRows(spec.batch, threads);
  if (cell.hybrid) return rows * HybridLstm::ScratchBytes(spec);
  return rows * ReferenceScratch(spec) * (spec.dtype == FBX_F64 ? sizeof(double) : sizeof(float));
}

BidirectionalKernel::BidirectionalKernel(const Node& node) {
  const auto spec = ParseSpec<BidirectionalSpec>(node);
  forward_ = MakeCell(node, spec.forward, false);
  backward_ = MakeCell(node, spec.backward, true);
}

BidirectionalKernel::~BidirectionalKernel() = default;

BidirectionalKernel::Shapes BidirectionalKernel::prepare(const Node& node, Plan& plan) const {
  Shapes shapes{ParseSpec<BidirectionalSpec>(node), 0, 0, 0, 0, 0, 0, plan.threads()};
  const LstmSpec &f = shapes.spec.forward, &b = shapes.spec.backward;
  if (forward_.packed) shapes.forward_chunk = forward_.packed->ChunkSteps(f);
  if (backward_.packed) shapes.backward_chunk = backward_.packed->ChunkSteps(b);
  shapes.cells = plan.scratch(std::max(ScratchBytes(forward_, f, shapes.forward_chunk, plan.threads()),
                                       ScratchBytes(backward_, b, shapes.backward_chunk, plan.threads())));
  const size_t element = f.dtype == FBX_F64 ? sizeof(double) : sizeof(float);
  const size_t rows = static_cast<size_t>(f.batch) * static_cast<size_t>(f.steps) * element;
  shapes.reversed = plan.scratch(rows * static_cast<size_t>(f.inputs));
  shapes.forward = shapes.spec.merge ? plan.scratch(rows * static_cast<size_t>(f.outputs)) : 0;
  shapes.backward = plan.scratch(rows * static_cast<size_t>(b.outputs));
  return shapes;
}

template <class T>
void BidirectionalKernel::RunDirection(const Node& node, const Shapes& shapes, bool backward, const T* x,
                                       T* output) const {
  const LstmSpec& spec = backward ? shapes.spec.backward : shapes.spec.forward;
  const uint32_t states = backward ? kBackwardStates : kForwardStates;
  const uint32_t result = (shapes.spec.merge ? 1 : 2) + (states - kForwardStates);
  T* const h = StateMemory<T>(node, states, result);
  T* const c = StateMemory<T>(node, states + 1, result + 1);
  const Cell& cell = backward ? backward_ : forward_;
  if constexpr (std::is_same_v<T, float>) {
    const size_t chunk = backward ? shapes.backward_chunk : shapes.forward_chunk;
    if (cell.packed)
      return cell.packed->Run(
          {node.host(), spec, x, output, h, c, node.scratch<T>(shapes.cells), chunk, shapes.threads});
  }
  const DirectionNode direction(node, backward);
  const Node operands = direction.node();
  LstmBuffers<T> buffers;
  for (uint32_t i = 0; i < operands.in_count(); ++i) {
    const bool stored = operands.has_in(i) && operands.in(i).dtype() == FBX_I8;  // read by the cell itself
    buffers.operands[i] = operands.has_in(i) && !stored ? operands.in(i).data<const T>() : nullptr;
  }
  buffers.operands[kInput] = x;
  buffers.output = output;
  buffers.output_state = h;
  buffers.cell_state = c;
  auto* const scratch = node.scratch<std::byte>(shapes.cells);
  if constexpr (std::is_same_v<T, float>) {
    if (cell.hybrid)
      return ForRows(node, spec.batch, shapes.threads, scratch, HybridLstm::ScratchBytes(spec),
                     [&](int64_t begin, int64_t end, std::byte* part) {
                       cell.hybrid->Run(spec, buffers, begin, end, part);
                     });
  }
  ForRows(node, spec.batch, shapes.threads, scratch, ReferenceScratch(spec) * sizeof(T),
          [&](int64_t begin, int64_t end, std::byte* part) {
            RunReference<T>(spec, buffers, begin, end, reinterpret_cast<T*>(part));
          });
}

template <class T>
void BidirectionalKernel::Run(const Node& node, const Shapes& shapes) const {
  const LstmSpec& spec = shapes.spec.forward;
  const T* const x = node.in(kInput).data<const T>();
  T* const reversed = node.scratch<T>(shapes.reversed);
  T* const backward = node.scratch<T>(shapes.backward);
  T* const forward = shapes.spec.merge ? node.scratch<T>(shapes.forward) : node.out(0).data<T>();
  const size_t n = static_cast<size_t>(spec.inputs), ahead = static_cast<size_t>(spec.outputs);
  const size_t back = static_cast<size_t>(shapes.spec.backward.outputs);
  ForPlaces(spec, n, [&](size_t at, size_t from) { std::copy_n(x + from * n, n, reversed + at * n); });
  RunDirection<T>(node, shapes, false, x, forward);
  RunDirection<T>(node, shapes, true, reversed, backward);
  const bool merge = shapes.spec.merge;
  JoinDirections(spec, forward, merge ? ahead : 0, backward, back, node.out(merge ? 0 : 1).data<T>());
}

void BidirectionalKernel::invoke(const Node& node, const Shapes& shapes) const {
  return shapes.spec.forward.dtype == FBX_F64 ? Run<double>(node, shapes) : Run<float>(node, shapes);
}

}  // namespace fusebox::rnn
