/* SPDX-License-Identifier: Apache-2.0 */
// Where errors of models and interpreters go.
#ifndef FUSEBOX_TFLITE_ERROR_REPORTER_H_
#define FUSEBOX_TFLITE_ERROR_REPORTER_H_

#include <cstdarg>
#include <cstdio>

namespace tflite {

class ErrorReporter {
 public:
  virtual ~ErrorReporter() = default;
  virtual int Report(const char* format, va_list args) = 0;
  int Report(const char* format, ...) {
    va_list args;
    va_start(args, format);
    const int code = Report(format, args);
    va_end(args);
    return code;
  }
};

class StderrReporter : public ErrorReporter {
 public:
  using ErrorReporter::Report;
  int Report(const char* format, va_list args) override {
    const int code = std::vfprintf(stderr, format, args);
    std::fputc('\n', stderr);
    return code;
  }
};

inline ErrorReporter* DefaultErrorReporter() {
  static StderrReporter reporter;
  return &reporter;
}

namespace detail {
// The reporter of the C API; `user` is an ErrorReporter.
inline void ReportTo(void* user, const char* format, va_list args) {
  static_cast<ErrorReporter*>(user)->Report(format, args);
}
}  // namespace detail

}  // namespace tflite

#endif
