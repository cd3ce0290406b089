// SPDX-License-Identifier: Apache-2.0
// The service fusebox.gemm/1.
#pragma once

#include <string_view>

#include <fusebox/abi/ext/gemm.h>

namespace fusebox::cpu {

struct GemmService {
  static constexpr std::string_view extension = FBX_EXT_GEMM;
  static const void* table() noexcept;
};

}  // namespace fusebox::cpu
