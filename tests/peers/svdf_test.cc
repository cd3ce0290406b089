// SPDX-License-Identifier: Apache-2.0
// SVDF of every form beside stock TFLite's, over calls that remember one another; and the published files.
#include <gtest/gtest.h>

#include "host/tflite/tflite.h"
#include "tests/plugins/xnnpack/net.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

using xnnpack_test::Net;
using xnnpack_test::Noise;

enum class Form { kFloat, kHybrid, kHybridAsymmetric, kInteger };

struct SvdfNet {
  std::string name;
  Form form = Form::kFloat;
  int64_t batch = 1, inputs = 20, units = 8, rank = 1, memory = 6;
  std::string activation = "NONE";
  bool bias = true;

  std::unique_ptr<Module> Make() const {
    Net net;
    const bool integer = form == Form::kInteger;
    const DType type = integer ? DType::kI8 : DType::kF32, of_state = integer ? DType::kI16 : DType::kF32;
    const ValueId x =
        net.Input(type, {batch, inputs}, integer ? xnnpack_test::Q{0.02F, 5} : xnnpack_test::Q{});
    std::vector<ValueId> operands = {x, Features(net), Times(net), Bias(net)};
    const xnnpack_test::Q q = integer ? xnnpack_test::Q{0.0005F, 0} : xnnpack_test::Q{};
    const Dims dims = {batch, units * rank * memory};
    const ValueId state = net.function().AddValue(net.Of(of_state, dims), "state");
    net.function().value(state).is_variable = true;
    operands.push_back(state);
    Attrs attrs;
    attrs.Set("rank", rank);
    attrs.Set("fused_activation_function", activation);
    if (form == Form::kHybridAsymmetric) attrs.Set("asymmetric_quantize_inputs", true);
    Node& node = net.function().AddNode(
        Op::kSvdf, operands, {net.Of(type, {batch, units}), net.Of(of_state, dims)}, std::move(attrs));
    const auto quantize = [&](ValueId id, float scale, int64_t zero) {
      net.function().value(id).quant =
          std::make_shared<const Quant>(Quant{.scales = {scale}, .zero_points = {zero}});
    };
    if (integer) {
      for (const ValueId id : {state, node.results[1]}) quantize(id, q.scale, 0);
      quantize(node.results[0], 0.02F, activation == "RELU" ? -128 : 4);
    }
    return net.Take({node.results[0]});
  }

 private:
  size_t Count(int64_t rows, int64_t columns) const { return static_cast<size_t>(rows * columns); }
  ValueId Features(Net& net) const {
    const int64_t filters = units * rank;
    if (form == Form::kFloat)
      return net.Const(DType::kF32, {filters, inputs}, Noise<float>(Count(filters, inputs), 1, -0.5, 0.5));
    return net.Const(DType::kI8, {filters, inputs}, Noise<int8_t>(Count(filters, inputs), 1, -127, 127),
                     {{0.004F, 0}});
  }
  ValueId Times(Net& net) const {
    const int64_t filters = units * rank;
    if (form == Form::kFloat)
      return net.Const(DType::kF32, {filters, memory}, Noise<float>(Count(filters, memory), 2, -0.5, 0.5));
    if (form == Form::kInteger)
      return net.Const(DType::kI16, {filters, memory},
                       Noise<int16_t>(Count(filters, memory), 2, -32767, 32767), {{0.00001F, 0}});
    return net.Const(DType::kI8, {filters, memory}, Noise<int8_t>(Count(filters, memory), 2, -127, 127),
                     {{0.004F, 0}});
  }
  ValueId Bias(Net& net) const {
    if (!bias) return kNoValue;
    if (form == Form::kInteger)
      return net.Const(DType::kI32, {units}, Noise<int32_t>(Count(units, 1), 3, -100000, 100000),
                       {{0.0005F * 0.00001F, 0}});
    return net.Const(DType::kF32, {units}, Noise<float>(Count(units, 1), 3, -0.3, 0.3));
  }
};

// Both keep what they remember over eight calls. `bound`: 0 for the same bits.
void ExpectAgreement(const std::string& path, double bound) {
  auto stock = Stock::Open(path);
  auto session = Open(path, *Plugins());
  ASSERT_TRUE(stock) << stock.error().message;
  ASSERT_TRUE(session) << session.error().message;
  for (uint32_t call = 0; call < 8; ++call) {
    const Tensors inputs = RandomInputs(**session, call + 1);
    const auto ours = Invoke(**session, inputs), theirs = (*stock)->Invoke(inputs);
    ASSERT_TRUE(ours) << ours.error().message;
    ASSERT_TRUE(theirs) << theirs.error().message;
    EXPECT_EQ(Difference(*ours, *theirs, bound, bound), "") << "call " << call;
  }
}

TEST(SvdfPeers, EveryFormAgreesWithStock) {
  FUSEBOX_NEEDS_STOCK();
  const std::vector<SvdfNet> nets = {
      {.name = "plain"},
      {.name = "batches", .batch = 3, .rank = 2, .activation = "RELU"},
      {.name = "no_bias", .memory = 1, .bias = false},
      {.name = "hybrid", .form = Form::kHybrid, .batch = 2, .rank = 2},
      {.name = "hybrid_relu", .form = Form::kHybrid, .inputs = 33, .activation = "RELU"},
      {.name = "hybrid_asymmetric", .form = Form::kHybridAsymmetric, .batch = 2},
      {.name = "int", .form = Form::kInteger, .activation = "RELU"},
      {.name = "int_batches",
       .form = Form::kInteger,
       .batch = 3,
       .rank = 2,
       .memory = 10,
       .activation = "RELU"},
      {.name = "int_many",
       .form = Form::kInteger,
       .batch = 9,
       .inputs = 131,
       .units = 37,
       .rank = 3,
       .memory = 7,
       .activation = "RELU"},
      {.name = "int_no_bias", .form = Form::kInteger, .activation = "RELU", .bias = false}};
  for (const SvdfNet& net : nets) {
    SCOPED_TRACE(net.name);
    const std::string path = TestDir() + "/" + net.name + ".tflite";
    ASSERT_TRUE(tflite::WriteFile(*net.Make(), path));
    ExpectAgreement(path, net.form == Form::kInteger ? 0 : 1e-5);
  }
}

// Stock crashes on its twin with times of 8 bits, which a later TFLite added.
TEST(SvdfPeers, ARealKeywordSpotterAgreesWithStock) {
  FUSEBOX_NEEDS_STOCK();
  FUSEBOX_NEEDS_MODEL(
      path, "tflite/tensorflow__tflite-micro/tensorflow/lite/micro/models/keyword_scrambled.tflite");
  ExpectAgreement(path, 0);
}

}  // namespace
}  // namespace fusebox::testing
