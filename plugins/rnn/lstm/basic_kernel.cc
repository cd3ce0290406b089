// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm/basic_kernel.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace fusebox::rnn {
namespace {

enum Operand : uint32_t { kX, kH, kWeights, kBias, kC, kOperands };
enum Result : uint32_t { kNextH, kNextC, kConcatenated, kSums, kResults };

struct Sizes {
  int64_t batch = -1, inputs = -1, units = -1;
};

std::string Subject(uint32_t operand) { return "operand " + std::to_string(operand); }

void Fit(const Node& node, uint32_t operand, int dimension, int64_t* size) {
  const int64_t is = node.in(operand).dim(dimension);
  if (is < 0) return;
  if (*size < 0) *size = is;
  if (*size == is) return;
  throw Reject{"SHAPE",
               "dimension " + std::to_string(dimension) + " is " + std::to_string(is) + ", expected " +
                   std::to_string(*size),
               Subject(operand)};
}

void CheckOperands(const Node& node) {
  if (node.in_count() != kOperands)
    throw Reject{"ARITY", "has " + std::to_string(node.in_count()) + " operands, expected 5"};
  if (node.out_count() != kResults)
    throw Reject{"ARITY", "has " + std::to_string(node.out_count()) + " results, expected 4"};
  const fbx_dtype dtype = node.in(kX).dtype();
  for (uint32_t i = 0; i < kOperands; ++i) {
    const Tensor t = node.in(i);
    if (!t.present()) throw Reject{"OPERANDS", "is absent", Subject(i)};
    if (t.dtype() != dtype || (dtype != FBX_F32 && dtype != FBX_F64))
      throw Reject{"DTYPE", std::string("is ") + dtype_name(t.dtype()) + ", only f32 and f64 are done",
                   Subject(i)};
    if (t.rank() >= 0 && t.rank() != (i == kBias ? 1 : 2))
      throw Reject{"RANK", "has rank " + std::to_string(t.rank()), Subject(i)};
  }
}

void CheckOptions(const Node& node) {
  if (node.attrs().s("kernel_type", "FULL") != "BASIC")
    throw Reject{"ATTR", "is not BASIC", "attr kernel_type"};
  if (node.attrs().s("fused_activation_function", "NONE") != "TANH")
    throw Reject{"ATTR", "is not TANH", "attr fused_activation_function"};
  for (const char* clip : {"cell_clip", "proj_clip"}) {
    if (node.attrs().f64(clip, 0) != 0)
      throw Reject{"ATTR", "is there, but a basic cell does not clip", std::string("attr ") + clip};
  }
}

Sizes Parse(const Node& node) {
  CheckOptions(node);
  CheckOperands(node);
  Sizes s;
  const auto ranked = [&](uint32_t i) { return node.in(i).rank() >= 0; };
  for (const uint32_t i : {kX, kH, kC}) {
    if (ranked(i)) Fit(node, i, 0, &s.batch);
  }
  if (ranked(kX)) Fit(node, kX, 1, &s.inputs);
  for (const uint32_t i : {kH, kC}) {
    if (ranked(i)) Fit(node, i, 1, &s.units);
  }
  int64_t rows = s.units < 0 ? -1 : 4 * s.units,
          columns = s.units < 0 || s.inputs < 0 ? -1 : s.inputs + s.units;
  if (ranked(kBias)) Fit(node, kBias, 0, &rows);
  if (!ranked(kWeights)) return s;
  Fit(node, kWeights, 0, &rows);
  Fit(node, kWeights, 1, &columns);
  return s;
}

template <class T>
T Sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

template <class T>
void Step(const Node& node, const Sizes& s) {
  const int64_t width = s.inputs + s.units;
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

void BasicLstmKernel::supports(const Node& node) { Parse(node); }

void BasicLstmKernel::infer(const Node& node, Infer& out) {
  try {
    const Sizes s = Parse(node);
    const fbx_dtype dtype = node.in(kX).dtype();
    out.set(kNextH, dtype, {s.batch, s.units});
    out.set(kNextC, dtype, {s.batch, s.units});
    out.set(kConcatenated, dtype, {s.batch, s.inputs < 0 || s.units < 0 ? -1 : s.inputs + s.units});
    out.set(kSums, dtype, {s.batch, s.units < 0 ? -1 : 4 * s.units});
  } catch (const Reject& r) {
    throw Error{FBX_INVALID, r.why, r.subject};
  }
}

void BasicLstmKernel::invoke(const Node& node) const {
  const Sizes sizes = Parse(node);
  node.in(kX).dtype() == FBX_F64 ? Step<double>(node, sizes) : Step<float>(node, sizes);
}

}  // namespace fusebox::rnn
