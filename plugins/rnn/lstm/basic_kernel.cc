// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm/basic_kernel.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "plugins/rnn/cell/operand_checks.h"

namespace fusebox::rnn {
namespace {

using common::Sigmoid;

enum Operand : uint32_t { kX, kH, kWeights, kBias, kC, kOperands };
enum Result : uint32_t { kNextH, kNextC, kConcatenated, kSums, kResults };

void CheckOperands(const Node& node) {
  RequireCount(node.in_count(), kOperands, "operands");
  RequireCount(node.out_count(), kResults, "results");
  const fbx_dtype dtype = FloatInput(node);
  for (uint32_t i = 0; i < kOperands; ++i) RequireOperand(node, i, i == kBias ? 1 : 2, dtype);
}

void CheckOptions(const Node& node) {
  if (node.attrs().s("kernel_type", "FULL") != "BASIC")
    throw Reject{"ATTR", "is not BASIC", "attr kernel_type"};
  if (node.attrs().s("fused_activation_function", "NONE") != "TANH")
    throw Reject{"ATTR", "is not TANH", "attr fused_activation_function"};
  for (const char* clip : {"cell_clip", "proj_clip"}) {
    if (node.attrs().f64(clip, 0) != 0)
      throw Reject{"ATTR", "is set, but a basic cell does not clip", std::string("attr ") + clip};
  }
}

struct Sizes {
  explicit Sizes(const Node& node) {
    CheckOptions(node);
    CheckOperands(node);
    for (const uint32_t i : {kX, kH, kC}) FitSize(node, i, 0, &batch);
    FitSize(node, kX, 1, &inputs);
    for (const uint32_t i : {kH, kC}) FitSize(node, i, 1, &units);
    int64_t rows = units < 0 ? -1 : 4 * units;
    int64_t columns = width();
    FitSize(node, kBias, 0, &rows);
    FitSize(node, kWeights, 0, &rows);
    FitSize(node, kWeights, 1, &columns);
  }
  int64_t width() const { return inputs < 0 || units < 0 ? -1 : inputs + units; }

  int64_t batch = -1;
  int64_t inputs = -1;
  int64_t units = -1;
};

template <class T>
void Step(const Node& node, const Sizes& s) {
  const int64_t width = s.width();
  const T* const weights = node.in(kWeights).data<const T>();
  const T* const bias = node.in(kBias).data<const T>();
  for (int64_t row = 0; row < s.batch; ++row) {
    T* const both = node.out(kConcatenated).data<T>() + row * width;
    std::copy_n(node.in(kX).data<const T>() + row * s.inputs, s.inputs, both);
    std::copy_n(node.in(kH).data<const T>() + row * s.units, s.units, both + s.inputs);
    T* const sums = node.out(kSums).data<T>() + row * 4 * s.units;
    for (int64_t i = 0; i < 4 * s.units; ++i) {
      T sum = bias[i];
      for (int64_t k = 0; k < width; ++k) sum += weights[i * width + k] * both[k];
      sums[i] = sum;
    }
    const T* const c = node.in(kC).data<const T>() + row * s.units;
    T* const next_c = node.out(kNextC).data<T>() + row * s.units;
    T* const next_h = node.out(kNextH).data<T>() + row * s.units;
    for (int64_t i = 0; i < s.units; ++i) {
      const T in = Sigmoid(sums[i]) * std::tanh(sums[s.units + i]);
      next_c[i] = Sigmoid(sums[2 * s.units + i]) * c[i] + in;
      next_h[i] = Sigmoid(sums[3 * s.units + i]) * std::tanh(next_c[i]);
    }
  }
}

}  // namespace

void BasicLstmKernel::supports(const Node& node) { Sizes{node}; }

void BasicLstmKernel::infer(const Node& node, Infer& out) {
  const auto s = ParseSpec<Sizes>(node);
  const fbx_dtype dtype = node.in(kX).dtype();
  out.set(kNextH, dtype, {s.batch, s.units});
  out.set(kNextC, dtype, {s.batch, s.units});
  out.set(kConcatenated, dtype, {s.batch, s.width()});
  out.set(kSums, dtype, {s.batch, s.units < 0 ? -1 : 4 * s.units});
}

void BasicLstmKernel::invoke(const Node& node) const {
  const Sizes sizes(node);
  node.in(kX).dtype() == FBX_F64 ? Step<double>(node, sizes) : Step<float>(node, sizes);
}

}  // namespace fusebox::rnn
