// SPDX-License-Identifier: Apache-2.0
// What an LSTM of integers starts from, and what shares its output's scale.
#include <gmock/gmock.h>

#include "tests/peers/lstm_int8.h"
#include "tests/peers/lstm_net.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::ElementsAre;

struct Net {
  std::unique_ptr<Module> module = LstmNet().Module();
  Function& f = *module->functions[0];

  Node& Lstm() { return *f.nodes.back(); }
  IntegerForm Stored() {
    auto form = ToIntegers(*module, "states", NoiseSamples(*module, 20));
    EXPECT_TRUE(form) << form.error().message;
    return form ? *std::move(form) : IntegerForm();
  }
};

const Quant& OutputOf(const IntegerForm& form) {
  return *form.function().value(form.lstm().results[0]).quant;
}

TEST(LstmStates8, AreRoundedOnce) {
  Net net;
  const IntegerForm form = net.Stored();
  const Function& f = form.function();
  const Uses uses(f);
  for (const size_t operand : {18, 19}) {
    const Node* rounding = uses.producer(form.lstm().operands[operand]);
    ASSERT_TRUE(rounding && rounding->is(Op::kQuantize)) << operand;
    const ValueId from = rounding->operands[0];
    EXPECT_EQ(f.value(from).type.dtype, DType::kF32);
    const Node* before = uses.producer(from);
    EXPECT_TRUE(!before || before->is(Op::kMul)) << operand << ": " << Name(before->op);
  }
  EXPECT_EQ(form.notes, "");
}

// The f32 zeros are not in the file any more.
TEST(LstmStates8, OfZerosAreNotSpokenOf) {
  Net net;
  for (const size_t operand : {18, 19}) {
    Node& state = *Uses(net.f).producer(net.Lstm().operands[operand]);
    const ValueId dims = net.f.AddConst<int32_t>(DType::kI32, {2}, {1, 8});
    state.op = Op::kFill;
    state.operands = {dims, net.f.AddConst<float>(DType::kF32, Shape::Scalar(), {0})};
    state.attrs = {};
  }
  EXPECT_EQ(net.Stored().notes, "");
}

// A file of integers may be converted once more.
TEST(LstmStates8, AreConvertedAgain) {
  for (const bool projection : {false, true}) {
    for (const std::string state : {"computed", "zero", "constant"}) {
      Net net;
      if (projection) net.module = LstmNet{.outputs = 5, .layer_norm = true}.Module();
      Function& f = *net.module->functions[0];
      for (const size_t operand : {18, 19}) {
        if (state == "computed") break;
        const ValueId v = f.nodes.back()->operands[operand];
        std::vector<float> values(static_cast<size_t>(f.value(v).type.shape[1]));
        if (state == "constant") values[1] = 0.5F;
        Uses(f).producer(v)->operands[0] = f.AddConst(Floats({1, f.value(v).type.shape[1]}, values));
      }
      auto form = ToIntegers(*net.module, "again", NoiseSamples(*net.module, 5));
      ASSERT_TRUE(form) << form.error().message;
      const auto registry = Plugins();
      converter::Options options;
      options.registry = *registry;
      auto conversion = converter::FromTflite(form->path);
      conversion.options = options;
      const auto converted = conversion.Convert();
      ASSERT_TRUE(converted) << state << ": " << converted.error().message;
      const std::string path = TestDir() + "/again.tflite";
      const Status written = converted->Write(path);
      ASSERT_TRUE(written) << state << ": " << written.error().message;
      const auto first = Open(form->path, *registry), second = Open(path, *registry);
      ASSERT_TRUE(first && second) << (first ? second : first).error().message;
      const Tensors inputs = RandomInputs(**first, 3);
      const auto a = Invoke(**first, inputs), b = Invoke(**second, inputs);
      ASSERT_TRUE(a && b) << (a ? b : a).error().message;
      EXPECT_EQ(Difference(*a, *b, 0, 0), "") << state;
    }
  }
}

// From 0 to 1 in 256 steps would leave no negative outputs.
TEST(LstmStates8, OfAFixedScaleDoNotSetTheOutputs) {
  Net net;
  Node& h = *Uses(net.f).producer(net.Lstm().operands[18]);
  h.op = Op::kLogistic;
  h.operands = {h.operands[0]};
  h.attrs = {};
  const IntegerForm form = net.Stored();
  EXPECT_EQ(form.TypeOf(18), "i8");
  EXPECT_THAT(OutputOf(form).zero_points, ElementsAre(0));
}

TEST(LstmStates8, DoNotShareTheScaleOfWhatTheOutputIsJoinedWith) {
  Net net;
  const ValueId z = net.f.AddInput({DType::kF32, {1, 4, 8}}, "z"), output = net.Lstm().results[0];
  const ValueId thousand = net.f.AddConst<float>(DType::kF32, Shape::Scalar(), {1000});
  const Type type = net.f.value(z).type;
  const ValueId wide = net.f.AddNode(Op::kMul, {z, thousand}, {type}).results[0];
  Attrs last;
  last.Set("axis", int64_t{2});
  net.f.outputs[0] =
      net.f.AddNode(Op::kConcatenation, {output, wide}, {{DType::kF32, {1, 4, 16}}}, last).results[0];
  const IntegerForm form = net.Stored();
  EXPECT_LT(OutputOf(form).scales[0], 1.01 / 127) << "outputs are below 1";
}

// One step of a sequence, whose states nobody gives: the session keeps them. What it forgets is next to
// nothing.
struct Keeping : Net {
  static constexpr int64_t kCalls = 20;
  Keeping() {
    module = LstmNet{.steps = 1}.Module();
    Function& kept = *module->functions[0];
    for (const size_t operand : {18, 19}) {
      const ValueId state = kept.nodes.back()->operands[operand];
      std::erase_if(kept.nodes, [&](const auto& node) { return node->results[0] == state; });
      kept.value(state).is_variable = true;
    }
    kept.inputs.resize(1);
    module->signatures.clear();
    Value& bias = kept.value(kept.nodes.back()->operands[13]);
    bias.data = Buffer::Of<float>(std::vector<float>(8, 5.0F));
  }
  Result<IntegerForm> After(int64_t calls) const {
    const std::vector<float> ones(static_cast<size_t>(calls * 5), 1.0F);
    return ToIntegers(*module, "kept" + std::to_string(calls), {Floats({calls, 1, 1, 5}, ones)});
  }
};

TEST(LstmStates8, OfASessionAreCalibratedCallByCall) {
  const Keeping net;
  const auto one = net.After(1), all = net.After(Keeping::kCalls);
  ASSERT_TRUE(one && all) << (one ? all : one).error().message;
  const auto registry = Plugins();
  const auto session = Open(all->plain, *registry);
  ASSERT_TRUE(session) << session.error().message;
  float largest = 0;
  for (int64_t call = 0; call < Keeping::kCalls; ++call) {
    const auto out = Invoke(**session, {Floats({1, 1, 5}, std::vector<float>(5, 1.0F))});
    ASSERT_TRUE(out) << out.error().message;
    for (const float c : (*out)[2].data.As<float>()) largest = std::max(largest, std::abs(c));
  }
  const float first = one->QuantOf(19).scales[0], last = all->QuantOf(19).scales[0];
  EXPECT_LT(first * 32768, largest) << "too short a sequence to tell";
  EXPECT_GE(last * 32768, largest);
  EXPECT_LT(last * 16384, largest) << "a power of two, and no more";
}

}  // namespace
}  // namespace fusebox::testing
