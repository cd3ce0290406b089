// SPDX-License-Identifier: Apache-2.0
// LSTM layers whose packed weights are kept by the xnnpack plugin: the same numbers, and less packing.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "host/tflite/tflite.h"
#include "tests/plugins/kept_weights/lstm_model.h"

namespace fusebox::kept_weights {
namespace {

using testing::Gt;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const std::vector<int64_t> kCells = {33, 16, 40};

std::vector<float> Plain(std::vector<int64_t> cells = kCells, uint32_t seed = 1) {
  auto answer = Answer(Open(LstmModule(std::move(cells), seed), OptionsOf(MakeRegistry(false), "")));
  EXPECT_THAT(answer, Not(IsEmpty()));
  PacksSince();
  return answer;
}

TEST_F(KeptWeights, TheSecondStartPacksNothingAndComputesTheSame) {
  const std::vector<float> expected = Plain();
  EXPECT_GT(PacksInChild(Path("cache/"), kCells, expected), 0);
  const auto files = FilesBelow(".fbpk");
  EXPECT_THAT(files, SizeIs(1)) << "what one opening packs is one segment";
  EXPECT_EQ(PacksInChild(Path("cache/"), kCells, expected), 0);
  EXPECT_EQ(FilesBelow(".fbpk"), files) << "nothing is written";
}

TEST_F(KeptWeights, WithoutACacheOpeningPacksNothing) {
  ModelOptions options = OptionsOf(MakeRegistry(), "");
  options.delegate_options = R"({"xnnpack": {}})";
  const auto model = Open(LstmModule(kCells), options);
  EXPECT_TRUE(StoreIsLoaded(*options.registry));
  EXPECT_EQ(PacksSince(), 0);
  EXPECT_THAT(Answer(model), Not(IsEmpty()));
  EXPECT_THAT(PacksSince(), Gt(0));
}

TEST_F(KeptWeights, OneFileServesToo) {
  const std::vector<float> expected = Plain();
  EXPECT_GT(PacksInChild(Path("lstm.fbpk"), kCells, expected), 0);
  EXPECT_TRUE(std::filesystem::is_regular_file(Path("lstm.fbpk")));
  EXPECT_EQ(PacksInChild(Path("lstm.fbpk"), kCells, expected), 0);
}

TEST_F(KeptWeights, AreSharedByModelsAndSessions) {
  const std::vector<float> expected = Plain();
  const auto registry = MakeRegistry();
  for (const std::string& cache : {std::string(":memory"), Path("cache/")}) {
    const auto first = Open(LstmModule(kCells), OptionsOf(registry, cache));
    EXPECT_THAT(PacksSince(), Gt(0));
    const auto second = Open(LstmModule(kCells), OptionsOf(registry, cache));
    EXPECT_EQ(PacksSince(), 0) << cache;
    EXPECT_EQ(Answer(first), expected);
    EXPECT_EQ(Answer(second), expected);
    EXPECT_EQ(Answer(second), expected);
    EXPECT_EQ(PacksSince(), 0) << cache;
  }
}

TEST_F(KeptWeights, OfLayersWithinOneModelAreSharedToo) {
  auto module = LstmModule({kInputs});
  Function& f = *module->functions[0];
  Node& first = *f.nodes[0];
  std::vector<ValueId> operands = first.operands;
  operands[0] = first.results[0];
  for (size_t i = 18; i <= 19; ++i) {
    operands[i] = f.AddValue(f.value(operands[i]).type, "more state");
    f.value(operands[i]).is_variable = true;
  }
  std::vector<Type> types;
  for (const ValueId id : first.results) types.push_back(f.value(id).type);
  f.outputs = {f.AddNode(first.op, operands, types, Attrs(first.attrs)).results[0]};
  const auto one = Open(LstmModule({kInputs}), OptionsOf(MakeRegistry(), Path("one/")));
  const int packs = PacksSince();
  const auto two = Open(std::move(module), OptionsOf(MakeRegistry(), Path("two/")));
  EXPECT_EQ(PacksSince(), packs);
  EXPECT_THAT(Answer(two), Not(IsEmpty()));
}

TEST_F(KeptWeights, OtherWeightsAndShapesMiss) {
  const std::string cache = Path("cache/");
  const auto registry = MakeRegistry();
  EXPECT_EQ(Answer(Open(LstmModule({33}), OptionsOf(registry, cache))), Plain({33}));
  const auto other = Answer(Open(LstmModule({33}, 2), OptionsOf(registry, cache)));
  EXPECT_THAT(PacksSince(), Gt(0));
  EXPECT_EQ(other, Plain({33}, 2));
  const auto wider = Answer(Open(LstmModule({34}), OptionsOf(registry, cache)));
  EXPECT_THAT(PacksSince(), Gt(0));
  EXPECT_EQ(wider, Plain({34}));
}

TEST_F(KeptWeights, OfSeveralInstructionSetsLieSideBySide) {
  const std::string cache = Path("cache/");
  const auto registry = MakeRegistry();
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < InstructionSets(); ++i) {
      UseInstructionSet(i);
      const auto without = Answer(Open(LstmModule(kCells), OptionsOf(registry, "")));
      PacksSince();
      EXPECT_EQ(Answer(Open(LstmModule(kCells), OptionsOf(registry, cache))), without) << "set " << i;
      EXPECT_TRUE(PacksSince() == 0 || round == 0) << "set " << i;
    }
  }
}

// Every blob of the segment, but not its head.
void Damage(const std::string& path) {
  std::filesystem::permissions(path, std::filesystem::perms::owner_write, std::filesystem::perm_options::add);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(5000);
  for (int i = 0; i < 3000; ++i) file.put('x');
  ASSERT_TRUE(file);
}

TEST_F(KeptWeights, ThatWereDamagedArePackedAnew) {
  const std::vector<float> expected = Plain();
  PacksInChild(Path("cache/"), kCells, expected);
  const auto files = FilesBelow(".fbpk");
  ASSERT_THAT(files, SizeIs(1));
  Damage(files[0]);
  EXPECT_GT(PacksInChild(Path("cache/"), kCells, expected), 0);
  EXPECT_EQ(PacksInChild(Path("cache/"), kCells, expected), 0) << "it has healed";
  std::filesystem::resize_file(FilesBelow(".fbpk")[0], 4200);
  EXPECT_GT(PacksInChild(Path("cache/"), kCells, expected), 0);
}

TEST_F(KeptWeights, WithoutAPlaceToKeepThemAreOnTheHeap) {
  const std::vector<float> expected = Plain();
  std::ofstream(Path("file")) << "no directory";
  for (const std::string& cache : {std::string(), Path("file/below/"), std::string("/proc/self/nowhere/")}) {
    EXPECT_EQ(Answer(Open(LstmModule(kCells), OptionsOf(MakeRegistry(), cache))), expected) << cache;
    EXPECT_THAT(PacksSince(), Gt(0));
  }
  ModelOptions alone = OptionsOf(MakeRegistry(false), Path("cache/"));
  EXPECT_EQ(Answer(Open(LstmModule(kCells), alone)), expected) << "no plugin keeps weights";
  EXPECT_FALSE(std::filesystem::exists(Path("cache")));
}

TEST_F(KeptWeights, AreKeptWhereTheDelegateIsTurnedOff) {
  const auto registry = MakeRegistry();
  ModelOptions off = OptionsOf(registry, "");
  off.delegates.emplace();
  const std::vector<float> expected = Answer(Open(LstmModule(kCells), off));
  EXPECT_FALSE(StoreIsLoaded(*registry)) << "for nothing";
  off.delegate_options = OptionsOf(registry, Path("cache/")).delegate_options;
  PacksSince();
  for (const bool first : {true, false}) {
    const auto model = Open(LstmModule(kCells), off);
    EXPECT_EQ(PacksSince() > 0, first);
    EXPECT_THAT(model->notices(), IsEmpty());
    EXPECT_EQ(Answer(model), expected);
  }
  EXPECT_TRUE(StoreIsLoaded(*registry));
}

TEST_F(KeptWeights, OutliveEverythingButTheKernel) {
  const std::vector<float> expected = Plain();
  auto registry = MakeRegistry();
  auto first = Open(LstmModule(kCells), OptionsOf(registry, Path("cache/")));
  auto second = Open(LstmModule(kCells), OptionsOf(registry, Path("cache/")));
  registry.reset();
  first.reset();
  for (const std::string& file : FilesBelow("")) std::filesystem::remove(file);
  EXPECT_EQ(Answer(second), expected);
  auto session = Session::Create(second);
  second.reset();
  EXPECT_TRUE((*session)->Run());
}

TEST_F(KeptWeights, OfManyThreadsThatOpenAtOnceAreRight) {
  const std::vector<float> expected = Plain();
  const auto registry = MakeRegistry();
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const std::string cache = Path(t % 2 == 0 ? "a/" : "b/");
      for (int i = 0; i < 5; ++i)
        right += Answer(Open(LstmModule(kCells), OptionsOf(registry, cache))) == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 30);
  PacksSince();
  Open(LstmModule(kCells), OptionsOf(registry, Path("a/")));
  EXPECT_EQ(PacksSince(), 0);
}

// The test stands for the other process: whatever is packed first, it is its turn.
TEST_F(KeptWeights, ThatAnotherProcessPacksAreWaitedFor) {
  const auto registry = MakeRegistry();
  Open(LstmModule({5}), OptionsOf(registry, Path("cache/")));
  const int building = open(Path("cache/building").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(building, 0) << "the first opening took a turn";
  struct flock all{};
  all.l_type = F_WRLCK;
  ASSERT_EQ(fcntl(building, F_OFD_SETLKW, &all), 0);
  std::atomic<bool> done = false;
  std::shared_ptr<const Model> model;
  std::thread opening([&] {
    model = Open(LstmModule(kCells), OptionsOf(registry, Path("cache/")));
    done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_FALSE(done);
  close(building);
  opening.join();
  EXPECT_EQ(Answer(model), Plain());
}

// A file's weights are digested once, and found by their place from then on.
TEST_F(KeptWeights, OfAFileAreRemembered) {
  const std::vector<int64_t> large = {128, 128};
  const auto module = LstmModule(large);
  const std::string path = Path("model.tflite");
  ASSERT_TRUE(tflite::WriteFile(*module, path));
  const auto registry = MakeRegistry();
  const auto options = OptionsOf(registry, Path("cache/"));
  usleep(150'000);  // what was written just now might change without a trace
  const std::vector<float> expected = Plain(large);
  const auto open = [&] {
    auto model = Model::Open(path, options);
    EXPECT_TRUE(model) << model.error().message;
    return *model;
  };
  EXPECT_EQ(Answer(open()), expected);
  EXPECT_THAT(PacksSince(), Gt(0));
  EXPECT_THAT(FilesBelow(".fbmm"), SizeIs(1));
  EXPECT_EQ(Answer(open()), expected);
  EXPECT_EQ(PacksSince(), 0);
}

}  // namespace
}  // namespace fusebox::kept_weights
