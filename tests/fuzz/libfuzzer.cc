// SPDX-License-Identifier: Apache-2.0
// fuzz TARGET CORPUS [libFuzzer's options]: adds the target's seeds to the corpus, then fuzzes it.
#include <pthread.h>
#include <sanitizer/common_interface_defs.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "tests/fuzz/targets.h"

namespace {

const fusebox::fuzz::Target* target = nullptr;

// HDF5 files are tried in children: what ends one of those is no finding, but what they are there for.
void BeChild() { __sanitizer_set_death_callback(nullptr); }

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  target = *argc > 2 ? fusebox::fuzz::FindTarget((*argv)[1]) : nullptr;
  if (target == nullptr) {
    std::fputs("usage: fuzz TARGET CORPUS [OPTION...]; targets:\n", stderr);
    for (const auto& each : fusebox::fuzz::Targets())
      std::fprintf(stderr, "  %-12s %s\n", each.name.data(), each.what.data());
    std::exit(2);
  }
  pthread_atfork(nullptr, nullptr, BeChild);
  const std::filesystem::path corpus = (*argv)[2];
  std::filesystem::create_directories(corpus);
  int number = 0;
  for (const auto seeds : {target->seeds, target->odd_seeds}) {
    if (!seeds) continue;
    for (const std::string& seed : seeds())
      fusebox::fuzz::WriteScratch(corpus / ("seed" + std::to_string(number++)),
                                  std::as_bytes(std::span(seed)));
  }
  // The target's name is no option of libFuzzer's.
  (*argv)[1] = (*argv)[0];
  ++*argv;
  --*argc;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  const fusebox::Status status = target->run(std::as_bytes(std::span(data, size)));
  if (!status && status.error().code == fusebox::Code::kInternal) {
    std::fprintf(stderr, "internal error: %s\n", status.error().message.c_str());
    std::abort();
  }
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  std::mt19937_64 random(seed);
  std::string changed;
  if (target->mutate && random() % 8 != 0)
    changed = target->mutate({reinterpret_cast<const char*>(data), size}, random);
  if (changed.empty() || changed.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}
