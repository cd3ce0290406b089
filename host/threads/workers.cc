// SPDX-License-Identifier: Apache-2.0
#include "host/threads/workers.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <system_error>

namespace fusebox {
namespace {

using std::chrono::microseconds;

// How long a worker spins for the next loop: longer than what lies between the steps of a recurrent layer.
constexpr auto kWorkerSpin = microseconds(30);
// The caller spins for an eighth of the time that its chunks took, within these limits.
constexpr auto kLeastCallerSpin = microseconds(5);
constexpr auto kMostCallerSpin = microseconds(100);
// Threads are woken (or started) once for this much time in loops: the call takes up to a tenth of it.
constexpr auto kWakePrice = microseconds(50);

// A range of chunks: loop << 48 | kMore | end << 24 | next. `next` may be beyond the end: claims that came
// too late. kMore: some shares have more than one chunk.
constexpr uint64_t kMore = uint64_t{1} << 47;

uint64_t RangeOf(uint32_t loop, bool more, uint64_t begin, uint64_t end) {
  return uint64_t{loop} << 48 | (more ? kMore : 0) | end << 24 | begin;
}
uint32_t NextOf(uint64_t range) { return range & 0xffffff; }
bool HasNext(uint64_t range) { return NextOf(range) < (range >> 24 & 0x7fffff); }
bool IsOfLoop(uint64_t range, uint32_t loop) { return static_cast<uint16_t>(loop) == range >> 48; }

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

void SleepWhile(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void Wake(std::atomic<uint32_t>& word, int threads) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

}  // namespace

Workers::Workers(uint32_t count)
    : memory_(std::make_unique<Share[]>(count + 1)), shares_(memory_.get(), count + 1), credit_(kWakePrice) {}

Workers::~Workers() {
  stopping_.store(true);
  Publish(0, nullptr, nullptr);
  Wake(loop_, INT_MAX);
  for (Share& share : shares_) {
    if (share.thread.joinable()) share.thread.join();
  }
}

void Workers::Run(uint32_t chunks, Chunk run, void* context) {
  const auto alone = [&] {
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) run(context, chunk, 0);
  };
  if (busy_.test_and_set(std::memory_order_acquire)) return alone();
  const auto start = Clock::now();
  if (patience_.rests(start)) {
    busy_.clear(std::memory_order_release);
    return alone();
  }
  Publish(chunks, run, context);
  WakeIfItPays(chunks);
  run(context, 0, 0);
  const uint32_t own = 1 + RunChunks(0);
  expected_ += chunks - own;
  const auto ran = Clock::now();
  if (!Finished()) Await(ran, ran - start);
  credit_ = std::min<Clock::duration>(credit_ + (ran - start), kWakePrice);
  busy_.clear(std::memory_order_release);
}

// The first chunk is the caller's, without a claim: that would wait until the lines of the workers have
// moved.
void Workers::Publish(uint32_t chunks, Chunk run, void* context) {
  const uint32_t loop = loop_.load(std::memory_order_relaxed) + 1;
  loop_.store(loop, std::memory_order_relaxed);
  const uint64_t parts = shares_.size();
  uint64_t begin = 1;
  for (uint64_t i = 0; i < parts; ++i) {
    Share& share = shares_[i];
    const uint64_t end = (chunks * (i + 1) + parts - 1) / parts;
    share.run = run;
    share.context = context;
    share.range.store(RangeOf(loop, chunks > parts, begin, end), std::memory_order_release);
    begin = end;
  }
}

// A thread that goes to sleep meanwhile may be missed: it comes for the next loop.
void Workers::WakeIfItPays(uint32_t chunks) {
  const uint32_t sleeping =
      started_ ? sleeping_.load(std::memory_order_relaxed) : static_cast<uint32_t>(shares_.size()) - 1;
  if (sleeping == 0 || credit_ < kWakePrice) return;
  credit_ = Clock::duration::zero();
  if (started_) Wake(loop_, static_cast<int>(std::min(sleeping, chunks - 1)));
  else Start();
}

// A thread that the system refuses is one that never comes.
void Workers::Start() {
  started_ = true;
  const uint32_t seen = loop_.load(std::memory_order_relaxed) - 1;
  try {
    for (uint32_t i = 1; i < shares_.size(); ++i)
      shares_[i].thread = std::thread([this, i, seen] { Serve(i, seen); });
  } catch (const std::exception&) {  // also: no memory for its state
  }
}

void Workers::RunChunk(const Share& of, uint32_t chunk, uint32_t self) {
  of.run(of.context, chunk, self);
  if (self == 0) return;
  std::atomic<uint32_t>& done = shares_[self].done;
  done.store(done.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  done.fetch_add(0);  // before caller_sleeps_ is read; on its own it would delay the caller
  if (caller_sleeps_.load() != 0 && caller_sleeps_.exchange(0) != 0) Wake(caller_sleeps_, 1);
}

// The number of chunks that this thread has run.
uint32_t Workers::RunChunks(uint32_t self) {
  uint32_t ran = 0;
  for (size_t i = 0; i < shares_.size(); ++i) {
    Share& share = shares_[(self + i) % shares_.size()];
    while (HasNext(share.range.load(std::memory_order_relaxed))) {
      const uint64_t range = share.range.fetch_add(1, std::memory_order_acquire);
      if (!HasNext(range)) break;
      RunChunk(share, NextOf(range), self);
      ++ran;
    }
  }
  return ran;
}

bool Workers::Finished() const {
  uint32_t done = 0;
  for (const Share& share : shares_.subspan(1)) done += share.done.load();  // after caller_sleeps_ is written
  return done == expected_;
}

// `own`: the time of the caller's chunks.
void Workers::Await(Clock::time_point ran, Clock::duration own) {
  const auto spin = ran + std::clamp<Clock::duration>(own / 8, kLeastCallerSpin, kMostCallerSpin);
  auto now = ran;
  for (; !Finished(); now = Clock::now()) {
    if (now < spin) {
      for (int i = 0; i < 32 && !Finished(); ++i) Pause();
      continue;
    }
    caller_sleeps_.store(1);  // before done is read again
    if (!Finished()) SleepWhile(caller_sleeps_, 1);
    caller_sleeps_.store(0);
  }
  patience_.Waited(ran, now, own);
}

void Workers::Serve(uint32_t self, uint32_t seen) {
  Share& own = shares_[self];
  while (!stopping_.load()) {
    const uint64_t range = NextRange(own, seen);
    seen = static_cast<uint32_t>(range >> 48);
    if (HasNext(range)) RunChunk(own, NextOf(range), self);
    if ((range & kMore) != 0) RunChunks(self);
  }
}

// The range of another loop than `seen`; its next chunk, if there is one, is claimed. Claiming without a look
// moves the line once instead of twice.
uint64_t Workers::NextRange(Share& own, uint32_t seen) {
  for (;; Sleep(seen)) {
    const auto spin = Clock::now() + kWorkerSpin;
    do {
      for (int i = 0; i < 32; ++i, Pause()) {
        const uint64_t range = own.range.fetch_add(1, std::memory_order_acquire);
        if (!IsOfLoop(range, seen) || HasNext(range)) return range;
      }
    } while (Clock::now() < spin);
  }
}

void Workers::Sleep(uint32_t seen) {
  sleeping_.fetch_add(1);  // before loop_ is read
  const uint32_t loop = loop_.load();
  if (static_cast<uint16_t>(loop) == static_cast<uint16_t>(seen)) SleepWhile(loop_, loop);
  sleeping_.fetch_sub(1);
}

}  // namespace fusebox
