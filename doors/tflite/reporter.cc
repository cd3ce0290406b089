// SPDX-License-Identifier: Apache-2.0
#include "doors/tflite/reporter.h"

#include <cstdio>

#include "fusebox/c.h"

namespace fusebox::tflite {

void Reporter::Report(const char* format, va_list args) const {
  if (function_ != nullptr) {
    function_(user_data_, format, args);
    return;
  }
  std::fputs("ERROR: ", stderr);
  std::vfprintf(stderr, format, args);
  std::fputc('\n', stderr);
}

void Reporter::Report(const char* format, ...) const {
  va_list args;
  va_start(args, format);
  Report(format, args);
  va_end(args);
}

ErrorText::~ErrorText() { fusebox_text_free(text_); }

}  // namespace fusebox::tflite
