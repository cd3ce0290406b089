// SPDX-License-Identifier: Apache-2.0
// LiteRT's custom op that updates caches with a position per row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "host/fusion/fusion.h"
#include "tests/plugins/nn/site.h"

namespace fusebox::nn_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// As LiteRT's converter writes it: no body, no options.
std::unique_ptr<Module> Exported(DType dtype = DType::kF32) {
  auto module = std::make_unique<Module>();
  module->source = "exported.tflite";
  Function& f = module->Add("main");
  const Type cache{dtype, Shape({1, 4, 2, 8})};
  const Type rows{dtype, Shape({1, 2, 2, 8})};
  std::vector<ValueId> operands = {f.AddInput(cache, "k_cache"), f.AddInput(cache, "v_cache"),
                                   f.AddInput({DType::kI32, Shape({2})}, "positions"), f.AddInput(rows, "k"),
                                   f.AddInput(rows, "v")};
  Node& node = f.AddNode(Op::kCustom, operands, {cache, cache});
  node.name = "odml.update_external_kv_cache";
  node.version = 1;
  f.outputs = node.results;
  return module;
}

TEST(ExternalCache, IsTwoUpdatesInPlace) {
  const auto model = Model::FromModule(Exported(), {.registry = NnPlugin()});
  ASSERT_TRUE(model) << model.error().message;
  const SiteReport& site = (*model)->fusions().at(0);
  EXPECT_THAT(site.emitted, ElementsAre("fusebox.update_rows", "fusebox.update_rows"));
  const auto session = *Session::Create(*model);
  constexpr size_t kCount = 64;
  struct alignas(64) Cache {
    float values[kCount] = {};
    float behind[16] = {};
    std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(values)); }
  } caches[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(session->BindInput(i, caches[i].bytes()));
    ASSERT_TRUE(session->BindOutput(i, caches[i].bytes()));
    ASSERT_TRUE(session->SetInput(3 + i, RandomFloats({1, 2, 2, 8}, static_cast<uint64_t>(i))));
  }
  const auto run = [&](std::vector<int32_t> positions) {
    EXPECT_TRUE(session->SetInput(2, {{DType::kI32, Shape({2})}, Buffer::Of<int32_t>(positions)}));
    return session->Run();
  };
  ASSERT_TRUE(run({1, 3}));
  for (int i = 0; i < 2; ++i) {
    const std::vector<float> rows = FloatsOf(RandomFloats({1, 2, 2, 8}, static_cast<uint64_t>(i)));
    for (size_t e = 0; e < 16; ++e) {
      EXPECT_EQ(caches[i].values[e], 0);
      EXPECT_EQ(caches[i].values[16 + e], rows[e]);
      EXPECT_EQ(caches[i].values[32 + e], 0);
      EXPECT_EQ(caches[i].values[48 + e], rows[16 + e]);
    }
  }
  const Status outside = run({3, 4});
  ASSERT_FALSE(outside);
  EXPECT_THAT(outside.error().message, HasSubstr("position 4 is outside of a cache of 4"));
  EXPECT_EQ(caches[0].values[32], 0) << "nothing is written";
}

TEST(ExternalCache, DeclinesWithTheReason) {
  const auto module = Exported(DType::kI8);
  const auto sites = Fuse(*module, *NnPlugin());
  ASSERT_TRUE(sites);
  EXPECT_FALSE(sites->at(0).fused);
  EXPECT_THAT(sites->at(0).why, HasSubstr("is neither f32 nor f16 (operand 0)"));
}

TEST(ExternalCache, NeedsThePlugin) {
  Config config;
  config.search_default_path = false;
  const auto model = Model::FromModule(Exported(), {.registry = *Registry::Create(config)});
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("odml.update_external_kv_cache"));
  const auto module = Exported();
  const auto sites = Fuse(*module, *NnPlugin(), {.custom_ops = false});
  ASSERT_TRUE(sites);
  EXPECT_TRUE(sites->empty());
}

}  // namespace
}  // namespace fusebox::nn_test
