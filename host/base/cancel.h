// SPDX-License-Identifier: Apache-2.0
// Cancellation of work outside a session: opening a model, importing it.
#pragma once

#include <atomic>

#include "host/base/status.h"

namespace fusebox {

// Work of this thread ends early once `flag` is set, until the scope ends. Null: nothing changes.
class CancelScope {
 public:
  explicit CancelScope(const std::atomic<bool>* flag);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  static const std::atomic<bool>* Current();  // null: none

 private:
  const std::atomic<bool>* before_;
};

// Error: Code::kCancelled. For each step of work whose amount a file determines.
Status CheckCancelled();

}  // namespace fusebox
