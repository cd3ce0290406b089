// SPDX-License-Identifier: Apache-2.0
// Limit for the memory of a session: tensors, arenas, scratch and persistent slots. Not counted: what plugins
// allocate themselves, and the files that a model maps.
#pragma once

#include <cstddef>
#include <new>
#include <string>

#include "host/base/status.h"

namespace fusebox {

// One thread at a time. Must outlive the Blocks that take from it.
class MemoryBudget {
 public:
  explicit MemoryBudget(size_t limit) : limit_(limit) {}  // 0: DefaultLimit
  MemoryBudget(const MemoryBudget&) = delete;

  struct Exceeded : std::bad_alloc {
    explicit Exceeded(std::string text) : text(std::move(text)) {}
    const char* what() const noexcept override { return text.c_str(); }
    std::string text;  // "8000 bytes are needed, 4000 are in use, and the memory limit is 10000 bytes"
  };
  void Take(size_t bytes);  // throws Exceeded
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

  // Memory that the machine and the process's cgroup could provide when this was first called.
  static size_t DefaultLimit();

 private:
  size_t LimitFor(size_t total) const;
  size_t limit_;
  size_t used_ = 0;
};

// Memory available in a machine: `root` is "/", or a folder with copies of the files in /proc and /sys.
size_t AvailableMemory(const std::string& root);

}  // namespace fusebox
