// SPDX-License-Identifier: Apache-2.0
// Recurrent layers of TensorFlow 1 in frozen graphs: the loop agrees with the cell's equations in f64, and is
// one fused op if it is a Keras layer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "converter/import/saved_model/import.h"
#include "host/tflite/tflite.h"
#include "tests/testing/models/v1_rnn.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::HasSubstr;
using Rnn = test_models::V1RnnOptions;
using Cell = Rnn::Cell;
using Row = std::vector<double>;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

struct Case {
  const char* name;
  Rnn options;
  const char* fused;  // the op in the file; null: a loop
};
std::ostream& operator<<(std::ostream& out, const Case& of) { return out << of.name; }

constexpr uint64_t kSeed = 11;
constexpr int kBatch = 2, kSteps = 4;  // where the graph has none

// The layer in f64, with the graph's constants.
class Reference {
 public:
  Reference(const Rnn& rnn, const tf::GraphDef& graph) : o_(rnn) {
    for (const tf::NodeDef& node : graph.node()) {
      if (node.op() != "Const" || !node.name().starts_with("rnn/")) continue;
      const Tensor tensor = *saved_model::ToTensor(node.attr().at("value").tensor());
      if (tensor.type.dtype != DType::kF32) continue;
      const auto values = tensor.data.As<float>();
      weights_[node.name().substr(4)] = {values.begin(), values.end()};
    }
  }

  // Of one sequence: the outputs of all steps, and the states after the last one.
  std::vector<Row> Run(std::vector<Row> steps, int length) {
    const auto out = static_cast<size_t>(o_.cell == Cell::kProjectedLstm ? o_.units - 2 : o_.units);
    c.assign(static_cast<size_t>(o_.units), 0);
    h.assign(out, 0);
    if (o_.backwards) std::ranges::reverse(steps);
    std::vector<Row> outputs;
    for (size_t t = 0; t < steps.size(); ++t) {
      if (static_cast<int>(t) < length) Step(steps[t]);
      outputs.push_back(static_cast<int>(t) < length ? h : Row(out, 0));
    }
    if (o_.backwards) std::ranges::reverse(outputs);
    return outputs;
  }
  Row c, h;

 private:
  static double Sigmoid(double v) { return 1 / (1 + std::exp(-v)); }
  static Row Joined(Row a, const Row& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  Row Linear(const Row& v, const std::string& kernel, const std::string& bias) {
    Row out = bias.empty() ? Row(weights_[kernel].size() / v.size(), 0) : weights_[bias];
    for (size_t r = 0; r < v.size(); ++r)
      for (size_t k = 0; k < out.size(); ++k) out[k] += v[r] * weights_[kernel][r * out.size() + k];
    return out;
  }

  void Step(const Row& x) {
    const auto u = static_cast<size_t>(o_.units);
    if (o_.cell == Cell::kBasicRnn) {
      h = Linear(Joined(x, h), "kernel", "bias");
      for (double& v : h) v = std::tanh(v);
      return;
    }
    if (o_.cell == Cell::kGru || o_.cell == Cell::kBlockGru) return Gru(x, u);
    const Row gates = Linear(Joined(x, h), "kernel", "bias");
    const bool second = o_.cell == Cell::kFusedBlockLstm2;  // i, f, g, o; else i, g, f, o
    const bool peep = o_.cell == Cell::kPeepholeLstm;
    Row out(u);
    for (size_t k = 0; k < u; ++k) {
      const double old = c[k], i = gates[k], g = gates[(second ? 2 : 1) * u + k];
      const double f = gates[(second ? 1 : 2) * u + k] + (second ? 0 : static_cast<double>(o_.forget_bias));
      const auto diagonal = [&](const char* name) { return peep ? weights_[name][k] : 0; };
      c[k] = old * Sigmoid(f + diagonal("w_f_diag") * old) +
             Sigmoid(i + diagonal("w_i_diag") * old) * std::tanh(g);
      out[k] = std::tanh(c[k]) * Sigmoid(gates[3 * u + k] + diagonal("w_o_diag") * c[k]);
    }
    h = o_.cell == Cell::kProjectedLstm ? Linear(out, "projection/kernel", "") : out;
  }

  void Gru(const Row& x, size_t u) {
    const Row gates = Linear(Joined(x, h), "gates/kernel", "gates/bias");
    Row reset(u);
    for (size_t k = 0; k < u; ++k) reset[k] = Sigmoid(gates[k]) * h[k];
    const Row fresh = Linear(Joined(x, reset), "candidate/kernel", "candidate/bias");
    for (size_t k = 0; k < u; ++k) {
      const double z = Sigmoid(gates[u + k]);
      h[k] = z * h[k] + (1 - z) * std::tanh(fresh[k]);
    }
  }

  const Rnn& o_;
  std::map<std::string, Row> weights_;
};

// Outputs of the file in order of names, and what they are in f64.
struct Answers {
  Tensors given, expected;
};

Result<Answers> RunFile(const std::string& path, const Rnn& rnn, const tf::GraphDef& graph) {
  FUSEBOX_ASSIGN(const auto session, Open(path, *Plugins()));
  const int batch = rnn.batch < 0 ? kBatch : rnn.batch, steps = rnn.steps < 0 ? kSteps : rnn.steps;
  const Tensor x = Random(
      {DType::kF32, rnn.time_major ? Shape{steps, batch, rnn.inputs} : Shape{batch, steps, rnn.inputs}}, 5);
  std::vector<int32_t> lengths(static_cast<size_t>(batch), steps);
  if (rnn.lengths) lengths = {2, 3};
  Tensors inputs = {x};
  if (rnn.lengths) inputs.insert(inputs.begin(), {{DType::kI32, Shape{batch}}, Buffer::Of<int32_t>(lengths)});
  Answers out;
  FUSEBOX_ASSIGN(out.given, Invoke(*session, inputs));
  Reference reference(rnn, graph);
  const auto values = x.data.As<float>();
  std::vector<float> all, c, h;
  std::vector<std::vector<Row>> by_row;
  for (int b = 0; b < batch; ++b) {
    std::vector<Row> sequence;
    for (int t = 0; t < steps; ++t) {
      const auto at = static_cast<size_t>((rnn.time_major ? t * batch + b : b * steps + t) * rnn.inputs);
      const auto row = values.subspan(at, static_cast<size_t>(rnn.inputs));
      sequence.emplace_back(row.begin(), row.end());
    }
    by_row.push_back(reference.Run(sequence, lengths[static_cast<size_t>(b)]));
    c.insert(c.end(), reference.c.begin(), reference.c.end());
    h.insert(h.end(), reference.h.begin(), reference.h.end());
  }
  const auto add = [&](int b, int t) {
    const Row& row = by_row[static_cast<size_t>(b)][static_cast<size_t>(t)];
    all.insert(all.end(), row.begin(), row.end());
  };
  for (int i = 0; i < (rnn.time_major ? steps : batch); ++i)
    for (int k = 0; k < (rnn.time_major ? batch : steps); ++k) rnn.time_major ? add(k, i) : add(i, k);
  for (const std::string& name : test_models::OutputsOf(rnn)) {
    const std::vector<float>& expected = name == "c" ? c : name == "h" || rnn.last_output ? h : all;
    out.expected.push_back({out.given[out.expected.size()].type, Buffer::Of<float>(expected)});
  }
  return out;
}

Result<Written> ConvertRnn(const test_models::V1Graph& graph, const Rnn& rnn,
                           converter::Composites composites) {
  const std::string path = TestDir() + "/rnn.pb";
  FUSEBOX_TRY(test_models::WriteFrozenGraph(path, graph.graph()));
  converter::Options options;
  options.registry = *Plugins();
  options.outputs = test_models::OutputsOf(rnn);
  options.composites = composites;
  options.keep_bodies = FusionOptions::KeepBodies::kNone;
  options.verify = converter::Verification::kStrict;
  return Convert(path, options, composites == converter::Composites::kFuse ? "fused" : "loop");
}

class V1Layer : public ::testing::TestWithParam<Case> {};

TEST_P(V1Layer, AgreesWithItsEquations) {
  const Rnn& rnn = GetParam().options;
  const test_models::V1Graph graph = test_models::V1Rnn(rnn, kSeed);
  for (const auto composites : {converter::Composites::kInline, converter::Composites::kFuse}) {
    const auto written = ConvertRnn(graph, rnn, composites);
    ASSERT_OK(written);
    const auto module = tflite::ReadFile(written->path);
    ASSERT_OK(module);
    const auto ops = OpsOf(**module);
    std::string notes;
    for (const std::string& note : written->report.notes) notes += note + "\n";
    const bool fused = composites == converter::Composites::kFuse && GetParam().fused;
    if (fused) {
      EXPECT_EQ(ops.count(GetParam().fused), 1u) << notes << ToText(**module);
    }
    EXPECT_EQ(ops.count("WHILE"), fused || rnn.static_rnn ? 0u : 1u) << notes;
    const auto answers = RunFile(written->path, rnn, graph.graph());
    ASSERT_OK(answers);
    EXPECT_EQ(Difference(answers->given, answers->expected, 2e-6, 2e-6), "");
  }
}

constexpr const char* kLstm = "UNIDIRECTIONAL_SEQUENCE_LSTM";
constexpr const char* kSimple = "UNIDIRECTIONAL_SEQUENCE_RNN";
const Case kCases[] = {
    {"basic_lstm", {}, kLstm},
    {"basic_lstm_time_major", {.time_major = true}, kLstm},
    {"basic_lstm_any_batch", {.batch = -1}, kLstm},
    {"basic_lstm_any_length", {.steps = -1}, kLstm},
    {"basic_lstm_any", {.batch = -1, .steps = -1}, kLstm},
    {"basic_lstm_any_time_major", {.batch = -1, .steps = -1, .time_major = true}, kLstm},
    {"basic_lstm_backwards", {.backwards = true}, kLstm},
    {"basic_lstm_no_forget_bias", {.forget_bias = 0}, kLstm},
    {"basic_lstm_output_only", {.final_state = false}, kLstm},
    {"basic_lstm_last_output", {.final_state = false, .last_output = true}, kLstm},
    {"basic_lstm_last_output_any",
     {.batch = -1, .steps = -1, .final_state = false, .last_output = true},
     kLstm},
    {"gru_last_output", {.cell = Cell::kGru, .final_state = false, .last_output = true}, "fusebox.gru"},
    {"basic_lstm_lengths", {.lengths = true}, nullptr},
    {"basic_lstm_lengths_any", {.batch = -1, .steps = -1, .lengths = true}, nullptr},
    {"basic_lstm_static", {.static_rnn = true}, kLstm},
    {"peephole_lstm", {.cell = Cell::kPeepholeLstm}, nullptr},
    {"projected_lstm", {.cell = Cell::kProjectedLstm}, nullptr},
    {"block_lstm", {.cell = Cell::kBlockLstm}, kLstm},
    {"block_lstm_any", {.cell = Cell::kBlockLstm, .batch = -1, .steps = -1}, kLstm},
    {"fused_block_lstm", {.cell = Cell::kFusedBlockLstm}, kLstm},
    {"fused_block_lstm_any", {.cell = Cell::kFusedBlockLstm, .batch = -1, .steps = -1}, kLstm},
    {"fused_block_lstm_time_major", {.cell = Cell::kFusedBlockLstm, .time_major = true}, kLstm},
    {"fused_block_lstm_v2", {.cell = Cell::kFusedBlockLstm2}, kLstm},
    {"gru", {.cell = Cell::kGru}, "fusebox.gru"},
    {"gru_any", {.cell = Cell::kGru, .batch = -1, .steps = -1}, "fusebox.gru"},
    {"block_gru", {.cell = Cell::kBlockGru}, "fusebox.gru"},
    {"basic_rnn", {.cell = Cell::kBasicRnn}, kSimple},
};
INSTANTIATE_TEST_SUITE_P(All, V1Layer, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(V1Rnn, AStackOfTwoDirectionsIsFused) {
  // bidirectional_dynamic_rnn: one graph with both directions on one input.
  test_models::V1Graph forward = test_models::V1Rnn({.final_state = false}, 3),
                       backward = test_models::V1Rnn({.backwards = true, .final_state = false}, 4);
  tf::GraphDef graph = forward.graph();
  for (tf::NodeDef node : backward.graph().node()) {
    if (node.name() == "x") continue;
    node.set_name("bw/" + node.name());
    if (const auto frame = node.mutable_attr()->find("frame_name"); frame != node.mutable_attr()->end())
      frame->second.set_s("bw/" + frame->second.s());
    for (std::string& input : *node.mutable_input())
      if (input != "x") input = input.starts_with('^') ? "^bw/" + input.substr(1) : "bw/" + input;
    *graph.add_node() = node;
  }
  tf::NodeDef& axis = *graph.add_node();
  axis.set_name("axis");
  axis.set_op("Const");
  (*axis.mutable_attr())["dtype"].set_type(tf::DT_INT32);
  *(*axis.mutable_attr())["value"].mutable_tensor() = models::Int(2).ToProto();
  tf::NodeDef& both = *graph.add_node();
  both.set_name("both");
  both.set_op("ConcatV2");
  for (const char* input : {"output", "bw/output", "axis"}) both.add_input(input);
  (*both.mutable_attr())["N"].set_i(2);
  (*both.mutable_attr())["T"].set_type(tf::DT_FLOAT);
  const std::string path = TestDir() + "/both.pb";
  ASSERT_OK(test_models::WriteFrozenGraph(path, graph));
  converter::Options options;
  options.registry = *Plugins();
  options.verify = converter::Verification::kStrict;
  const auto fused = Convert(path, options, "fused");
  ASSERT_OK(fused);
  options.composites = converter::Composites::kInline;
  options.verify = converter::Verification::kOff;
  const auto loops = Convert(path, options, "loops");
  ASSERT_OK(loops);
  const auto module = tflite::ReadFile(fused->path);
  ASSERT_OK(module);
  EXPECT_EQ(OpsOf(**module).count("BIDIRECTIONAL_SEQUENCE_LSTM"), 1u) << ToText(**module);
  const auto a = Open(fused->path, *Plugins()), b = Open(loops->path, *Plugins());
  ASSERT_OK(a);
  ASSERT_OK(b);
  const Tensors inputs = RandomInputs(**a, 6);
  const auto x = Invoke(**a, inputs), y = Invoke(**b, inputs);
  ASSERT_OK(x);
  ASSERT_OK(y);
  EXPECT_EQ(Difference(*x, *y, 2e-6, 2e-6), "");
}

}  // namespace
}  // namespace fusebox::testing
