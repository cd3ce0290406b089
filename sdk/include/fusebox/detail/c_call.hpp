// SPDX-License-Identifier: Apache-2.0
// Calls of the C API as Results.
#pragma once

#include <memory>
#include <string>

#include "fusebox/c.h"
#include "fusebox/result.hpp"

namespace fusebox {
inline namespace v1 {
namespace detail {

// Calls `function(char** error)`. kFreeText, a function of the same library, frees the error.
template <auto kFreeText, class F>
Status CallWith(F&& function) {
  char* error = nullptr;
  const fusebox_status status = function(&error);
  if (status == FUSEBOX_OK) return {};
  Error out{static_cast<Code>(status), error != nullptr ? error : "no memory for the error text"};
  kFreeText(error);
  return out;
}

template <class F>
Status Call(F&& function) {
  return CallWith<fusebox_text_free>(std::forward<F>(function));
}

// Same, for `function(char** text, char** error)`.
template <class F>
Result<std::string> CallForText(F&& function) {
  char* text = nullptr;
  const Status status = Call([&](char** error) { return function(&text, error); });
  if (!status) return status.error();
  std::string out(text);
  fusebox_text_free(text);
  return out;
}

template <auto kFree>
struct Deleter {
  void operator()(auto* handle) const { kFree(handle); }
};
template <class T, auto kFree>
using Handle = std::unique_ptr<T, Deleter<kFree>>;

inline const char* OrNull(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace detail
}  // namespace v1
}  // namespace fusebox
