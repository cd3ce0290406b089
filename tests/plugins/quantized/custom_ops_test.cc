// SPDX-License-Identifier: Apache-2.0
// Custom ops of a plugin in 8 bits: a .tflite file is converted on the command line and run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <random>

#include "host/fusion/fusion.h"
#include "host/graph/npy.h"
#include "host/tflite/tflite.h"
#include "models/saved_model/saved_model_builder.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

constexpr int64_t kInputs = 32, kUnits = 24;
constexpr int kSamples = 200;

const std::vector<std::string> kPlugins = {FUSEBOX_ACME_PRODUCT, "fusebox.rnn"};

std::vector<float> Noise(size_t count, unsigned seed, float size = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-size, size);
  std::vector<float> out(count);
  for (float& value : out) value = values(random);
  return out;
}

// Files of this test's model before and after conversion.
struct CustomNet {
  Module module;
  Function& f = module.Add("main");
  std::string file = TestDir() + "/before.tflite", made = TestDir() + "/after.tflite";
  CommandResult command;

  ValueId In(std::vector<int64_t> dims) { return f.AddInput({DType::kF32, Shape(std::move(dims))}); }
  ValueId C(std::vector<int64_t> dims, unsigned seed, float size = 1) {
    const Shape shape(std::move(dims));
    return f.AddConst<float>(DType::kF32, shape,
                             Noise(static_cast<size_t>(*shape.element_count()), seed, size));
  }
  ValueIds Custom(const std::string& op, ValueIds operands, std::vector<std::vector<int64_t>> results) {
    std::vector<Type> types;
    for (auto& dims : results) types.push_back({DType::kF32, Shape(std::move(dims))});
    Node& node = f.AddNode(Op::kCustom, std::move(operands), std::move(types));
    node.name = op;
    node.version = 1;
    return node.results;
  }
  ValueId Product(const std::string& op, ValueId x, int64_t inputs = kInputs) {
    return Custom(op, {x, C({kUnits, inputs}, 1), C({kUnits}, 2)}, {{1, kUnits}})[0];
  }

  std::string Calibration() const {
    const std::string dir = TestDir() + "/calibration";
    std::filesystem::create_directories(dir);
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      std::vector<int64_t> dims = f.value(f.inputs[i]).type.shape.dims();
      dims.insert(dims.begin(), kSamples);
      const Shape shape(dims);
      const auto count = static_cast<size_t>(*shape.element_count());
      EXPECT_TRUE(WriteNpy(dir + "/in" + std::to_string(i) + ".npy",
                           Floats(shape, Noise(count, static_cast<unsigned>(i)))));
    }
    return dir;
  }

  // Writes and converts the model.
  std::unique_ptr<Module> Quantize(ValueId output, const std::string& as) {
    f.outputs = {output};
    Signature signature{"main", "main", {}, {"y"}};
    for (size_t i = 0; i < f.inputs.size(); ++i) signature.input_names.push_back("x" + std::to_string(i));
    module.signatures = {signature};
    RecordFused(module);
    const Status written = tflite::WriteFile(module, file);
    EXPECT_TRUE(written) << written.error().message;
    std::vector<std::string> arguments = {
        "convert", file, "-o", made, "--quantize", as, "--explain", "--calibration", Calibration()};
    for (const std::string& plugin : kPlugins) {
      arguments.push_back("--plugin");
      arguments.push_back(plugin.starts_with('/') ? plugin : FUSEBOX_BUILD_DIR "/plugins/" + plugin);
    }
    command = Fusebox(arguments);
    EXPECT_EQ(command.status, 0) << command.err;
    auto read = tflite::ReadFile(made);
    EXPECT_TRUE(read) << read.error().message;
    return read ? *std::move(read) : std::make_unique<Module>();
  }
  std::string Explanation() const { return command.out + command.err; }

  // Largest error of the outputs over inputs that were not calibrated on.
  double Error() const {
    double largest = 0;
    auto before = Open(file, *Plugins(kPlugins)), after = Open(made, *Plugins(kPlugins));
    EXPECT_TRUE(before && after) << (before ? after : before).error().message;
    if (!before || !after) return 1e9;
    for (uint64_t seed = 1; seed < 10; ++seed) {
      const auto inputs = RandomInputs(**before, seed);
      const auto was = Invoke(**before, inputs), is = Invoke(**after, inputs);
      EXPECT_TRUE(was && is);
      const auto a = (*was)[0].data.As<float>(), b = (*is)[0].data.As<float>();
      for (size_t i = 0; i < a.size(); ++i)
        largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
    }
    return largest;
  }
};

// A SavedModel whose function acme.dense is x W + b.
std::string WriteDense() {
  models::SavedModelBuilder model;
  models::Random random(1);
  const auto w = model.AddVariable("w", random.Uniform({kInputs, kUnits}, -1, 1), "w");
  const auto b = model.AddVariable("b", random.Uniform({kUnits}, -1, 1), "b");
  models::FunctionBuilder& dense = model.AddFunction("__inference_dense");
  dense.SetAttr(models::Attr("_implements", "acme.dense"));
  const Shape y{1, kUnits};
  const auto x = dense.Arg("x", tf::DT_FLOAT, {1, kInputs});
  const auto weights = dense.Arg("w", tf::DT_FLOAT, {kInputs, kUnits});
  const auto bias = dense.Arg("b", tf::DT_FLOAT, {kUnits});
  dense.Return({dense.Op("BiasAdd", {dense.Op("MatMul", {x, weights}, y), bias}, y)});
  models::FunctionBuilder& f = model.AddFunction("__inference_call");
  f.Return(f.Call(dense, {f.Arg("x", tf::DT_FLOAT, {1, kInputs}), f.Read(w), f.Read(b)}));
  model.AddSignature("serving_default", f, {"x"}, {"y"});
  const std::string dir = TestDir() + "/dense";
  const Status written = model.Write(dir);
  EXPECT_TRUE(written) << written.error().message;
  return dir;
}

std::string Ops(const Module& module) {
  std::string all;
  for (const auto& node : module.functions[0]->nodes)
    all += (all.empty() ? "" : " ") + (node->is(Op::kCustom) ? node->name : std::string(Name(node->op)));
  return all;
}
const Node& CustomNode(const Module& module) {
  for (const auto& node : module.functions[0]->nodes)
    if (node->is(Op::kCustom)) return *node;
  return *module.functions[0]->nodes[0];
}
const Value& OperandValue(const Module& module, size_t i) {
  return module.functions[0]->value(CustomNode(module).operands[i]);
}

TEST(CustomOps, HaveWeightsOf8Bits) {
  CustomNet net;
  const auto made = net.Quantize(net.Product("acme.product", net.In({1, kInputs})), "dynamic");
  EXPECT_EQ(Ops(*made), "acme.product");
  const Value& weights = OperandValue(*made, 1);
  EXPECT_EQ(weights.type.dtype, DType::kI8);
  ASSERT_TRUE(weights.quant);
  EXPECT_EQ(weights.quant->axis, 0);
  EXPECT_EQ(weights.quant->scales.size(), static_cast<size_t>(kUnits));
  EXPECT_EQ(OperandValue(*made, 2).type.dtype, DType::kF32);
  EXPECT_LT(net.Error(), 0.05);
  EXPECT_GT(net.Error(), 0);
}

TEST(CustomOps, AreIntegersThroughout) {
  CustomNet net;
  const auto made = net.Quantize(net.Product("acme.product", net.In({1, kInputs})), "int8");
  EXPECT_EQ(Ops(*made), "QUANTIZE acme.product DEQUANTIZE");
  EXPECT_EQ(OperandValue(*made, 0).type.dtype, DType::kI8);
  EXPECT_EQ(OperandValue(*made, 1).type.dtype, DType::kI8);
  ASSERT_EQ(OperandValue(*made, 2).type.dtype, DType::kI32);
  EXPECT_EQ(OperandValue(*made, 2).quant->scales.size(), static_cast<size_t>(kUnits));
  // The results reach 10 or so, in 256 steps, and are sums of 32 products of rounded numbers.
  EXPECT_LT(net.Error(), 0.2);
  EXPECT_GT(net.Error(), 0);
}

// The rule transposes the weights before they are quantized, and the body that the file keeps has the types
// of the op.
TEST(CustomOps, OfARuleAreIntegersThroughout) {
  const std::string model = WriteDense(), made = TestDir() + "/dense.tflite", data = TestDir() + "/data";
  std::filesystem::create_directories(data);
  const Shape samples{kSamples, 1, kInputs};
  ASSERT_TRUE(WriteNpy(data + "/x.npy", Floats(samples, Noise(kSamples * kInputs, 3))));
  const auto command = Fusebox({"convert", model, "-o", made, "--quantize", "int8", "--calibration", data,
                                "--verify", "strict", "--explain", "--plugin", FUSEBOX_ACME_PRODUCT});
  ASSERT_EQ(command.status, 0) << command.err;
  EXPECT_THAT(command.out, HasSubstr("verified"));
  const auto read = tflite::ReadFile(made);
  ASSERT_OK(read);
  EXPECT_EQ(Ops(**read), "QUANTIZE acme.product DEQUANTIZE");
  EXPECT_EQ(OperandValue(**read, 1).type, (Type{DType::kI8, {kUnits, kInputs}}));
  EXPECT_EQ(OperandValue(**read, 1).quant->scales.size(), static_cast<size_t>(kUnits));
  EXPECT_EQ(OperandValue(**read, 1).quant->axis, 0);
  auto fused = Open(made, *Plugins(kPlugins)), body = Open(made, *Plugins({}));
  ASSERT_OK(fused);
  ASSERT_OK(body);
  const Value& result = (*read)->functions[0]->value(CustomNode(**read).results[0]);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Tensors inputs = RandomInputs(**fused, seed);
    const auto ours = Invoke(**fused, inputs), truth = Invoke(**body, inputs);
    ASSERT_OK(ours);
    ASSERT_OK(truth);
    // One step: the body sums in f32 and rounds to the step, the kernel sums integers.
    EXPECT_EQ(Difference(*ours, *truth, 1.001 * result.quant->scales[0], 0), "");
  }
}

// The body has the weights in f32, so that f64 says nothing of the 8-bit kernel. The check runs it.
TEST(CustomOps, OfARulePassTheCheck) {
  const std::string model = WriteDense(), made = TestDir() + "/dense.tflite", data = TestDir() + "/data";
  std::filesystem::create_directories(data);
  ASSERT_TRUE(WriteNpy(data + "/x.npy", Floats({kSamples, 1, kInputs}, Noise(kSamples * kInputs, 3))));
  for (const std::string as : {"dynamic", "int8"}) {
    const auto command = Fusebox({"convert", model, "-o", made, "--quantize", as, "--calibration", data,
                                  "--plugin", FUSEBOX_ACME_PRODUCT});
    ASSERT_EQ(command.status, 0) << command.err;
    const auto verified = Fusebox({"verify", made, "--plugin", FUSEBOX_ACME_PRODUCT});
    EXPECT_EQ(verified.status, 1);
    EXPECT_THAT(verified.out,
                HasSubstr("not verified: its weights are quantized, but those of its body are not"));
    const auto checked =
        Fusebox({"plugin", "check", FUSEBOX_ACME_PRODUCT, "--model", made, "--only", "body", "--only",
                 "kernel.bounds", "--only", "kernel.sessions", "--timeout", "120"});
    EXPECT_EQ(checked.status, 0) << checked.out;
    EXPECT_THAT(checked.out, HasSubstr(" 0 failed"));
  }
}

TEST(CustomOps, StayFloatIfTheKernelDeclines) {
  for (const std::string as : {"dynamic", "int8"}) {
    CustomNet net;
    const auto made = net.Quantize(net.Product("acme.float_product", net.In({1, kInputs})), as);
    EXPECT_EQ(Ops(*made), "acme.float_product");
    EXPECT_EQ(OperandValue(*made, 1).type.dtype, DType::kF32);
    EXPECT_THAT(net.Explanation(), AllOf(HasSubstr("note: acme.float_product: "),
                                         HasSubstr("com.acme.product: DTYPE: only floats have a kernel")));
    EXPECT_EQ(net.Error(), 0);
  }
}

TEST(CustomOps, StayFloatWithoutRolesInTheManifest) {
  CustomNet net;
  const auto made = net.Quantize(net.Product("acme.plain_product", net.In({1, kInputs})), "int8");
  EXPECT_EQ(Ops(*made), "acme.plain_product");
  EXPECT_THAT(net.Explanation(), HasSubstr("stays f32: no 8-bit form of acme.plain_product"));
  EXPECT_EQ(net.Error(), 0);
}

TEST(CustomOps, StayFloatIfTheResultsWouldHaveAnotherType) {
  CustomNet net;
  const auto made = net.Quantize(net.Product("acme.careless_product", net.In({1, kInputs})), "dynamic");
  EXPECT_EQ(OperandValue(*made, 1).type.dtype, DType::kF32);
  EXPECT_THAT(net.Explanation(), HasSubstr("the weights are no floats"));
  EXPECT_EQ(net.Error(), 0);
}

TEST(CustomOps, StayFloatIfTheirConstantsAreNotWeights) {
  CustomNet net;
  const ValueId weights = net.In({kUnits, kInputs});
  const ValueId y =
      net.Custom("acme.product", {net.In({1, kInputs}), weights, net.C({kUnits}, 2)}, {{1, kUnits}})[0];
  const auto made = net.Quantize(y, "int8");
  EXPECT_EQ(Ops(*made), "acme.product");
  EXPECT_THAT(net.Explanation(), HasSubstr("stays f32: its weights are not constant"));
}

TEST(CustomOps, StayFloatIfTheirWeightsLackTheAxis) {
  for (const std::string as : {"dynamic", "int8"}) {
    CustomNet net;
    const auto made = net.Quantize(net.Product("acme.misread_product", net.In({1, kInputs})), as);
    EXPECT_EQ(OperandValue(*made, 1).type.dtype, DType::kF32);
    EXPECT_THAT(net.Explanation(), HasSubstr("they have 2 dimensions and their scales are along axis 2"));
    EXPECT_EQ(net.Error(), 0);
  }
}

// Without the plugin, the body that the file keeps has the op's types.
TEST(CustomOps, KeepABodyOfTheirTypes) {
  for (const std::string as : {"dynamic", "int8"}) {
    CustomNet net;
    const ValueId y = net.Product("acme.product", net.In({1, kInputs}));
    Node& node = *net.f.nodes[0];
    node.body = "body";
    node.fused = std::make_shared<const Provenance>(
        Provenance{"com.acme.product", "1.0.0", "acme.product.any", "product"});
    Function& body = net.module.Add("body");
    for (const ValueId v : node.operands) body.AddInput(net.f.value(v).type);
    ValueIds operands = {body.inputs[0]};
    for (size_t i = 1; i < 3; ++i) {
      const Value& value = net.f.value(node.operands[i]);
      operands.push_back(body.AddConst(value.type, value.data, value.name));
    }
    body.outputs = {body.AddNode(Op::kFullyConnected, operands, {net.f.value(y).type}).results[0]};
    const auto made = net.Quantize(y, as);
    EXPECT_EQ(OperandValue(*made, 1).type.dtype, DType::kI8);
    EXPECT_LT(net.Error(), 0.2);
    auto alone = Open(net.made, *Plugins({}));
    auto before = Open(net.file, *Plugins({}));
    ASSERT_OK(alone);
    ASSERT_OK(before);
    const Tensors inputs = RandomInputs(**before, 1);
    const auto is = Invoke(**alone, inputs), was = Invoke(**before, inputs);
    ASSERT_OK(is);
    ASSERT_OK(was);
    EXPECT_EQ(Difference(*is, *was, 0.1, 0), "");
  }
}

// An operand that is read elsewhere keeps its own scale, and is converted for the op.
TEST(CustomOps, ConvertAnOperandToTheCommonScale) {
  CustomNet net;
  const ValueId x = net.In({1, kUnits});
  const ValueId wide = net.Product("acme.product", x, kUnits);
  const ValueId larger = net.Custom("acme.larger", {wide, x}, {{1, kUnits}})[0];
  const auto made = net.Quantize(larger, "int8");
  EXPECT_EQ(Ops(*made), "QUANTIZE acme.product QUANTIZE acme.larger DEQUANTIZE");
  EXPECT_LT(net.Error(), 0.2);
}

// The smaller operand is converted to the common scale.
TEST(CustomOps, ShareAScale) {
  CustomNet net;
  const ValueId x = net.In({1, kInputs});
  const ValueId wide = net.Product("acme.product", x);
  const ValueId narrow = net.Custom(
      "acme.product", {x, net.C({kUnits, kInputs}, 3, 0.1F), net.C({kUnits}, 4, 0.1F)}, {{1, kUnits}})[0];
  const ValueId larger = net.Custom("acme.larger", {wide, narrow}, {{1, kUnits}})[0];
  const auto made = net.Quantize(larger, "int8");
  EXPECT_EQ(Ops(*made), "QUANTIZE acme.product acme.product acme.larger DEQUANTIZE");
  EXPECT_LT(net.Error(), 0.2);
}

// A constant beside the other operand has the scale, too.
TEST(CustomOps, ShareAScaleWithAConstant) {
  CustomNet net;
  const ValueId product = net.Product("acme.product", net.In({1, kInputs}));
  const ValueId larger = net.Custom("acme.larger", {product, net.C({1, kUnits}, 5)}, {{1, kUnits}})[0];
  const auto made = net.Quantize(larger, "int8");
  EXPECT_EQ(Ops(*made), "QUANTIZE acme.product acme.larger DEQUANTIZE");
  EXPECT_LT(net.Error(), 0.2);
}

TEST(CustomOps, OfOursKeep8BitWeightsWithoutAnIntegerForm) {
  CustomNet net;
  const int64_t cells = 16;
  const ValueIds gru = net.Custom(
      "fusebox.gru",
      {net.In({1, 3, kInputs}), net.C({1, cells}, 1, 0.1F), net.C({3 * cells, kInputs}, 2, 0.2F),
       net.C({3 * cells, cells}, 3, 0.2F), net.C({3 * cells}, 4, 0.1F), net.C({3 * cells}, 5, 0.1F)},
      {{1, 3, cells}, {1, cells}});
  net.f.nodes.back()->attrs.Set("activation", "relu");
  const auto made = net.Quantize(gru[0], "int8");
  EXPECT_EQ(Ops(*made), "fusebox.gru");
  EXPECT_EQ(OperandValue(*made, 2).type.dtype, DType::kI8);
  EXPECT_EQ(OperandValue(*made, 3).type.dtype, DType::kI8);
  EXPECT_EQ(OperandValue(*made, 4).type.dtype, DType::kF32);
  EXPECT_TRUE(CustomNode(*made).attrs.b("asymmetric_quantize_inputs", false));
  EXPECT_THAT(net.Explanation(),
              HasSubstr("fusebox.gru: stays f32: no 8-bit form: no kernel for fusebox.gru"));
  EXPECT_LT(net.Error(), 0.02);
}

}  // namespace
}  // namespace fusebox::testing
