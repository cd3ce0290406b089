// SPDX-License-Identifier: Apache-2.0
// CudnnRNN ops of several layers and directions, held against the definition of each cell in f64.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/converter/passes/rewritten.h"

namespace fusebox::converter {
namespace {

using ::testing::HasSubstr;

struct Stack {
  const char* mode = "lstm";
  int64_t gates = 4, layers = 1, directions = 1;
  bool time_major = true;
};
using Rows = std::vector<std::vector<double>>;  // [steps * batch][width]

constexpr int64_t kSteps = 3, kBatch = 2, kInputs = 3, kUnits = 2;

// The layers as cuDNN defines them. Parameters: all matrices, layer by layer and forward first, then all
// biases in that order.
struct Definition {
  const Stack& of;
  std::vector<float> params;
  size_t weights = 0, biases = 0;

  explicit Definition(const Stack& stack) : of(stack) {
    for (int64_t part = 0; part < Parts(); ++part)
      biases += static_cast<size_t>(of.gates * kUnits * (Inputs(part) + kUnits));
    params.resize(biases + static_cast<size_t>(Parts() * 2 * of.gates * kUnits));
    for (size_t i = 0; i < params.size(); ++i) params[i] = 0.8F * std::sin(2.3F * static_cast<float>(i + 1));
  }
  int64_t Parts() const { return of.layers * of.directions; }
  int64_t Inputs(int64_t part) const { return part < of.directions ? kInputs : of.directions * kUnits; }

  // gate g of unit k: W x + b, or R h + b.
  double Sum(size_t matrix, size_t bias, int64_t g, int64_t k, const std::vector<double>& v) const {
    const auto width = static_cast<int64_t>(v.size());
    double sum = static_cast<double>(params[bias + static_cast<size_t>(g * kUnits + k)]);
    for (int64_t i = 0; i < width; ++i)
      sum += static_cast<double>(params[matrix + static_cast<size_t>((g * kUnits + k) * width + i)]) *
             v[static_cast<size_t>(i)];
    return sum;
  }
  static double Sigmoid(double v) { return 1 / (1 + std::exp(-v)); }
  void Step(size_t w, size_t b, const std::vector<double>& x, std::vector<double>& h,
            std::vector<double>& c) const {
    const std::vector<double> was = h;
    const size_t r = w + static_cast<size_t>(of.gates * kUnits) * x.size(),
                 rb = b + static_cast<size_t>(of.gates * kUnits);
    const std::string mode = of.mode;
    for (int64_t k = 0; k < kUnits; ++k) {
      const auto in = [&](int64_t g) { return Sum(w, b, g, k, x); };
      const auto back = [&](int64_t g) { return Sum(r, rb, g, k, was); };
      const auto both = [&](int64_t g) { return in(g) + back(g); };
      double &to = h[static_cast<size_t>(k)], &cell = c[static_cast<size_t>(k)];
      if (mode == "rnn_tanh") to = std::tanh(both(0));
      if (mode == "rnn_relu") to = std::max(0.0, both(0));
      if (mode == "gru") {
        const double reset = Sigmoid(both(0)), update = Sigmoid(both(1)),
                     fresh = std::tanh(in(2) + reset * back(2));
        to = (1 - update) * fresh + update * was[static_cast<size_t>(k)];
      }
      if (mode == "lstm") {
        cell = Sigmoid(both(1)) * cell + Sigmoid(both(0)) * std::tanh(both(2));
        to = Sigmoid(both(3)) * std::tanh(cell);
      }
    }
  }
  // x by steps; h and c by part, then row; they end as the final states. Gives the last layer's outputs.
  Rows Run(Rows x, Rows& h, Rows& c) {
    for (int64_t part = 0; part < Parts();) {
      Rows out(x.size());
      for (int64_t d = 0; d < of.directions; ++d, ++part) {
        for (int64_t i = 0; i < kSteps; ++i) {
          const int64_t t = d ? kSteps - 1 - i : i;
          for (int64_t row = 0; row < kBatch; ++row) {
            const auto at = static_cast<size_t>(t * kBatch + row),
                       state = static_cast<size_t>(part * kBatch + row);
            Step(weights, biases, x[at], h[state], c[state]);
            out[at].insert(out[at].end(), h[state].begin(), h[state].end());
          }
        }
        weights += static_cast<size_t>(of.gates * kUnits * (Inputs(part) + kUnits));
        biases += static_cast<size_t>(2 * of.gates * kUnits);
      }
      x = std::move(out);
    }
    return x;
  }
};

// [a, b, width] with the first two dimensions exchanged, unless steps, and layers, come first.
std::vector<float> Flat(const Rows& rows, int64_t first, bool as_is) {
  const auto a = static_cast<size_t>(first), b = rows.size() / a;
  std::vector<float> out;
  for (size_t i = 0; i < rows.size(); ++i)
    for (const double v : rows[as_is ? i : i % a * b + i / a]) out.push_back(static_cast<float>(v));
  return out;
}
Rows Noise(int64_t count, int64_t width, double seed) {
  Rows rows(static_cast<size_t>(count), std::vector<double>(static_cast<size_t>(width)));
  for (auto& row : rows)
    for (double& v : row) v = static_cast<double>(static_cast<float>(std::sin(seed += 1.3)));
  return rows;
}

struct CudnnOp : Rewritten {
  explicit CudnnOp(const Stack& stack, const std::vector<float>& params, int64_t parts) {
    const auto dims = [&](int64_t first, int64_t width) {
      return stack.time_major ? std::vector{first, kBatch, width} : std::vector{kBatch, first, width};
    };
    const ValueId x = In(dims(kSteps, kInputs)), h = In(dims(parts, kUnits)), c = In(dims(parts, kUnits));
    const auto lengths = f.AddConst<int32_t>(DType::kI32, {kBatch}, std::vector<int32_t>(kBatch, kSteps));
    Node& node = f.AddNode(
        Op::kOpaque, {x, h, c, C({static_cast<int64_t>(params.size())}, params), lengths},
        {F32(dims(kSteps, stack.directions * kUnits)), F32(dims(parts, kUnits)), F32(dims(parts, kUnits)),
         F32({0}), F32({0})},
        With({{"rnn_mode", std::string(stack.mode)},
              {"direction", std::string(stack.directions == 2 ? "bidirectional" : "unidirectional")},
              {"time_major", stack.time_major}}));
    node.name = "CudnnRNNV3";
    node.location.name = "rnn";
    options.composites = Composites::kInline;  // leaves them unpaired
    f.outputs = {node.results[0], node.results[1]};
    if (std::string(stack.mode) == "lstm") f.outputs.push_back(node.results[2]);
    Sign(f);
  }
};

class CudnnStack : public ::testing::TestWithParam<Stack> {};

TEST_P(CudnnStack, ComputesWhatItsCellsDo) {
  const Stack stack = GetParam();
  Definition definition(stack);
  const int64_t parts = definition.Parts();
  CudnnOp op(stack, definition.params, parts);
  const auto x = Noise(kSteps * kBatch, kInputs, 0.1);
  auto h = Noise(parts * kBatch, kUnits, 0.2), c = Noise(parts * kBatch, kUnits, 0.3);
  std::vector<Tensor> inputs;
  const std::pair<Rows, int64_t> given[] = {{x, kSteps}, {h, parts}, {c, parts}};
  for (size_t i = 0; i < 3; ++i)
    inputs.push_back({op.f.value(op.f.inputs[i]).type,
                      Buffer::Of<float>(Flat(given[i].first, given[i].second, stack.time_major))});
  const Rows y = definition.Run(x, h, c);
  ASSERT_EQ(op.Run(RecognizeComposites), "");
  ASSERT_EQ(op.Notes(), "");
  EXPECT_EQ(Count(op.f, Op::kStablehloComposite), static_cast<size_t>(parts));
  ASSERT_EQ(op.Run(InlineComposites), "");
  ASSERT_EQ(op.Run(LowerTensorLists), "");
  const auto outputs = op.Compute("main", inputs);
  const std::pair<const Rows*, int64_t> wanted[] = {{&y, kSteps}, {&h, parts}, {&c, parts}};
  ASSERT_EQ(outputs.size(), op.f.outputs.size());
  for (size_t o = 0; o < outputs.size(); ++o) {
    const auto want = Flat(*wanted[o].first, wanted[o].second, stack.time_major), is = FloatsOf(outputs[o]);
    ASSERT_EQ(is.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(is[i], want[i], 2e-6) << "output " << o << " at " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudnnStack,
                         ::testing::Values(Stack{}, Stack{.layers = 2}, Stack{.directions = 2},
                                           Stack{.layers = 3, .directions = 2},
                                           Stack{.layers = 2, .directions = 2, .time_major = false},
                                           Stack{.mode = "gru", .gates = 3, .layers = 2, .directions = 2},
                                           Stack{.mode = "gru", .gates = 3, .time_major = false},
                                           Stack{.mode = "rnn_tanh", .gates = 1, .layers = 3},
                                           Stack{.mode = "rnn_relu", .gates = 1, .directions = 2}),
                         [](const auto& info) {
                           return std::string(info.param.mode) + std::to_string(info.param.layers) + "x" +
                                  std::to_string(info.param.directions) +
                                  (info.param.time_major ? "" : "Batch");
                         });

TEST(CudnnStack, OfOtherParametersSaysHowManyThereAre) {
  const Stack stack{.layers = 2};
  CudnnOp op(stack, std::vector<float>(100), 2);
  EXPECT_EQ(op.Run(RecognizeComposites), "");
  EXPECT_THAT(op.Notes(), HasSubstr("it has 100 parameters for 3 inputs, 2 units and 2 layers"));
}

}  // namespace
}  // namespace fusebox::converter
