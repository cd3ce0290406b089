// SPDX-License-Identifier: Apache-2.0
// Packed weights on ways that a plain cold and warm start do not take: 4 bits, two signatures, other shapes,
// entries that lie.
#include <fstream>

#include "plugins/xnnpack/cache/segment_format.h"
#include "tests/plugins/xnnpack/net.h"
#include "tests/plugins/xnnpack/said.h"

namespace fusebox::xnnpack_test {
namespace {

constexpr int64_t kN = 64;

// f32 x i4: a scale per row, or per block of 32.
Build NibbleNet(bool blocks, float scale = 0.03125f) {
  return [=] {
    Net net;
    const ValueId x = net.Input(DType::kF32, {4, kN});
    const auto bytes = Noise<uint8_t>(kN * kN / 2, 3, 0, 256);
    const std::vector<Q> scales(blocks ? kN * 2 : kN, Q{scale, 0});
    const ValueId w = net.Const<uint8_t>(DType::kI4, {kN, kN}, bytes, scales);
    if (blocks) {
      auto quant = std::make_shared<Quant>(*net.function().value(w).quant);
      quant->block_size = 32;
      std::vector<float> each(quant->scales.begin(), quant->scales.end());
      for (size_t i = 0; i < each.size(); ++i) each[i] *= static_cast<float>(1 + i % 4);
      quant->scales = each;
      net.function().value(w).quant = quant;
    }
    return net.Take({net.Add(Op::kFullyConnected, {x, w, kNoValue}, DType::kF32, {4, kN})});
  };
}

void ExpectNibblesAreFoundAgain(bool blocks) {
  const std::string cache = FreshCache();
  const Ran plain = RunNet(NibbleNet(blocks)()), other = RunNet(NibbleNet(blocks, 0.0625f)());
  ASSERT_EQ(plain.error + other.error, "");
  EXPECT_FALSE(plain.outputs[0] == other.outputs[0]);
  for (const bool warm : {false, true}) {
    const Said said;
    ExpectSame(plain.outputs, RunNet(NibbleNet(blocks)(), cache).outputs);
    EXPECT_EQ(said.bytes().packed == 0, warm);
    EXPECT_EQ(said.bytes().found != 0, warm);
    ExpectSame(other.outputs, RunNet(NibbleNet(blocks, 0.0625f)(), cache).outputs);
  }
  std::filesystem::remove_all(cache);
}

TEST(Nibbles, InBlocksEqualTheUncachedRunAndAreFoundAgain) { ExpectNibblesAreFoundAgain(true); }
TEST(Nibbles, PerChannelEqualTheUncachedRunAndAreFoundAgain) { ExpectNibblesAreFoundAgain(false); }

// The product as it is written down, but for the activations' own rounding to 8 bits.
TEST(Nibbles, InBlocksAreTheProductOfTheirValues) {
  const Ran ran = RunNet(NibbleNet(true)());
  ASSERT_EQ(ran.error, "");
  const auto weights = Noise<uint8_t>(kN * kN / 2, 3, 0, 256);
  const Tensor input = NoiseFor({DType::kF32, Shape({4, kN})}, 7);
  const auto x = input.data.As<float>();
  const auto y = ran.outputs[0].data.As<float>();
  for (size_t row = 0; row < 4; ++row)
    for (size_t out = 0; out < kN; ++out) {
      double sum = 0;
      for (size_t in = 0; in < kN; ++in) {
        const size_t at = out * kN + in;
        const int nibble = weights[at / 2] >> (at % 2 * 4) & 15;
        const double scale = 0.03125 * static_cast<double>(1 + at / 32 % 4);
        sum += x[row * kN + in] * scale * (nibble < 8 ? nibble : nibble - 16);
      }
      EXPECT_NEAR(y[row * kN + out], sum, 0.12) << row << " " << out;
    }
}

// As many groups as channels: XNNPACK packs these as depthwise convolutions, without look-up.
Build GroupsOfOne(DType dtype, int64_t channels, int64_t window) {
  return [=] {
    Net net;
    const Q q = dtype == DType::kF32 ? Q{} : Q{0.05f, 3};
    const ValueId x = net.Input(dtype, {1, 9, 8, channels}, q);
    const std::vector<int64_t> dims = {channels, window, window, 1};
    const auto count = static_cast<size_t>(channels * window * window);
    const ValueId w = dtype == DType::kF32
                          ? net.Const<float>(dtype, dims, Noise<float>(count, 4, -1, 1))
                          : net.Const<int8_t>(dtype, dims, Noise<int8_t>(count, 4, -100, 100),
                                              std::vector<Q>(static_cast<size_t>(channels), Q{0.01f, 0}));
    return net.Take({net.Add(Op::kConv2D, {x, w, kNoValue}, dtype, {1, 9, 8, channels},
                             Options("padding", "SAME", "stride_h", 1, "stride_w", 1), q)});
  };
}

TEST(GroupsOfOneChannel, AreFoundAgain) {
  for (const DType dtype : {DType::kF32, DType::kI8})
    for (const int64_t channels : {1, 8})
      for (const int64_t window : {1, 3, 7}) {
        const Build net = GroupsOfOne(dtype, channels, window);
        const Ran plain = RunNet(net());
        ASSERT_EQ(plain.error, "") << channels << " channels, window " << window;
        const std::string cache = FreshCache();
        for (int start = 0; start < 2; ++start) ExpectSame(plain.outputs, RunNet(net(), cache).outputs);
        std::filesystem::remove_all(cache);
      }
}

Build DenseOf(int64_t batch, int64_t size = 256) {
  return [=] {
    Net net;
    const ValueId x = net.Input(DType::kF32, {batch, size});
    const ValueId w =
        net.Const<float>(DType::kF32, {size, size}, Noise<float>(static_cast<size_t>(size * size), 1, -1, 1));
    return net.Take({net.Add(Op::kFullyConnected, {x, w, kNoValue}, DType::kF32, {batch, size})});
  };
}

// Two functions over one constant, each with a signature.
std::unique_ptr<Module> TwoSignatures() {
  auto module = DenseOf(4)();
  const Buffer weights = module->functions[0]->value(module->functions[0]->nodes[0]->operands[1]).data;
  Function& second = module->Add("second");
  const ValueId x = second.AddInput({DType::kF32, Shape({1, 256})}, "x"),
                w = second.AddConst({DType::kF32, Shape({256, 256})}, weights);
  second.outputs =
      second.AddNode(Op::kFullyConnected, {x, w, kNoValue}, {{DType::kF32, Shape({1, 256})}}).results;
  module->signatures.push_back({"first", "main", {"x0"}, {"y"}});
  module->signatures.push_back({"second", "second", {"x"}, {"y"}});
  return module;
}

TEST(Signatures, PackOnceWhatTheyShare) {
  const std::string cache = FreshCache();
  for (const std::string& path : {std::string(), cache, cache}) {
    Config::Delegate delegate = AllOnXnnpack();
    delegate.options.Set("weight_cache_path", path);
    const Said said;
    const auto model = Model::FromModule(TwoSignatures(),
                                         {.registry = XnnpackRegistry(), .delegates = std::vector{delegate}});
    ASSERT_TRUE(model) << model.error().message;
    auto session = Session::Create(*model, {.signature = "first"});
    ASSERT_TRUE(session) << session.error().message;
    ASSERT_TRUE((*session)->Prepare());
    const WeightBytes first = said.bytes();
    EXPECT_GE(first.packed + first.found, 256u * 256 * 4);
    ASSERT_TRUE((*session)->SelectSignature("second"));
    ASSERT_TRUE((*session)->Prepare());
    EXPECT_EQ(said.bytes().packed, first.packed);
    EXPECT_EQ(said.bytes().found, first.found);
    EXPECT_EQ(said.bytes().shared, first.packed + first.found);
  }
  std::filesystem::remove_all(cache);
}

TEST(Signatures, PackTwiceWhereSharingIsOff) {
  Config::Delegate delegate = AllOnXnnpack();
  delegate.options.Set("share_weights", false);
  const Said said;
  const auto model =
      Model::FromModule(TwoSignatures(), {.registry = XnnpackRegistry(), .delegates = std::vector{delegate}});
  ASSERT_TRUE(model) << model.error().message;
  auto session = Session::Create(*model, {.signature = "first"});
  ASSERT_TRUE((*session)->Prepare());
  const uint64_t once = said.bytes().packed;
  ASSERT_TRUE((*session)->SelectSignature("second") && (*session)->Prepare());
  EXPECT_EQ(said.bytes().packed, 2 * once);
  EXPECT_EQ(said.bytes().shared, 0u);
}

// Batches one after the other in one session.
std::vector<Tensor> RunBatches(const std::string& cache, const std::vector<int64_t>& batches) {
  Config::Delegate delegate = AllOnXnnpack();
  delegate.options.Set("weight_cache_path", cache);
  const auto model =
      Model::FromModule(DenseOf(-1)(), {.registry = XnnpackRegistry(), .delegates = std::vector{delegate}});
  if (!model) return {};
  auto session = Session::Create(*model);
  std::vector<Tensor> outputs;
  for (const int64_t batch : batches) {
    const Tensor x = NoiseFor({DType::kF32, Shape({batch, 256})}, 5);
    if (!(*session)->Resize(0, x.type.shape) || !(*session)->SetInput(0, x) || !(*session)->Run()) return {};
    const auto output = (*session)->output(0);
    outputs.push_back({output->type, Buffer::Copy(output->data.bytes())});
  }
  for (const auto& row : (*session)->placements())
    if (!row.runner.starts_with("xnnpack")) return {};
  return outputs;
}

TEST(Shapes, ThatChangeBetweenRunsUseTheSamePackedWeights) {
  const std::string cache = FreshCache();
  const std::vector<int64_t> batches = {4, 9, 1, 4, 33};
  const std::vector<Tensor> plain = RunBatches("", batches);
  ASSERT_EQ(plain.size(), batches.size());
  for (const bool warm : {false, true}) {
    const Said said;
    ExpectSame(plain, RunBatches(cache, batches));
    EXPECT_EQ(said.bytes().packed != 0, !warm);
  }
  std::filesystem::remove_all(cache);
}

std::string OnlySegment(const std::string& cache) {
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(cache + "segments"))
    if (entry.path().extension() == ".fbpk") found = entry.path();
  return found;
}

std::unique_ptr<Module> Conv() {
  Net net;
  const ValueId x = net.Input(DType::kF32, {1, 8, 8, 16});
  const ValueId w = net.Const<float>(DType::kF32, {32, 3, 3, 16}, Noise<float>(32 * 9 * 16, 1, -1, 1));
  return net.Take({net.Add(Op::kConv2D, {x, w, kNoValue}, DType::kF32, {1, 8, 8, 32},
                           Options("padding", "SAME", "stride_h", 1, "stride_w", 1))});
}

// The one entry of a segment becomes shorter, and all checksums are right again.
void Shorten(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const auto digest = [&](size_t begin, size_t end) {
    return cache::Hash(std::as_bytes(std::span(bytes)).subspan(begin, end - begin));
  };
  cache::Superblock super;
  cache::Record record;
  cache::Footer footer;
  std::memcpy(&super, bytes.data(), sizeof super);
  std::memcpy(&record, bytes.data() + super.index_offset, sizeof record);
  record.size -= 128;
  record.packed = digest(record.offset, record.offset + record.size);
  std::memcpy(bytes.data() + super.index_offset, &record, sizeof record);
  const size_t end = bytes.size() - sizeof footer;
  super.index_digest = digest(super.index_offset, end);
  std::memcpy(bytes.data(), &super, sizeof super);
  super.self = digest(0, offsetof(cache::Superblock, self));
  std::memcpy(bytes.data(), &super, sizeof super);
  std::memcpy(&footer, bytes.data() + end, sizeof footer);
  footer.superblock = super.self;
  std::memcpy(bytes.data() + end, &footer, sizeof footer);
  std::ofstream(path, std::ios::binary) << bytes;
}

// XNNPACK tells the size of what it found for convolutions alone.
TEST(Cache, AnEntryOfAnotherSizeThanXnnpackWantsIsPackedAnew) {
  const std::string cache = FreshCache();
  const Ran plain = RunNet(Conv());
  ASSERT_EQ(RunNet(Conv(), cache).error, "");
  Shorten(OnlySegment(cache));
  const Said said;
  const Ran healed = RunNet(Conv(), cache);
  ASSERT_EQ(healed.error, "");
  ExpectSame(plain.outputs, healed.outputs);
  EXPECT_NE(said.text().find("but XNNPACK requires"), std::string::npos) << said.text();
  EXPECT_GT(said.bytes().packed, 0u);
  std::filesystem::remove_all(cache);
}

}  // namespace
}  // namespace fusebox::xnnpack_test
