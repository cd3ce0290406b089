// SPDX-License-Identifier: Apache-2.0
// Expected properties of errors for damaged input, with or without sanitizers.
#pragma once

#include <gtest/gtest.h>

#include "host/base/status.h"

namespace fusebox {

// The error has a message and is not an internal error.
inline ::testing::AssertionResult BlamesInput(const Error& error) {
  if (error.code == Code::kInternal)
    return ::testing::AssertionFailure() << "internal error: " << error.message;
  if (error.message.empty()) return ::testing::AssertionFailure() << "an error without a message";
  return ::testing::AssertionSuccess();
}

// The result is a success, or such an error.
template <class T>
::testing::AssertionResult SucceedsOrBlamesInput(const Result<T>& result) {
  return result ? ::testing::AssertionSuccess() : BlamesInput(result.error());
}

}  // namespace fusebox
