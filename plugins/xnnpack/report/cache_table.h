// SPDX-License-Identifier: Apache-2.0
// Implements the service "fusebox.cache/1".
#pragma once

#include <string_view>

#include <fusebox/abi/ext/cache.h>

namespace fusebox::xnnpack {

struct CacheTable {
  static constexpr std::string_view extension = FBX_EXT_CACHE;
  static const void* table() noexcept;
};

}  // namespace fusebox::xnnpack
