// SPDX-License-Identifier: Apache-2.0
// The models of the cache benchmark, with seeded weights: written once, then opened by every run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/base/status.h"

namespace fusebox::bench {

// How large a model is: kFull is what the figures in docs/benchmarks.md are of, kSmall a hundredth of it, to
// try the benchmark.
enum class Size { kFull, kSmall };

// "llm", "llm_int8": a decoder with signatures prefill (64 tokens) and decode (one token, keys and values as
// inputs) over the same weights, 100 M of them; "unet": a convolutional net of about 200 MB whose weights are
// all different; "fc", "fc_int8": 24 fully connected layers, 400 MB. Int8 means weights of 8 bits, one scale
// per output channel, and f32 activations.
std::vector<std::string_view> CacheModelNames();
Status WriteCacheModel(std::string_view name, Size size, const std::string& path);

}  // namespace fusebox::bench
