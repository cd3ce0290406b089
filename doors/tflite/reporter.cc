// SPDX-License-Identifier: Apache-2.0
#include "doors/tflite/reporter.h"

#include <cstdio>

#include "fusebox/c.h"

namespace fusebox::tflite {

namespace {

constexpr size_t kLongest = 4096;

// Writes the message as a format without arguments. Allocates nothing, as memory may be short.
void FormatAndEscape(const char* format, va_list args, char (&out)[2 * kLongest]) {
  char message[kLongest];
  va_list copy;
  va_copy(copy, args);
  std::vsnprintf(message, sizeof message, format, copy);
  va_end(copy);
  char* to = out;
  for (const char* from = message; *from != '\0'; ++from) {
    if (*from == '%') *to++ = '%';
    *to++ = *from;
  }
  *to = '\0';
}

}  // namespace

// Bindings of other languages often cannot read `args`, and show the format alone.
void Reporter::Report(const char* format, va_list args) const {
  if (function_ != nullptr) {
    char message[2 * kLongest];
    FormatAndEscape(format, args, message);
    function_(user_data_, message, args);
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
