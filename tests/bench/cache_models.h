// SPDX-License-Identifier: Apache-2.0
// Models of the cache benchmark with seeded weights: written once, opened by every run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/base/status.h"

namespace fusebox::bench {

// kFull: the models of docs/benchmarks.md; kSmall: a hundredth of the size, to try the benchmark.
enum class Size { kFull, kSmall };

// "llm", "llm_int8": a decoder with signatures prefill (64 tokens) and decode (one token; keys and values are
// inputs) that share 100 M weights; "unet": a convolutional net of about 200 MB with distinct weights; "fc",
// "fc_int8": 24 fully connected layers, 400 MB. int8: 8-bit weights with one scale per output channel, f32
// activations.
std::vector<std::string_view> CacheModelNames();
Status WriteCacheModel(std::string_view name, Size size, const std::string& path);

}  // namespace fusebox::bench
