// SPDX-License-Identifier: Apache-2.0
#include "tests/plugins/rnn/lstm_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/plugins/rnn/kernel_case.h"

namespace fusebox::testing {
namespace {

using Vector = std::vector<double>;

std::vector<std::vector<int64_t>> Dims(const LstmCase& l) {
  std::vector<std::vector<int64_t>> dims(24);
  dims[0] = l.time_major ? std::vector<int64_t>{l.steps, l.batch, l.inputs}
                         : std::vector<int64_t>{l.batch, l.steps, l.inputs};
  for (int k = l.cifg ? 1 : 0; k < 4; ++k) {
    dims[1 + k] = {l.cells, l.inputs};
    dims[5 + k] = l.diagonal ? std::vector<int64_t>{l.cells} : std::vector<int64_t>{l.cells, l.width()};
    dims[12 + k] = {l.cells};
    if (l.layer_norm) dims[20 + k] = {l.cells};
    if (l.peephole && k < 3) dims[9 + k] = {l.cells};
  }
  if (l.outputs) dims[16] = {l.outputs, l.cells};
  if (l.projection_bias) dims[17] = {l.outputs};
  dims[18] = {l.batch, l.width()};
  dims[19] = {l.batch, l.cells};
  return dims;
}

size_t Count(const std::vector<int64_t>& dims) {
  size_t n = dims.empty() ? 0 : 1;
  for (const int64_t d : dims) n *= static_cast<size_t>(d);
  return n;
}

double Activate(const std::string& name, double x) {
  if (name == "tanh") return std::tanh(x);
  if (name == "sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "hard_sigmoid") return std::clamp(x / 5 + 0.5, 0.0, 1.0);
  if (name == "hard_sigmoid_of_keras_3") return std::clamp(x / 6 + 0.5, 0.0, 1.0);
  if (name == "relu") return x < 0 ? 0 : x;
  if (name == "relu6") return x < 0 ? 0 : x > 6 ? 6 : x;
  if (name == "TANH") return std::tanh(x);
  if (name == "RELU") return x < 0 ? 0 : x;
  if (name == "RELU6") return x < 0 ? 0 : x > 6 ? 6 : x;
  if (name == "RELU_N1_TO_1") return x < -1 ? -1 : x > 1 ? 1 : x;
  return x;
}

double Clip(double x, double bound) {
  return bound > 0 && x > bound ? bound : bound > 0 && x < -bound ? -bound : x;
}

// sum_j w[row * n + j] * v[j]
double Product(const Vector& w, size_t row, const double* v, size_t n) {
  double sum = 0;
  for (size_t j = 0; j < n; ++j) sum += w[row * n + j] * v[j];
  return sum;
}

Vector GateValues(const LstmCase& l, const std::vector<Vector>& in, int k, const double* x, const double* h,
                  const double* c) {
  const size_t cells = static_cast<size_t>(l.cells);
  Vector sums(cells);
  for (size_t i = 0; i < cells; ++i) {
    sums[i] = Product(in[1 + k], i, x, static_cast<size_t>(l.inputs));
    sums[i] += l.diagonal ? in[5 + k][i] * h[i] : Product(in[5 + k], i, h, static_cast<size_t>(l.width()));
    if (l.peephole && k != 2) sums[i] += in[k == 3 ? 11 : 9 + k][i] * c[i];
  }
  if (l.layer_norm) {
    double mean = 0, square = 0;
    for (const double s : sums)
      mean += s / static_cast<double>(cells), square += s * s / static_cast<double>(cells);
    for (size_t i = 0; i < cells; ++i)
      sums[i] = (sums[i] - mean) / std::sqrt(square - mean * mean + 1e-8) * in[20 + k][i];
  }
  for (size_t i = 0; i < cells; ++i) {
    sums[i] += in[12 + k][i];
    sums[i] = Activate(k == 2 ? l.activation : l.other() ? l.gate_activation : "sigmoid", sums[i]);
  }
  return sums;
}

void Step(const LstmCase& l, const std::vector<Vector>& in, const double* x, double* h, double* c) {
  const size_t cells = static_cast<size_t>(l.cells);
  const Vector forget = GateValues(l, in, 1, x, h, c), candidate = GateValues(l, in, 2, x, h, c);
  Vector input(cells);
  if (l.cifg) {
    for (size_t i = 0; i < cells; ++i) input[i] = 1 - forget[i];
  } else {
    input = GateValues(l, in, 0, x, h, c);
  }
  for (size_t i = 0; i < cells; ++i) c[i] = Clip(forget[i] * c[i] + input[i] * candidate[i], l.cell_clip);
  Vector hidden = GateValues(l, in, 3, x, h, c);
  for (size_t i = 0; i < cells; ++i) hidden[i] *= Activate(l.activation, c[i]);
  for (size_t i = 0; i < static_cast<size_t>(l.width()); ++i) {
    h[i] = !l.outputs ? hidden[i]
                      : Clip(Product(in[16], i, hidden.data(), cells) + (in[17].empty() ? 0 : in[17][i]),
                             l.projection_clip);
  }
}

template <class T>
LstmResult ResultOf(FakeNode& node) {
  const auto all = [&](size_t i) {
    return Vector(node.result(i).data<T>(), node.result(i).data<T>() + node.result(i).count());
  };
  return {all(0), all(1), all(2)};
}

}  // namespace

std::vector<Vector> RandomOperands(const LstmCase& lstm, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Vector> values(24);
  const auto dims = Dims(lstm);
  for (int i = 0; i < 24; ++i) {
    double scale = lstm.weight_scale;
    if (i == 0) scale = lstm.input_scale;
    if (i == 18 || i == 19) scale = lstm.state_scale;
    if (scale == 0 && i != 0 && i < 18)
      scale =
          1.5 / std::sqrt(static_cast<double>(std::max<int64_t>(1, dims[i].empty() ? 1 : dims[i].back())));
    if (i >= 20) scale = 1.5;
    std::uniform_real_distribution<float> uniform(-1,
                                                  1);  // f32, so that every type starts from the same numbers
    values[i].resize(Count(dims[i]));
    for (double& v : values[i]) v = static_cast<float>(uniform(random) * scale);
  }
  return values;
}

LstmResult Definition(const LstmCase& l, const std::vector<Vector>& in) {
  const size_t inputs = static_cast<size_t>(l.inputs), cells = static_cast<size_t>(l.cells),
               width = static_cast<size_t>(l.width());
  const size_t batch = static_cast<size_t>(l.batch), steps = static_cast<size_t>(l.steps);
  LstmResult r{Vector(batch * steps * width), in[18], in[19]};
  for (size_t t = 0; t < steps; ++t) {
    for (size_t b = 0; b < batch; ++b) {
      const size_t at = l.time_major ? t * batch + b : b * steps + t;
      double* const h = r.h.data() + b * width;
      Step(l, in, in[0].data() + at * inputs, h, r.c.data() + b * cells);
      std::copy_n(h, width, r.output.begin() + static_cast<std::ptrdiff_t>(at * width));
    }
  }
  return r;
}

std::vector<FakeTensor> Operands(const LstmCase& lstm, fbx_dtype dtype, const std::vector<Vector>& values) {
  std::vector<FakeTensor> operands(static_cast<size_t>(lstm.operand_count));
  const auto dims = Dims(lstm);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (dims[i].empty()) continue;
    const bool state = i == 18 || i == 19;
    const uint32_t flags = state && !lstm.other()            ? FBX_TENSOR_VARIABLE
                           : state                           ? 0
                           : i != 0 && lstm.constant_weights ? FBX_TENSOR_CONST
                                                             : 0;
    if (dtype == FBX_F64) {
      operands[i] = FakeTensor::Of<double>(dtype, dims[i], values[i], flags);
    } else {
      operands[i] = FakeTensor::Of<float>(dtype, dims[i],
                                          std::vector<float>(values[i].begin(), values[i].end()), flags);
    }
  }
  return operands;
}

std::vector<FakeTensor> Results(const LstmCase& lstm, fbx_dtype dtype,
                                const std::vector<FakeTensor>& operands) {
  std::vector<int64_t> dims = operands[0].dims();
  dims.back() = lstm.width();
  std::vector<FakeTensor> results;
  results.push_back(FakeTensor(dtype, dims).Allocate(dtype == FBX_F64 ? 8 : 4));
  for (const size_t state : {18, 19})
    results.push_back(lstm.other()
                          ? FakeTensor(dtype, operands[state].dims()).Allocate(dtype == FBX_F64 ? 8 : 4)
                          : FakeTensor(dtype, operands[state].dims()).ShareMemoryOf(operands[state]));
  return results;
}

FakeAttrs Attributes(const LstmCase& lstm) {
  if (lstm.other())
    return {{"activation", lstm.activation},
            {"recurrent_activation", lstm.gate_activation},
            {"time_major", lstm.time_major}};
  return {{"fused_activation_function", lstm.activation},
          {"cell_clip", lstm.cell_clip},
          {"proj_clip", lstm.projection_clip},
          {"time_major", lstm.time_major}};
}

const fbx_kernel* LstmKernelOfThePlugin(const LstmCase& lstm) {
  if (lstm.other()) return KernelOfThePlugin("fusebox.lstm");
  const FakeHost host;
  const fbx_plugin* plugin = nullptr;
  if (fusebox_entry_v1.load(host.abi(), &plugin) != FBX_OK)
    throw std::runtime_error("the plugin does not load");
  return plugin->kernels[0];
}

LstmResult RunKernel(const LstmCase& lstm, fbx_dtype dtype, const std::vector<Vector>& values,
                     uint32_t threads) {
  const FakeHost host(threads);
  auto operands = Operands(lstm, dtype, values);
  auto results = Results(lstm, dtype, operands);
  FakeNode node(host, LstmKernelOfThePlugin(lstm), Attributes(lstm), std::move(operands), std::move(results));
  if (node.Supports() != FBX_OK || node.Prepare() != FBX_OK || node.Invoke() != FBX_OK) {
    std::string why = "the kernel failed";
    for (const Diagnostic& d : host.diagnostics) why += ": " + d.code + " " + d.subject + " " + d.message;
    throw std::runtime_error(why);
  }
  return dtype == FBX_F64 ? ResultOf<double>(node) : ResultOf<float>(node);
}

double Difference(const Vector& a, const Vector& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    const double difference = a[i] == b[i] ? 0 : std::abs(a[i] - b[i]) / (1 + std::abs(b[i]));
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, difference);
  }
  return largest;
}

double Difference(const LstmResult& a, const LstmResult& b) {
  return std::max({Difference(a.output, b.output), Difference(a.h, b.h), Difference(a.c, b.c)});
}

}  // namespace fusebox::testing
