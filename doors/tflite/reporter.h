// SPDX-License-Identifier: Apache-2.0
// Where the errors of a model or interpreter go: a function of the application, or stderr.
#pragma once

#include <cstdarg>
#include <string>

#include "fusebox/tflite/c/c_api_types.h"

namespace fusebox::tflite {

class Reporter {
 public:
  using Function = void (*)(void* user_data, const char* format, va_list args);
  Reporter() = default;
  Reporter(Function function, void* user_data) : function_(function), user_data_(user_data) {}

  void Report(const char* format, va_list args) const;
  [[gnu::format(printf, 2, 3)]] void Report(const char* format, ...) const;

 private:
  Function function_ = nullptr;
  void* user_data_ = nullptr;
};

// The error text that a function of <fusebox/c.h> returns through `char**`.
class ErrorText {
 public:
  ErrorText() = default;
  ErrorText(const ErrorText&) = delete;
  ErrorText& operator=(const ErrorText&) = delete;
  ~ErrorText();
  operator char**() { return &text_; }  // NOLINT(google-explicit-constructor)
  const char* text() const { return text_ != nullptr ? text_ : "out of memory"; }

 private:
  char* text_ = nullptr;
};

// Calls `body`, which may throw where there is no memory; then reports it and returns `otherwise`.
template <class F, class T>
T Guarded(const Reporter& reporter, T otherwise, F&& body) noexcept {
  try {
    return body();
  } catch (...) {
    reporter.Report("out of memory");
    return otherwise;
  }
}

}  // namespace fusebox::tflite
