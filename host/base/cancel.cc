// SPDX-License-Identifier: Apache-2.0
#include "host/base/cancel.h"

namespace fusebox {
namespace {

constinit thread_local const std::atomic<bool>* current_flag = nullptr;

}  // namespace

CancelScope::CancelScope(const std::atomic<bool>* flag) : before_(current_flag) {
  if (flag != nullptr) current_flag = flag;
}
CancelScope::~CancelScope() { current_flag = before_; }
const std::atomic<bool>* CancelScope::Current() { return current_flag; }

Status CheckCancelled() {
  if (current_flag == nullptr || !current_flag->load(std::memory_order_relaxed)) return {};
  return Fail(Code::kCancelled, "opening the model was cancelled");
}

}  // namespace fusebox
