// SPDX-License-Identifier: Apache-2.0
// What the kernels of the plugin cpu pack: kept in a store, when a session is created; without a store, only
// by the first run.
#include <gmock/gmock.h>

#include "tests/plugins/kept_weights/counted_store.h"
#include "tests/plugins/xnnpack/net.h"

namespace fusebox::kept_weights {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using xnnpack_test::Build;
using xnnpack_test::Net;
using xnnpack_test::Noise;
using xnnpack_test::Options;
using xnnpack_test::Q;

constexpr Q kIn{0.05f, 3}, kOut{0.4f, -2};

Attrs Window(int stride = 1) {
  return Options("padding", "SAME", "stride_h", stride, "stride_w", stride, "dilation_h_factor", 1,
                 "dilation_w_factor", 1);
}

ValueId Floats(Net& net, std::vector<int64_t> dims) {
  size_t count = 1;
  for (const int64_t d : dims) count *= static_cast<size_t>(d);
  return net.Const<float>(DType::kF32, std::move(dims), Noise<float>(count, 3, -1, 1));
}

ValueId Bytes(Net& net, std::vector<int64_t> dims, int axis = 0) {
  size_t count = 1;
  for (const int64_t d : dims) count *= static_cast<size_t>(d);
  const std::vector<Q> scales(static_cast<size_t>(dims[static_cast<size_t>(axis)]), Q{0.02f, 0});
  return net.Const<int8_t>(DType::kI8, std::move(dims), Noise<int8_t>(count, 3, -127, 127), scales, axis);
}

std::unique_ptr<Module> Conv(int64_t groups) {
  Net net;
  const ValueId x = net.Input(DType::kF32, {1, 6, 5, 8});
  return net.Take({net.Add(Op::kConv2D, {x, Floats(net, {18, 3, 3, 8 / groups}), kNoValue}, DType::kF32,
                           {1, 6, 5, 18}, Window())});
}

std::unique_ptr<Module> Dense(int64_t rows) {
  Net net;
  const ValueId x = net.Input(DType::kF32, {rows, 9});
  return net.Take(
      {net.Add(Op::kFullyConnected, {x, Floats(net, {18, 9}), kNoValue}, DType::kF32, {rows, 18})});
}

ValueId ResultShape(Net& net) { return net.Const<int32_t>(DType::kI32, {4}, {1, 12, 10, 6}); }

std::unique_ptr<Module> Transposed() {
  Net net;
  const ValueId shape = ResultShape(net), x = net.Input(DType::kF32, {1, 6, 5, 8});
  return net.Take({net.Add(Op::kTransposeConv, {shape, Floats(net, {6, 3, 3, 8}), x, kNoValue}, DType::kF32,
                           {1, 12, 10, 6}, Window(2))});
}

std::unique_ptr<Module> ByteConv(Q in = kIn) {
  Net net;
  const ValueId x = net.Input(DType::kI8, {1, 6, 5, 8}, in);
  return net.Take({net.Add(Op::kConv2D, {x, Bytes(net, {6, 3, 3, 8}), kNoValue}, DType::kI8, {1, 6, 5, 6},
                           Window(), kOut)});
}

std::unique_ptr<Module> ByteTransposed() {
  Net net;
  const ValueId shape = ResultShape(net), x = net.Input(DType::kI8, {1, 6, 5, 8}, kIn);
  return net.Take({net.Add(Op::kTransposeConv, {shape, Bytes(net, {6, 3, 3, 8}), x, kNoValue}, DType::kI8,
                           {1, 12, 10, 6}, Window(2), kOut)});
}

std::unique_ptr<Module> ByteDepthwise() {
  Net net;
  const ValueId x = net.Input(DType::kI8, {1, 6, 5, 8}, kIn);
  Attrs attrs = Window();
  attrs.Set("depth_multiplier", 1);
  return net.Take({net.Add(Op::kDepthwiseConv2D, {x, Bytes(net, {1, 3, 3, 8}, 3), kNoValue}, DType::kI8,
                           {1, 6, 5, 8}, attrs, kOut)});
}

std::unique_ptr<Module> ByteDense() {
  Net net;
  const ValueId x = net.Input(DType::kI8, {1, 9}, kIn);
  return net.Take(
      {net.Add(Op::kFullyConnected, {x, Bytes(net, {18, 9}), kNoValue}, DType::kI8, {1, 18}, {}, kOut)});
}

std::unique_ptr<Module> HybridDense() {
  Net net;
  const ValueId x = net.Input(DType::kF32, {3, 9});
  return net.Take({net.Add(Op::kFullyConnected, {x, Bytes(net, {18, 9}), kNoValue}, DType::kF32, {3, 18})});
}

std::unique_ptr<Module> NibbleDense(int32_t block) {
  Net net;
  const ValueId x = net.Input(DType::kF32, {3, 8});
  const ValueId w =
      net.Const<uint8_t>(DType::kI4, {18, 8}, Noise<uint8_t>(72, 3, 0, 255), std::vector<Q>(18, Q{0.02f, 0}));
  if (block > 0)
    net.function().value(w).quant = std::make_shared<const Quant>(
        Quant{.scales = std::vector<float>(static_cast<size_t>(18 * 8 / block), 0.02f),
              .zero_points = std::vector<int64_t>(static_cast<size_t>(18 * 8 / block), 0),
              .axis = 0,
              .block_size = block});
  return net.Take({net.Add(Op::kFullyConnected, {x, w, kNoValue}, DType::kF32, {3, 18})});
}

std::unique_ptr<Module> ByteProduct() {
  Net net;
  const ValueId x = net.Input(DType::kI8, {2, 3, 9}, kIn);
  const ValueId y = net.Const<int8_t>(DType::kI8, {2, 9, 5}, Noise<int8_t>(90, 3, -127, 127), {Q{0.02f, 0}});
  return net.Take({net.Add(Op::kBatchMatmul, {x, y}, DType::kI8, {2, 3, 5}, {}, kOut)});
}

std::shared_ptr<Registry> WithStore() {
  static const fbx_entry* const kEntries[] = {&kCountedStore};
  static const std::shared_ptr<Registry> registry = [] {
    Config config;
    config.search_default_path = false;
    auto made = Registry::Create(config, kEntries);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : nullptr;
  }();
  return registry;
}

class KernelWeights : public testing::Test {
 protected:
  KernelWeights() { EmptyCountedStore(); }
  ~KernelWeights() override { EmptyCountedStore(); }

  static std::unique_ptr<Session> Open(std::unique_ptr<Module> module) {
    auto model = Model::FromModule(std::move(module), {.registry = WithStore()});
    EXPECT_TRUE(model) << model.error().message;
    if (!model) return nullptr;
    auto session = Session::Create(*model, {.threads = 1});
    EXPECT_TRUE(session) << session.error().message;
    return session ? std::move(*session) : nullptr;
  }
  static Tensor Run(Session& session) {
    EXPECT_TRUE(session.SetInput(0, xnnpack_test::NoiseFor(session.inputs()[0].type, 7)));
    for (int i = 0; i < 2; ++i) {
      const Status ran = session.Run();
      EXPECT_TRUE(ran) << ran.error().message;
    }
    const auto output = session.output(0);
    return {output->type, Buffer::Copy(output->data.bytes())};
  }
  static Tensor WithoutStore(std::unique_ptr<Module> module) {
    store_counts.open = false;
    const auto session = Open(std::move(module));
    Tensor result = Run(*session);
    store_counts.open = true;
    return result;
  }
};

struct Row {
  const char *name, *what;
  std::unique_ptr<Module> (*build)();
};

class KernelWeightsOf : public KernelWeights, public testing::WithParamInterface<Row> {};

TEST_P(KernelWeightsOf, AreKeptBeforeTheFirstRun) {
  const Row& row = GetParam();
  const Tensor expected = WithoutStore(row.build());
  EXPECT_THAT(store_counts.packed, IsEmpty());
  const auto first = Open(row.build());
  EXPECT_THAT(store_counts.packed, ElementsAre(row.what));
  EXPECT_TRUE(Run(*first) == expected);
  const auto second = Open(row.build());
  EXPECT_EQ(store_counts.found, 1);
  EXPECT_TRUE(Run(*second) == expected);
  EXPECT_THAT(store_counts.packed, ElementsAre(row.what));
  EXPECT_EQ(store_counts.found, 1);
}

INSTANTIATE_TEST_SUITE_P(Ops, KernelWeightsOf,
                         testing::Values(Row{"Conv", "f32 panels", [] { return Conv(1); }},
                                         Row{"ConvOfGroups", "f32 panels", [] { return Conv(2); }},
                                         Row{"DenseOfManyRows", "f32 panels", [] { return Dense(20); }},
                                         Row{"Transposed", "f32 panels", [] { return Transposed(); }},
                                         Row{"ByteConv", "bytes", [] { return ByteConv(); }},
                                         Row{"ByteTransposed", "bytes", [] { return ByteTransposed(); }},
                                         Row{"ByteDepthwise", "bytes", [] { return ByteDepthwise(); }},
                                         Row{"ByteDense", "bytes", [] { return ByteDense(); }},
                                         Row{"HybridDense", "bytes", [] { return HybridDense(); }},
                                         Row{"NibbleDense", "bytes", [] { return NibbleDense(0); }},
                                         Row{"NibbleDenseInBlocks", "blocks", [] { return NibbleDense(4); }},
                                         Row{"ByteProduct", "bytes", [] { return ByteProduct(); }}),
                         [](const auto& info) { return info.param.name; });

// Products of few rows read the weights as they are stored.
TEST_F(KernelWeights, OfFewRowsAreNotPacked) {
  const auto session = Open(Dense(4));
  Run(*session);
  EXPECT_THAT(store_counts.packed, IsEmpty());
}

// The same bytes packed in another way: other taps, groups, zero points.
TEST_F(KernelWeights, OfAnotherPackingAreOtherWeights) {
  const Build builds[] = {[] { return ByteConv(); }, [] { return ByteConv({0.05f, -7}); },
                          [] { return ByteTransposed(); }};
  std::vector<Tensor> expected;
  for (const Build& build : builds) expected.push_back(WithoutStore(build()));
  for (size_t i = 0; i < std::size(builds); ++i) EXPECT_TRUE(Run(*Open(builds[i]())) == expected[i]) << i;
  EXPECT_THAT(store_counts.packed, ElementsAre("bytes", "bytes", "bytes"));
}

TEST_F(KernelWeights, ArePackedOnceForAllSessions) {
  const auto model = Model::FromModule(Conv(1), {.registry = WithStore()});
  ASSERT_TRUE(model) << model.error().message;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Session::Create(*model, {.threads = 2}));
  EXPECT_THAT(store_counts.packed, ElementsAre("f32 panels"));
  EXPECT_EQ(store_counts.found, 0);
}

}  // namespace
}  // namespace fusebox::kept_weights
