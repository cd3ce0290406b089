// SPDX-License-Identifier: Apache-2.0
// Keys of packed weights, and the note stored with them, which `cache doctor` uses to explain a miss.
#pragma once

#include <string>
#include <string_view>

#include "plugins/xnnpack/packing/model_weights.h"
#include "plugins/xnnpack/packing/recipes.h"

namespace fusebox::xnnpack {

// Weights and their packing. `bias` may be NULL.
struct PackRequest {
  const Recipe& recipe;
  const fbx_tensor* kernel;
  const fbx_tensor* bias;
};

cache::Key KeyOf(ModelWeights& weights, const PackRequest& request);

// A line for display, then NAME=VALUE lines.
struct PackNote {
  std::string what;     // "f32 64x3x3x32, bias f32"
  std::string cpu;      // CpuText
  std::string library;  // LibraryBuildText
  std::string recipe;   // a digest of the recipe without the weights
  std::string source;   // a digest of recipe and weights without the CPU

  std::string Text() const;
  // Accepts any text; missing fields are empty.
  static PackNote Parse(std::string_view text);
};
PackNote NoteOf(ModelWeights& weights, const PackRequest& request);

}  // namespace fusebox::xnnpack
