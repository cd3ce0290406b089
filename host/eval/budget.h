// SPDX-License-Identifier: Apache-2.0
// Limit for the memory of a session: tensors, arenas, scratch and persistent slots. Not counted: what plugins
// allocate themselves, and the files that a model maps.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <string>

#include "host/base/status.h"

namespace fusebox {

// Memory that a limit or the system refuses.
struct NoMemory : std::bad_alloc {
  explicit NoMemory(std::string text) : text(std::move(text)) {}
  const char* what() const noexcept override { return text.c_str(); }
  std::string text;  // "8000 bytes are needed, 4000 are in use, and the memory limit is 10000 bytes"
};

// Calls `allocate`. Its NoMemory gets the place, a function that returns a string, in front.
template <class F, class Place>
decltype(auto) AllocateFor(const Place& place, const F& allocate) {
  try {
    return allocate();
  } catch (const NoMemory& refused) {
    throw NoMemory(fmt::format("{}: {}", place(), refused.text));
  }
}

// Calls `work`, which returns a Status or a Result. Memory that it does not get becomes an error at this
// place.
template <class F, class Place>
auto CatchNoMemory(const Place& place, const F& work) -> decltype(work()) {
  try {
    return work();
  } catch (const NoMemory& refused) {
    return Fail(Code::kOutOfMemory, fmt::format("{}: {}", place(), refused.text));
  } catch (const std::bad_alloc&) {
    return Fail(Code::kOutOfMemory, fmt::format("{}: out of memory", place()));
  }
}

// One thread at a time. Must outlive the Blocks that take from it.
class MemoryBudget {
 public:
  // 0: a part of DefaultLimit, which the process has once.
  explicit MemoryBudget(size_t limit);
  MemoryBudget(const MemoryBudget&) = delete;

  void Take(size_t bytes);  // throws NoMemory
  void Return(size_t bytes) { used_ -= bytes; }
  // Error: one allocation of this size is above the limit, whatever is in use.
  Status Allows(size_t bytes) const;

  // Blocks that grow in this thread take from the budget, until the Scope ends.
  class Scope {
   public:
    explicit Scope(MemoryBudget& budget);
    ~Scope();
    Scope(const Scope&) = delete;

   private:
    MemoryBudget* before_;
  };
  static MemoryBudget* Current();  // null: no limit

  // Half of the AvailableMemory when this was first called.
  static size_t DefaultLimit();

 private:
  size_t LimitFor(size_t total) const;
  const size_t limit_;
  std::atomic<size_t> own_ = 0;
  std::atomic<size_t>& used_;  // own_, or the use of all budgets without an explicit limit
};

// Memory that others allocate for a session: counted here, not allocated. It grows and never shrinks.
class Reservation {
 public:
  explicit Reservation(MemoryBudget& budget) : budget_(budget) {}
  ~Reservation() { budget_.Return(bytes_); }
  Reservation(const Reservation&) = delete;
  void Reserve(size_t bytes);  // at least; throws NoMemory

 private:
  MemoryBudget& budget_;
  size_t bytes_ = 0;
};

// Memory that the machine, the process's cgroups and its address space (ulimit -v) have left. `root` is "/",
// or a folder with copies of the files in /proc and /sys.
size_t AvailableMemory(const std::string& root);

}  // namespace fusebox
