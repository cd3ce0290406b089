// SPDX-License-Identifier: Apache-2.0
// What a test of damaged input may expect of an error, with or without a sanitizer.
#pragma once

#include <gtest/gtest.h>

#include "host/base/status.h"

namespace fusebox {

// The error has a reason, and the reason is the input: it is not a bug of the program.
inline ::testing::AssertionResult BlamesInput(const Error& error) {
  if (error.code == Code::kInternal)
    return ::testing::AssertionFailure() << "internal error: " << error.message;
  if (error.message.empty()) return ::testing::AssertionFailure() << "an error without a message";
  return ::testing::AssertionSuccess();
}

// The same of a result: it is a success, or it blames the input.
template <class T>
::testing::AssertionResult SucceedsOrBlamesInput(const Result<T>& result) {
  return result ? ::testing::AssertionSuccess() : BlamesInput(result.error());
}

}  // namespace fusebox
