// SPDX-License-Identifier: Apache-2.0
// Two LSTM layers, one behind the other: the second one's state is made for the batch of what the first one
// gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samples/models/lstm_function.h"
#include "samples/models/models.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::HasSubstr;

// [batch, units] of zeros, as Keras makes them.
models::Ref ZeroState(models::FunctionBuilder& f, const models::Ref& x, const samples::LstmOptions& o) {
  using namespace samples;
  const Ref shape = f.Op("Shape", {x}, {3}, {Attr("out_type", tf::DT_INT32)});
  const Ref batch =
      f.Op("StridedSlice",
           {shape, f.Const(Ints({0}), "begin"), f.Const(Ints({1}), "end"), f.Const(Ints({1}), "by")}, kScalar,
           {Attr("shrink_axis_mask", 1)});
  const Ref dims = f.Op("Pack", {batch, f.Const(Int(o.units), "units")}, {2});
  return f.Op("Fill", {dims, f.Const(Float(0), "zero")}, {o.batch, o.units});
}

// LSTM(32, return_sequences) -> LSTM(16), weights of Keras' first size.
std::string WriteStacked(uint64_t seed) {
  using namespace samples;
  models::Random random(seed);
  SavedModelBuilder model;
  const LstmOptions first{.steps = 10, .inputs = 8, .units = 32, .return_sequences = true},
      second{.steps = 10, .inputs = 32, .units = 16};
  struct Layer {
    const LstmOptions& options;
    std::vector<VariableRef> weights;
    const FunctionBuilder* function;
  };
  std::vector<Layer> layers;
  for (const LstmOptions* o : {&first, &second}) {
    const std::string name = o == &first ? "first" : "second";
    const int64_t n = o->inputs, u = o->units;
    Layer layer{*o, {}, nullptr};
    layer.weights.push_back(
        model.AddVariable(name + "/kernel", random.Weights({n, 4 * u}), name + "/kernel"));
    layer.weights.push_back(
        model.AddVariable(name + "/recurrent", random.Weights({u, 4 * u}), name + "/recurrent"));
    layer.weights.push_back(
        model.AddVariable(name + "/bias", random.Uniform({4 * u}, -0.2f, 0.2f), name + "/bias"));
    layer.function = &AddLstmFunction(model, *o, "00000000-0000-4000-a000-" + name);
    layers.push_back(std::move(layer));
  }
  FunctionBuilder& f = model.AddFunction("__inference_call");
  Ref x = f.Arg("x", tf::DT_FLOAT, {first.batch, first.steps, first.inputs});
  for (const Layer& layer : layers) {
    std::vector<Ref> operands = {x, ZeroState(f, x, layer.options), ZeroState(f, x, layer.options)};
    for (const VariableRef weight : layer.weights) operands.push_back(f.Read(weight));
    x = f.Call(*layer.function, operands)[layer.options.return_sequences ? 1 : 0];
  }
  f.Return({x});
  model.AddSignature("serving_default", f, {"x"}, {"h"});
  const std::string dir = TestDir() + "/model";
  const Status written = model.Write(dir);
  EXPECT_TRUE(written) << written.error().message;
  return dir;
}

// Values of every class, the large ones too, whose sums round far from where an f64 body has them.
TEST(StackedLstms, AreProvedWithTheBatchOfTheirInputsWhateverItIs) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const std::string dir = WriteStacked(seed);
    for (const std::optional<int64_t> batch : {std::optional<int64_t>(1), std::optional<int64_t>(4), {}}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", batch " + std::to_string(batch.value_or(-1)));
      converter::Options options;
      options.batch = batch;
      options.registry = *Plugins({"fusebox.rnn"});
      options.verify = converter::Verification::kStrict;
      const auto fused = Convert(dir, options, "fused");
      ASSERT_TRUE(fused) << fused.error().message;
      EXPECT_FALSE(fused->report.verification_failed);
      ASSERT_EQ(fused->report.sites.size(), 2u);
      for (const SiteReport& site : fused->report.sites) {
        EXPECT_TRUE(site.fused) << site.why;
        EXPECT_THAT(site.verification, HasSubstr("agrees (f64"));
      }
    }
  }
}

}  // namespace
}  // namespace fusebox::testing
