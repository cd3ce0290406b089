// SPDX-License-Identifier: Apache-2.0
// One invoke of a kernel with memory and chunks of parallel_for as the conditions state.
#pragma once

#include <fusebox/abi/ext/resize.h>
#include <fusebox/abi/ext/threads.h>

#include <deque>
#include <optional>

#include "check/shown.h"

namespace fusebox::check {

// Stand-ins for the instance and the state that a kernel keeps between callbacks.
struct InstanceProxy {
  void* real = nullptr;
  std::deque<std::optional<Region>> constants;  // by operand; read-only
};
struct StateProxy {
  struct Slot {
    size_t bytes;
    std::optional<Region> kept;  // set: persistent
  };
  void* real = nullptr;
  std::deque<Slot> slots;  // not used if the memory is the host's
};

class Invocation {
 public:
  Invocation(const KernelProxy& kernel, const fbx_host* host, const fbx_node& node, InstanceProxy& instance,
             StateProxy& state);
  Invocation(const Invocation&) = delete;
  fbx_status Run();

  // Serves fusebox.resize/1 and fusebox.threads/1 in this invoke.
  fbx_status Resize(uint32_t result, const int64_t* dims, int32_t rank, size_t bytes);
  using Task = void (*)(void*, size_t, size_t, uint32_t) noexcept;
  void ParallelFor(size_t n, size_t grain, Task task, void* context);
  uint32_t ThreadCount() const;

 private:
  struct Block {
    std::string name;  // "result 0"
    Region memory;
    fbx_tensor* shown = nullptr;
    const fbx_tensor* real = nullptr;  // copied back to; null: not
    bool is_scratch = false;
  };
  bool guarded() const { return rig_.conditions().memory != Conditions::Memory::kOfHost; }
  Region NewRegion(size_t bytes, const std::string& name) const;
  void AddBlock(const std::string& name, size_t bytes, fbx_tensor* shown, const fbx_tensor* real);
  void TakeOperands();
  void TakeResults();
  void TakeScratch();
  void CopyBack();
  void RunTask(Task task, void* context, size_t begin, size_t end, uint32_t worker);
  void RunChunk(size_t chunk, size_t n, size_t grain, Task task, void* context);
  void RunAlone(size_t chunks, size_t n, size_t grain, Task task, void* context);

  const KernelProxy& kernel_;
  Rig& rig_;
  const fbx_host* const real_host_;
  const fbx_node& real_;
  InstanceProxy& instance_;
  StateProxy& state_;
  ViewPages pages_;
  ShownNode shown_;
  std::deque<Region> inputs_;
  std::deque<Block> written_;
};

const fbx_resize& ResizeOfInvocation();
const fbx_threads& ThreadsOfInvocation();

}  // namespace fusebox::check
