// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/text_format.h>

#include "converter/convert.h"
#include "tests/fuzz/targets.h"
#include "tests/testing/models/v1_rnn.h"

namespace fusebox::fuzz {
namespace {

using namespace test_models;

std::shared_ptr<Registry> CpuOnly() {
  static const auto registry = [] {
    Config config;
    config.search_default_path = false;
    auto made = Registry::Create(config);
    FUSEBOX_CHECK(made.has_value());
    return *made;
  }();
  return registry;
}

// A loop in a branch, conditionals in the loop and in its condition, an array that it writes, a function.
tf::GraphDef ControlFlow() {
  V1Graph g;
  const std::string x = g.Placeholder("x", tf::DT_FLOAT, {2}), n = g.Placeholder("n", tf::DT_INT32, kScalar);
  const std::string p = g.Op("Less", {n, g.Const(Int(3))}, tf::DT_BOOL);
  const auto loop = [&] {
    const V1Graph::Array out = g.TensorArray(n, tf::DT_FLOAT, {2});
    const Names end = g.While(
        "while", {g.Const(Int(0)), out.flow, x},
        [&](const Names& v) {
          const std::string less = g.Op("Less", {v[0], n}, tf::DT_BOOL);
          return g.Cond("cond", less, [&] { return Names{less}; }, [&] { return Names{p}; })[0];
        },
        [&](const Names& v) {
          const std::string next = g.Op("Add", {v[0], g.Const(Int(1))});
          const Names y = g.Cond(
              "cond", p, [&] { return Names{g.Op("Neg", {v[2]})}; },
              [&] { return Names{g.Op("Mul", {v[2], x})}; });
          return Names{next, g.Write({out.handle, v[1], out.dtype}, v[0], y[0]), y[0]};
        });
    return Names{g.Stack({out.handle, end[1], out.dtype}, {2}), end[2]};
  };
  const Names y =
      g.Cond("outer", p, loop, [&] { return Names{g.Op("ExpandDims", {x, g.Const(Int(0))}), x}; });
  g.Op("Identity", {y[0]}, tf::DT_INVALID, {}, "a");
  g.Op("Identity", {y[1]}, tf::DT_INVALID, {}, "b");
  return g.graph();
}

std::string Text(const tf::GraphDef& graph) {
  std::string text;
  FUSEBOX_CHECK(google::protobuf::TextFormat::PrintToString(graph, &text));
  return text;
}

}  // namespace

Status RunFrozenGraph(std::span<const std::byte> bytes) {
  static const std::string path = ScratchDir() + "/frozen.pb";
  WriteScratch(path, bytes);
  auto conversion = converter::FromFrozenGraph(path);
  conversion.options.registry = CpuOnly();
  FUSEBOX_ASSIGN(const auto converted, conversion.Convert());
  FUSEBOX_CHECK(converted.Write(ScratchDir() + "/out.tflite").has_value());
  return {};
}

std::vector<std::string> FrozenGraphSeeds() {
  std::vector<std::string> seeds = {ControlFlow().SerializeAsString(), Text(ControlFlow())};
  using Cell = V1RnnOptions::Cell;
  for (const Cell cell : {Cell::kBasicLstm, Cell::kPeepholeLstm, Cell::kBlockLstm, Cell::kGru,
                          Cell::kBlockGru, Cell::kFusedBlockLstm})
    seeds.push_back(V1Rnn({.cell = cell, .batch = 1, .steps = 2, .inputs = 2, .units = 2}, 1)
                        .graph()
                        .SerializeAsString());
  seeds.push_back(V1Rnn({.batch = -1, .steps = -1, .inputs = 2, .units = 2, .lengths = true}, 1)
                      .graph()
                      .SerializeAsString());
  return seeds;
}

}  // namespace fusebox::fuzz
