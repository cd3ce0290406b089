// SPDX-License-Identifier: Apache-2.0
// Writes nets with the structure of public f32 models (written_nets.h), for net_bench.
//
//   write_nets DIR [twins]
//
// twins: chains of 20, 21 and 22 equal convolutions instead, so 5 % and 10 % slower than the first one, for
// same.py.
#include <cstdio>

#include "host/tflite/tflite.h"
#include "tests/bench/image_net.h"
#include "tests/bench/written_nets.h"

namespace fusebox::bench {
namespace {

Module Chain(int64_t size, int64_t channels, int layers) {
  Module module;
  Image image(module, {1, size, size, channels});
  for (int i = 0; i < layers; ++i) image.Conv(channels, 3);
  image.Output(image.at());
  return module;
}

bool Write(const Module& module, const std::string& path) {
  const Status written = tflite::WriteFile(module, path);
  if (!written) std::fprintf(stderr, "%s\n", written.error().message.c_str());
  return written.has_value();
}

int WriteTwins(const std::string& dir) {
  for (const int layers : {20, 21, 22}) {
    const std::string end = "_" + std::to_string(layers) + ".tflite";
    if (!Write(Chain(4, 16, layers), dir + "/small" + end)) return 1;
    if (!Write(Chain(24, 32, layers), dir + "/medium" + end)) return 1;
  }
  return 0;
}

int Main(const std::string& dir) {
  for (const auto& [name, make] : WrittenNets())
    if (!Write(make(), dir + "/" + name + ".tflite")) return 1;
  return 0;
}

}  // namespace
}  // namespace fusebox::bench

int main(int argc, char** argv) {
  if (argc == 2) return fusebox::bench::Main(argv[1]);
  if (argc == 3 && std::string(argv[2]) == "twins") return fusebox::bench::WriteTwins(argv[1]);
  std::fprintf(stderr, "usage: write_nets DIR [twins]\n");
  return 2;
}
