// SPDX-License-Identifier: Apache-2.0
#include "host/base/cancel.h"

#include <algorithm>

namespace fusebox {
namespace {

constinit thread_local Limits current_limits = {};

}  // namespace

CancelScope::CancelScope(Limits limits) : before_(current_limits) {
  if (limits.flag != nullptr) current_limits.flag = limits.flag;
  current_limits.end = std::min(current_limits.end, limits.end);
}
CancelScope::~CancelScope() { current_limits = before_; }
const Limits& CancelScope::Current() { return current_limits; }

Status CheckCancelled() {
  if (!current_limits.Reached()) return {};
  return Fail(Code::kCancelled, "opening the model was cancelled");
}

}  // namespace fusebox
