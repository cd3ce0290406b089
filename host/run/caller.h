// SPDX-License-Identifier: Apache-2.0
// Extensions of single plugins within a session: shared memory, and fusebox.caller/1 in its phases.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "fusebox/abi/ext/forward.h"
#include "host/run/services.h"

namespace fusebox::run {

// Memory that the nodes of a plugin share within a session, by name. Addresses stay the same.
class SharedMemory {
 public:
  // Zeroed when created. Error: an empty name, no bytes, or another size than before. Throws std::bad_alloc.
  Result<void*> Acquire(const LoadedPlugin& plugin, std::string_view name, size_t bytes);
  void Clear();

 private:
  struct Piece {
    size_t bytes;
    Block memory = {};
  };
  std::map<std::pair<const LoadedPlugin*, std::string>, std::unique_ptr<Piece>> pieces_;
};

class Runner;
const fbx_forward& ForwardApi();  // for calls of a session

// In addition fusebox.forward/1 and, in the phases of fusebox.caller/1, that extension, and
// fusebox.resources/1 for a session.
class CallerServices final : public ThreadedServices {
 public:
  // `options`: of the model's delegates. `memory`: of the session; null: none. `runner`: of the session;
  // null: none. All must outlive this.
  CallerServices(Threads& threads, const DelegateOptions& options, const CallState& state = {},
                 SharedMemory* memory = nullptr, Runner* runner = nullptr)
      : ThreadedServices(threads, state), options_(options), memory_(memory), runner_(runner) {}
  const void* Find(std::string_view id) const override;
  Runner* runner() const { return runner_; }
  // In a phase, a plugin whose delegates are off for this model is loaded for its services only if it was
  // given options.
  bool MayLoad(const Manifest& provider) const override;

  // A phase. Phases nest; the end of the outermost one calls `done` of the kept objects, last one first.
  class Phase {
   public:
    explicit Phase(CallerServices& services) : services_(services) { ++services.phases_; }
    ~Phase();
    Phase(const Phase&) = delete;

   private:
    CallerServices& services_;
  };

 private:
  struct Kept {
    const void* key;
    void* object;
    void (*done)(void*, void*) noexcept;
    void* user;
  };
  friend struct CallerFunctions;

  const DelegateOptions& options_;
  SharedMemory* const memory_;
  Runner* const runner_;
  int phases_ = 0;
  mutable std::mutex mutex_;  // of kept_
  mutable std::vector<Kept> kept_;
};

}  // namespace fusebox::run
