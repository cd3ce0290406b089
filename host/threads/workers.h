// SPDX-License-Identifier: Apache-2.0
// Workers: threads that take part in the loops of their callers. Any thread.
//
// A loop never waits for a thread that has not begun: threads claim chunks one by one, first from their own
// share (so that each core keeps its part of the weights in its cache), then from other shares. The caller
// claims chunks that nobody else claims, and waits only for chunks that are running.
//
// Waiting threads spin for microseconds and sleep then. If a chunk takes much longer on a worker than on the
// caller, then another process has the worker's core: callers run alone for some time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>

#include "host/threads/patience.h"

namespace fusebox {

class Workers {
 public:
  using Chunk = void (*)(void* context, uint32_t chunk, uint32_t worker);
  static constexpr uint32_t kMostChunks = 1 << 20;

  // `count` threads beside the caller. They start with the first loop.
  explicit Workers(uint32_t count);
  ~Workers();
  Workers(const Workers&) = delete;

  // Returns when all chunks have run. `worker` is 0 on the caller, otherwise 1 to `count`; chunks of one
  // worker run one after the other. While a loop runs, loops of other callers run on their caller alone.
  void Run(uint32_t chunks, Chunk run, void* context);

 private:
  using Clock = Patience::Clock;
  // Lines of the cache that few threads write: it takes up to 300 ns to move one between cores.
  struct alignas(64) Share {
    std::atomic<uint64_t> range = 0;  // chunks that are left, and the loop; claimed by adding 1
    Chunk run = nullptr;              // written while no chunk is left, read after a claim
    void* context = nullptr;
    alignas(64) std::atomic<uint32_t> done = 0;  // chunks that its worker has run in all loops
    std::thread thread;
  };

  void Publish(uint32_t chunks, Chunk run, void* context);
  void WakeIfItPays(uint32_t chunks);
  void Start();
  void RunChunk(const Share& of, uint32_t chunk, uint32_t self);
  uint32_t RunChunks(uint32_t self);
  bool Finished() const;
  void Await(Clock::time_point ran, Clock::duration own);
  void Serve(uint32_t self, uint32_t seen);
  uint64_t NextRange(Share& own, uint32_t seen);
  void Sleep(uint32_t seen);

  const std::unique_ptr<Share[]> memory_;
  const std::span<Share> shares_;  // the caller's first

  // Used by the caller whose loop runs.
  alignas(64) std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  bool started_ = false;
  uint32_t expected_ = 0;  // chunks that workers have run in all loops
  Patience patience_{50};
  Clock::duration credit_;  // time in loops since a thread was woken

  alignas(64) std::atomic<uint32_t> loop_ = 0;  // number of the last loop
  alignas(64) std::atomic<uint32_t> sleeping_ = 0;
  std::atomic<uint32_t> caller_sleeps_ = 0;
  std::atomic<bool> stopping_ = false;
};

}  // namespace fusebox
