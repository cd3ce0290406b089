// SPDX-License-Identifier: Apache-2.0
#include "host/base/cancel.h"

namespace fusebox {
namespace {

constinit thread_local const std::atomic<bool>* current = nullptr;

}  // namespace

CancelScope::CancelScope(const std::atomic<bool>* flag) : before_(current) {
  if (flag != nullptr) current = flag;
}
CancelScope::~CancelScope() { current = before_; }
const std::atomic<bool>* CancelScope::Current() { return current; }

Status CheckCancelled() {
  if (current == nullptr || !current->load(std::memory_order_relaxed)) return {};
  return Fail(Code::kCancelled, "opening the model was cancelled");
}

}  // namespace fusebox
