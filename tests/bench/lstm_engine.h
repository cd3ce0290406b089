// SPDX-License-Identifier: Apache-2.0
// One LSTM layer, batch 1, in the engines that lstm_bench compares.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fusebox::bench {

// Floats; 8-bit weights beside floats (hybrid); integers only.
enum class LstmForm { kFloats, kBytes, kIntegers };

// Weights by gate in the order i, f, c, o: kernel [units][inputs], recurrent [units][units], bias [units].
// States are zero.
struct LstmProblem {
  int steps, inputs, units;
  std::vector<float> x;  // [steps][inputs]
  std::vector<float> kernel[4], recurrent[4], bias[4];
  // Unless kFloats, engines get kernel and recurrent as ToBytes(), which is exact.
  LstmForm form = LstmForm::kFloats;
  int threads = 1;

  bool bytes() const { return form != LstmForm::kFloats; }
  bool integers() const { return form == LstmForm::kIntegers; }
};
LstmProblem RandomProblem(int steps, int units, LstmForm form = LstmForm::kFloats);

// Scales of integers. Inputs are within +-1.
inline constexpr float kInputScale = 1.0F / 127, kOutputScale = 1.0F / 128, kCellScale = 1.0F / 2048;

struct ByteWeights {
  std::vector<int8_t> values;
  float scale;  // one for the matrix; the zero point is 0
};
ByteWeights ToBytes(const std::vector<float>& weights);
// round(values / scale)
template <class T>
std::vector<T> ToIntegers(const std::vector<float>& values, float scale) {
  std::vector<T> integers;
  for (const float v : values) integers.push_back(static_cast<T>(std::lround(v / scale)));
  return integers;
}
// Outputs of an engine for integers.
std::vector<float> FromBytes(const int8_t* outputs, size_t count);

class LstmEngine {
 public:
  virtual ~LstmEngine() = default;
  // One sequence; the first call starts with zero states, later calls with engine-specific ones.
  virtual void Run() = 0;
  virtual std::vector<float> output() const = 0;  // [steps][units]
};

// All throw std::runtime_error. The first two run on one thread.
std::unique_ptr<LstmEngine> OurEngine(const LstmProblem& problem);
std::unique_ptr<LstmEngine> TfLiteEngine(const LstmProblem& problem, const std::string& library);
// 8-bit weights: DynamicQuantizeLSTM. It has no integer form.
std::unique_ptr<LstmEngine> OnnxEngine(const LstmProblem& problem, const std::string& library);

}  // namespace fusebox::bench
