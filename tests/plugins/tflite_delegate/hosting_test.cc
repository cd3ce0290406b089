// SPDX-License-Identifier: Apache-2.0
// External delegates of TensorFlow Lite, hosted: one in C that this folder builds, and XNNPACK of stock 2.9.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Type Row(int64_t n = 2) { return {DType::kF32, Shape({n})}; }

// y = ((x + c) * x - x) * c: ADD, MUL, SUB, MUL; c = {1, 2}.
std::unique_ptr<Module> Chain(int64_t n = 2) {
  auto module = std::make_unique<Module>();
  module->source = "chain.tflite";
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(Row(n), "x");
  const ValueId c = f.AddConst<float>(DType::kF32, {2}, {1, 2});
  const auto make = [&](Op op, ValueId a, ValueId b) { return f.AddNode(op, {a, b}, {Row(n)}).results[0]; };
  const ValueId product = make(Op::kMul, make(Op::kAdd, x, c), x);
  f.outputs = {make(Op::kMul, make(Op::kSub, product, x), c)};
  return module;
}

std::shared_ptr<Registry> Hosts() { return *Plugins({FUSEBOX_TFLITE_DELEGATE}); }

Config::Delegate Hosted(const std::string& library, const std::string& mode = {}) {
  Config::Delegate out{"tflite"};
  out.options.Set("library", library);
  auto options = std::make_shared<Attrs>();
  if (!mode.empty()) options->Set("mode", mode);
  out.options.Set("options", std::shared_ptr<const Attrs>(std::move(options)));
  return out;
}

Result<std::shared_ptr<const Model>> OpenWith(std::unique_ptr<Module> module,
                                              const Config::Delegate& delegate) {
  return Model::FromModule(std::move(module), {.registry = Hosts(), .delegates = std::vector{delegate}});
}

std::vector<std::string> Runners(const std::vector<Placement>& rows) {
  std::vector<std::string> out;
  for (const auto& row : rows) out.push_back(row.runner);
  return out;
}

std::string Said(const std::vector<std::string>& notices, const std::vector<Placement>& rows) {
  std::string out;
  for (const std::string& notice : notices) out += notice + "\n";
  for (const Placement& row : rows) out += row.why + "\n";
  return out;
}

std::vector<float> Output(Session& session, const std::vector<float>& x) {
  EXPECT_TRUE(session.SetInput(0, {Row(static_cast<int64_t>(x.size())), Buffer::Of<float>(x)}));
  const Status status = session.Run();
  EXPECT_TRUE(status) << status.error().message;
  if (!status) return {};
  const auto values = session.output(0)->data.As<float>();
  return {values.begin(), values.end()};
}

TEST(HostedDelegate, RunsAllOfAGraph) {
  const auto model = OpenWith(Chain(), Hosted(FUSEBOX_VENDOR));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_THAT(Runners((*model)->placements()), Each("tflite (partition 0)"));
  for (int i = 0; i < 2; ++i) {
    const auto session = *Session::Create(*model);
    EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(9, 40));
    EXPECT_THAT(Output(*session, {1, 2}), ElementsAre(1, 12));
    EXPECT_EQ(Said(session->notices(), {}), "");
  }
}

TEST(HostedDelegate, RunsSomeNodes) {
  const auto model = OpenWith(Chain(), Hosted(FUSEBOX_VENDOR, "some"));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_THAT(Runners((*model)->placements()),
              ElementsAre("tflite (partition 0)", "fusebox.cpu", "fusebox.cpu", "fusebox.cpu"));
  EXPECT_THAT(Output(**Session::Create(*model), {3, 4}), ElementsAre(9, 40));
}

TEST(HostedDelegate, ReadsHalfFloatsThatItDequantizes) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(Row(), "x");
  const ValueId half = f.AddConst<uint16_t>(DType::kF16, {2}, {0x3c00, 0xc200});  // 1, -3
  const ValueId c = f.AddNode(Op::kDequantize, {half}, {Row()}).results[0];
  f.outputs = {f.AddNode(Op::kAdd, {x, c}, {Row()}).results[0]};
  const auto model = OpenWith(std::move(module), Hosted(FUSEBOX_VENDOR));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_THAT(Runners((*model)->placements()), Contains("tflite (partition 0)"));
  EXPECT_THAT(Output(**Session::Create(*model), {3, 4}), ElementsAre(4, 1));
}

TEST(HostedDelegate, RunsUnpackedWeightsWhereTheyAreRead) {
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput(Row(), "x");
  const ValueId half = f.AddConst<uint16_t>(DType::kF16, {2}, {0x3c00, 0xc200});  // 1, -3
  const auto make = [&](Op op, std::vector<ValueId> operands) {
    return f.AddNode(op, std::move(operands), {Row()}).results[0];
  };
  const ValueId c = make(Op::kDequantize, {half});
  f.outputs = {make(Op::kMul, {make(Op::kAbs, {make(Op::kAdd, {x, x})}), c})};
  const auto model = OpenWith(std::move(module), Hosted(FUSEBOX_VENDOR));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_THAT(Runners((*model)->placements()), ElementsAre("tflite (partition 1)", "tflite (partition 0)",
                                                           "fusebox.cpu", "tflite (partition 1)"));
  EXPECT_THAT(Output(**Session::Create(*model), {3, -4}), ElementsAre(6, -24));
}

// Whatever a delegate does, the kernels compute the result, and a reason is shown.
struct Failure {
  const char *mode, *reason;
};
void PrintTo(const Failure& failure, std::ostream* out) { *out << failure.mode; }
class Failures : public ::testing::TestWithParam<Failure> {};

TEST_P(Failures, LeaveTheModelToKernels) {
  const auto model = OpenWith(Chain(), Hosted(FUSEBOX_VENDOR, GetParam().mode));
  ASSERT_TRUE(model) << model.error().message;
  const auto session = *Session::Create(*model);
  EXPECT_THAT(Output(*session, {3, 4}), ElementsAre(9, 40));
  EXPECT_THAT(
      Said((*model)->notices(), (*model)->placements()) + Said(session->notices(), session->placements()),
      HasSubstr(GetParam().reason));
  EXPECT_THAT(Output(*session, {1, 2}), ElementsAre(1, 12));
}

INSTANTIATE_TEST_SUITE_P(
    HostedDelegate, Failures,
    ::testing::Values(Failure{"apply", "the delegate fails in Prepare: no device"},
                      Failure{"prepare", "a kernel of the delegate fails in prepare: no memory for 4 nodes"},
                      Failure{"invoke", "a kernel of the delegate fails in invoke: the device is gone"},
                      Failure{"dynamic", "an output has a size that depends on values"},
                      Failure{"shape", "an output has other dims than in the graph"},
                      Failure{"metadata",
                              "the delegate called GetModelMetadata, which Fusebox does not offer"},
                      Failure{"scratch", "called RequestScratchBufferInArena, which Fusebox does not offer"}),
    [](const auto& info) { return std::string(info.param.mode); });

// Chain with rows of a batch.
std::unique_ptr<Module> Rows(int64_t batch) {
  auto module = Chain();
  Function& f = *module->functions[0];
  const Type type{DType::kF32, Shape({batch, 2})};
  f.value(f.inputs[0]).type = type;
  for (const auto& node : f.nodes) f.value(node->results[0]).type = type;
  return module;
}

void ExpectTwoRows(Session& session) {
  const Tensor input{{DType::kF32, Shape({2, 2})}, Buffer::Of<float>(std::vector<float>{3, 4, 1, 2})};
  ASSERT_TRUE(session.SetInput(0, input));
  const Status status = session.Run();
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_THAT(session.output(0)->data.As<float>(), ElementsAre(9, 40, 1, 12));
}

TEST(HostedDelegate, IsConstructedAgainForOtherDims) {
  const auto model = OpenWith(Rows(1), Hosted(FUSEBOX_VENDOR));
  ASSERT_TRUE(model) << model.error().message;
  const auto session = *Session::Create(*model);
  ASSERT_TRUE(session->Resize(0, Shape({2, 2})));
  ExpectTwoRows(*session);
  EXPECT_EQ(Said(session->notices(), {}), "");
  EXPECT_THAT(Runners(session->placements()), Each("tflite (partition 0)"));
}

TEST(HostedDelegate, RunsDimsThatTheFileLeavesUnknown) {
  const auto model = OpenWith(Rows(-1), Hosted(FUSEBOX_VENDOR));
  ASSERT_TRUE(model) << model.error().message;
  const auto session = *Session::Create(*model);
  ExpectTwoRows(*session);
  EXPECT_EQ(Said(session->notices(), {}), "");
  EXPECT_THAT(Runners(session->placements()), Each("tflite (partition 0)"));
}

std::string NoticesOf(const Config::Delegate& delegate) {
  const auto model = OpenWith(Chain(), delegate);
  if (!model) return model.error().message;
  return Said((*model)->notices(), {});
}

TEST(HostedDelegate, NamesWhatIsWrongWithALibrary) {
  EXPECT_THAT(NoticesOf(Hosted("/nowhere/libvendor.so")),
              HasSubstr("cannot load the external delegate: /nowhere/"));
  Config::Delegate unknown = Hosted(FUSEBOX_VENDOR);
  auto options = std::make_shared<Attrs>();
  options->Set("speed", "high");
  unknown.options.Set("options", std::shared_ptr<const Attrs>(std::move(options)));
  EXPECT_THAT(NoticesOf(unknown), HasSubstr("makes no delegate: an unknown option"));
}

// Its own functions make a delegate from a library that it loads itself.
TEST(HostedDelegate, RefusesTheLoaderOfStock) {
  const std::string name = "node_modules/tfjs-tflite-node/cc_deps/linux_amd64/libexternal_delegate_obj.so";
  FUSEBOX_NEEDS_PEER(name);
  std::string why;
  EXPECT_THAT(NoticesOf(Hosted(PeerFile(name, &why))),
              HasSubstr("does not export tflite_plugin_create_delegate"));
}

// Stock's own XNNPACK, on its own and hosted: the same code computes the same bits.
TEST(HostedXnnpack, ComputesWhatStockComputesWithIt) {
  FUSEBOX_NEEDS_STOCK();
  const auto written = Sample("conv_classifier");
  ASSERT_TRUE(written) << written.error().message;
  converter::Options options;
  options.registry = Hosts();
  options.batch = 1;
  const auto file = Convert(*written, options, "net");
  ASSERT_TRUE(file) << file.error().message;
  std::string why;
  Config::Delegate xnnpack{"tflite"};
  xnnpack.options.Set("library", PeerFile("libtensorflowlite_c.so", &why));
  xnnpack.options.Set("create", "TfLiteXNNPackDelegateCreate");
  xnnpack.options.Set("destroy", "TfLiteXNNPackDelegateDelete");
  const auto model = Model::Open(file->path, {.registry = Hosts(), .delegates = std::vector{xnnpack}});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_THAT(Runners((*model)->placements()), Contains("tflite (partition 0)"));
  const auto session = *Session::Create(*model);
  auto stock = Stock::WithXnnpack(file->path);
  ASSERT_TRUE(stock) << stock.error().message;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Tensors inputs = RandomInputs(*session, seed);
    const auto ours = Invoke(*session, inputs);
    const auto theirs = (*stock)->Invoke(inputs);
    ASSERT_TRUE(ours) << ours.error().message;
    ASSERT_TRUE(theirs) << theirs.error().message;
    EXPECT_EQ(Difference(*ours, *theirs, 0, 0), "");
  }
  EXPECT_EQ(Said(session->notices(), {}), "");
}

}  // namespace
}  // namespace fusebox::testing
