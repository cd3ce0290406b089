// SPDX-License-Identifier: Apache-2.0
// How fast nets run through the xnnpack delegate.
//
//   net_bench --plugin FOLDER [--seconds S] [--alone] [FILE.tflite...]
//   net_bench --kernels [--plugin FOLDER] [--seconds S] FILE.tflite...
//
// Without files: MobileNetV2 1.0 224 in f32, of our own writing, beside the same net built with XNNPACK's own
// API, and what part of its packed weights comes from the cache on a warm start. With files: each beside
// stock TFLite 2.9 and its XNNPACK delegate and beside ONNX Runtime (FUSEBOX_PEER_DIR), and beside LiteRT if
// FUSEBOX_LITERT names its C library. 1 and 2 threads; the two engines take turns in one process. --alone:
// files on one thread, without peers. --kernels: files on one thread beside stock TFLite, both without a
// delegate, and the ratios of all.
#include "tests/bench/net_bench.h"

#include <cstdio>
#include <cstdlib>

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
