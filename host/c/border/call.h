// SPDX-License-Identifier: Apache-2.0
// The border of the C API: statuses, text and arguments.
#pragma once

#include <string>
#include <string_view>

#include "fusebox/c_base.h"
#include "host/base/status.h"

namespace fusebox::c {

fusebox_status StatusOf(Code);
// A copy that ends in NUL, from malloc; null if there is no memory.
char* NewText(std::string_view) noexcept;
// Sets *error, if given, and returns the status.
fusebox_status Report(const Error&, char** error) noexcept;

// The status of the exception in flight. Sets *error, if given.
fusebox_status Caught(char** error) noexcept;

// Runs `body`, which returns a Status; nothing that it throws crosses the border.
template <class F>
fusebox_status Call(char** error, F&& body) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    const Status status = body();
    return status ? FUSEBOX_OK : Report(status.error(), error);
  } catch (...) {
    return Caught(error);
  }
}

// Sets *out to a copy of the text.
Status Return(std::string_view text, char** out);

// Checks that a struct of the caller has all fields of this version. `initializer`: the macro that sets its
// size.
template <class T>
Status CheckSize(const T& object, const char* initializer) {
  if (object.struct_size >= sizeof(T)) return {};
  return Invalid("struct_size is " + std::to_string(object.struct_size) + "; initialize the struct with " +
                 initializer);
}

// Sends the log lines of this library to a function of the caller. Null: to stderr.
void SetSink(void (*sink)(void* user, int32_t level, const char* topic, const char* text), void* user);

}  // namespace fusebox::c

// In a function that returns a Status: an error if the argument is NULL.
#define FUSEBOX_C_REQUIRE(argument) \
  if ((argument) == nullptr) return ::fusebox::Invalid(#argument " is NULL")
