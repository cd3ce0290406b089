// SPDX-License-Identifier: Apache-2.0
// Control flow of TensorFlow 1: what TensorFlow.js makes of the graph itself, what stock TFLite makes of the
// file that we write, and what our host makes of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/peers/tfjs_graph.h"
#include "tests/testing/models/v1_rnn.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

using test_models::Names, test_models::V1Graph;
using Rnn = test_models::V1RnnOptions;
using Cell = Rnn::Cell;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

struct Program {
  const char* name;
  std::function<V1Graph()> make;
  Names outputs;
  bool tfjs = true;     // TensorFlow.js has its ops
  bool custom = false;  // the fused op is a custom op
};
std::ostream& operator<<(std::ostream& out, const Program& program) { return out << program.name; }

std::string Plus1(V1Graph& g, const std::string& v) { return g.Op("AddV2", {v, g.Const(models::Int(1))}); }
std::string Below(V1Graph& g, const std::string& a, const std::string& b) {
  return g.Op("Less", {a, b}, tf::DT_BOOL);
}
std::string Sum(V1Graph& g, const std::string& v) {
  return g.Op("Sum", {v, g.Const(models::Ints({0}))}, tf::DT_FLOAT,
              {models::Attr("Tidx", tf::DT_INT32), models::Attr("keep_dims", false)});
}

// if sum(x) < 0: (-x, 1) else: (x * 2, 0); with a conditional on the first element in the second branch.
V1Graph Branches() {
  V1Graph g;
  const std::string x = g.Placeholder("x", tf::DT_FLOAT, {3});
  const auto scaled = [&](float by) { return Names{g.Op("Mul", {x, g.Const(models::Float(by))})}; };
  const Names y = g.Cond(
      "cond", Below(g, Sum(g, x), g.Const(models::Float(0))), [&] { return Names{g.Op("Neg", {x})}; },
      [&] {
        return g.Cond(
            "cond", Below(g, Sum(g, g.Op("Abs", {x})), g.Const(models::Float(1))), [&] { return scaled(2); },
            [&] { return scaled(3); });
      });
  g.Op("Identity", {y[0]}, tf::DT_INVALID, {}, "y");
  return g;
}

// Halves x until its largest magnitude is small, with a loop in the body that adds the step's number.
V1Graph Loops() {
  V1Graph g;
  const std::string x = g.Placeholder("x", tf::DT_FLOAT, {3});
  const Names end = g.While(
      "while", {g.Const(models::Int(0)), x},
      [&](const Names& v) { return Below(g, v[0], g.Const(models::Int(5))); },
      [&](const Names& v) {
        const Names inner = g.While(
            "while", {g.Const(models::Int(0)), v[1]}, [&](const Names& w) { return Below(g, w[0], v[0]); },
            [&](const Names& w) {
              return Names{Plus1(g, w[0]), g.Op("AddV2", {w[1], g.Const(models::Float(0.25f))})};
            });
        const Names kept = g.Cond(
            "cond", Below(g, Sum(g, inner[1]), g.Const(models::Float(1))), [&] { return Names{inner[1]}; },
            [&] { return Names{g.Op("Mul", {inner[1], g.Const(models::Float(0.5f))})}; });
        return Names{Plus1(g, v[0]), kept[0]};
      });
  g.Op("Identity", {end[1]}, tf::DT_INVALID, {}, "y");
  return g;
}

Program Layer(const char* name, const Rnn& rnn, bool tfjs = true) {
  const bool gru = rnn.cell == Cell::kGru || rnn.cell == Cell::kBlockGru;
  return {name, [=] { return test_models::V1Rnn(rnn, 5); }, test_models::OutputsOf(rnn), tfjs, gru};
}

class V1Program : public ::testing::TestWithParam<Program> {
 protected:
  Tensors Inputs(const V1Graph& graph, uint64_t seed) const {
    Tensors out;
    for (const tf::NodeDef& node : graph.graph().node()) {
      if (node.op() != "Placeholder") continue;
      std::vector<int64_t> dims;
      for (const auto& dim : node.attr().at("shape").shape().dim()) dims.push_back(dim.size());
      const bool lengths = node.attr().at("dtype").type() == tf::DT_INT32;
      out.push_back(lengths
                        ? Tensor{{DType::kI32, Shape(dims)}, Buffer::Of<int32_t>(std::vector<int32_t>{3, 2})}
                        : Random({DType::kF32, Shape(dims)}, seed));
    }
    return out;
  }
};

TEST_P(V1Program, IsTheSameInTensorFlowJsAndStockTflite) {
  FUSEBOX_NEEDS_STOCK();
  FUSEBOX_NEEDS_TFJS();
  const V1Graph graph = GetParam().make();
  const std::string path = TestDir() + "/graph.pb";
  ASSERT_OK(test_models::WriteFrozenGraph(path, graph.graph()));
  converter::Options options;
  options.registry = *Plugins();
  options.outputs = GetParam().outputs;
  options.composites = converter::Composites::kInline;
  const auto loop = Convert(path, options, "loop");
  ASSERT_OK(loop);
  options.composites = converter::Composites::kFuse;
  const auto fused = Convert(path, options, "fused");
  ASSERT_OK(fused);
  constexpr uint64_t kSeeds = 4;
  std::vector<Tensors> expected;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Tensors by_name = Inputs(graph, seed);  // a file's inputs are in the order of names: lengths, x
    std::ranges::reverse(by_name);
    for (const std::string& file : {loop->path, fused->path}) {
      const auto ours = Open(file, *Plugins());
      ASSERT_OK(ours);
      const auto here = Invoke(**ours, by_name);
      ASSERT_OK(here);
      if (file == loop->path) expected.push_back(*here);
      EXPECT_EQ(Difference(*here, expected[seed], 1e-5, 1e-5), "") << file;
      if (file == fused->path && GetParam().custom) continue;
      auto stock = Stock::Open(file);
      ASSERT_OK(stock);
      const auto results = (*stock)->Invoke(by_name);
      ASSERT_OK(results);
      EXPECT_EQ(Difference(*here, *results, 1e-5, 1e-5), "") << file;
    }
  }
  for (uint64_t seed = 0; GetParam().tfjs && seed < kSeeds; ++seed) {  // it empties the folder of the test
    const auto tfjs = RunTfjsFrozen(graph.graph(), Inputs(graph, seed), GetParam().outputs);
    ASSERT_OK(tfjs);
    EXPECT_EQ(Difference(expected[seed], *tfjs, 1e-5, 1e-5), "");
  }
}

const Program kPrograms[] = {
    {"branches", Branches, {"y"}},
    {"loops", Loops, {"y"}},
    Layer("basic_lstm", {}),
    Layer("basic_lstm_time_major", {.time_major = true}),
    Layer("basic_lstm_backwards", {.backwards = true}),
    Layer("basic_lstm_lengths", {.lengths = true}, false),  // no Select of rows
    Layer("basic_lstm_static", {.static_rnn = true}),
    Layer("peephole_lstm", {.cell = Cell::kPeepholeLstm}),
    Layer("projected_lstm", {.cell = Cell::kProjectedLstm}),
    Layer("gru", {.cell = Cell::kGru}),
    Layer("basic_rnn", {.cell = Cell::kBasicRnn}),
    Layer("block_lstm", {.cell = Cell::kBlockLstm}, false),
    Layer("block_gru", {.cell = Cell::kBlockGru}, false),
    Layer("fused_block_lstm", {.cell = Cell::kFusedBlockLstm}, false),
};
INSTANTIATE_TEST_SUITE_P(All, V1Program, ::testing::ValuesIn(kPrograms),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fusebox::testing
