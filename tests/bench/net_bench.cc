// SPDX-License-Identifier: Apache-2.0
// How fast nets run through the xnnpack delegate.
//
//   net_bench --plugin FOLDER [--seconds S] [--alone] [FILE.tflite...]
//   net_bench --kernels [--plugin FOLDER] [--seconds S] FILE.tflite...
//
// Without files: MobileNetV2 1.0 224 in f32, of our own writing, beside the same net built with XNNPACK's own
// API, and what part of its packed weights comes from the cache on a warm start. With files: each beside
// stock TFLite 2.9 and its XNNPACK delegate (FUSEBOX_PEER_DIR). 1 and 2 threads; the two take turns in one
// process. --alone: files on one thread, without the peer. --kernels: files on one thread, both without a
// delegate, and the ratios of all.
#include "tests/bench/net_bench.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fusebox::bench {

Result<std::shared_ptr<const Model>> OpenModel(const std::string& path, const NetArguments& arguments,
                                               const std::string& options) {
  Config config;
  config.search_default_path = false;
  config.plugins = arguments.plugins;
  FUSEBOX_ASSIGN(const auto registry, Registry::Create(config));
  return Model::Open(path, {.registry = registry, .delegate_options = options});
}

Result<std::unique_ptr<Session>> OpenNet(const std::string& path, const NetArguments& arguments, int threads,
                                         const std::string& options) {
  FUSEBOX_ASSIGN(const auto model, OpenModel(path, arguments, options));
  FUSEBOX_ASSIGN(auto session, Session::Create(model, {.threads = threads}));
  FUSEBOX_TRY(FillInputs(*session));
  return session;
}

Status FillInputs(Session& session) {
  uint64_t state = 0x9e3779b97f4a7c15;
  for (int i = 0; i < static_cast<int>(session.inputs().size()); ++i) {
    const Type& type = session.inputs()[static_cast<size_t>(i)].type;
    Shape shape = type.shape;
    for (int64_t& d : shape.dims()) d = d < 0 ? 1 : d;
    FUSEBOX_TRY(session.Resize(i, shape));
    FUSEBOX_ASSIGN(const auto bytes, session.InputData(i));
    const bool floats = type.dtype == DType::kF32,
               noise = type.dtype == DType::kI8 || type.dtype == DType::kU8;
    for (size_t k = 0; k < bytes.size(); k += floats ? sizeof(float) : 1) {
      state = state * 6364136223846793005 + 1442695040888963407;
      const float value = static_cast<float>(static_cast<int32_t>(state >> 32)) / 2147483648.0F;
      if (floats) std::memcpy(&bytes[k], &value, sizeof value);
      else bytes[k] = static_cast<std::byte>(noise ? state >> 56 : 0);
    }
  }
  return {};
}

std::string OnThreads(int threads) {
  return threads == 1 ? ", 1 thread" : ", " + std::to_string(threads) + " threads";
}

namespace {

int Usage() {
  std::fprintf(stderr,
               "usage: net_bench --plugin FOLDER [--seconds S] [--alone | --kernels] [--threads N] "
               "[FILE.tflite...]\n");
  return 2;
}

int Main(int argc, char** argv) {
  NetArguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--plugin" && i + 1 < argc) {
      arguments.plugins.push_back(argv[++i]);
    } else if (word == "--seconds" && i + 1 < argc) {
      arguments.seconds = std::atof(argv[++i]);
    } else if (word == "--threads" && i + 1 < argc) {
      arguments.threads = std::atoi(argv[++i]);
    } else if (word == "--alone") {
      arguments.alone = true;
    } else if (word == "--kernels") {
      arguments.kernels = true;
    } else if (word.starts_with("-")) {
      return Usage();
    } else {
      arguments.files.push_back(word);
    }
  }
  if (arguments.plugins.empty() && !arguments.kernels) return Usage();
  return (arguments.files.empty() ? CompareMobileNet(arguments) : CompareFiles(arguments)) ? 0 : 1;
}

}  // namespace
}  // namespace fusebox::bench

int main(int argc, char** argv) { return fusebox::bench::Main(argc, argv); }
