// SPDX-License-Identifier: Apache-2.0
// The shared parts of the kernels of all sequence ops: sizes, state, the loop over rows and steps, and the
// choice of an engine.
//
// A node runs on one engine (packed f32, hybrid, integer or reference), chosen once from the node's spec.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/cell/operand_checks.h"

namespace fusebox::rnn {

using namespace sdk;

// Sizes of a sequence op. Operand 0, the input, is [batch, steps, inputs], with time_major
// [steps, batch, inputs], with one_step [batch, inputs]. Unknown sizes are -1.
struct SequenceSpec {
  int64_t batch = -1;
  int64_t steps = -1;
  int64_t inputs = -1;
  int64_t cells = -1;
  bool one_step = false;
  bool time_major = false;
  fbx_dtype dtype = FBX_F32;  // of input and output

  void FitInput(const Node& node) {
    if (one_step) steps = 1;
    FitSize(node, 0, time_major ? 1 : 0, &batch);
    if (!one_step) FitSize(node, 0, time_major ? 0 : 1, &steps);
    FitSize(node, 0, one_step ? 1 : 2, &inputs);
  }
  size_t element_size() const { return dtype == FBX_F64 ? sizeof(double) : sizeof(float); }
  // Index of the vector of a row at a step.
  int64_t at(int64_t row, int64_t step) const { return time_major ? step * batch + row : row * steps + step; }
};

// Result `result` is a sequence laid out like the input, of vectors of `width`.
inline void SetSequence(Infer& out, uint32_t result, const SequenceSpec& s, int64_t width) {
  if (s.one_step) out.set(result, s.dtype, {s.batch, width});
  else if (s.time_major) out.set(result, s.dtype, {s.steps, s.batch, width});
  else out.set(result, s.dtype, {s.batch, s.steps, width});
}

// The memory of a final state, initialized with the state operand. It is the memory of the result if the node
// has one (hosts may let it share the operand's), otherwise the memory of the operand.
template <class T>
T* StateMemory(const Node& node, uint32_t operand, uint32_t result) {
  if (result >= node.out_count() || !node.out(result).present()) return node.in(operand).data<T>();
  T* const final_state = node.out(result).data<T>();
  const Tensor initial = node.in(operand);
  if (final_state != initial.data<T>() && initial.count() > 0)
    std::memcpy(final_state, initial.data<T>(), static_cast<size_t>(initial.count()) * sizeof(T));
  return final_state;
}

// The number of scratch parts that ForRows uses.
inline size_t ScratchParts(int64_t batch, uint32_t threads) {
  return static_cast<size_t>(std::clamp<int64_t>(batch, 1, std::max<uint32_t>(threads, 1)));
}

// Calls run(begin, end, scratch) for groups of rows on the host's threads. Each group has its own part of
// scratch, of `bytes` bytes. Scratch belongs to the group, not to the thread: any thread may run any group,
// and there may be more threads than groups.
template <class Run>
void ForRows(const Node& node, int64_t batch, uint32_t threads, std::byte* scratch, size_t bytes,
             const Run& run) {
  const auto parts = static_cast<int64_t>(ScratchParts(batch, threads));
  const int64_t rows = std::max<int64_t>((batch + parts - 1) / parts, 1);
  parallel_for(node.host(), static_cast<size_t>(parts), 1, [&](size_t first, size_t last, uint32_t) {
    for (size_t part = first; part < last; ++part) {
      const int64_t begin = static_cast<int64_t>(part) * rows;
      const int64_t end = std::min(begin + rows, batch);
      if (begin < end) run(begin, end, scratch + part * bytes);
    }
  });
}

// Runs the steps of one row in order: step(x, h) updates the state h, which is then copied to the output.
template <class T, class Step>
void RunRow(const SequenceSpec& s, int64_t row, const T* input, T* h, int64_t width, T* output,
            const Step& step) {
  for (int64_t t = 0; t < s.steps; ++t) {
    const int64_t at = s.at(row, t);
    step(input + at * s.inputs, h);
    std::copy_n(h, width, output + at * width);
  }
}

// Divides scratch into buffers that are aligned like it.
class ScratchReader {
 public:
  static constexpr size_t kAlignment = 64;
  static size_t Bytes(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  explicit ScratchReader(std::byte* scratch) : at_(scratch) {}
  template <class T>
  T* Take(size_t count) {
    T* const values = reinterpret_cast<T*>(at_);
    at_ += Bytes(count * sizeof(T));
    return values;
  }

 private:
  std::byte* at_;
};

// Computes a cell over a sequence. Immutable after construction; any number of runs may be active.
template <class Spec>
class Engine {
 public:
  virtual ~Engine() = default;
  virtual size_t ScratchBytes(const Spec& spec, uint32_t threads) const = 0;
  virtual void Run(const Node& node, const Spec& spec, std::byte* scratch, uint32_t threads) const = 0;
};

// An engine that runs rows independently. `Buffers` has the pointers of one run; its rows may run in
// parallel.
template <class Spec, class Buffers>
class RowEngine : public Engine<Spec> {
 public:
  size_t ScratchBytes(const Spec& spec, uint32_t threads) const final {
    return ScratchParts(spec.batch, threads) * PartBytes(spec);
  }
  void Run(const Node& node, const Spec& spec, std::byte* scratch, uint32_t threads) const final {
    PackOnce(node);
    const Buffers buffers(node);
    ForRows(node, spec.batch, threads, scratch, PartBytes(spec),
            [&](int64_t begin, int64_t end, std::byte* part) { RunRows(spec, buffers, begin, end, part); });
  }

 private:
  // At the start of each run.
  virtual void PackOnce(const Node&) const {}
  virtual size_t PartBytes(const Spec& spec) const = 0;
  virtual void RunRows(const Spec& spec, const Buffers& buffers, int64_t begin, int64_t end,
                       std::byte* scratch) const = 0;
};

// The members of a kernel that depend on the engine only. MakeEngine(spec, node) is found by its Spec.
template <class Spec>
class SequenceKernel {
 public:
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct Shapes {
    Spec spec;
    uint32_t scratch;  // slot
    uint32_t threads;
  };

  explicit SequenceKernel(const Node& node) : engine_(MakeEngine(ParseSpec<Spec>(node), node)) {}
  Shapes prepare(const Node& node, Plan& plan) const {
    const auto spec = ParseSpec<Spec>(node);
    return {spec, plan.scratch(engine_->ScratchBytes(spec, plan.threads())), plan.threads()};
  }
  void invoke(const Node& node, const Shapes& shapes) const {
    engine_->Run(node, shapes.spec, node.scratch<std::byte>(shapes.scratch), shapes.threads);
  }

 private:
  std::unique_ptr<const Engine<Spec>> engine_;
};

}  // namespace fusebox::rnn
