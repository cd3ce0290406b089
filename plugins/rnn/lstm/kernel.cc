// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm/kernel.h"

#include <algorithm>

#include "plugins/rnn/cell/batch_rows.h"
#include "plugins/rnn/cell/state_memory.h"
#include "plugins/rnn/lstm/hybrid.h"
#include "plugins/rnn/lstm/integer.h"
#include "plugins/rnn/lstm/packed.h"
#include "plugins/rnn/lstm/reference.h"

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

template <class T>
LstmBuffers<T> BuffersOf(const Node& node) {
  LstmBuffers<T> buffers;
  for (uint32_t i = 0; i < node.in_count(); ++i)
    buffers.operands[i] = node.has_in(i) ? node.in(i).data<const T>() : nullptr;
  buffers.output = node.out(0).data<T>();
  buffers.output_state = StateMemory<T>(node, kOutputState, 1);
  buffers.cell_state = StateMemory<T>(node, kCellState, 2);
  return buffers;
}

template <class T>
void InvokeReference(const Node& node, const LstmOps::Shapes& shapes) {
  const LstmBuffers<T> buffers = BuffersOf<T>(node);
  ForRows(node, shapes.spec.batch, shapes.threads, node.scratch<std::byte>(shapes.scratch),
          ReferenceScratch(shapes.spec) * sizeof(T), [&](int64_t begin, int64_t end, std::byte* scratch) {
            RunReference<T>(shapes.spec, buffers, begin, end, reinterpret_cast<T*>(scratch));
          });
}

void CheckQuantized(const LstmSpec& spec, const Node& node) {
  if (spec.arithmetic == Arithmetic::kHybrid) HybridLstm::Check(spec, node);
  if (spec.arithmetic == Arithmetic::kInteger) IntegerLstm::Check(spec, node);
}

}  // namespace

void LstmOps::supports(const Node& node) {
  const LstmSpec spec(node);
  if (node.out_count() != 3 && (node.out_count() != 1 || spec.states_are_values))
    throw Reject{"ARITY", "has " + std::to_string(node.out_count()) + " results, expected 1, and 2 states"};
  CheckQuantized(spec, node);
}

void LstmOps::infer(const Node& node, Infer& out) {
  const LstmSpec spec = ParseForUse(node);
  if (spec.one_step) {
    out.set(0, spec.dtype, {spec.batch, spec.outputs});
  } else if (spec.time_major) {
    out.set(0, spec.dtype, {spec.steps, spec.batch, spec.outputs});
  } else {
    out.set(0, spec.dtype, {spec.batch, spec.steps, spec.outputs});
  }
  if (spec.states_are_values) {
    out.set(1, spec.dtype, {spec.batch, spec.outputs});
    return out.set(2, spec.dtype, {spec.batch, spec.cells});
  }
  if (node.out_count() > 1) out.like(1, node.in(kOutputState));
  if (node.out_count() > 2) out.like(2, node.in(kCellState));
}

LstmOps::LstmOps(const Node& node) {
  const LstmSpec spec = ParseForUse(node);
  if (spec.arithmetic == Arithmetic::kHybrid) {
    hybrid_ = std::make_unique<const HybridLstm>(spec, node);
  } else if (spec.arithmetic == Arithmetic::kInteger) {
    integer_ = std::make_unique<const IntegerLstm>(spec, node);
  } else if (PackedLstm::Takes(spec)) {
    packed_ = std::make_unique<const PackedLstm>(spec, node);
  }
}

LstmOps::~LstmOps() = default;

LstmOps::Shapes LstmOps::prepare(const Node& node, Plan& plan) const {
  Shapes shapes{ParseForUse(node), 0, 0, plan.threads()};
  const LstmSpec& spec = shapes.spec;
  const size_t rows = ScratchRows(spec.batch, plan.threads());
  if (packed_) {
    shapes.chunk_steps = packed_->ChunkSteps(spec);
    shapes.scratch = plan.scratch(packed_->ScratchBytes(spec, shapes.chunk_steps));
  } else if (hybrid_) {
    shapes.scratch = plan.scratch(rows * HybridLstm::ScratchBytes(spec));
  } else if (integer_) {
    shapes.scratch = plan.scratch(rows * IntegerLstm::ScratchBytes(spec));
  } else {
    const size_t element = spec.dtype == FBX_F64 ? sizeof(double) : sizeof(float);
    shapes.scratch = plan.scratch(rows * ReferenceScratch(spec) * element);
  }
  return shapes;
}

void LstmOps::invoke(const Node& node, const Shapes& shapes) const {
  const LstmSpec& spec = shapes.spec;
  if (packed_) {
    return packed_->Run({node.host(), spec, node.in(kInput).data<const float>(), node.out(0).data<float>(),
                         StateMemory<float>(node, kOutputState, 1), StateMemory<float>(node, kCellState, 2),
                         node.scratch<float>(shapes.scratch), shapes.chunk_steps, shapes.threads});
  }
  if (hybrid_) {
    const LstmBuffers<float> buffers = BuffersOf<float>(node);
    return ForRows(node, shapes.spec.batch, shapes.threads, node.scratch<std::byte>(shapes.scratch),
                   HybridLstm::ScratchBytes(spec), [&](int64_t begin, int64_t end, std::byte* scratch) {
                     hybrid_->Run(spec, buffers, begin, end, scratch);
                   });
  }
  if (integer_) {
    const IntegerLstm::Buffers buffers{node.in(kInput).data<const int8_t>(), node.out(0).data<int8_t>(),
                                       StateMemory<int8_t>(node, kOutputState, 1),
                                       StateMemory<int16_t>(node, kCellState, 2)};
    return ForRows(node, shapes.spec.batch, shapes.threads, node.scratch<std::byte>(shapes.scratch),
                   IntegerLstm::ScratchBytes(spec), [&](int64_t begin, int64_t end, std::byte* scratch) {
                     integer_->Run(spec, buffers, begin, end, scratch);
                   });
  }
  return spec.dtype == FBX_F64 ? InvokeReference<double>(node, shapes) : InvokeReference<float>(node, shapes);
}

}  // namespace fusebox::rnn
