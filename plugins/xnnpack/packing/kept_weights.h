// SPDX-License-Identifier: Apache-2.0
// Implements fusebox.weights/1: the weight store, for kernels and delegates of other plugins
// (abi/ext/weights.h).
//
// Weights are kept where the model's delegate `xnnpack` has its weight_cache_path, whether it runs or not.
// Weights that are packed in one phase (abi/ext/caller.h) become one segment, published when the phase has
// ended and all of them are committed.
#pragma once

#include <fusebox/abi/ext/weights.h>

#include <string_view>

namespace fusebox::xnnpack {

struct KeptWeights {
  static constexpr std::string_view extension = FBX_EXT_WEIGHTS;
  static const void* table() noexcept;
};

}  // namespace fusebox::xnnpack
