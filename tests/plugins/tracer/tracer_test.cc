// SPDX-License-Identifier: Apache-2.0
// samples/plugins/tracer: models compute the same bits with and without it, and it measures their nodes.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "host/graph/npy.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kTracer = FUSEBOX_BUILD_DIR "/sample_plugins/com.acme.tracer";

std::shared_ptr<const Model> Opened(const std::string& path, bool traced, const std::string& report = {}) {
  const auto registry = Plugins({kTracer});
  EXPECT_TRUE(registry) << registry.error().message;
  std::vector<Config::Delegate> delegates;
  if (traced) delegates.push_back({"tracer"});
  if (traced && !report.empty()) delegates[0].options.Set("report", report);
  auto model = Model::Open(path, {.registry = *registry, .delegates = delegates});
  EXPECT_TRUE(model) << model.error().message;
  return model ? *model : nullptr;
}

std::unique_ptr<Session> SessionOf(const std::shared_ptr<const Model>& model,
                                   const SessionOptions& options = {}) {
  auto session = Session::Create(model, options);
  EXPECT_TRUE(session) << session.error().message;
  return session ? *std::move(session) : nullptr;
}

// With the bits of each output.
std::vector<std::string> Bits(Session& session, const Tensors& inputs) {
  const auto outputs = Invoke(session, inputs);
  EXPECT_TRUE(outputs) << outputs.error().message;
  std::vector<std::string> bits;
  for (const Tensor& output : outputs ? *outputs : Tensors())
    bits.push_back(ToString(output.type) +
                   std::string(reinterpret_cast<const char*>(output.data.data()), output.data.size()));
  return bits;
}

// Inputs whose unknown dims are `size`.
Tensors Inputs(const Session& session, int64_t size, uint64_t seed) {
  Tensors inputs;
  for (const Session::Slot& slot : session.inputs()) {
    Type type = slot.type;
    for (int64_t& dim : type.shape.dims()) dim = dim < 0 ? size : dim;
    inputs.push_back(Random(type, seed++));
  }
  return inputs;
}

size_t TracedNodes(const Session& session, std::string_view who = "tracer") {
  return static_cast<size_t>(std::ranges::count_if(
      session.placements(), [&](const Placement& row) { return row.runner.starts_with(who); }));
}

struct Case {
  const char* sample;
  converter::Quantization quantization = converter::Quantization::kNone;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.sample; }
class Traced : public ::testing::TestWithParam<Case> {};

// Calibration data for the only input of a model.
std::string Calibration(const std::string& name, Type type) {
  const std::string dir = TestDir() + "/calibration";
  std::filesystem::create_directories(dir);
  type.shape.dims()[0] = 8;
  EXPECT_TRUE(WriteNpy(dir + "/" + name + ".npy", Random(type, 9)));
  return dir;
}

TEST_P(Traced, ModelsComputeTheSameBits) {
  const auto sample = Sample(GetParam().sample);
  ASSERT_TRUE(sample);
  converter::Options options;
  options.registry = *Plugins({"fusebox.null"});
  options.quantization = GetParam().quantization;
  if (options.quantization == converter::Quantization::kInt8)
    options.calibration = Calibration("image", {DType::kF32, {8, 16, 16, 3}});
  const auto file = Convert(*sample, options, "traced");
  ASSERT_TRUE(file) << file.error().message;
  const auto kernels = SessionOf(Opened(file->path, false));
  const auto model = Opened(file->path, true);
  const auto traced = SessionOf(model), other = SessionOf(model, {.threads = 3});
  for (const int64_t size : {2, 1, 3, 2}) {
    const Tensors inputs = Inputs(*kernels, size, static_cast<uint64_t>(size));
    const auto expected = Bits(*kernels, inputs);
    EXPECT_EQ(Bits(*traced, inputs), expected) << size;
    EXPECT_EQ(Bits(*other, inputs), expected) << size;
  }
  EXPECT_GT(TracedNodes(*traced), 0u);
  EXPECT_THAT(traced->notices(), IsEmpty());
  EXPECT_THAT(model->notices(), IsEmpty());
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  static const char* const kSuffixes[] = {"", "_f16", "_dynamic", "_int8"};
  return std::string(info.param.sample) + kSuffixes[static_cast<size_t>(info.param.quantization)];
}

INSTANTIATE_TEST_SUITE_P(Tracer, Traced,
                         ::testing::Values(Case{"dense"}, Case{"conv_classifier"}, Case{"keras3_attention"},
                                           Case{"keras_lstm"}, Case{"bidirectional_lstm"},
                                           Case{"stateful_lstm"}, Case{"counter"}, Case{"dense_image_warp"},
                                           Case{"non_max_suppression"},
                                           Case{"conv_classifier", converter::Quantization::kInt8},
                                           Case{"keras_lstm", converter::Quantization::kDynamic},
                                           Case{"dense", converter::Quantization::kFloat16}),
                         NameOf);

std::string Dense(int64_t batch = 2) {
  converter::Options options;
  options.registry = *Plugins({"fusebox.null"});
  if (batch > 0) options.batch = batch;
  const auto file = Convert(*Sample("dense"), options, "traced");
  EXPECT_TRUE(file) << file.error().message;
  return file ? file->path : "";
}

std::vector<std::string> Lines(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> Columns(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> columns;
  for (std::string column; std::getline(in, column, '\t');) columns.push_back(column);
  return columns;
}

TEST(Tracer, WritesItsReportWhenTheModelIsClosed) {
  const std::string report = TestDir() + "/trace.tsv";
  size_t nodes = 0;
  {
    const auto model = Opened(Dense(), true, report);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        const auto session = SessionOf(model);
        for (int run = 0; run < 5; ++run) EXPECT_THAT(Bits(*session, Inputs(*session, 2, 1)), Not(IsEmpty()));
      });
    }
    for (std::thread& thread : threads) thread.join();
    nodes = TracedNodes(*SessionOf(model), "tracer (partition 0)");
    EXPECT_FALSE(std::filesystem::exists(report));
  }
  const auto lines = Lines(report);
  ASSERT_EQ(lines.size(), nodes + 1);
  EXPECT_THAT(Columns(lines[0]), ElementsAre("partition", "index", "runs", "microseconds", "op", "node"));
  for (size_t i = 1; i < lines.size(); ++i) {
    const auto columns = Columns(lines[i]);
    ASSERT_GE(columns.size(), 5u);
    EXPECT_THAT(columns[0], HasSubstr("tracer (partition 0)"));
    EXPECT_EQ(columns[1], std::to_string(i - 1));
    EXPECT_EQ(columns[2], "15");
    EXPECT_GT(std::stod(columns[3]), 0);
  }
  EXPECT_EQ(Columns(lines[1])[4], "FULLY_CONNECTED");
}

TEST(Tracer, AddsSpansToAProfile) {
  const auto session = SessionOf(Opened(Dense(), true), {.profile = true});
  for (int i = 0; i < 4; ++i) Bits(*session, Inputs(*session, 2, 1));
  const auto times = session->times();
  const auto partition =
      std::ranges::find_if(times, [](const NodeTime& row) { return row.op == "PARTITION"; });
  ASSERT_NE(partition, times.end());
  ASSERT_FALSE(partition->spans.empty());
  EXPECT_EQ(partition->spans[0].name, "FULLY_CONNECTED");
  EXPECT_EQ(partition->spans[0].count % 4, 0u);
  EXPECT_LE(partition->spans[0].total_ns, partition->total_ns);
}

TEST(Tracer, LeavesSizesThatDependOnDataToKernels) {
  const auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput({DType::kBool, {4}}, "x");
  f.outputs = {f.AddNode(Op::kWhere, {x}, {{DType::kI64, {-1, 1}}}).results[0]};
  auto copy = std::make_unique<Module>(std::move(*module));
  const auto model = Model::FromModule(
      std::move(copy),
      {.registry = *Plugins({kTracer}), .delegates = std::vector{Config::Delegate{"tracer"}}});
  ASSERT_TRUE(model) << model.error().message;
  const auto session = SessionOf(*model);
  EXPECT_THAT(Bits(*session, Inputs(*session, 4, 1)), Not(IsEmpty()));
  EXPECT_THAT(session->placements()[0].why, HasSubstr("its size depends on data"));
}

}  // namespace
}  // namespace fusebox::testing
