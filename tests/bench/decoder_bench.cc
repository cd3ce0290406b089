// SPDX-License-Identifier: Apache-2.0
// A decoder of a language model (decoder.h), from a .tflite file, beside ONNX Runtime with the same weights,
// in turns: the time to the first token, of a prompt of 128, and the time of a token after it. "limit" is the
// time in which this machine reads the weights of a token, with as many threads, measured between the turns.
//
//   FUSEBOX_PEER_DIR=DIR decoder_bench --nn FOLDER [--xnnpack FOLDER] --dir WORK [--rounds N] [--layers N]
//                                      [--weights f32|int8|int4] [--threads N] [--write-only]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "cli/bench/peak.h"
#include "host/session.h"
#include "host/tflite/tflite.h"
#include "tests/bench/decoder_engine.h"
#include "tests/bench/row.h"

namespace fusebox::bench {
namespace {

constexpr int kTokens = 128;  // of a turn, after the prompt

struct Arguments {
  std::string nn, xnnpack, dir, weights;
  int rounds = 5, threads = 0;
  bool write_only = false;
  DecoderSizes sizes;
};

template <class T>
T Checked(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}
void Check(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

class Ours : public DecoderEngine {
 public:
  Ours(const std::string& path, const Arguments& arguments, int threads) {
    Config config;
    config.search_default_path = false;
    config.plugins = {arguments.nn};
    if (!arguments.xnnpack.empty()) config.plugins.push_back(arguments.xnnpack);
    const auto registry = Checked(Registry::Create(config));
    const auto model = Checked(Model::Open(path, {.registry = registry}));
    session_ = Checked(Session::Create(model, {.signature = "decode", .threads = threads}));
  }

  void Restart() override {
    session_->ResetState();
    position_ = 0;
  }
  std::span<const float> Run(std::span<const int32_t> tokens) override {
    const std::string_view signature = tokens.size() == 1 ? "decode" : "prefill";
    if (session_->signature() != signature) Check(session_->SelectSignature(signature));
    const auto ids = Checked(session_->InputData(0)), positions = Checked(session_->InputData(1));
    std::memcpy(ids.data(), tokens.data(), tokens.size_bytes());
    auto* const position = reinterpret_cast<int32_t*>(positions.data());
    for (size_t i = 0; i < tokens.size(); ++i) position[i] = position_++;
    Check(session_->Run());
    return Checked(session_->output(0)).data.As<float>();
  }

 private:
  std::unique_ptr<Session> session_;
  int32_t position_ = 0;
};

struct Times {
  double first, token;  // ms
};

// One turn. The first one of a process also plans, packs and touches memory.
Times Measure(DecoderEngine& engine, const DecoderSizes& sizes) {
  using Clock = std::chrono::steady_clock;
  const auto timed = [&](std::span<const int32_t> tokens) {
    const auto start = Clock::now();
    engine.Run(tokens);
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  engine.Restart();
  std::vector<int32_t> prompt(static_cast<size_t>(sizes.prompt));
  for (size_t i = 0; i < prompt.size(); ++i)
    prompt[i] = static_cast<int32_t>((i * 7919 + 13) % static_cast<size_t>(sizes.vocabulary));
  Times times{timed(prompt), 0};
  std::vector<double> tokens;
  for (int i = 0; i < kTokens; ++i)
    tokens.push_back(timed({prompt.data() + static_cast<size_t>(i) % prompt.size(), 1}));
  times.token = Median(std::move(tokens));
  return times;
}

double RelativeError(std::span<const float> values, std::span<const float> expected) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    difference += std::pow(static_cast<double>(values[i]) - static_cast<double>(expected[i]), 2);
    size += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(difference / size);
}

double LimitMillis(size_t bytes, int threads) {
  std::vector<double> speeds(static_cast<size_t>(threads));
  std::vector<std::thread> others;
  const size_t each = bytes / static_cast<size_t>(threads);
  for (size_t i = 1; i < speeds.size(); ++i)
    others.emplace_back([&, i] { speeds[i] = cli::MeasureReadBandwidth(each); });
  speeds[0] = cli::MeasureReadBandwidth(each);
  for (std::thread& other : others) other.join();
  return 1000 * static_cast<double>(bytes) / std::accumulate(speeds.begin(), speeds.end(), 0.0);
}

void Compare(const Decoder& decoder, const std::string& path, const std::string& name, int threads,
             const Arguments& arguments) {
  const std::string job = name + ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  const Metric first{"decoder", job, "first token", "ms"}, token{"decoder", job, "token", "ms"};
  Ours ours(path, arguments, threads);
  std::unique_ptr<DecoderEngine> peer;
  if (const char* peers = std::getenv("FUSEBOX_PEER_DIR"))
    peer = OnnxDecoder(decoder, std::string(peers) + "/libonnxruntime.so", threads);
  // Spinning threads of the other one would take the cores.
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); };
  for (int round = -1; round < arguments.rounds; ++round) {
    const Times a = Measure(ours, decoder.sizes);
    pause();
    const double limit = LimitMillis(decoder.bytes_per_token(), threads);
    Times b{};
    if (peer) b = Measure(*peer, decoder.sizes), pause();
    if (round < 0) continue;
    WriteRow(first, kOurs, round, a.first);
    WriteRow(token, kOurs, round, a.token);
    WriteRow(token, "limit", round, limit);
    if (!peer) continue;
    WriteRow(first, "ONNX Runtime", round, b.first);
    WriteRow(token, "ONNX Runtime", round, b.token);
  }
  if (!peer) return;
  ours.Restart(), peer->Restart();
  const std::vector<int32_t> prompt(static_cast<size_t>(decoder.sizes.prompt), 7), next = {3};
  ours.Run(prompt), peer->Run(prompt);
  const double error = RelativeError(ours.Run(next), peer->Run(next));
  std::fprintf(stderr, "%s: the logits differ by %.2g\n", job.c_str(), error);
  // Both quantize activations, in their own ways.
  if (!(error < (name == "f32" ? 1e-4 : 0.05)))
    throw std::runtime_error("the results of both differ by " + std::to_string(error));
}

int Main(const Arguments& arguments) {
  bool good = true;
  std::filesystem::create_directories(arguments.dir);
  for (const auto kind : {DecoderWeights::kFloats, DecoderWeights::kBytes, DecoderWeights::kNibbles}) {
    const std::string name(Name(kind));
    if (!arguments.weights.empty() && arguments.weights != name) continue;
    try {
      const Decoder decoder = MakeDecoder(arguments.sizes, kind);
      const std::string path = arguments.dir + "/decoder_" + name + ".tflite";
      Check(tflite::WriteFile(*ToModule(decoder), path));
      if (arguments.write_only) continue;
      for (const int threads : {1, 2})
        if (arguments.threads == 0 || arguments.threads == threads)
          Compare(decoder, path, name, threads, arguments);
    } catch (const std::exception& error) {
      WriteError("decoder", name, kOurs, error.what());
      good = false;
    }
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace fusebox::bench

int main(int argc, char** argv) {
  fusebox::bench::Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--write-only") arguments.write_only = true;
    if (i + 1 == argc) break;
    if (word == "--nn") arguments.nn = argv[++i];
    else if (word == "--xnnpack") arguments.xnnpack = argv[++i];
    else if (word == "--dir") arguments.dir = argv[++i];
    else if (word == "--weights") arguments.weights = argv[++i];
    else if (word == "--rounds") arguments.rounds = std::max(1, std::atoi(argv[++i]));
    else if (word == "--threads") arguments.threads = std::atoi(argv[++i]);
    else if (word == "--layers") arguments.sizes.layers = std::max(1, std::atoi(argv[++i]));
  }
  if (arguments.dir.empty() || (arguments.nn.empty() && !arguments.write_only)) {
    std::fprintf(stderr,
                 "usage: decoder_bench --nn FOLDER [--xnnpack FOLDER] --dir WORK [--rounds N] [--layers N] "
                 "[--weights f32|int8|int4] [--threads N] [--write-only]\n");
    return 2;
  }
  return fusebox::bench::Main(arguments);
}
