// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/gru/kernel.h"

#include <algorithm>

#include "plugins/rnn/cell/batch_rows.h"
#include "plugins/rnn/cell/operand_checks.h"
#include "plugins/rnn/gru/hybrid.h"
#include "plugins/rnn/gru/packed.h"
#include "plugins/rnn/gru/reference.h"

namespace fusebox::rnn {
namespace {

template <class T>
GruBuffers<T> BuffersOf(const Node& node) {
  GruBuffers<T> buffers;
  for (uint32_t i = 0; i < kGruOperands; ++i)
    buffers.operands[i] = node.has_in(i) ? node.in(i).data<const T>() : nullptr;
  buffers.output = node.out(0).data<T>();
  buffers.state = node.out(1).data<T>();
  std::copy_n(buffers.operands[kGruState], node.in(kGruState).count(), buffers.state);
  return buffers;
}

template <class T>
void InvokeReference(const Node& node, const GruKernel::Shapes& shapes) {
  const auto buffers = BuffersOf<T>(node);
  ForRows(node, shapes.spec.batch, shapes.threads, node.scratch<std::byte>(shapes.scratch),
          GruReferenceScratch(shapes.spec) * sizeof(T), [&](int64_t begin, int64_t end, std::byte* scratch) {
            RunGruReference<T>(shapes.spec, buffers, begin, end, reinterpret_cast<T*>(scratch));
          });
}

}  // namespace

void GruKernel::supports(const Node& node) {
  GruSpec{node};
  if (node.out_count() != 2)
    throw Reject{"ARITY", "has " + std::to_string(node.out_count()) + " results, expected 2"};
}

void GruKernel::infer(const Node& node, Infer& out) {
  const GruSpec spec = ParseSpec<GruSpec>(node);
  if (spec.time_major) {
    out.set(0, spec.dtype, {spec.steps, spec.batch, spec.cells});
  } else {
    out.set(0, spec.dtype, {spec.batch, spec.steps, spec.cells});
  }
  out.set(1, spec.dtype, {spec.batch, spec.cells});
}

GruKernel::GruKernel(const Node& node) {
  const GruSpec spec = ParseSpec<GruSpec>(node);
  if (spec.hybrid) hybrid_ = std::make_unique<const HybridGru>(spec, node);
  else if (PackedGru::Takes(spec)) packed_ = std::make_unique<const PackedGru>(spec, node);
}

GruKernel::~GruKernel() = default;

GruKernel::Shapes GruKernel::prepare(const Node& node, Plan& plan) const {
  Shapes shapes{ParseSpec<GruSpec>(node), 0, 0, plan.threads()};
  const GruSpec& spec = shapes.spec;
  if (packed_) {
    shapes.chunk_steps = packed_->ChunkSteps(spec);
    shapes.scratch = plan.scratch(packed_->ScratchBytes(spec, shapes.chunk_steps));
  } else if (hybrid_) {
    shapes.scratch = plan.scratch(ScratchRows(spec.batch, plan.threads()) * hybrid_->ScratchBytes(spec));
  } else {
    const size_t element = spec.dtype == FBX_F64 ? sizeof(double) : sizeof(float);
    shapes.scratch =
        plan.scratch(ScratchRows(spec.batch, plan.threads()) * GruReferenceScratch(spec) * element);
  }
  return shapes;
}

void GruKernel::invoke(const Node& node, const Shapes& shapes) const {
  const GruSpec& spec = shapes.spec;
  if (hybrid_) {
    const auto buffers = BuffersOf<float>(node);
    return ForRows(node, spec.batch, shapes.threads, node.scratch<std::byte>(shapes.scratch),
                   hybrid_->ScratchBytes(spec), [&](int64_t begin, int64_t end, std::byte* scratch) {
                     hybrid_->Run(spec, buffers, begin, end, scratch);
                   });
  }
  if (!packed_)
    return spec.dtype == FBX_F64 ? InvokeReference<double>(node, shapes)
                                 : InvokeReference<float>(node, shapes);
  const Sequence sequence{static_cast<size_t>(spec.batch),
                          static_cast<size_t>(spec.steps),
                          static_cast<size_t>(spec.inputs),
                          static_cast<size_t>(spec.cells),
                          spec.time_major,
                          node.in(kGruInput).data<const float>(),
                          node.out(0).data<float>(),
                          node.in(kGruState).data<const float>(),
                          node.out(1).data<float>(),
                          shapes.chunk_steps};
  packed_->Run({node.host(), sequence, node.scratch<float>(shapes.scratch), shapes.threads});
}

}  // namespace fusebox::rnn
