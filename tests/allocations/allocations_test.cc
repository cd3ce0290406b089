// SPDX-License-Identifier: Apache-2.0
// Each allocation of opening, running and converting a small model fails once: the call fails with a clean
// status or does without, nothing leaks, no file is left, and the next call works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "fusebox/c.h"
#include "fusebox/c_convert.h"
#include "host/tflite/tflite.h"
#include "tests/allocations/failing.h"
#include "tests/testing/pipeline.h"

namespace fusebox::allocations {
namespace {

template <auto kFree>
struct FreeWith {
  void operator()(auto* handle) const { kFree(handle); }
};
using RegistryHandle = std::unique_ptr<fusebox_registry, FreeWith<fusebox_registry_free>>;
using ModelHandle = std::unique_ptr<fusebox_model, FreeWith<fusebox_model_free>>;
using SessionHandle = std::unique_ptr<fusebox_session, FreeWith<fusebox_session_free>>;

struct Counts {
  uint64_t allocations = 0, failed = 0, refused = 0, survived = 0;
};

// One call, without anything that stays after it.
using Work = std::function<fusebox_status(char** error)>;

class Trial {
 public:
  Trial(std::string name, Work work, std::function<void()> check = {})
      : name_(std::move(name)), work_(std::move(work)), check_(std::move(check)) {
    for (int i = 0; i < 3; ++i) Succeeds();  // fills caches
  }

  // Fails each allocation.
  void All() {
    Arm(0);
    Once();
    const uint64_t all = Disarm();
    for (uint64_t n = 1; n <= all; ++n) Fail(n, n % 8 == 0 ? Then::kKeepFailing : Then::kRecover);
    Print(all);
  }

  // Fails the first allocation of each call site.
  void BySite(int depth, size_t most) {
    ArmSites(depth);
    const fusebox_status status = work_(nullptr);
    const std::vector<uint64_t> sites = DisarmSites();
    EXPECT_EQ(status, FUSEBOX_OK);
    Arm(0);
    Once();
    const uint64_t all = Disarm();
    const size_t step = sites.size() / most + 1;
    for (size_t i = 0; i < sites.size(); i += step)
      Fail(sites[i], i / step % 8 == 7 ? Then::kKeepFailing : Then::kRecover);
    std::printf("%s: %zu call sites, every %zu.\n", name_.c_str(), sites.size(), step);
    Print(all);
  }

 private:
  fusebox_status Once() {
    char* error = nullptr;
    const fusebox_status status = work_(&error);
    if (error != nullptr) text_.assign(error, std::min<size_t>(strlen(error), 200));
    else text_.clear();
    fusebox_text_free(error);
    return status;
  }

  void Succeeds() {
    ASSERT_EQ(Once(), FUSEBOX_OK) << text_;
    if (check_) check_();
  }

  void Fail(uint64_t n, Then then) {
    if (::testing::Test::HasFailure() && counts_.failed > 0 && failures_ > 20) return;
    text_.reserve(300);
    fusebox_status status = FUSEBOX_OK;
    const auto leak = [&] {
      const int64_t living = Living();
      Arm(n, then);
      status = Once();
      Disarm();
      return Living() - living;
    };
    int64_t leaked = leak();
    if (!Failed()) return;
    // A leak repeats. The kernels that a model makes after its delegate failed are kept once.
    if (leaked > 0) leaked = leak();
    ++counts_.failed;
    ++(status == FUSEBOX_OK ? counts_.survived : counts_.refused);
    const std::string place = name_ + ", allocation " + std::to_string(n) +
                              (then == Then::kKeepFailing ? " and all later ones" : "") + ": " + text_;
    if (status == FUSEBOX_INTERNAL || status == FUSEBOX_CANCELLED) {
      ++failures_;
      ADD_FAILURE() << place << ": " << fusebox_status_name(status);
    }
    if (check_) check_();
    if (n % 16 == 0) Succeeds();
    if (leaked > 0) {
      ++failures_;
      ADD_FAILURE() << place << ": " << leaked << " blocks leak";
    }
  }

  void Print(uint64_t all) const {
    std::printf("%s: %llu allocations, %llu failed in turn: %llu refused, %llu survived\n", name_.c_str(),
                static_cast<unsigned long long>(all), static_cast<unsigned long long>(counts_.failed),
                static_cast<unsigned long long>(counts_.refused),
                static_cast<unsigned long long>(counts_.survived));
  }

  const std::string name_;
  const Work work_;
  const std::function<void()> check_;
  std::string text_;
  Counts counts_;
  int failures_ = 0;
};

RegistryHandle MakeRegistry(const std::string& config) {
  fusebox_registry* out = nullptr;
  char* error = nullptr;
  EXPECT_EQ(fusebox_registry_create(nullptr, config.c_str(), &out, &error), FUSEBOX_OK) << error;
  return RegistryHandle(out);
}

constexpr const char* kNoPlugins = R"({"search_default_path": false})";

std::string PluginsConfig() {
  return R"({"search_default_path": false, "plugins": [")" FUSEBOX_BUILD_DIR
         R"(/plugins/fusebox.rnn", ")" FUSEBOX_BUILD_DIR R"(/plugins/fusebox.xnnpack"]})";
}

// y = softmax(relu(x W + b)), with a branch and a variable shape.
std::string WriteSmall(const std::string& name) {
  Module module;
  Function& f = module.Add("main");
  const Type row{DType::kF32, Shape({-1, 4})};
  const ValueId x = f.AddInput(row, "x");
  const ValueId w = f.AddConst<float>(DType::kF32, {4, 4}, std::vector<float>(16, 0.5f), "w");
  const ValueId b = f.AddConst<float>(DType::kF32, {4}, {1, 2, 3, 4}, "b");
  const ValueId dense = f.AddNode(Op::kFullyConnected, {x, w, b}, {row}).results[0];
  const ValueId relu = f.AddNode(Op::kRelu, {dense}, {row}).results[0];
  Attrs attrs;
  attrs.Set("beta", 1.0);
  f.outputs = f.AddNode(Op::kSoftmax, {relu}, {row}, attrs).results;
  f.value(f.outputs[0]).name = "y";
  module.signatures.push_back({"serving_default", "main", {"x"}, {"y"}});
  const std::string path = ::fusebox::testing::TestDir() + "/" + name;
  const Status written = tflite::WriteFile(module, path);
  EXPECT_TRUE(written) << written.error().message;
  return path;
}

Work Opening(const std::string& path, fusebox_registry* registry, const char* options) {
  return [=](char** error) {
    fusebox_model* model = nullptr;
    const fusebox_status status = fusebox_model_open(path.c_str(), options, registry, &model, error);
    fusebox_model_free(model);
    return status;
  };
}

Work Running(fusebox_model* model, int runs) {
  return [=](char** error) {
    fusebox_session* out = nullptr;
    fusebox_status status = fusebox_session_create(model, nullptr, nullptr, &out, error);
    const SessionHandle session(out);
    for (int64_t rows = 1; rows <= runs && status == FUSEBOX_OK; ++rows) {
      const int64_t dims[] = {rows, 4};
      const float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
      status = fusebox_session_resize_input(out, 0, dims, 2, error);
      if (status != FUSEBOX_OK) break;
      status = fusebox_session_set_input(out, 0, values, static_cast<size_t>(rows) * 16, error);
      if (status == FUSEBOX_OK) status = fusebox_session_run(out, error);
    }
    return status;
  };
}

ModelHandle OpenModel(const std::string& path, fusebox_registry* registry, const char* options) {
  fusebox_model* model = nullptr;
  char* error = nullptr;
  EXPECT_EQ(fusebox_model_open(path.c_str(), options, registry, &model, &error), FUSEBOX_OK) << error;
  return ModelHandle(model);
}

TEST(Allocations, OfOpeningAModel) {
  const RegistryHandle registry = MakeRegistry(kNoPlugins);
  Trial("opening", Opening(WriteSmall("small.tflite"), registry.get(), nullptr)).All();
}

TEST(Allocations, OfRunningAModel) {
  const RegistryHandle registry = MakeRegistry(kNoPlugins);
  const ModelHandle model = OpenModel(WriteSmall("small.tflite"), registry.get(), nullptr);
  Trial("running", Running(model.get(), 2)).All();
}

// The error names model and tensor; the session goes on.
TEST(Allocations, ASessionGoesOnAfterAFailure) {
  const RegistryHandle registry = MakeRegistry(kNoPlugins);
  const ModelHandle model = OpenModel(WriteSmall("small.tflite"), registry.get(), nullptr);
  for (uint64_t n = 1;; ++n) {
    fusebox_session* out = nullptr;
    ASSERT_EQ(fusebox_session_create(model.get(), nullptr, nullptr, &out, nullptr), FUSEBOX_OK);
    const SessionHandle session(out);
    const int64_t dims[] = {1, 4};
    const float values[] = {1, 2, 3, 4};
    ASSERT_EQ(fusebox_session_resize_input(out, 0, dims, 2, nullptr), FUSEBOX_OK);
    ASSERT_EQ(fusebox_session_set_input(out, 0, values, 16, nullptr), FUSEBOX_OK);
    Arm(n);
    const fusebox_status status = fusebox_session_run(out, nullptr);
    Disarm();
    if (!Failed()) break;
    EXPECT_TRUE(status == FUSEBOX_OUT_OF_MEMORY || status == FUSEBOX_OK) << n;
    ASSERT_EQ(fusebox_session_run(out, nullptr), FUSEBOX_OK) << n;
    fusebox_tensor tensor = FUSEBOX_TENSOR;
    ASSERT_EQ(fusebox_session_output(out, 0, &tensor, nullptr), FUSEBOX_OK);
    const auto* y = static_cast<const float*>(tensor.data);
    EXPECT_FLOAT_EQ(y[0] + y[1] + y[2] + y[3], 1) << n;
  }
}

TEST(Allocations, OfARegistry) {
  const std::string config = PluginsConfig();
  Trial("plugins", [&](char** error) {
    fusebox_registry* registry = nullptr;
    const fusebox_status status = fusebox_registry_create(nullptr, config.c_str(), &registry, error);
    fusebox_registry_free(registry);
    return status;
  }).BySite(6, 500);
}

TEST(Allocations, OfADelegate) {
  const RegistryHandle registry = MakeRegistry(PluginsConfig());
  const std::string path = WriteSmall("small.tflite");
  Trial("opening with XNNPACK", Opening(path, registry.get(), nullptr)).BySite(8, 1000);
  const ModelHandle model = OpenModel(path, registry.get(), nullptr);
  Trial("running with XNNPACK", Running(model.get(), 2)).BySite(8, 1000);
}

// `check`: no file is left but a whole one.
void Convert(const std::string& name, const std::string& source, const char* options, int depth,
             size_t most) {
  const std::string folder = ::fusebox::testing::TestDir() + "/out", path = folder + "/x.tflite";
  std::filesystem::create_directory(folder);
  const auto convert = [&](char** error) {
    const fusebox_status status =
        fusebox_convert(source.c_str(), path.c_str(), options, nullptr, nullptr, nullptr, error);
    return status;
  };
  const auto check = [&] {
    for (const auto& file : std::filesystem::directory_iterator(folder))
      EXPECT_EQ(file.path().filename(), "x.tflite");
    if (!std::filesystem::exists(path)) return;
    EXPECT_TRUE(tflite::ReadFile(path));
    std::filesystem::remove(path);
  };
  Trial trial(name, convert, check);
  most == 0 ? trial.All() : trial.BySite(depth, most);
}

TEST(Allocations, OfConvertingATfliteFile) {
  Convert("converting a .tflite file", WriteSmall("small.tflite"), nullptr, 8, 1000);
}

TEST(Allocations, OfConvertingASavedModel) {
  const auto sample = ::fusebox::testing::Sample("conv_classifier");
  ASSERT_TRUE(sample) << sample.error().message;
  Convert("converting a SavedModel", *sample, R"({"batch": 1})", 5, 400);
}

struct Ended {
  int status;
  std::string text;
};

Ended Command(const std::string& environment, const std::string& arguments) {
  const std::string line = environment + " LD_PRELOAD=" FUSEBOX_PRELOAD " " FUSEBOX_COMMAND " " + arguments +
                           " 2>&1 >/dev/null </dev/null";
  FILE* const pipe = popen(line.c_str(), "r");
  Ended ended{-1, {}};
  if (pipe == nullptr) return ended;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) ended.text += static_cast<char>(c);
  const int status = pclose(pipe);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return ended;
}

// The program reports a failed allocation with status 2, wherever it is.
void FailInCommand(const std::string& arguments, int samples) {
  const Ended whole = Command("FUSEBOX_FAIL=0 FUSEBOX_COUNT=1", arguments);
  ASSERT_EQ(whole.status, 0) << whole.text;
  const size_t at = whole.text.find("allocations: ");
  ASSERT_NE(at, std::string::npos) << whole.text;
  const uint64_t all = std::stoull(whole.text.substr(at + 13));
  int refused = 0;
  for (int i = 0; i < samples; ++i) {
    const uint64_t n = 1 + all * static_cast<uint64_t>(i) / static_cast<uint64_t>(samples);
    const std::string keeps = i % 4 == 3 ? " FUSEBOX_KEEP_FAILING=1" : "";
    const Ended ended = Command("FUSEBOX_FAIL=" + std::to_string(n) + keeps, arguments);
    EXPECT_TRUE(ended.status == 0 || ended.status == 2)
        << arguments << ", allocation " << n << keeps << ": status " << ended.status << ": " << ended.text;
    if (ended.status == 2) {
      EXPECT_THAT(ended.text, ::testing::HasSubstr("fusebox: "));
    }
    refused += ended.status == 2 ? 1 : 0;
  }
  std::printf("fusebox %s: %llu allocations, %d failed: %d refused\n", arguments.c_str(),
              static_cast<unsigned long long>(all), samples, refused);
}

TEST(Allocations, OfTheCommand) {
  FailInCommand("run " + WriteSmall("small.tflite") + " --delegate none", 80);
}

// valijson, which checks manifests, does not look at what its allocator returns.
TEST(Allocations, OfTheConverterCommand) {
  if (std::getenv("FUSEBOX_ALL_ALLOCATIONS") == nullptr)
    GTEST_SKIP() << "docs/limitations.md, allocation failures; set FUSEBOX_ALL_ALLOCATIONS=1 to see them";
  const std::string path = WriteSmall("small.tflite"), out = ::fusebox::testing::TestDir() + "/out";
  std::filesystem::create_directory(out);
  FailInCommand("convert " + path + " -o " + out + "/x.tflite --plugin " FUSEBOX_BUILD_DIR "/plugins", 60);
  for (const auto& file : std::filesystem::directory_iterator(out))
    EXPECT_EQ(file.path().filename(), "x.tflite");
}

}  // namespace
}  // namespace fusebox::allocations
