// SPDX-License-Identifier: Apache-2.0
// Fusebox as a delegate of stock TensorFlow Lite 2.9: what stock lacks runs, and what it has gives the same.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <sstream>

#include "fusebox/tflite/c/common.h"
#include "host/tflite/tflite.h"
#include "samples/models/models.h"
#include "tests/peers/lstm_net.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

using ::testing::HasSubstr;
using Pairs = std::vector<std::pair<std::string, std::string>>;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

std::string reported;

// The delegate as programs load it.
class Loaded {
 public:
  explicit Loaded(Pairs options = {}) {
    options.insert(options.begin(), {"plugin_path", FUSEBOX_BUILD_DIR "/plugins:" FUSEBOX_HELLO_PLUGIN});
    options.emplace_back("explain", "1");
    void* library = dlopen(FUSEBOX_DELEGATE, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    using Create = TfLiteDelegate* (*)(char**, char**, size_t, void (*)(const char*));
    const auto create = reinterpret_cast<Create>(dlsym(library, "tflite_plugin_create_delegate"));
    destroy_ = reinterpret_cast<void (*)(TfLiteDelegate*)>(dlsym(library, "tflite_plugin_destroy_delegate"));
    std::vector<char*> keys, values;
    for (auto& [key, value] : options) {
      keys.push_back(key.data());
      values.push_back(value.data());
    }
    reported.clear();
    delegate_ = create(keys.data(), values.data(), keys.size(), [](const char* text) { reported = text; });
  }
  ~Loaded() { destroy_(delegate_); }
  Loaded(const Loaded&) = delete;
  TfLiteDelegate* get() const { return delegate_; }

 private:
  TfLiteDelegate* delegate_ = nullptr;
  void (*destroy_)(TfLiteDelegate*) = nullptr;
};

// Runs `f`; returns the nodes that were claimed by then, as the delegate prints them.
template <class F>
std::string Claimed(F&& f) {
  ::testing::internal::CaptureStderr();
  f();
  std::string out;
  const std::string explained = ::testing::internal::GetCapturedStderr();
  std::cerr << explained;
  std::istringstream lines(explained);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("fusebox: node") && line.ends_with(": claimed"))
      out += line.substr(line.find(' ', 14) + 1, line.rfind(':') - line.find(' ', 14) - 1) + " ";
  }
  return out;
}

Result<Written> Converted(const std::string& folder, const std::string& tag) {
  converter::Options options;
  FUSEBOX_ASSIGN(options.registry, Plugins({"fusebox.rnn", FUSEBOX_HELLO_PLUGIN "/com.acme.my_op"}));
  return Convert(folder, options, tag);
}

// Stock with the delegate beside Fusebox, on several calls of one interpreter. Returns the claimed ops.
void ExpectAsFusebox(const std::string& path, const std::string& claimed) {
  const Loaded delegate;
  Result<std::unique_ptr<Stock>> stock = Invalid("");
  EXPECT_EQ(Claimed([&] { stock = Stock::WithDelegate(path, delegate.get()); }), claimed);
  ASSERT_OK(stock);
  auto ours = Open(path, *Plugins({"fusebox.rnn", FUSEBOX_HELLO_PLUGIN "/com.acme.my_op"}));
  ASSERT_OK(ours);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Tensors inputs = RandomInputs(**ours, seed);
    const auto a = (*stock)->Invoke(inputs);
    const auto b = Invoke(**ours, inputs);
    ASSERT_OK(a);
    ASSERT_OK(b);
    EXPECT_EQ(Difference(*a, *b), "") << "seed " << seed;
  }
}

// Stock with the delegate beside stock without it.
void ExpectAsStock(const std::string& path, const std::string& claimed, Pairs options = {}, int batch = 0) {
  const Loaded delegate(std::move(options));
  Result<std::unique_ptr<Stock>> with = Invalid("");
  EXPECT_EQ(Claimed([&] { with = Stock::WithDelegate(path, delegate.get()); }), claimed);
  ASSERT_OK(with);
  auto without = Stock::Open(path);
  ASSERT_OK(without);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    if (seed == 3) {
      (void)(*with)->ResetVariables();
      (void)(*without)->ResetVariables();
    }
    Tensors inputs;
    for (int i = 0; i < (*without)->input_count(); ++i) {
      Type type = *(*without)->input_type(i);
      if (batch > 0 && seed == 2) type.shape.dims()[0] = batch;
      inputs.push_back(Random(type, seed * 10 + static_cast<uint64_t>(i)));
    }
    const auto a = (*with)->Invoke(inputs);
    const auto b = (*without)->Invoke(inputs);
    ASSERT_OK(a);
    ASSERT_OK(b);
    EXPECT_EQ(Difference(*a, *b), "") << "seed " << seed;
  }
}

TEST(ExternalDelegate, RunsAnOpThatOnlyAPluginHas) {
  FUSEBOX_NEEDS_STOCK();
  const auto file = Converted(*Sample("custom_fused_body"), "fused");
  ASSERT_OK(file);
  EXPECT_FALSE((*Stock::Open(file->path))->Invoke({}).has_value()) << "stock has no such op";
  ExpectAsFusebox(file->path, "my_custom_fused_op ");
}

TEST(ExternalDelegate, RunsAGru) {
  FUSEBOX_NEEDS_STOCK();
  const auto file = Converted(*Sample("gru"), "gru");
  ASSERT_OK(file);
  ExpectAsFusebox(file->path, "fusebox.gru ");
}

TEST(ExternalDelegate, RunsRecurrentOpsFromTheirInitialStates) {
  FUSEBOX_NEEDS_STOCK();
  for (const auto& [sample, op] : Pairs{{"keras_lstm", "UNIDIRECTIONAL_SEQUENCE_LSTM "},
                                        {"lstm_computed_state", "UNIDIRECTIONAL_SEQUENCE_LSTM "},
                                        {"bidirectional_lstm", "BIDIRECTIONAL_SEQUENCE_LSTM "},
                                        {"simple_rnn", "UNIDIRECTIONAL_SEQUENCE_RNN "}}) {
    SCOPED_TRACE(sample);
    const auto file = Converted(*Sample(sample), sample);
    ASSERT_OK(file);
    ExpectAsStock(file->path, op, {}, 3);
  }
}

// The runtime's variable tensors hold the state, so that it can reset them.
TEST(ExternalDelegate, KeepsStateInTheRuntime) {
  FUSEBOX_NEEDS_STOCK();
  const auto file = Converted(*Sample("stateful_lstm"), "stateful");
  ASSERT_OK(file);
  ExpectAsStock(file->path, "UNIDIRECTIONAL_SEQUENCE_LSTM ");
}

TEST(ExternalDelegate, RunsHybridAndIntegerCells) {
  FUSEBOX_NEEDS_STOCK();
  const std::string path = TestDir() + "/cell.tflite";
  for (const auto weights : {LstmNet::Weights::kF32, LstmNet::Weights::kI8}) {
    ASSERT_TRUE(tflite::WriteFile(*LstmNet{.outputs = 6, .cifg = true, .weights = weights}.Module(), path));
    ExpectAsStock(path, "UNIDIRECTIONAL_SEQUENCE_LSTM ");
  }
  ASSERT_TRUE(tflite::WriteFile(*LstmNet{.one_step = true, .peephole = true}.Module(), path));
  ExpectAsStock(path, "LSTM ");
  ASSERT_TRUE(tflite::WriteFile(*IntegerLstmNet{.layer_norm = true}.Module(), path));
  ExpectAsStock(path, "UNIDIRECTIONAL_SEQUENCE_LSTM ");
  ASSERT_TRUE(tflite::WriteFile(*BasicLstmNet(2, 5, 8), path));
  ExpectAsStock(path, "LSTM ");
}

// Stock orders nodes by what they read: a reader of the final state would run before the op that writes it.
TEST(ExternalDelegate, LeavesAnOpWhoseStateAnotherNodeReads) {
  FUSEBOX_NEEDS_STOCK();
  auto module = LstmNet{}.Module();
  Function& f = *module->functions[0];
  f.outputs[1] = f.AddNode(Op::kNeg, {f.outputs[1]}, {f.value(f.outputs[1]).type}).results[0];
  const std::string path = TestDir() + "/state.tflite";
  ASSERT_TRUE(tflite::WriteFile(*module, path));
  ExpectAsStock(path, "");
}

TEST(ExternalDelegate, RunsEverythingIfItMay) {
  FUSEBOX_NEEDS_STOCK();
  const auto file = Converted(*Sample("dense"), "dense");
  ASSERT_OK(file);
  ExpectAsStock(file->path, "");
  const std::string logits =
      "FULLY_CONNECTED FULLY_CONNECTED FULLY_CONNECTED ";  // the other signature's subgraph
  ExpectAsStock(file->path, logits + "SOFTMAX " + logits, {{"engine", "all"}}, 2);
  ExpectAsStock(file->path, "SOFTMAX ", {{"claim", "SOFTMAX"}});
}

TEST(ExternalDelegate, ResizesResultsWhoseSizeDependsOnValues) {
  FUSEBOX_NEEDS_STOCK();
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  const ValueId x = f.AddInput({DType::kBool, Shape({6})}, "x");
  const ValueId where = f.AddNode(Op::kWhere, {x}, {{DType::kI64, Shape({-1, 1})}}).results[0];
  f.outputs = {f.AddNode(Op::kNeg, {where}, {{DType::kI64, Shape({-1, 1})}}).results[0]};
  const std::string path = TestDir() + "/where.tflite";
  ASSERT_TRUE(tflite::WriteFile(*module, path));
  ExpectAsStock(path, "WHERE NEG ", {{"engine", "all"}});
  ExpectAsStock(path, "NEG ", {{"claim", "NEG"}});
}

// TensorFlow Lite flushes subnormal floats to zero during an invoke, in which the weights are unpacked.
TEST(ExternalDelegate, ReadsSubnormalHalves) {
  FUSEBOX_NEEDS_STOCK();
  Module module;
  Function& f = module.Add("main");
  const Type type{DType::kF32, {64, 64}};
  std::vector<uint16_t> halves(64 * 64);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i % 1024);  // below 2^-14
  const ValueId stored = f.AddConst<uint16_t>(DType::kF16, {64, 64}, halves);
  const ValueId scale = f.AddConst<float>(DType::kF32, Shape::Scalar(), {65536});
  const ValueId x = f.AddNode(Op::kMul, {f.AddInput(type, "x"), scale}, {type}).results[0];
  const ValueId weights = f.AddNode(Op::kDequantize, {stored}, {type}).results[0];
  f.outputs = {f.AddNode(Op::kMul, {x, weights}, {type}).results[0]};
  const std::string path = TestDir() + "/subnormal.tflite";
  ASSERT_TRUE(tflite::WriteFile(module, path));
  ExpectAsStock(path, "MUL DEQUANTIZE MUL ", {{"engine", "all"}});
  ExpectAsStock(path, "MUL DEQUANTIZE MUL ", {{"engine", "all"}, {"plugin_path", FUSEBOX_HELLO_PLUGIN}});
}

TEST(ExternalDelegate, StartsFromTheWeightCache) {
  FUSEBOX_NEEDS_STOCK();
  const auto file = Converted(*Sample("conv_classifier"), "net");
  ASSERT_OK(file);
  const std::string cache = TestDir() + "/cache";
  const Pairs options = {{"engine", "all"}, {"weight_cache_path", cache}};
  const auto sizes = [&] {
    std::map<std::string, std::pair<uintmax_t, std::filesystem::file_time_type>> out;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(cache)) {
      if (entry.is_regular_file()) out[entry.path()] = {entry.file_size(), entry.last_write_time()};
    }
    return out;
  };
  const auto run = [&] {
    const Loaded delegate(options);
    const auto stock = Stock::WithDelegate(file->path, delegate.get());
    ASSERT_OK(stock);
    ASSERT_OK((*stock)->Invoke({Random(*(*stock)->input_type(0), 1)}));
  };
  std::filesystem::create_directories(cache);
  run();
  const auto first = sizes();
  EXPECT_FALSE(first.empty());
  run();
  EXPECT_EQ(sizes(), first) << "the second start packed again";
}

TEST(ExternalDelegate, NamesWrongOptions) {
  EXPECT_EQ(Loaded(Pairs{{"plugins", "x"}}).get(), nullptr);
  EXPECT_THAT(reported, HasSubstr("option 'plugins' does not exist; there are plugin_path, config"));
  EXPECT_EQ(Loaded(Pairs{{"engine", "some"}}).get(), nullptr);
  EXPECT_EQ(reported, "Fusebox: option engine: 'some' is not fused or all");
  EXPECT_EQ(Loaded(Pairs{{"threads", "-1"}}).get(), nullptr);
  EXPECT_EQ(Loaded(Pairs{{"config", "/nowhere/fusebox.json"}}).get(), nullptr);
  EXPECT_THAT(reported, HasSubstr("/nowhere/fusebox.json"));
}

}  // namespace
}  // namespace fusebox::testing
