// SPDX-License-Identifier: Apache-2.0
// A random LSTM: its operands in f64, a naive reference implementation, and the kernel's result.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/plugins/rnn/fake_host.h"

namespace fusebox::testing {

struct LstmCase {
  int64_t batch = 1, steps = 3, inputs = 5, cells = 7, outputs = 0;  // outputs 0: no projection
  bool time_major = false, cifg = false, peephole = false, projection_bias = false, layer_norm = false,
       diagonal = false;
  std::string activation = "TANH";  // name in the builtin op, or Keras name for fusebox.lstm
  std::string gate_activation;      // "": sigmoid, builtin op; else a fusebox.lstm
  double cell_clip = 0, projection_clip = 0;
  double weight_scale = 0;  // 0: about 1 / sqrt(fan in)
  double input_scale = 1, state_scale = 0.5;
  bool constant_weights = true;
  int operand_count = 24;

  bool other() const { return !gate_activation.empty(); }
  int64_t width() const { return outputs ? outputs : cells; }
};

struct LstmResult {
  std::vector<double> output, h, c;
};

// operands[i] is empty if absent.
std::vector<std::vector<double>> RandomOperands(const LstmCase& lstm, uint32_t seed);
LstmResult Definition(const LstmCase& lstm, const std::vector<std::vector<double>>& operands);

// The node's tensors in this dtype; state results share the memory of state operands (not for fusebox.lstm).
std::vector<FakeTensor> Operands(const LstmCase& lstm, fbx_dtype dtype,
                                 const std::vector<std::vector<double>>& values);
std::vector<FakeTensor> Results(const LstmCase& lstm, fbx_dtype dtype,
                                const std::vector<FakeTensor>& operands);
FakeAttrs Attributes(const LstmCase& lstm);
const fbx_kernel* LstmKernelOfThePlugin(const LstmCase& lstm = {});

// Runs the kernel through the ABI; throws std::runtime_error with its diagnostics on failure.
LstmResult RunKernel(const LstmCase& lstm, fbx_dtype dtype, const std::vector<std::vector<double>>& operands,
                     uint32_t threads = 1);

// Largest |a - b| / (1 + |b|); infinity if only one is NaN.
double Difference(const std::vector<double>& a, const std::vector<double>& b);
double Difference(const LstmResult& a, const LstmResult& b);

}  // namespace fusebox::testing
