// SPDX-License-Identifier: Apache-2.0
// A decoder with a KV cache in resource variables: prefill and decode beside the definition in f64.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "host/base/buffer.h"
#include "host/base/trace.h"
#include "host/session.h"
#include "host/tflite/tflite.h"
#include "tests/decoder/reference.h"
#include "tests/testing/trace_events.h"

namespace fusebox::decoder_test {
namespace {

using bench::DecoderWeights;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<int32_t> kPrompt = {3, 90, 41, 17, 5}, kMore = {77, 2, 64, 8};

struct Case {
  DecoderWeights weights;
  bool xnnpack;
  int64_t prompt = 5;
};

bench::DecoderSizes Small(int64_t prompt) {
  return {.layers = 2,
          .width = 64,
          .heads = 4,
          .kv_heads = 2,
          .head = 16,
          .ffn = 96,
          .vocabulary = 101,
          .capacity = 12,
          .prompt = prompt};
}

std::shared_ptr<const Model> Open(const bench::Decoder& decoder, bool xnnpack) {
  Config config;
  config.search_default_path = false;
  config.plugins = {FUSEBOX_NN};
#ifdef FUSEBOX_XNNPACK
  if (xnnpack) config.plugins.push_back(FUSEBOX_XNNPACK);
#endif
  auto registry = Registry::Create(config);
  EXPECT_TRUE(registry) << registry.error().message;
  const std::string path = testing::TempDir() + "/decoder.tflite";
  const Status written = tflite::WriteFile(*bench::ToModule(decoder), path);
  EXPECT_TRUE(written) << written.error().message;
  auto model = Model::Open(path, {.registry = *registry});
  EXPECT_TRUE(model) << model.error().message;
  return model ? *model : nullptr;
}

class Tokens {
 public:
  explicit Tokens(std::shared_ptr<const Model> model, int threads = 1) {
    auto session = Session::Create(std::move(model), {.signature = "decode", .threads = threads});
    EXPECT_TRUE(session) << session.error().message;
    session_ = *std::move(session);
  }
  // The logits after these tokens and those before.
  std::vector<float> Run(const char* signature, const std::vector<int32_t>& tokens) {
    if (session_->signature() != signature) {
      EXPECT_TRUE(session_->SelectSignature(signature));
    }
    const auto count = static_cast<int64_t>(tokens.size());
    std::vector<int32_t> positions(tokens.size());
    std::iota(positions.begin(), positions.end(), position_);
    position_ += static_cast<int32_t>(count);
    EXPECT_TRUE(session_->SetInput(0, {{DType::kI32, {1, count}}, Buffer::Of<int32_t>(tokens)}));
    EXPECT_TRUE(session_->SetInput(1, {{DType::kI32, {count}}, Buffer::Of<int32_t>(positions)}));
    const Status status = session_->Run();
    EXPECT_TRUE(status) << status.error().message;
    const auto values = session_->output(0)->data.As<float>();
    return {values.begin(), values.end()};
  }
  void Restart() {
    session_->ResetState();
    position_ = 0;
  }
  const Session& session() const { return *session_; }

 private:
  std::unique_ptr<Session> session_;
  int32_t position_ = 0;
};

// Of the difference, beside the expected values.
template <class Expected>
double RelativeError(const std::vector<float>& values, const Expected& expected) {
  EXPECT_EQ(values.size(), expected.size());
  double difference = 0, size = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    difference += std::pow(static_cast<double>(values[i]) - static_cast<double>(expected[i]), 2);
    size += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(difference / size);
}

// Inputs of products with 8-bit and 4-bit weights are quantized to 8 bits at run time.
double Tolerance(DecoderWeights weights) { return weights == DecoderWeights::kFloats ? 1e-5 : 0.03; }

std::vector<int32_t> AllTokens(size_t more) {
  std::vector<int32_t> tokens = kPrompt;
  tokens.insert(tokens.end(), kMore.begin(), kMore.begin() + static_cast<ptrdiff_t>(more));
  return tokens;
}

class Decoders : public ::testing::TestWithParam<Case> {
 protected:
  Decoders() : decoder_(bench::MakeDecoder(Small(GetParam().prompt), GetParam().weights)) {
#ifndef FUSEBOX_XNNPACK
    if (GetParam().xnnpack) GTEST_SKIP() << "the plugin xnnpack is not built";
#endif
  }
  const bench::Decoder decoder_;
};

TEST_P(Decoders, ComputeWhatTheirDefinitionDoes) {
  Tokens tokens(Open(decoder_, GetParam().xnnpack));
  const double tolerance = Tolerance(GetParam().weights);
  for (int round = 0; round < 2; ++round) {
    EXPECT_LT(RelativeError(tokens.Run("prefill", kPrompt), Logits(decoder_, kPrompt)), tolerance);
    for (size_t i = 0; i < kMore.size(); ++i)
      EXPECT_LT(RelativeError(tokens.Run("decode", {kMore[i]}), Logits(decoder_, AllTokens(i + 1))),
                tolerance)
          << "token " << i;
    tokens.Restart();
  }
}

TEST_P(Decoders, DecodeAPromptAsPrefillDoes) {
  const auto model = Open(decoder_, GetParam().xnnpack);
  Tokens at_once(model, 2), one_by_one(model);
  std::vector<float> a = at_once.Run("prefill", kPrompt), b;
  for (const int32_t token : kPrompt) b = one_by_one.Run("decode", {token});
  EXPECT_LT(RelativeError(a, b), 1e-5);
  for (const int32_t token : kMore)
    EXPECT_LT(RelativeError(at_once.Run("decode", {token}), one_by_one.Run("decode", {token})), 1e-5);
}

TEST_P(Decoders, UpdateTheCacheInPlace) {
  Tokens tokens(Open(decoder_, GetParam().xnnpack));
  tokens.Run("prefill", kPrompt);
  tokens.Run("decode", {kMore[0]});
  const std::string plan = tokens.session().Explain();
  EXPECT_THAT(plan, HasSubstr("f32[1,12,2,16] variable"));
  EXPECT_THAT(plan, Not(HasSubstr("f32[1,12,2,16] arena")));
}

// How often the work of a stage was done.
class Counts {
 public:
  template <class Work>
  explicit Counts(const Work& work) {
    Trace trace;
    {
      const Trace::Recording recording(trace);
      work();
    }
    const std::string path = testing::TempDir() + "/decoder_trace.json";
    auto file = AtomicFile::Create(path);
    if (!file || !trace.Write(*file) || !file->Commit()) ADD_FAILURE() << path;
    events_ = testing_trace::json::parse(ReadTextFile(path).value_or(""), nullptr, false);
  }
  size_t operator[](const char* stage) const { return testing_trace::Spans(events_, stage).size(); }

 private:
  testing_trace::json events_;
};

TEST_P(Decoders, PlanNothingPerToken) {
  const auto model = Open(decoder_, GetParam().xnnpack);
  Tokens tokens(model);
  const Counts first([&] {
    tokens.Run("prefill", kPrompt);
    tokens.Run("decode", {1});
  });
  EXPECT_GE(first["plan"], 2u);
  const Counts more([&] {
    for (int i = 0; i < 5; ++i) tokens.Run("decode", {1});
    tokens.Restart();
    tokens.Run("prefill", kPrompt);
    tokens.Run("decode", {1});
  });
  for (const char* stage : {"plan", "compile partition", "prepare partition"})
    EXPECT_EQ(more[stage], 0u) << stage;
}

// Without a cache all tokens are computed again, with one more each time.
class GrowingSequences : public Decoders {};

TEST_P(GrowingSequences, ArePlannedOnceAndNotCompiled) {
  Tokens tokens(Open(decoder_, GetParam().xnnpack));
  tokens.Run("prefill", {1, 2});
  for (size_t n = 3; n < 12; ++n) {
    tokens.Restart();
    const Counts counts([&] { tokens.Run("prefill", std::vector<int32_t>(n, 1)); });
    EXPECT_EQ(counts["compile partition"], 0u) << n;
    EXPECT_EQ(counts["plan"], 1u) << n;
  }
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  return std::string(Name(info.param.weights)) + (info.param.xnnpack ? "_xnnpack" : "_kernels") +
         (info.param.prompt < 0 ? "_any_length" : "");
}

INSTANTIATE_TEST_SUITE_P(
    All, Decoders,
    ::testing::Values(Case{DecoderWeights::kFloats, false}, Case{DecoderWeights::kFloats, true},
                      Case{DecoderWeights::kBytes, false}, Case{DecoderWeights::kBytes, true},
                      Case{DecoderWeights::kNibbles, false}, Case{DecoderWeights::kNibbles, true},
                      Case{DecoderWeights::kFloats, false, -1}, Case{DecoderWeights::kNibbles, true, -1}),
    NameOf);

INSTANTIATE_TEST_SUITE_P(All, GrowingSequences,
                         ::testing::Values(Case{DecoderWeights::kFloats, false, -1},
                                           Case{DecoderWeights::kFloats, true, -1},
                                           Case{DecoderWeights::kBytes, true, -1}),
                         NameOf);

}  // namespace
}  // namespace fusebox::decoder_test
