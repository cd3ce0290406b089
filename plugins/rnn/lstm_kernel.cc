// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm_kernel.h"

#include <algorithm>
#include <cstring>

#include "plugins/rnn/lstm_packed.h"
#include "plugins/rnn/lstm_reference.h"

namespace fusebox::rnn {
namespace {

// After supports has taken the node, what does not fit is the model's fault at these shapes.
LstmSpec ParseForUse(const Node& node) {
  try {
    return LstmSpec(node);
  } catch (const Reject& r) {
    throw Error{FBX_INVALID, r.why, r.subject};
  }
}

size_t ScratchRows(const LstmSpec& spec, uint32_t threads) {
  return static_cast<size_t>(std::clamp<int64_t>(spec.batch, 1, std::max<uint32_t>(threads, 1)));
}

// The memory of a state: its final-state result, with the initial value in it. Hosts let the two share memory.
template <class T>
T* State(const Node& node, uint32_t operand, uint32_t result) {
  if (result >= node.out_count() || !node.out(result).present()) return node.in(operand).data<T>();
  T* const final_state = node.out(result).data<T>();
  const Tensor initial = node.in(operand);
  if (final_state != initial.data<T>() && initial.count() > 0) {
    std::memcpy(final_state, initial.data<T>(), static_cast<size_t>(initial.count()) * sizeof(T));
  }
  return final_state;
}

template <class T>
void InvokeReference(const Node& node, const LstmKernel::Shapes& shapes) {
  const LstmSpec& spec = shapes.spec;
  LstmBuffers<T> buffers;
  for (uint32_t i = 0; i < node.in_count(); ++i)
    buffers.operands[i] = node.has_in(i) ? node.in(i).data<const T>() : nullptr;
  buffers.output = node.out(0).data<T>();
  buffers.output_state = State<T>(node, kOutputState, 1);
  buffers.cell_state = State<T>(node, kCellState, 2);
  T* const scratch = node.scratch<T>(shapes.scratch);
  const size_t rows = ScratchRows(spec, shapes.threads), batch = static_cast<size_t>(spec.batch);
  parallel_for(node.host(), batch, std::max<size_t>((batch + rows - 1) / rows, 1),
               [&](size_t begin, size_t end, uint32_t worker) {
                 RunReference<T>(spec, buffers, static_cast<int64_t>(begin), static_cast<int64_t>(end),
                                 scratch + worker * ReferenceScratch(spec));
               });
}

}  // namespace

void LstmKernel::supports(const Node& node) { LstmSpec{node}; }

void LstmKernel::infer(const Node& node, Infer& out) {
  const LstmSpec spec = ParseForUse(node);
  if (spec.one_step) {
    out.set(0, spec.dtype, {spec.batch, spec.outputs});
  } else if (spec.time_major) {
    out.set(0, spec.dtype, {spec.steps, spec.batch, spec.outputs});
  } else {
    out.set(0, spec.dtype, {spec.batch, spec.steps, spec.outputs});
  }
  if (node.out_count() > 1) out.like(1, node.in(kOutputState));
  if (node.out_count() > 2) out.like(2, node.in(kCellState));
}

LstmKernel::LstmKernel(const Node& node) {
  const LstmSpec spec = ParseForUse(node);
  if (PackedLstm::Takes(spec)) packed_ = std::make_unique<const PackedLstm>(spec, node);
}

LstmKernel::~LstmKernel() = default;

LstmKernel::Shapes LstmKernel::prepare(const Node& node, Plan& plan) const {
  Shapes shapes{ParseForUse(node), 0, 0, plan.threads()};
  const LstmSpec& spec = shapes.spec;
  if (packed_) {
    shapes.chunk_steps = packed_->ChunkSteps(spec);
    shapes.scratch = plan.scratch(packed_->ScratchBytes(spec, shapes.chunk_steps));
  } else {
    const size_t element = spec.dtype == FBX_F64 ? sizeof(double) : sizeof(float);
    shapes.scratch = plan.scratch(ScratchRows(spec, plan.threads()) * ReferenceScratch(spec) * element);
  }
  return shapes;
}

void LstmKernel::invoke(const Node& node, const Shapes& shapes) const {
  if (!packed_)
    return shapes.spec.dtype == FBX_F64 ? InvokeReference<double>(node, shapes)
                                        : InvokeReference<float>(node, shapes);
  packed_->Run({node.host(), shapes.spec, node.in(kInput).data<const float>(), node.out(0).data<float>(),
                State<float>(node, kOutputState, 1), State<float>(node, kCellState, 2),
                node.scratch<float>(shapes.scratch), shapes.chunk_steps, shapes.threads});
}

}  // namespace fusebox::rnn
