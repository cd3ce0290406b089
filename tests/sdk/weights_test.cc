// SPDX-License-Identifier: Apache-2.0
// <fusebox/weights.hpp> with stores that keep, that refuse, and that lie.
#include <gtest/gtest.h>

#include <fusebox/compiled.hpp>
#include <fusebox/weights.hpp>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/testing/huge_pages.h"

namespace fusebox::sdk {
namespace {

// What the store does, and what was done with it.
struct Store {
  fbx_status answer = FBX_OK;
  std::string packed;          // what it finds; empty: nothing
  bool gives_nothing = false;  // OK, without bytes
  bool loses = false;          // commit leaves nothing
  bool caller = true, there = true, keeps = true;
  bool old = false;  // of a time without `keeps`
  alignas(128) char memory[128] = {};
  int acquired = 0, committed = 0, released = 0, put = 0;
  std::string what, layout;
  std::vector<int64_t> numbers;
  size_t sources = 0, size = 0;
  const fbx_graph* graph = nullptr;
} store;

fbx_status Acquire(const fbx_host*, const fbx_weights_recipe* recipe, fbx_packed* packed) noexcept {
  ++store.acquired;
  store.what = to_string_view(recipe->what);
  store.layout = to_string_view(recipe->layout);
  store.numbers.assign(recipe->numbers, recipe->numbers + recipe->number_count);
  store.sources = recipe->source_count;
  store.size = recipe->size;
  if (store.answer != FBX_OK) return store.answer;
  packed->handle = &store;
  if (store.gives_nothing) return FBX_OK;
  packed->size = store.packed.size();
  if (!store.packed.empty()) packed->data = store.packed.data();
  else if (recipe->size > 0) packed->memory = store.memory;
  store.graph = recipe->graph;
  return FBX_OK;
}
void Commit(fbx_packed* packed) noexcept {
  ++store.committed;
  packed->data = store.loses ? nullptr : packed->memory;
  packed->memory = nullptr;
}
fbx_status Put(fbx_packed* packed, const void* bytes, size_t size) noexcept {
  ++store.put;
  if (store.loses) return FBX_OUT_OF_MEMORY;
  std::memcpy(store.memory, bytes, size);
  packed->data = store.memory;
  packed->size = size;
  return FBX_OK;
}
void Release(void* handle) noexcept { store.released += handle == &store; }

int Keeps(const fbx_host*) noexcept { return store.keeps && store.caller ? 1 : 0; }

const void* GetExtension(const fbx_host*, fbx_str id) noexcept {
  static constexpr fbx_weights kWeights{FBX_HEAD(fbx_weights), Acquire, Commit, Release, Put, Keeps};
  static constexpr fbx_weights kOld{
      {offsetof(fbx_weights, keeps), 1, 0}, Acquire, Commit, Release, Put, nullptr};
  static constexpr fbx_caller kCaller{FBX_HEAD(fbx_caller), nullptr, nullptr, nullptr, nullptr};
  if (to_string_view(id) == FBX_EXT_CALLER && store.caller) return &kCaller;
  if (to_string_view(id) != FBX_EXT_WEIGHTS || !store.there) return nullptr;
  return store.old ? &kOld : &kWeights;
}

class Weights : public testing::Test {
 protected:
  Weights() {
    store = Store();
    host_.head = FBX_HEAD(fbx_host);
    host_.get_extension = GetExtension;
    tensor_.head = FBX_HEAD(fbx_tensor);
  }
  PackedWeights Make(size_t size = 5) {
    const PackedWeights::Recipe recipe{
        .what = "panels", .layout = "wide", .numbers = {3, 4}, .sources = {Tensor(&tensor_)}, .size = size};
    return PackedWeights(Node(&host_, &node_), recipe, [&](void* to) {
      ++packs_;
      std::memcpy(to, "fresh", size);
    });
  }
  CompiledPartition Compile() {
    return CompiledPartition(Graph(&host_, &graph_), {.what = "program", .size = 99}, [&] {
      ++packs_;
      const auto bytes = std::as_bytes(std::span("fresh", 5));
      return std::vector<std::byte>(bytes.begin(), bytes.end());
    });
  }
  fbx_host host_{};
  fbx_graph graph_{};
  fbx_node node_{};
  fbx_tensor tensor_{};
  int packs_ = 0;
};

std::string_view Text(const PackedWeights& weights) { return {weights.data<char>(), 5}; }

TEST_F(Weights, ThatAreThereAreNotPacked) {
  store.packed = "known";
  {
    const PackedWeights weights = Make();
    EXPECT_EQ(Text(weights), "known");
    EXPECT_TRUE(weights.kept());
    EXPECT_EQ(store.released, 0);
  }
  EXPECT_EQ(packs_, 0);
  EXPECT_EQ(store.committed, 0);
  EXPECT_EQ(store.released, 1);
}

TEST_F(Weights, ThatAreNewArePackedIntoTheStore) {
  {
    PackedWeights weights = Make();
    EXPECT_EQ(weights.data(), store.memory);
    const PackedWeights moved = std::move(weights);
    EXPECT_EQ(Text(moved), "fresh");
  }
  EXPECT_EQ(store.committed, 1);
  EXPECT_EQ(store.released, 1);
  EXPECT_EQ(store.what, "panels");
  EXPECT_EQ(store.layout, "wide");
  EXPECT_EQ(store.numbers, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(store.sources, 1u);
  EXPECT_EQ(store.size, 5u);
}

TEST_F(Weights, WithoutAStoreAreOnTheHeap) {
  const auto on_the_heap = [&] {
    const PackedWeights weights = Make();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(weights.data()) % PackedWeights::kAlignment, 0u);
    return Text(weights) == "fresh" && !weights.kept();
  };
  store.there = false;
  EXPECT_TRUE(on_the_heap());
  store.there = true;
  store.caller = false;
  EXPECT_TRUE(on_the_heap());
  EXPECT_EQ(store.acquired, 0) << "nothing is kept outside of a kernel's init";
  store.caller = true;
  for (const fbx_status status : {FBX_NOT_APPLICABLE, FBX_INVALID, FBX_IO, FBX_OUT_OF_MEMORY}) {
    store.answer = status;
    EXPECT_TRUE(on_the_heap()) << status;
  }
  EXPECT_EQ(store.released, 0);
}

TEST_F(Weights, ThatComeLateArePackedOnce) {
  const LatePackedWeights weights;
  EXPECT_TRUE(keeps_weights(&host_));
  EXPECT_THROW(weights.make_once([]() -> PackedWeights { throw Error{FBX_INVALID, "no"}; }), Error);
  store.caller = false;
  EXPECT_FALSE(keeps_weights(&host_));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { weights.make_once([&] { return Make(); }); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(packs_, 1);
  EXPECT_EQ(Text(*weights.operator->()), "fresh");
}

TEST_F(Weights, ThatAreLargeAreInHugePages) {
  store.there = false;
  for (const size_t size : {size_t{9} << 20, size_t{1} << 20}) {
    const PackedWeights weights(Node(&host_, &node_), {.what = "panels", .size = size},
                                [&](void* to) { std::memset(to, 7, size); });
    EXPECT_EQ(weights.data<char>()[size - 1], 7);
    const auto asks = AsksForHugePages(weights.data<char>() + size / 2);
    if (!asks) GTEST_SKIP() << "this system does not show the flags of memory in /proc/self/smaps";
    EXPECT_EQ(*asks, size > size_t{4} << 20) << size;
  }
}

TEST_F(Weights, AreKeptIfTheStoreSaysSo) {
  EXPECT_TRUE(keeps_weights(&host_));
  store.keeps = false;
  EXPECT_FALSE(keeps_weights(&host_));
  store.old = true;
  EXPECT_TRUE(keeps_weights(&host_)) << "unknown";
}

TEST_F(Weights, OfAStoreThatLosesThemAreOnTheHeap) {
  store.loses = true;
  EXPECT_EQ(Text(Make()), "fresh");
  EXPECT_EQ(store.released, 1);
  store.gives_nothing = true;
  EXPECT_EQ(Text(Make()), "fresh");
  EXPECT_EQ(store.released, 2);
}

TEST_F(Weights, WhosePackingThrowsAreGivenUp) {
  const PackedWeights::Recipe recipe{.what = "panels", .size = 5};
  EXPECT_THROW(PackedWeights(Node(&host_, &node_), recipe, [](void*) { throw Error{FBX_INVALID, "no"}; }),
               Error);
  EXPECT_EQ(store.committed, 0);
  EXPECT_EQ(store.released, 1);
}

TEST_F(Weights, TooManyForMemoryAreNotPacked) {
  for (const bool there : {true, false}) {
    store.there = there;
    for (const size_t size : {SIZE_MAX, SIZE_MAX - 63, size_t{PTRDIFF_MAX} + 1}) {
      const PackedWeights::Recipe recipe{.what = "panels", .size = size};
      EXPECT_THROW(PackedWeights(Node(&host_, &node_), recipe, [](void*) { FAIL() << "packed"; }),
                   std::bad_alloc)
          << size;
    }
  }
  EXPECT_EQ(store.acquired, 0);
}

TEST_F(Weights, OfNoSizeAreNobodysBusiness) {
  EXPECT_NE(Make(0).data(), nullptr);
  EXPECT_EQ(store.acquired, 0);
}

std::string_view Text(const CompiledPartition& compiled) {
  return {reinterpret_cast<const char*>(compiled.bytes().data()), compiled.bytes().size()};
}

TEST_F(Weights, OfAPartitionThatAreThereAreNotCompiled) {
  store.packed = "known";
  EXPECT_EQ(Text(Compile()), "known");
  EXPECT_TRUE(Compile().found());
  EXPECT_EQ(packs_, 0);
  EXPECT_EQ(store.put, 0);
  EXPECT_EQ(store.released, 2);
}

TEST_F(Weights, OfANewPartitionAreCompiledAndStored) {
  const CompiledPartition compiled = Compile();
  EXPECT_EQ(Text(compiled), "fresh");
  EXPECT_FALSE(compiled.found());
  EXPECT_EQ(static_cast<const void*>(compiled.bytes().data()), store.memory);
  EXPECT_EQ(store.graph, &graph_);
  EXPECT_EQ(store.size, 0u) << "known only when they are compiled";
  EXPECT_EQ(store.put, 1);
}

TEST_F(Weights, OfAPartitionAreItsOwnWithoutAStore) {
  store.loses = true;
  EXPECT_EQ(Text(Compile()), "fresh");
  store.there = false;
  EXPECT_EQ(Text(Compile()), "fresh");
  EXPECT_EQ(packs_, 2);
  EXPECT_EQ(store.released, 1);
}

}  // namespace
}  // namespace fusebox::sdk
