// SPDX-License-Identifier: Apache-2.0
// Settings: the options of a model for the delegate.
#pragma once

#include <fusebox/abi/ext/caller.h>
#include <fusebox/delegate.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace fusebox::xnnpack {

using namespace sdk;

inline constexpr std::string_view kDelegateName = "xnnpack";

struct Settings {
  explicit Settings(const Attrs& options)
      : cache_path(options.s("weight_cache_path", "")),
        share(options.b("share_weights", true)),
        half(options.s("precision", "f32") == "f16"),
        by_cost(options.s("placement", "cost") == "cost") {}
  // Returns the settings for the model that is being opened, even if the delegate is off, or nothing without
  // options.
  static std::optional<Settings> Of(const fbx_host* host, const fbx_caller& caller);

  const std::string cache_path;  // empty: no cache
  const bool share;
  const bool half;     // compute floats in f16
  const bool by_cost;  // nodes run on kernels where these are faster; else all that XNNPACK supports run here
};

}  // namespace fusebox::xnnpack
