// SPDX-License-Identifier: Apache-2.0
#include <pthreadpool.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "fusebox/abi/ext/profile.h"
#include "fusebox/abi/ext/progress.h"
#include "fusebox/abi/ext/pthreadpool.h"
#include "fusebox/abi/ext/threads.h"
#include "host/plugin/call.h"
#include "host/run/profile.h"
#include "host/run/run.h"
#include "host/threads/workers.h"

namespace fusebox::run {
namespace {

thread_local bool inside_task = false;

struct Loop {
  void (*task)(void*, size_t, size_t, uint32_t) noexcept;
  void* context;
  size_t n, grain;
  const PluginCall* call;  // that the loop is part of
  const std::atomic<bool>* cancelled;
};

void RunChunk(void* context, uint32_t chunk, uint32_t worker) {
  const auto& loop = *static_cast<const Loop*>(context);
  if (loop.cancelled != nullptr && loop.cancelled->load(std::memory_order_relaxed)) return;
  const bool outer = inside_task;
  inside_task = true;
  const PluginCall* const before = std::exchange(current_call, loop.call);
  const size_t begin = chunk * loop.grain;
  loop.task(loop.context, begin, std::min(loop.n, begin + loop.grain), worker);
  inside_task = outer;
  current_call = before;
}

const ThreadedServices& ServicesOf(const fbx_host* host) {
  return *static_cast<const ThreadedServices*>(HostCall::From(host).services());
}

uint32_t Count(const fbx_host* host) noexcept { return ServicesOf(host).threads().count(); }

void For(const fbx_host* host, size_t n, size_t grain, void (*task)(void*, size_t, size_t, uint32_t) noexcept,
         void* context) noexcept {
  const ThreadedServices& services = ServicesOf(host);
  if (Profile* const profile = services.profile(); profile != nullptr && profile->trace() != nullptr)
    return profile->TraceLoop(services.threads(), n, grain, task, context);
  services.threads().ParallelFor(n, grain, task, context);
}

void* Pool(const fbx_host* host) noexcept { return ServicesOf(host).threads().pool(); }

}  // namespace

void Threads::ParallelFor(size_t n, size_t grain, void (*task)(void*, size_t, size_t, uint32_t) noexcept,
                          void* context) {
  if (n == 0) return;
  constexpr size_t kMostChunks = Workers::kMostChunks;
  grain = std::max({grain, size_t{1}, (n + kMostChunks - 1) / kMostChunks});
  if (n <= grain || inside_task || made().threads() == 1) return task(context, 0, n, 0);
  Loop loop{.task = task,
            .context = context,
            .n = n,
            .grain = grain,
            .call = current_call,
            .cancelled = cancelled_};
  made().Run(static_cast<uint32_t>((n + grain - 1) / grain), RunChunk, &loop);
}

const void* ThreadedServices::Find(std::string_view id) const {
  static constexpr fbx_threads kThreads{FBX_HEAD(fbx_threads), Count, For};
  using Parallelize = void (*)(pthreadpool_t, pthreadpool_task_1d_t, void*, size_t, uint32_t);
  static const fbx_pthreadpool pool{
      FBX_HEAD(fbx_pthreadpool), Pool,
      reinterpret_cast<void (*)(void)>(static_cast<Parallelize>(&pthreadpool_parallelize_1d))};
  if (id == FBX_EXT_THREADS) return &kThreads;
  if (id == FBX_EXT_PTHREADPOOL) return &pool;
  if (id == FBX_EXT_RESIZE) return &ResizeApi();
  if (id == FBX_EXT_PROGRESS && meter() != nullptr) return &ProgressMeter::Api();
  if (id == FBX_EXT_PROFILE && profile() != nullptr) return &Profile::Api();
  return nullptr;
}

}  // namespace fusebox::run
