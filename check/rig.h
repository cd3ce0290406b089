// SPDX-License-Identifier: Apache-2.0
// A plugin between the host and the plugin under test. It has the same rules, kernels and delegates, and each
// callback goes through it: the host plans and runs as ever, and the plugin runs under chosen conditions.
//
// For child processes: it loads the library. Callbacks may come from several threads.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "host/plugin/registry.h"

namespace fusebox::check {

struct Conditions {
  // Memory of kernels: the host's, or separate blocks with pages without access at one end.
  enum class Memory { kOfHost, kGuardedStart, kGuardedEnd } memory = Memory::kOfHost;
  uint8_t fill = 0xFF;  // of results, scratch memory and bytes behind a buffer, before invoke
  // The order of chunks in fusebox.threads/1: on the host's threads; shuffled on one thread; or each chunk
  // alone, from the memory as it was before parallel_for, with the writes of all chunks compared.
  enum class Chunks { kOfHost, kShuffled, kAlone } chunks = Chunks::kOfHost;
  uint32_t workers = 4;  // thread count that the plugin is told if the chunks are not on the host's threads
  uint64_t seed = 1;
  // Structs of the host: as they are; of plugin ABI 1.0; or of a newer minor version, with longer structs.
  enum class Abi { kOfHost, kOldest, kNewer } abi = Abi::kOfHost;
  bool optional_extensions = true;  // false: those that end in ? in the manifest are absent
  // Delegates: as they are; without a random half of the nodes that they accept; or each compile or invoke
  // fails.
  enum class Delegates { kAsTheyAre, kFewerNodes, kNoCompile, kNoInvoke } delegates = Delegates::kAsTheyAre;
};

class Rig {
 public:
  // Loads the library, and creates a registry in which the plugin of the manifest is this one.
  static Result<std::unique_ptr<Rig>> Create(const Manifest& manifest, const Config& config,
                                             const Conditions& conditions);
  Rig(const Rig&) = delete;
  ~Rig();

  const std::shared_ptr<Registry>& registry() const { return registry_; }
  const Manifest& manifest() const { return manifest_; }
  const Conditions& conditions() const { return conditions_; }
  size_t invokes() const { return invokes_; }        // of kernels of the plugin
  size_t partitions() const { return partitions_; }  // invokes of its delegates
  size_t parallel_chunks() const { return chunks_; }
  bool deterministic() const { return deterministic_; }  // all invoked kernels have the flag
  std::string fault() const;                             // the first one; empty: none
  std::string failure() const;  // of the first callback of a delegate that failed; empty: none did

  // For the callbacks.
  void Report(std::string fault);
  void ReportFailure(std::string failure);
  static fbx_status Load(const fbx_host*, const fbx_plugin** out) noexcept;
  static void Unload() noexcept;
  bool Hides(std::string_view extension) const;
  void CountInvoke(const fbx_kernel& kernel) {
    ++invokes_;
    if (!(kernel.flags & FBX_KERNEL_DETERMINISTIC)) deterministic_ = false;
  }
  void CountPartition() { ++partitions_; }
  void CountChunk() { ++chunks_; }

 private:
  struct Tables;  // what the host sees of the plugin
  Rig(const Manifest& manifest, const Conditions& conditions);
  Status Open(const Config& config);

  const Manifest& manifest_;
  const Conditions conditions_;
  const fbx_entry* real_ = nullptr;
  fbx_entry entry_{};
  std::unique_ptr<Tables> tables_;
  std::atomic<size_t> invokes_ = 0;
  std::atomic<size_t> partitions_ = 0;
  std::atomic<size_t> chunks_ = 0;
  std::atomic<bool> deterministic_ = true;
  mutable std::mutex mutex_;
  std::string fault_, failure_;
  std::shared_ptr<Registry> registry_;  // last: its end calls unload
};

}  // namespace fusebox::check
