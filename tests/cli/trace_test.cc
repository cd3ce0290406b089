// SPDX-License-Identifier: Apache-2.0
// --trace of run, bench and convert.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "host/base/buffer.h"
#include "host/tflite/tflite.h"
#include "tests/cli/command.h"
#include "tests/testing/trace_events.h"

namespace fusebox::cli_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_trace::json;
using testing_trace::Spans;

json ReadTrace(const std::string& path) {
  const std::string text = ReadTextFile(path).value_or("");
  EXPECT_EQ(testing_trace::WhyNotATrace(text), "") << text;
  return json::parse(text, nullptr, false);
}

// y = relu(x [1,64] * weights [64,64]^T), at a node with a hostile name.
const std::string kHostile = "a\"b\\c\n</script>\xff";
std::string WriteDenseModel() {
  Module module;
  Function& f = module.Add("main");
  const ValueId x = f.AddInput({DType::kF32, {1, 64}}, "x");
  const ValueId weights = f.AddConst<float>(DType::kF32, {64, 64}, std::vector<float>(4096, 0.5F));
  Node& node = f.AddNode(Op::kFullyConnected, {x, weights, kNoValue}, {{DType::kF32, {1, 64}}});
  f.value(node.results[0]).name = kHostile;
  f.outputs = node.results;
  const std::string path = Path("dense.tflite");
  const Status written = tflite::WriteFile(module, path);
  EXPECT_TRUE(written) << written.error().message;
  return path;
}

TEST(TraceFile, OfARunHasStagesAndNodes) {
  const std::string model = WriteDenseModel(), file = Path("trace.json");
  const Finished done = Fusebox({"run", model, "--delegate", "none", "--runs", "3", "--trace", file});
  ASSERT_EQ(done.status, 0) << done.err;
  const json trace = ReadTrace(file);
  const auto nodes = Spans(trace, "FULLY_CONNECTED", "node");
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[0]["args"]["outputs"][0], "a\"b\\c\n</script>\xEF\xBF\xBD");
  EXPECT_EQ(nodes[0]["args"]["run by"], "fusebox.cpu");
  EXPECT_EQ(Spans(trace, "invoke").size(), 3u);
  for (const char* stage : {"find plugins", "open", "read", "init kernel", "plan"})
    EXPECT_EQ(Spans(trace, stage, "stage").size(), 1u) << stage;
  EXPECT_EQ(Spans(trace, "open")[0]["args"]["file"], model);
}

TEST(TraceFile, HasOperatorsOfXnnpackAndTheWeightCache) {
  const std::string model = WriteDenseModel(), file = Path("trace.json");
  const auto trace_of = [&] {
    const Finished done = Fusebox({"run", model, "--plugin", PluginFolder("fusebox.xnnpack"), "--delegate",
                                   "xnnpack", "--weight-cache", Path("cache/"), "--trace", file});
    EXPECT_EQ(done.status, 0) << done.err;
    return ReadTrace(file);
  };
  const json cold = trace_of(), warm = trace_of();
  EXPECT_EQ(Spans(cold, "weight cache miss").size(), 1u);
  EXPECT_EQ(Spans(cold, "weight cache miss").at(0)["args"]["bytes"], 64 * 64 * 4);
  EXPECT_THAT(Spans(cold, "weight cache hit"), IsEmpty());
  EXPECT_EQ(Spans(cold, "packing weights", "pack").at(0)["args"]["bytes"], 64 * 64 * 4);
  EXPECT_EQ(Spans(warm, "weight cache hit").size(), 1u);
  EXPECT_THAT(Spans(warm, "weight cache miss"), IsEmpty());
  EXPECT_THAT(Spans(warm, "packing weights"), IsEmpty());
  const auto part = Spans(warm, "PARTITION", "node"),
             inner = Spans(warm, "0 Fully Connected (NC, F32) GEMM", "span");
  ASSERT_EQ(part.size(), 1u);
  ASSERT_EQ(inner.size(), 1u);
  EXPECT_TRUE(testing_trace::Contains(part[0], inner[0]));
}

TEST(TraceFile, OfABenchmarkHasAProcessPerModel) {
  const std::string model = WriteDenseModel(), other = WriteAddModel("add.tflite", 1),
                    file = Path("trace.json");
  const Finished done = Fusebox({"bench", model, other, "--num_runs=5", "--min_secs=0", "--warmup_min_secs=0",
                                 "--delegate", "none", "--trace", file});
  ASSERT_EQ(done.status, 0) << done.err;
  const json trace = ReadTrace(file);
  std::vector<std::string> processes;
  for (const json& event : trace["traceEvents"])
    if (event["name"] == "process_name") processes.push_back(event["args"]["name"]);
  EXPECT_EQ(processes, (std::vector<std::string>{model, other}));
  EXPECT_EQ(Spans(trace, "FULLY_CONNECTED", "node").size(), 5u);
  EXPECT_EQ(Spans(trace, "ADD", "node").size(), 5u);
  EXPECT_EQ(Spans(trace, "ADD")[0]["pid"], 2);
}

TEST(TraceFile, OfAConversionHasPassesWithTheirChanges) {
  const std::string file = Path("trace.json"), output = Path("out.tflite");
  const Finished done = Fusebox({"convert", WriteSample("keras_lstm"), "-o", output, "--batch", "1",
                                 "--plugin", PluginFolder("fusebox.rnn"), "--trace", file});
  ASSERT_EQ(done.status, 0) << done.err;
  const json trace = ReadTrace(file);
  for (const char* stage : {"read", "write", "read back and compare", "verify fusion"})
    EXPECT_EQ(Spans(trace, stage, "stage").size(), 1u) << stage;
  const auto passes = Spans(trace, "", "pass");
  ASSERT_GT(passes.size(), 10u);
  for (size_t i = 1; i < passes.size(); ++i)
    EXPECT_EQ(passes[i - 1]["args"]["nodes after"], passes[i]["args"]["nodes before"]) << passes[i];
  const json fuse = Spans(trace, "fuse", "pass").at(0);
  EXPECT_THAT(fuse["args"]["changed"], Contains("+1 UNIDIRECTIONAL_SEQUENCE_LSTM"));
  EXPECT_TRUE(testing_trace::Contains(fuse, Spans(trace, "verify fusion")[0]));
}

TEST(TraceFile, IsWrittenIfTheCommandFails) {
  const std::string file = Path("trace.json");
  std::filesystem::create_directory(Path("empty"));
  const Finished done = Fusebox({"convert", Path("empty"), "-o", Path("out.tflite"), "--trace", file});
  EXPECT_EQ(done.status, 2);
  EXPECT_EQ(Spans(ReadTrace(file), "read").size(), 1u);
}

TEST(TraceFile, ReplacesNoOtherFile) {
  const std::string model = WriteAddModel("add.tflite", 1);
  const auto expect = [](const Finished& done, const std::string& text) {
    EXPECT_EQ(done.status, 2);
    EXPECT_THAT(done.err, HasSubstr(text));
  };
  const std::string text = "add.tflite: would replace the input; write elsewhere";
  expect(Fusebox({"run", model, "--trace", model}), text);
  expect(Fusebox({"bench", model, "--trace", model}), text);
  expect(Fusebox({"convert", model, "-o", Path("o.tflite"), "--trace", model}), text);
  expect(Fusebox({"convert", model, "-o", Path("o.tflite"), "--trace", Path("o.tflite")}), "another output");
  expect(Fusebox({"run", model, "--trace", Path("no/such/folder.json")}), "No such file");
  expect(Fusebox({"run", model, "--trace", ""}), "--trace");
  EXPECT_THAT(FilesBelow(Path("")), testing::ElementsAre("add.tflite"));
}

}  // namespace
}  // namespace fusebox::cli_test
