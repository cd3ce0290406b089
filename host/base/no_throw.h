// SPDX-License-Identifier: Apache-2.0
// Functions for the tables that plugins call: no exception may reach the plugin.
#pragma once

#include <utility>

namespace fusebox {

// kNoThrow<kBody, kFailed> calls `kBody`; if that throws, it returns `kFailed` of the first argument, which
// notes the failure for the host to throw again when the plugin has returned.
template <class Function, auto kBody, auto kFailed>
struct NoThrow;
template <class R, class First, class... Rest, auto kBody, auto kFailed>
struct NoThrow<R (*)(First, Rest...), kBody, kFailed> {
  static R Call(First first, Rest... rest) noexcept {
    try {
      return kBody(first, rest...);
    } catch (...) {
      return static_cast<R>(kFailed(first));
    }
  }
};
template <auto kBody, auto kFailed>
inline constexpr auto kNoThrow = &NoThrow<decltype(kBody), kBody, kFailed>::Call;

}  // namespace fusebox
