// SPDX-License-Identifier: Apache-2.0
// One LSTM layer, batch 1, in the engines that lstm_bench compares.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fusebox::bench {

// Weights by gate in the order i, f, c, o: kernel [units][inputs], recurrent [units][units], bias [units].
// States are zero.
struct LstmProblem {
  int steps, inputs, units;
  std::vector<float> x;  // [steps][inputs]
  std::vector<float> kernel[4], recurrent[4], bias[4];
  bool bytes = false;  // engines get kernel and recurrent as ToBytes(), which is exact
  int threads = 1;
};
LstmProblem RandomProblem(int steps, int units, bool bytes = false);

struct ByteWeights {
  std::vector<int8_t> values;
  float scale;  // one for the matrix; the zero point is 0
};
ByteWeights ToBytes(const std::vector<float>& weights);

class LstmEngine {
 public:
  virtual ~LstmEngine() = default;
  // One sequence; the first call starts with zero states, later calls with engine-specific ones.
  virtual void Run() = 0;
  virtual const float* output() const = 0;  // [steps][units]
};

// All throw std::runtime_error. The first two run on one thread.
std::unique_ptr<LstmEngine> OurEngine(const LstmProblem& problem);
std::unique_ptr<LstmEngine> TfLiteEngine(const LstmProblem& problem, const std::string& library);
// 8-bit weights: DynamicQuantizeLSTM.
std::unique_ptr<LstmEngine> OnnxEngine(const LstmProblem& problem, const std::string& library);

}  // namespace fusebox::bench
