// SPDX-License-Identifier: Apache-2.0
// What XNNPACK packs into weights without naming it in its own cache key. Each pair of nets shares weights
// and differs in one such thing; whatever the cache holds of the other, both compute the same bits as without
// a cache.
#include <filesystem>
#include <map>

#include "tests/plugins/xnnpack/net.h"

namespace fusebox::xnnpack_test {
namespace {

constexpr int64_t kN = 64;

struct Dense {
  Q input{0.05f, 3}, output{0.3f, -7};
  std::vector<Q> filter = {{0.02f, 0}};
  std::vector<int32_t> bias = std::vector<int32_t>(kN, 100);
};

// i8 x i8. `weights` seeds them: equal seeds, equal bytes.
void AddDense(Net& net, ValueId x, const Dense& d, std::vector<ValueId>& outputs,
              ValueId weights = kNoValue) {
  const ValueId w = weights == kNoValue ? net.Const<int8_t>(DType::kI8, {kN, kN},
                                                            Noise<int8_t>(kN * kN, 1, -127, 128), d.filter)
                                        : weights;
  const ValueId b = net.Const<int32_t>(DType::kI32, {kN}, d.bias, {{1e-3f, 0}});
  outputs.push_back(net.Add(Op::kFullyConnected, {x, w, b}, DType::kI8, {4, kN}, {}, d.output));
}

Build DenseNet(const Dense& d) {
  return [d] {
    Net net;
    std::vector<ValueId> outputs;
    AddDense(net, net.Input(DType::kI8, {4, kN}, d.input), d, outputs);
    return net.Take(outputs);
  };
}

// u8 x u8, whose filters have zero points.
Build UnsignedNet(int64_t zero_point) {
  return [=] {
    Net net;
    const ValueId x = net.Input(DType::kU8, {4, kN}, {0.05f, 120});
    const ValueId w =
        net.Const<uint8_t>(DType::kU8, {kN, kN}, Noise<uint8_t>(kN * kN, 1, 0, 256), {{0.02f, zero_point}});
    const ValueId b = net.Const<int32_t>(DType::kI32, {kN}, std::vector<int32_t>(kN, 50), {{1e-3f, 0}});
    return net.Take({net.Add(Op::kFullyConnected, {x, w, b}, DType::kU8, {4, kN}, {}, {0.9f, 128})});
  };
}

// f32 x i8: the activation is quantized while it runs, and XNNPACK keys no bias.
Build HybridNet(float bias) {
  return [=] {
    Net net;
    const ValueId x = net.Input(DType::kF32, {4, kN});
    const ValueId w =
        net.Const<int8_t>(DType::kI8, {kN, kN}, Noise<int8_t>(kN * kN, 1, -127, 128), {{0.02f, 0}});
    const ValueId b = net.Const<float>(DType::kF32, {kN}, std::vector<float>(kN, bias));
    return net.Take({net.Add(Op::kFullyConnected, {x, w, b}, DType::kF32, {4, kN})});
  };
}

// f32 of in columns and out rows over the same bytes.
Build FloatNet(int64_t in, int64_t out) {
  return [=] {
    Net net;
    const ValueId x = net.Input(DType::kF32, {4, in});
    const ValueId w =
        net.Const<float>(DType::kF32, {out, in}, Noise<float>(static_cast<size_t>(in * out), 1, -1, 1));
    return net.Take({net.Add(Op::kFullyConnected, {x, w, kNoValue}, DType::kF32, {4, out})});
  };
}

Build ProductNet(bool adjoint) {
  return [=] {
    Net net;
    const ValueId x = net.Input(DType::kF32, {4, kN});
    const ValueId w = net.Const<float>(DType::kF32, {kN, kN}, Noise<float>(kN * kN, 1, -1, 1));
    return net.Take({net.Add(Op::kBatchMatmul, {x, w}, DType::kF32, {4, kN}, Options("adj_y", adjoint))});
  };
}

Build ConvNet(int64_t height, int64_t width, int64_t groups) {
  return [=] {
    Net net;
    const int64_t group = 36 / (height * width), in = group * groups;
    const ValueId x = net.Input(DType::kF32, {1, 12, 12, in});
    const ValueId w = net.Const<float>(DType::kF32, {8, height, width, group}, Noise<float>(288, 1, -1, 1));
    return net.Take({net.Add(Op::kConv2D, {x, w, kNoValue}, DType::kF32, {1, 12, 12, 8},
                             Options("padding", "SAME", "stride_h", 1, "stride_w", 1))});
  };
}

Dense With(const std::function<void(Dense&)>& change) {
  Dense d;
  change(d);
  return d;
}

struct Hazard {
  const char* name;
  Build a, b;
};

const std::vector<Hazard>& Hazards() {
  static const std::vector<Hazard> all = {
      {"InputZeroPoint", DenseNet({}), DenseNet(With([](Dense& d) { d.input.zero_point = -40; }))},
      {"InputScale", DenseNet({}), DenseNet(With([](Dense& d) { d.input.scale = 0.07f; }))},
      {"OutputScale", DenseNet({}), DenseNet(With([](Dense& d) { d.output.scale = 0.5f; }))},
      {"FilterScale", DenseNet({}), DenseNet(With([](Dense& d) { d.filter[0].scale = 0.031f; }))},
      {"FilterScales", DenseNet({}), DenseNet(With([](Dense& d) {
         d.filter.assign(kN, {0.02f, 0});
         d.filter[9].scale = 0.04f;
       }))},
      {"Bias", DenseNet({}), DenseNet(With([](Dense& d) { d.bias[5] = -5000; }))},
      {"FilterZeroPoint", UnsignedNet(128), UnsignedNet(117)},
      {"BiasOfDynamicOps", HybridNet(0.5f), HybridNet(-3)},
      {"SwappedDims", FloatNet(32, 128), FloatNet(128, 32)},
      {"Transposed", ProductNet(false), ProductNet(true)},
      {"KernelShape", ConvNet(3, 3, 1), ConvNet(1, 9, 1)},
      {"Groups", ConvNet(3, 3, 1), ConvNet(3, 3, 2)},
      {"Type", HybridNet(0.5f), DenseNet({})},
  };
  return all;
}

void ExpectSameRun(const Ran& want, const Ran& got, const char* what) {
  SCOPED_TRACE(what);
  ASSERT_EQ(want.error, "");
  ASSERT_EQ(got.error, "");
  ASSERT_EQ(want.outputs.size(), got.outputs.size());
  for (size_t i = 0; i < want.outputs.size(); ++i)
    EXPECT_TRUE(want.outputs[i] == got.outputs[i]) << "output " << i;
}

class Hazardous : public testing::TestWithParam<Hazard> {};

TEST_P(Hazardous, EqualsTheUncachedRun) {
  const Hazard& h = GetParam();
  const std::string cache = FreshCache();
  const Ran a = RunNet(h.a()), b = RunNet(h.b());
  for (const char* round : {"cold", "warm"}) {
    ExpectSameRun(a, RunNet(h.a(), cache), round);
    ExpectSameRun(b, RunNet(h.b(), cache), round);
  }
  std::filesystem::remove_all(cache);
}

INSTANTIATE_TEST_SUITE_P(Cache, Hazardous, testing::ValuesIn(Hazards()),
                         [](const auto& info) { return std::string(info.param.name); });

// One constant, two recipes, in one model: XNNPACK would see one address.
std::unique_ptr<Module> TwoRecipes() {
  Net net;
  std::vector<ValueId> outputs;
  Dense first, second;
  second.input.zero_point = -60;
  second.output.scale = 0.6f;
  const ValueId x = net.Input(DType::kI8, {4, kN}, first.input),
                y = net.Input(DType::kI8, {4, kN}, second.input);
  AddDense(net, x, first, outputs);
  const ValueId weights = net.function().nodes[0]->operands[1];
  AddDense(net, y, second, outputs, weights);
  return net.Take(outputs);
}

std::unique_ptr<Module> OneRecipe(bool second) {
  Net net;
  std::vector<ValueId> outputs;
  Dense d;
  if (second) d.input.zero_point = -60, d.output.scale = 0.6f;
  const ValueId x = net.Input(DType::kI8, {4, kN}, Dense().input),
                y = net.Input(DType::kI8, {4, kN}, d.input);
  AddDense(net, second ? y : x, d, outputs);
  // Keeps both inputs in the signature, so that each gets its own noise.
  return net.Take(outputs);
}

TEST(Cache, OneConstantUnderTwoRecipesEqualsTheUncachedRuns) {
  const std::string cache = FreshCache();
  const Ran first = RunNet(OneRecipe(false)), second = RunNet(OneRecipe(true));
  ASSERT_EQ(first.error + second.error, "");
  for (const std::string& path : {std::string(), cache, cache}) {
    const Ran both = RunNet(TwoRecipes(), path);
    ASSERT_EQ(both.error, "");
    EXPECT_TRUE(both.outputs[0] == first.outputs[0]);
    EXPECT_TRUE(both.outputs[1] == second.outputs[0]);
  }
  std::filesystem::remove_all(cache);
}

std::map<std::string, uintmax_t> FilesOf(const std::string& dir) {
  std::map<std::string, uintmax_t> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir))
    if (entry.is_regular_file() && entry.path().extension() == ".fbpk")
      files[entry.path()] = entry.file_size();
  return files;
}

TEST(Cache, AWarmStartPacksNothing) {
  const std::string cache = FreshCache();
  const Ran cold = RunNet(FloatNet(512, 512)(), cache);
  // Publishing is in the background and waits for the process at the latest: another build makes it visible
  // here.
  std::map<std::string, uintmax_t> files;
  for (int i = 0; i < 100 && files.empty(); ++i) {
    files = FilesOf(cache);
    if (files.empty()) usleep(20000);
  }
  ASSERT_EQ(files.size(), 1u);
  EXPECT_GT(files.begin()->second, 512u * 512 * 4);
  ExpectSameRun(cold, RunNet(FloatNet(512, 512)(), cache), "warm");
  usleep(50000);
  EXPECT_EQ(FilesOf(cache), files);
  std::filesystem::remove_all(cache);
}

}  // namespace
}  // namespace fusebox::xnnpack_test
