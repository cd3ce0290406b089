// SPDX-License-Identifier: Apache-2.0
#include "tests/plugins/kept_weights/lstm_model.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <utility>

#include "tests/plugins/kept_weights/counted_packs.h"

extern "C" const fbx_entry fusebox_rnn_entry_v1;

namespace fusebox::kept_weights {
namespace {

namespace fs = std::filesystem;

std::vector<float> Noise(std::mt19937& random, size_t count) {
  std::vector<float> values(count);
  for (float& v : values) v = static_cast<float>(static_cast<double>(random()) / 4294967296.0 - 0.5);
  return values;
}

ValueId AddLayer(Function& f, ValueId x, int64_t inputs, int64_t cells, std::mt19937& random) {
  const auto constant = [&](std::vector<int64_t> dims) {
    size_t count = 1;
    for (const int64_t d : dims) count *= static_cast<size_t>(d);
    return f.AddConst({DType::kF32, Shape(dims)}, Buffer::Of<float>(Noise(random, count)));
  };
  std::vector<ValueId> operands(24, kNoValue);
  operands[0] = x;
  for (size_t i = 1; i <= 4; ++i) operands[i] = constant({cells, inputs});
  for (size_t i = 5; i <= 8; ++i) operands[i] = constant({cells, cells});
  for (size_t i = 12; i <= 15; ++i) operands[i] = constant({cells});
  for (size_t i = 18; i <= 19; ++i) {
    operands[i] = f.AddValue({DType::kF32, Shape({1, cells})}, "state");
    f.value(operands[i]).is_variable = true;
  }
  Attrs attrs;
  attrs.Set("fused_activation_function", "TANH");
  attrs.Set("time_major", false);
  const Type result{DType::kF32, Shape({1, kSteps, cells})}, state{DType::kF32, Shape({1, cells})};
  return f.AddNode(Op::kUnidirectionalSequenceLstm, operands, {result, state, state}, attrs).results[0];
}

}  // namespace

std::unique_ptr<Module> LstmModule(std::vector<int64_t> cells, uint32_t seed) {
  auto module = std::make_unique<Module>();
  module->source = "lstm.tflite";
  Function& f = module->Add("main");
  std::mt19937 random(seed);
  ValueId x = f.AddInput({DType::kF32, Shape({1, kSteps, kInputs})}, "x");
  int64_t inputs = kInputs;
  for (const int64_t n : cells) x = AddLayer(f, x, std::exchange(inputs, n), n, random);
  f.outputs = {x};
  return module;
}

std::shared_ptr<Registry> MakeRegistry(bool with_store) {
  Config config;
  config.search_default_path = false;
  if (with_store) config.plugins = {FUSEBOX_XNNPACK};
  const fbx_entry* const entries[] = {&fusebox_rnn_entry_v1};
  auto made = Registry::Create(config, entries);
  EXPECT_TRUE(made) << made.error().message;
  return made ? *made : nullptr;
}

bool StoreIsLoaded(const Registry& registry) {
  const auto plugins = registry.plugins();
  return std::any_of(plugins.begin(), plugins.end(),
                     [](const PluginInfo& p) { return p.manifest.id == "fusebox.xnnpack" && p.loaded; });
}

ModelOptions OptionsOf(std::shared_ptr<Registry> registry, const std::string& cache) {
  ModelOptions options{.registry = std::move(registry)};
  if (!cache.empty()) options.delegate_options = R"({"xnnpack": {"weight_cache_path": ")" + cache + "\"}}";
  return options;
}

std::shared_ptr<const Model> Open(std::unique_ptr<Module> module, const ModelOptions& options) {
  auto model = Model::FromModule(std::move(module), options);
  EXPECT_TRUE(model) << model.error().message;
  return model ? *model : nullptr;
}

std::vector<float> Answer(const std::shared_ptr<const Model>& model) {
  auto session = Session::Create(model);
  EXPECT_TRUE(session);
  std::mt19937 random(99);
  const std::vector<float> x = Noise(random, static_cast<size_t>(kSteps * kInputs));
  const Type type{DType::kF32, Shape({1, kSteps, kInputs})};
  EXPECT_TRUE((*session)->SetInput(0, {type, Buffer::Of<float>(x)}));
  EXPECT_TRUE((*session)->Run());
  const auto output = (*session)->output(0);
  const auto values = output->data.As<float>();
  return {values.begin(), values.end()};
}

int PacksInChild(const std::string& cache, std::vector<int64_t> cells, const std::vector<float>& expected) {
  const pid_t child = fork();
  if (child == 0) {
    PacksSince();
    const auto answer = Answer(Open(LstmModule(std::move(cells)), OptionsOf(MakeRegistry(), cache)));
    _exit(answer == expected ? std::min(PacksSince(), 200) : 255);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) != 255 ? WEXITSTATUS(status) : -1;
}

void KeptWeights::SetUp() {
  std::string made = testing::TempDir() + "/kept.XXXXXX";
  ASSERT_NE(mkdtemp(made.data()), nullptr);
  directory_ = made;
  UseInstructionSet(0);
  PacksSince();
}

void KeptWeights::TearDown() {
  UseTheBestInstructionSet();
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

std::vector<std::string> KeptWeights::FilesBelow(const std::string& suffix) const {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
    if (entry.is_regular_file() && entry.path().string().ends_with(suffix)) files.push_back(entry.path());
  }
  return files;
}

}  // namespace fusebox::kept_weights
