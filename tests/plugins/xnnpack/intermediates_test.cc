// SPDX-License-Identifier: Apache-2.0
// The memory between the ops of a partition: shared where it may be, and only there.
#include <gtest/gtest.h>

#include <regex>

#include "tests/plugins/xnnpack/net.h"

namespace fusebox::xnnpack_test {
namespace {

// Outputs of the same run by the kernels of the host.
std::vector<Tensor> RunByKernels(std::unique_ptr<Module> module) {
  const auto model = Model::FromModule(
      std::move(module), {.registry = XnnpackRegistry(), .delegates = std::vector<Config::Delegate>()});
  if (!model) return {};
  auto session = Session::Create(*model, {});
  if (!session) return {};
  for (size_t i = 0; i < (*session)->inputs().size(); ++i) {
    const Tensor noise = NoiseFor((*session)->inputs()[i].type, static_cast<uint32_t>(7 + i));
    if (!(*session)->SetInput(static_cast<int>(i), noise)) return {};
  }
  if (!(*session)->Run()) return {};
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < (*session)->outputs().size(); ++i) {
    const auto output = (*session)->output(static_cast<int>(i));
    if (output) outputs.push_back({output->type, Buffer::Copy(output->data.bytes())});
  }
  return outputs;
}

// Random ops over random values of two shapes of one size, all of them exact. What nobody reads is an output.
class RandomNet {
 public:
  explicit RandomNet(uint32_t seed) : random_(seed) {}

  std::unique_ptr<Module> Make(int nodes) {
    for (int i = 0; i < 2; ++i) Keep(net_.Input(DType::kF32, Dims(0)), 0);
    for (int i = 0; i < nodes; ++i) AddNode();
    std::vector<ValueId> outputs;
    for (size_t i = 2; i < made_.size(); ++i)
      if (!made_[i].read || Below(8) == 0) outputs.push_back(made_[i].id);
    return net_.Take(std::move(outputs));
  }

 private:
  struct Made {
    ValueId id;
    int shape;
    bool read = false;
  };
  static std::vector<int64_t> Dims(int shape) {
    return shape == 0 ? std::vector<int64_t>{4, 32} : std::vector<int64_t>{8, 16};
  }
  size_t Below(size_t bound) { return random_() % bound; }
  void Keep(ValueId id, int shape) { made_.push_back({id, shape}); }
  // Mostly one of the last.
  Made Any(int shape) {
    for (;;) {
      const size_t back = Below(3) == 0 ? Below(made_.size()) : Below(std::min<size_t>(made_.size(), 3));
      Made& made = made_[made_.size() - 1 - back];
      if (shape >= 0 && made.shape != shape) {
        if (Below(20) == 0) return Reshaped(made, shape);
        continue;
      }
      made.read = true;
      return made;
    }
  }
  Made Reshaped(Made& from, int shape) {
    from.read = true;
    const ValueId id =
        net_.Add(Op::kReshape, {from.id}, DType::kF32, Dims(shape), Options("new_shape", Dims(shape)));
    return {id, shape, true};
  }
  void AddNode() {
    constexpr Op kUnary[] = {Op::kAbs, Op::kNeg, Op::kRelu};
    constexpr Op kBinary[] = {Op::kAdd, Op::kSub, Op::kMaximum, Op::kMinimum};
    const Made a = Any(-1);
    switch (Below(4)) {
      case 0: Keep(net_.Add(kUnary[Below(3)], {a.id}, DType::kF32, Dims(a.shape)), a.shape); break;
      case 1: {
        Made from = a;
        Keep(Reshaped(from, 1 - a.shape).id, 1 - a.shape);
        break;
      }
      case 2: {  // a row of it, for all rows of another
        const Made b = Any(a.shape);
        const std::vector<int64_t> dims = Dims(a.shape);
        const ValueId begin = net_.Const<int32_t>(DType::kI32, {2}, {1, 0});
        const ValueId size = net_.Const<int32_t>(DType::kI32, {2}, {1, -1});
        const ValueId row = net_.Add(Op::kSlice, {a.id, begin, size}, DType::kF32, {1, dims[1]});
        const bool first = Below(2) == 0;
        Keep(net_.Add(Op::kMaximum, first ? std::vector{row, b.id} : std::vector{b.id, row}, DType::kF32,
                      dims),
             a.shape);
        break;
      }
      default: {
        const Made b = Any(a.shape);
        Keep(net_.Add(kBinary[Below(4)], {a.id, b.id}, DType::kF32, Dims(a.shape)), a.shape);
      }
    }
  }

  std::mt19937 random_;
  Net net_;
  std::vector<Made> made_;
};

// As numbers: which zero is the larger one is nobody's business.
std::vector<std::vector<float>> Numbers(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<float>> numbers;
  for (const Tensor& tensor : tensors) {
    const auto values = tensor.data.As<float>();
    numbers.emplace_back(values.begin(), values.end());
  }
  return numbers;
}

TEST(Intermediates, RandomNetsComputeWhatTheKernelsCompute) {
  size_t delegated = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const int nodes = 3 + static_cast<int>(seed % 25);
    const Ran ran = RunNet(RandomNet(seed).Make(nodes));
    for (const auto& row : ran.placements) delegated += row.runner.starts_with("xnnpack");
    ASSERT_FALSE(ran.outputs.empty()) << ran.error;
    EXPECT_EQ(Numbers(RunByKernels(RandomNet(seed).Make(nodes))), Numbers(ran.outputs));
  }
  EXPECT_GT(delegated, 600u);  // of some 900 nodes
}

// A DEQUANTIZE of f16 weights makes nothing: its readers unpack them.
TEST(Intermediates, LeaveOutConstantsThatAreUnpacked) {
  Net net;
  const ValueId x = net.Input(DType::kF32, {1, 4, 4, 3});
  const ValueId half = net.Const<uint16_t>(DType::kF16, {3}, {0x3c00, 0x4000, 0xc000});  // 1, 2, -2
  const ValueId c = net.Add(Op::kDequantize, {half}, DType::kF32, {3});
  const ValueId sum = net.Add(Op::kAdd, {x, c}, DType::kF32, {1, 4, 4, 3});
  const Ran ran = RunNet(net.Take({net.Add(Op::kMul, {sum, c}, DType::kF32, {1, 4, 4, 3})}));
  EXPECT_EQ(ran.error, "");
  ASSERT_EQ(ran.outputs.size(), 1u);
  const float noise = NoiseFor({DType::kF32, {1, 4, 4, 3}}, 7).data.As<float>()[1];
  EXPECT_EQ(ran.outputs[0].data.As<float>()[1], (noise + 2) * 2);
}

// Eight layers of 64 rows, one after the other.
std::unique_ptr<Module> Layers(int64_t rows) {
  Net net;
  ValueId x = net.Input(DType::kF32, {rows, 96});
  const ValueId filter = net.Const<float>(DType::kF32, {96, 96}, Noise<float>(96 * 96, 3, -0.2, 0.2));
  const ValueId bias = net.Const<float>(DType::kF32, {96}, Noise<float>(96, 4, -1, 1));
  for (int i = 0; i < 8; ++i)
    x = net.Add(Op::kFullyConnected, {x, filter, bias}, DType::kF32, {rows, 96},
                Options("keep_num_dims", true));
  return net.Take({x});
}

TEST(Intermediates, LayersInARowNeedTwoPlaces) {
  Config::Delegate delegate = AllOnXnnpack();
  const auto model =
      Model::FromModule(Layers(64), {.registry = XnnpackRegistry(), .delegates = std::vector{delegate}});
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::Create(*model, {});
  ASSERT_TRUE(session) << session.error().message;
  ASSERT_TRUE((*session)->Prepare());
  const std::string text = (*session)->Explain();
  std::smatch match;
  ASSERT_TRUE(std::regex_search(text, match, std::regex("; scratch (\\d+)"))) << text;
  const size_t layer = 64 * 96 * sizeof(float);
  EXPECT_GE(std::stoul(match[1]), 2 * layer);
  EXPECT_LE(std::stoul(match[1]), 2 * layer + 256);
}

// Of one session: places move with the shapes.
TEST(Intermediates, FollowTheShapesOfTheInputs) {
  Config::Delegate delegate = AllOnXnnpack();
  const auto model =
      Model::FromModule(Layers(-1), {.registry = XnnpackRegistry(), .delegates = std::vector{delegate}});
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::Create(*model, {});
  ASSERT_TRUE(session) << session.error().message;
  for (const int64_t rows : {3, 40, 1, 40}) {
    const Tensor noise = NoiseFor({DType::kF32, {rows, 96}}, 7);
    ASSERT_TRUE((*session)->SetInput(0, noise));
    ASSERT_TRUE((*session)->Run());
    const auto output = (*session)->output(0);
    ASSERT_TRUE(output);
    const Ran alone = RunNet(Layers(rows));
    EXPECT_EQ(alone.error, "");
    ASSERT_EQ(alone.outputs.size(), 1u);
    EXPECT_TRUE(alone.outputs[0] == *output) << rows << " rows";
  }
}

}  // namespace
}  // namespace fusebox::xnnpack_test
