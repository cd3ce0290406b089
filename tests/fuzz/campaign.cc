// SPDX-License-Identifier: Apache-2.0
// campaign TARGET COUNT [SEED [FILE...]]: runs changed copies of a target's seeds, or of files, without Clang
// and without a guide. COUNT 0: runs the files as they are. A copy that is accepted becomes a seed. An input
// that ends the process or takes 10 s stays in the file campaign-TARGET-SEED.input of the working directory,
// one with an internal error in a file beside it.
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <span>

#include "tests/fuzz/targets.h"

namespace fusebox::fuzz {
namespace {

constexpr size_t kMostBytes = 1 << 20, kMostSeeds = 1 << 15;

// The current input, which outlives the process.
class Kept {
 public:
  explicit Kept(std::string path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "w+")) {
    if (file_ == nullptr) std::exit(2);
    memory_ = static_cast<char*>(mmap(nullptr, kMostBytes, PROT_WRITE, MAP_SHARED, fileno(file_), 0));
    if (memory_ == MAP_FAILED) std::exit(2);
  }
  ~Kept() {
    std::fclose(file_);
    std::remove(path_.c_str());
  }
  Kept(const Kept&) = delete;
  void Keep(const std::string& bytes) {
    if (ftruncate(fileno(file_), static_cast<off_t>(bytes.size())) != 0) std::exit(2);
    std::memcpy(memory_, bytes.data(), bytes.size());
  }

 private:
  std::string path_;
  std::FILE* file_;
  char* memory_ = nullptr;
};

// Ends the process after that many seconds of its CPU time, whatever else the machine does; 0: no more.
void Limit(int seconds) {
  const itimerval timer{{}, {seconds, 0}};
  setitimer(ITIMER_PROF, &timer, nullptr);
}

std::vector<std::string> SeedsOf(const Target& target) {
  std::vector<std::string> seeds = target.seeds();
  if (target.odd_seeds)
    for (std::string& seed : target.odd_seeds()) seeds.push_back(std::move(seed));
  return seeds;
}

int Replay(const Target& target, std::span<char*> files) {
  for (const char* file : files) {
    const std::string bytes = Contents(file);
    const Status status = target.run(std::as_bytes(std::span(bytes)));
    std::printf("%s: %s\n", file, status ? "accepted" : status.error().message.c_str());
  }
  return 0;
}

int Run(const Target& target, uint64_t count, uint64_t seed, std::span<char*> files) {
  if (count == 0) return Replay(target, files);
  const std::string name = "campaign-" + std::string(target.name) + "-" + std::to_string(seed);
  Kept kept(name + ".input");
  std::vector<std::string> seeds;
  for (const char* file : files) seeds.push_back(Contents(file));
  if (seeds.empty()) seeds = SeedsOf(target);
  const size_t first = seeds.size();
  std::mt19937_64 random(seed);
  std::set<std::string> internal;
  uint64_t done = 0, accepted = 0;
  const auto start = std::chrono::steady_clock::now();
  while (done < count) {
    const std::string copy = target.mutate(seeds[random() % seeds.size()], random);
    if (copy.empty() || copy.size() > kMostBytes) continue;
    kept.Keep(copy);
    Limit(10);
    const Status status = target.run(std::as_bytes(std::span(copy)));
    Limit(0);
    ++done;
    if (status) {
      ++accepted;
      if (random() % 4 != 0) continue;
      if (seeds.size() < kMostSeeds) seeds.push_back(copy);
      else seeds[first + random() % (seeds.size() - first)] = copy;
    } else if (status.error().code == Code::kInternal && internal.insert(status.error().message).second) {
      const std::string path = name + "-internal-" + std::to_string(internal.size());
      WriteScratch(path, std::as_bytes(std::span(copy)));
      std::printf("%s: %s\n", path.c_str(), status.error().message.c_str());
      std::fflush(stdout);
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%s: %lu inputs, %lu accepted, %.0f/s, %zu internal errors\n", name.c_str(), done, accepted,
              static_cast<double>(done) / took.count(), internal.size());
  return internal.empty() ? 0 : 1;
}

}  // namespace
}  // namespace fusebox::fuzz

int main(int argc, char** argv) {
  const auto* const target = argc > 2 ? fusebox::fuzz::FindTarget(argv[1]) : nullptr;
  if (target == nullptr || target->mutate == nullptr) {
    std::fputs("usage: campaign run|delegated COUNT [SEED [FILE...]]\n", stderr);
    return 2;
  }
  return fusebox::fuzz::Run(
      *target, std::strtoull(argv[2], nullptr, 10), argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1,
      std::span(argv, static_cast<size_t>(argc)).subspan(std::min<size_t>(static_cast<size_t>(argc), 4)));
}
