// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value, or an Error with a code and a message. The functions of model.hpp, session.hpp and
// convert.hpp return it instead of throwing. C++20, header-only, over <fusebox/c_base.h>.
//
//   auto model = fusebox::Model::Open("model.tflite");
//   if (!model) return fail(model.error().message);
//   auto session = fusebox::Session::Create(*model);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "fusebox/c_base.h"

namespace fusebox {
inline namespace v1 {

enum class Code : int32_t {
  kInvalid = FUSEBOX_INVALID,          // a malformed file, option or argument
  kUnsupported = FUSEBOX_UNSUPPORTED,  // well-formed, but no plugin or this build cannot do it
  kNotFound = FUSEBOX_NOT_FOUND,       // a missing file, plugin, signature or name
  kIo = FUSEBOX_IO,                    // a system call failed
  kOutOfMemory = FUSEBOX_OUT_OF_MEMORY,
  kInternal = FUSEBOX_INTERNAL,    // a bug of Fusebox or of a plugin
  kCancelled = FUSEBOX_CANCELLED,  // by Session::Cancel, or after ModelOptions::time_limit_ms
};

struct Error {
  Code code = Code::kInternal;
  std::string message;
};

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  // The value; there must be one.
  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  template <class U>
  T value_or(U&& otherwise) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(otherwise));
  }
  template <class U>
  T value_or(U&& otherwise) && {
    return has_value() ? *std::move(*this) : static_cast<T>(std::forward<U>(otherwise));
  }
  // The error; there must be one.
  const Error& error() const& { return *std::get_if<1>(&state_); }
  Error&& error() && { return std::move(*std::get_if<1>(&state_)); }

  // `f` of the value, which returns a Result; or the error.
  template <class F>
  auto and_then(F&& f) && -> std::invoke_result_t<F, T&&> {
    if (has_value()) return std::forward<F>(f)(*std::move(*this));
    return std::move(*this).error();
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

  template <class F>
  auto and_then(F&& f) && -> std::invoke_result_t<F> {
    if (has_value()) return std::forward<F>(f)();
    return std::move(*this).error();
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace v1
}  // namespace fusebox
