// SPDX-License-Identifier: Apache-2.0
// The service fusebox.cache/1, and what sessions tell of packing.
#include <fusebox/abi/ext/cache.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "host/graph/view.h"
#include "host/run/run.h"
#include "plugins/xnnpack/cache/inspect.h"
#include "plugins/xnnpack/cache/segment_write.h"
#include "tests/plugins/xnnpack/net.h"

namespace fusebox::xnnpack_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

namespace fs = std::filesystem;

struct Weight {
  std::string op, code, why, recipe, segment;
  fbx_cache_kind kind;
  bool found;
  uint64_t bytes, packed;
};

struct Answer {
  fbx_cache_sink sink{FBX_HEAD(fbx_cache_sink), nullptr, OnSegment, OnEntry, OnWeight, OnFact, nullptr};
  std::vector<std::string> ids;
  std::vector<fbx_cache_state> states;
  std::vector<uint64_t> entry_bytes;
  std::vector<bool> current;
  std::vector<std::string> recipes;
  std::vector<Weight> weights;
  std::vector<std::string> facts;

  static Answer& Of(const fbx_cache_sink* sink) {
    return *const_cast<Answer*>(reinterpret_cast<const Answer*>(sink));
  }
  static std::string Text(fbx_str s) { return std::string(FromAbi(s)); }
  static void OnSegment(const fbx_cache_sink* sink, const fbx_cache_segment* s) noexcept {
    Of(sink).ids.push_back(Text(s->id));
    Of(sink).states.push_back(s->state);
  }
  static void OnEntry(const fbx_cache_sink* sink, const fbx_cache_entry* e) noexcept {
    Of(sink).entry_bytes.push_back(e->bytes);
    Of(sink).current.push_back(e->current != 0);
    Of(sink).recipes.push_back(Text(e->family) + ": " + Text(e->recipe));
  }
  static void OnWeight(const fbx_cache_sink* sink, const fbx_cache_weight* w) noexcept {
    Of(sink).weights.push_back({Text(w->op), Text(w->code), Text(w->why), Text(w->recipe), Text(w->segment),
                                w->kind, w->found != 0, w->bytes, w->packed_bytes});
  }
  static void OnFact(const fbx_cache_sink* sink, fbx_str name, fbx_str value) noexcept {
    Of(sink).facts.push_back(Text(name) + ": " + Text(value));
  }
};

// A dense layer, a depthwise and a transposed convolution.
std::unique_ptr<Module> Mixed(uint32_t seed) {
  Net net;
  const ValueId x = net.Input(DType::kF32, {1, 4, 4, 8});
  const ValueId depthwise = net.Const<float>(DType::kF32, {1, 3, 3, 8}, Noise<float>(72, seed + 1, -1, 1));
  const ValueId y = net.Add(Op::kDepthwiseConv2D, {x, depthwise, kNoValue}, DType::kF32, {1, 4, 4, 8},
                            Options("padding", "SAME", "stride_h", 1, "stride_w", 1, "depth_multiplier", 1));
  const ValueId dims = net.Const<int32_t>(DType::kI32, {4}, {1, 8, 8, 8});
  const ValueId up = net.Const<float>(DType::kF32, {8, 2, 2, 8}, Noise<float>(256, seed + 2, -1, 1));
  const ValueId z = net.Add(Op::kTransposeConv, {dims, up, y}, DType::kF32, {1, 8, 8, 8},
                            Options("padding", "VALID", "stride_h", 2, "stride_w", 2));
  const ValueId dense = net.Const<float>(DType::kF32, {16, 8}, Noise<float>(128, seed, -1, 1));
  return net.Take({net.Add(Op::kFullyConnected, {z, dense, kNoValue}, DType::kF32, {1, 8, 8, 16},
                           Options("keep_num_dims", true))});
}

// Of those that a cache is asked for.
std::vector<std::string> Codes(const std::vector<Weight>& weights) {
  std::vector<std::string> codes;
  for (const Weight& w : weights)
    if (w.kind != FBX_CACHE_PRIVATE) codes.push_back(w.code);
  return codes;
}

class CacheTable : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "cache_table." + std::to_string(getpid()) + "." +
            testing::UnitTest::GetInstance()->current_test_info()->name() + "/";
    fs::remove_all(path_);
    const Registry::ServiceRef service = XnnpackRegistry()->FindService(FBX_EXT_CACHE);
    ASSERT_NE(service.table, nullptr);
    table_ = static_cast<const fbx_cache*>(service.table);
    call_ = std::make_unique<HostCall>(*service.plugin, nullptr);
  }
  void TearDown() override { fs::remove_all(path_); }

  std::vector<Weight> Explain(std::unique_ptr<Module> module) {
    const auto model = Model::FromModule(std::move(module),
                                         {.registry = XnnpackRegistry(), .delegates = {{AllOnXnnpack()}}});
    EXPECT_TRUE(model) << model.error().message;
    Answer answer;
    for (const auto& part : (*model)->program().parts()) {
      const GraphView view((*model)->module(), *part->function);
      const Status said = call_->Check(table_->explain(call_->abi(), AsAbi(path_), view.abi(), &answer.sink));
      EXPECT_TRUE(said) << said.error().message;
    }
    return answer.weights;
  }
  Answer List() {
    Answer answer;
    const Status said = call_->Check(table_->list(call_->abi(), AsAbi(path_), &answer.sink));
    EXPECT_TRUE(said) << said.error().message;
    return answer;
  }
  std::string Segment() {
    for (const auto& entry : fs::directory_iterator(path_ + "segments")) return entry.path();
    return "";
  }

  std::string path_;
  const fbx_cache* table_ = nullptr;
  std::unique_ptr<HostCall> call_;
};

TEST_F(CacheTable, ExplainsWhatIsNotThereYet) {
  const auto weights = Explain(Mixed(1));
  ASSERT_EQ(weights.size(), 3u);
  EXPECT_EQ(weights[0].kind, FBX_CACHE_PRIVATE);
  EXPECT_EQ(weights[0].bytes, 72 * sizeof(float));
  EXPECT_EQ(weights[1].kind, FBX_CACHE_REPACKED);
  EXPECT_EQ(weights[1].code, "absent");
  EXPECT_EQ(weights[2].kind, FBX_CACHE_CACHED);
  EXPECT_EQ(weights[2].code, "absent");
  EXPECT_EQ(weights[2].bytes, 128 * sizeof(float));
  EXPECT_FALSE(fs::exists(path_)) << "nothing is written";
}

TEST_F(CacheTable, ExplainsWhatIsFound) {
  ASSERT_EQ(RunNet(Mixed(1), path_).error, "");
  const auto weights = Explain(Mixed(1));
  ASSERT_EQ(weights.size(), 3u);
  for (const Weight& w : weights) {
    EXPECT_EQ(w.found, w.kind != FBX_CACHE_PRIVATE) << w.op << ": " << w.why;
    EXPECT_EQ(w.segment.empty(), !w.found);
    EXPECT_TRUE(!w.found || w.packed >= w.bytes) << w.op;
  }
  const Answer list = List();
  EXPECT_EQ(list.ids.size(), 1u);
  EXPECT_THAT(list.states, ElementsAre(FBX_CACHE_VERIFIED));
  EXPECT_THAT(list.recipes, testing::UnorderedElementsAre("fully connected: f32 16x8",
                                                          "transposed convolution: f32 8x2x2x8"));
  EXPECT_THAT(list.current, Each(true));
}

TEST_F(CacheTable, TellsOtherWeightsFromOthersYetUnpacked) {
  ASSERT_EQ(RunNet(Mixed(1), path_).error, "");
  EXPECT_THAT(Codes(Explain(Mixed(2))), ElementsAre("weights", "weights"));
  Net other;
  const ValueId x = other.Input(DType::kF32, {1, 8});
  const ValueId dense = other.Const<float>(DType::kF32, {32, 8}, Noise<float>(256, 1, -1, 1));
  const auto weights =
      Explain(other.Take({other.Add(Op::kFullyConnected, {x, dense, kNoValue}, DType::kF32, {1, 32})}));
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_EQ(weights[0].code, "absent");
}

TEST_F(CacheTable, TellsDamage) {
  ASSERT_EQ(RunNet(Mixed(1), path_).error, "");
  {
    std::fstream file(Segment(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file.put(42);
  }
  EXPECT_THAT(Codes(Explain(Mixed(1))), ElementsAre("damaged", "damaged"));
  EXPECT_EQ(List().ids.size(), 1u) << "explaining puts nothing aside";
  Answer answer;
  EXPECT_TRUE(call_->Check(table_->verify(call_->abi(), AsAbi(path_), &answer.sink)));
  EXPECT_THAT(answer.states, ElementsAre(FBX_CACHE_BAD));
}

// Writes the only segment of a store anew, with its entries changed.
void Rewrite(const std::string& path, const std::function<void(cache::Entry&)>& change) {
  cache::Note why;
  const auto view = cache::Inspect(path, why);
  const auto dirs = cache::StoreDirs::Open(path, true, why);
  ASSERT_TRUE(view && view->segments.size() == 1 && dirs && dirs->writable) << why.message;
  const cache::Segment& old = *view->segments[0].segment;
  const cache::Stamp stamp{dirs->secret, 0, "test"};
  cache::Build build{cache::MakeTemp(dirs->tmp.get(), why)};
  for (const cache::Record& r : old.records()) {
    build.entries.push_back({r, std::string(old.RecipeOf(r)), old.Bytes(r)});
    change(build.entries.back());
  }
  cache::Digest id;
  ASSERT_TRUE(cache::WriteStaged(build, why) && cache::Finish(build, stamp, id, why)) << why.message;
  fs::remove(view->PathOf(view->segments[0]));
  ASSERT_TRUE(cache::NameTemp(build.temp, dirs->segments.get(), cache::Hex(id) + ".fbpk", false));
}

std::string Line(const std::string& note, const std::string& name) {
  const size_t begin = note.find("\n" + name) + 1 + name.size();
  return note.substr(begin, note.find('\n', begin) - begin);
}

void SetLine(std::string& note, const std::string& name, const std::string& value) {
  note.replace(note.find("\n" + name) + 1 + name.size(), Line(note, name).size(), value);
}

TEST_F(CacheTable, TellsWhatWasPackedForOthers) {
  ASSERT_EQ(RunNet(Mixed(1), path_).error, "");
  const auto said = [&](const std::function<void(cache::Entry&)>& change) {
    Rewrite(path_, change);
    const auto weights = Explain(Mixed(1));
    return weights.back().code + ": " + weights.back().why;
  };
  EXPECT_THAT(said([](cache::Entry& e) { e.record.fingerprint ^= 1; }), HasSubstr("fingerprint: "));
  EXPECT_THAT(List().current, Each(false));
  EXPECT_THAT(said([](cache::Entry& e) { SetLine(e.note, "library=", "c0ffee"); }),
              HasSubstr("library: packed by another build of XNNPACK (c0ffee)"));
  EXPECT_THAT(said([](cache::Entry& e) {
                e.record.identity.low ^= 1;
                SetLine(e.note, "cpu=", "mmx ");
              }),
              HasSubstr("cpu: packed for a CPU with mmx, this one has "));
  EXPECT_THAT(said([](cache::Entry& e) { e.note = "cpu=\n\n=\nsource"; }), HasSubstr("absent: "))
      << "a text that says nothing";
}

TEST_F(CacheTable, TellsWhatEntriesDependOn) {
  Answer answer;
  ASSERT_TRUE(call_->Check(table_->facts(call_->abi(), &answer.sink)));
  ASSERT_EQ(answer.facts.size(), 5u);
  EXPECT_THAT(answer.facts[0], testing::ContainsRegex("^library: XNNPACK [0-9a-f]+$"));
  EXPECT_THAT(answer.facts[1], HasSubstr("cpu: "));
  EXPECT_THAT(answer.facts[4], testing::ContainsRegex("^fingerprint of fully connected: [0-9a-f]{16}$"));
}

TEST_F(CacheTable, AnswersWithoutACache) {
  Answer answer;
  EXPECT_EQ(table_->list(call_->abi(), AsAbi(path_), &answer.sink), FBX_NOT_APPLICABLE);
  EXPECT_THAT(call_->TakeDiags().at(0).message, HasSubstr("no weight cache here"));
  EXPECT_EQ(table_->clear(call_->abi(), AsAbi(testing::TempDir()), &answer.sink), FBX_NOT_APPLICABLE);
  EXPECT_THAT(call_->TakeDiags().at(0).message, HasSubstr("is not a weight cache"));
}

TEST_F(CacheTable, PassesOverFunctionsThatNobodyWants) {
  ASSERT_EQ(RunNet(Mixed(1), path_).error, "");
  const fbx_cache_sink deaf{};
  EXPECT_EQ(table_->list(call_->abi(), AsAbi(path_), &deaf), FBX_OK);
  EXPECT_EQ(table_->verify(call_->abi(), AsAbi(path_), &deaf), FBX_OK);
  EXPECT_EQ(table_->collect(call_->abi(), AsAbi(path_), 0, &deaf), FBX_OK);
  EXPECT_FALSE(fs::exists(Segment()));
}

std::vector<Progress> ProgressOf(const std::string& cache) {
  std::vector<Progress> seen;
  Config::Delegate delegate = AllOnXnnpack();
  delegate.options.Set("weight_cache_path", cache);
  const auto model = Model::FromModule(
      Mixed(1), {.registry = XnnpackRegistry(), .delegates = std::vector{std::move(delegate)}});
  EXPECT_TRUE(model);
  const auto session = Session::Create(*model, {.progress = [&](const Progress& p) { seen.push_back(p); }});
  EXPECT_TRUE(session);
  EXPECT_TRUE((*session)->Prepare());
  return seen;
}

TEST_F(CacheTable, SessionsTellHowFarPackingIs) {
  constexpr uint64_t kDense = 128 * sizeof(float), kUp = 256 * sizeof(float);
  const auto cold = ProgressOf(path_);
  ASSERT_GE(cold.size(), 4u) << "beginning, two ops, end";
  EXPECT_EQ(cold.front().what, "packing weights");
  EXPECT_EQ(cold.front().done, 0u);
  EXPECT_EQ(cold.front().total, kDense + kUp) << "known before anything is packed";
  for (size_t i = 1; i < cold.size(); ++i) EXPECT_GE(cold[i].done, cold[i - 1].done);
  EXPECT_EQ(cold.back().done, kDense + kUp);
  EXPECT_TRUE(cold.back().ended);
  const auto warm = ProgressOf(path_);
  ASSERT_FALSE(warm.empty()) << "transposed convolutions are packed at every start";
  EXPECT_EQ(warm.front().total, kUp);
  EXPECT_EQ(warm.back().done, kUp);
}

TEST_F(CacheTable, FlushWaitsForTheDisk) {
  Config::Delegate delegate = AllOnXnnpack();
  delegate.options.Set("weight_cache_path", path_);
  const auto model = Model::FromModule(
      Mixed(1), {.registry = XnnpackRegistry(), .delegates = std::vector{std::move(delegate)}});
  const auto session = Session::Create(*model);
  ASSERT_TRUE((*session)->Prepare());
  const Status kept = call_->Check(table_->flush(call_->abi(), AsAbi(path_)));
  EXPECT_TRUE(kept) << kept.error().message;
  EXPECT_TRUE(fs::exists(Segment()));
}

}  // namespace
}  // namespace fusebox::xnnpack_test
