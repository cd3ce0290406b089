// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/rnn/kernel.h"

#include <algorithm>

#include "plugins/rnn/cell/hybrid_product.h"
#include "plugins/rnn/cell/operand_checks.h"
#include "plugins/rnn/cell/state_memory.h"
#include "plugins/rnn/rnn/packed.h"

namespace fusebox::rnn {
namespace {

// All steps of one row, as the definition has it.
template <class T>
void RunRow(const Node& node, const RnnSpec& spec, int64_t row, T* state) {
  const T* before = state;
  const T* const w = node.in(kRnnWeights).data<const T>();
  const T* const r = node.in(kRnnRecurrent).data<const T>();
  const T* const bias = node.in(kRnnBias).data<const T>();
  for (int64_t step = 0; step < spec.steps; ++step) {
    const int64_t at = spec.time_major ? step * spec.batch + row : row * spec.steps + step;
    const T* const x = node.in(kRnnInput).data<const T>() + at * spec.inputs;
    T* const out = node.out(0).data<T>() + at * spec.cells;
    for (int64_t i = 0; i < spec.cells; ++i) {
      T sum = bias[i];
      for (int64_t k = 0; k < spec.inputs; ++k) sum += w[i * spec.inputs + k] * x[k];
      for (int64_t k = 0; k < spec.cells; ++k) sum += r[i * spec.cells + k] * before[k];
      out[i] = Activate(spec.activation, sum);
    }
    before = out;
  }
  if (before != state) std::copy_n(before, spec.cells, state);
}

template <class T>
void InvokeReference(const Node& node, const RnnSpec& spec) {
  T* const state = StateMemory<T>(node, kRnnState, 1);
  parallel_for(node.host(), static_cast<size_t>(spec.batch), 1, [&](size_t begin, size_t end, uint32_t) {
    for (size_t row = begin; row < end; ++row) {
      RunRow<T>(node, spec, static_cast<int64_t>(row), state + static_cast<int64_t>(row) * spec.cells);
    }
  });
}

}  // namespace

struct RnnKernel::Hybrid {
  explicit Hybrid(const Node& node)
      : asymmetric(node.attrs().b("asymmetric_quantize_inputs", false)),
        weights(node.in(kRnnWeights), asymmetric),
        recurrent(node.in(kRnnRecurrent), asymmetric) {}

  // Of one row of the batch.
  static size_t ScratchBytes(const RnnSpec& spec) {
    return HybridBytes(spec.inputs) + HybridBytes(spec.cells);
  }

  bool asymmetric;
  HybridMatrix weights, recurrent;
};

void RnnKernel::supports(const Node& node) { RnnSpec{node}; }

void RnnKernel::infer(const Node& node, Infer& out) {
  const RnnSpec spec = ParseSpec<RnnSpec>(node);
  if (spec.one_step) {
    out.set(0, spec.dtype, {spec.batch, spec.cells});
  } else if (spec.time_major) {
    out.set(0, spec.dtype, {spec.steps, spec.batch, spec.cells});
  } else {
    out.set(0, spec.dtype, {spec.batch, spec.steps, spec.cells});
  }
  if (node.out_count() > 1) out.like(1, node.in(kRnnState));
}

RnnKernel::RnnKernel(const Node& node) {
  const RnnSpec spec = ParseSpec<RnnSpec>(node);
  if (spec.hybrid) hybrid_ = std::make_unique<const Hybrid>(node);
  else if (PackedRnn::Takes(spec)) packed_ = std::make_unique<const PackedRnn>(spec, node);
}

RnnKernel::~RnnKernel() = default;

RnnKernel::Shapes RnnKernel::prepare(const Node& node, Plan& plan) const {
  Shapes shapes{ParseSpec<RnnSpec>(node), 0, 0, plan.threads()};
  if (hybrid_) shapes.scratch = plan.scratch(shapes.threads * Hybrid::ScratchBytes(shapes.spec));
  if (!packed_) return shapes;
  shapes.chunk_steps = packed_->ChunkSteps(shapes.spec);
  shapes.scratch = plan.scratch(packed_->ScratchBytes(shapes.spec, shapes.chunk_steps));
  return shapes;
}

void RnnKernel::RunHybrid(const Node& node, const Shapes& shapes) const {
  const RnnSpec& spec = shapes.spec;
  const float* const bias = node.in(kRnnBias).data<const float>();
  float* const states = StateMemory<float>(node, kRnnState, 1);
  const auto run = [&](size_t begin, size_t end, uint32_t worker) {
    auto* const scratch = node.scratch<int8_t>(shapes.scratch) + worker * Hybrid::ScratchBytes(spec);
    HybridVector x{scratch}, h{scratch + HybridBytes(spec.inputs)};
    for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
      float* const state = states + row * spec.cells;
      for (int64_t step = 0; step < spec.steps; ++step) {
        const int64_t at = spec.time_major ? step * spec.batch + row : row * spec.steps + step;
        float* const out = node.out(0).data<float>() + at * spec.cells;
        x.Quantize(node.in(kRnnInput).data<const float>() + at * spec.inputs, spec.inputs,
                   hybrid_->asymmetric);
        h.Quantize(state, spec.cells, hybrid_->asymmetric);
        std::copy_n(bias, spec.cells, out);
        hybrid_->weights.Multiply(x, true, out);
        hybrid_->recurrent.Multiply(h, true, out);
        BestPanelCode().activate(spec.activation, static_cast<size_t>(spec.cells), out, out);
        std::copy_n(out, spec.cells, state);
      }
    }
  };
  const auto rows = static_cast<size_t>(spec.batch);
  if (thread_count(node.host()) > shapes.threads) return run(0, rows, 0);
  parallel_for(node.host(), rows, 1, run);
}

void RnnKernel::invoke(const Node& node, const Shapes& shapes) const {
  const RnnSpec& spec = shapes.spec;
  if (spec.batch == 0 || spec.cells == 0) return;
  if (hybrid_) return RunHybrid(node, shapes);
  if (!packed_)
    return spec.dtype == FBX_F64 ? InvokeReference<double>(node, spec) : InvokeReference<float>(node, spec);
  float* const state = StateMemory<float>(node, kRnnState, 1);
  const Sequence sequence{static_cast<size_t>(spec.batch),
                          static_cast<size_t>(spec.steps),
                          static_cast<size_t>(spec.inputs),
                          static_cast<size_t>(spec.cells),
                          spec.time_major,
                          node.in(kRnnInput).data<const float>(),
                          node.out(0).data<float>(),
                          state,
                          state,
                          shapes.chunk_steps};
  packed_->Run({node.host(), sequence, node.scratch<float>(shapes.scratch), shapes.threads});
}

}  // namespace fusebox::rnn
