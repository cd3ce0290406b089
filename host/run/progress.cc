// SPDX-License-Identifier: Apache-2.0
#include "fusebox/abi/ext/progress.h"

#include <algorithm>

#include "host/run/run.h"

namespace fusebox::run {
namespace {

ProgressMeter& MeterOf(const fbx_host* host) {
  return *static_cast<const ThreadedServices*>(HostCall::From(host).services())->meter();
}

void Begin(const fbx_host* host, fbx_str what, uint64_t bytes) noexcept {
  MeterOf(host).Begin(FromAbi(what), bytes);
}
void Advance(const fbx_host* host, uint64_t bytes) noexcept { MeterOf(host).Advance(bytes); }
void End(const fbx_host* host) noexcept { MeterOf(host).End(); }

}  // namespace

// An exception of a listener must not reach a plugin.
void ProgressMeter::Notify() noexcept {
  try {
    listener_(progress_);
  } catch (...) {
    listener_ = [](const Progress&) {};
  }
}

void ProgressMeter::Begin(std::string_view what, uint64_t bytes) noexcept {
  if (!progress_.ended) End();
  try {
    progress_.what = what;
  } catch (const std::bad_alloc&) {
    progress_.what.clear();
  }
  progress_.ended = false;
  left_ = std::min(bytes, UINT64_MAX - progress_.total);
  progress_.total += left_;
  Notify();
}

void ProgressMeter::Advance(uint64_t bytes) noexcept {
  bytes = std::min(bytes, left_);
  left_ -= bytes;
  progress_.done += bytes;
  if (!progress_.ended) Notify();
}

void ProgressMeter::End() noexcept {
  if (progress_.ended) return;
  progress_.total -= left_;  // incomplete work
  left_ = 0;
  progress_.ended = true;
  Notify();
}

const fbx_progress& ProgressMeter::Api() {
  static constexpr fbx_progress kProgress{FBX_HEAD(fbx_progress), fusebox::run::Begin, fusebox::run::Advance,
                                          fusebox::run::End};
  return kProgress;
}

}  // namespace fusebox::run
