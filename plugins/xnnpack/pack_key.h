// SPDX-License-Identifier: Apache-2.0
// What packed weights are found by, and what is noted beside them: so that who does not find an entry can be told what differs.
#pragma once

#include <string>
#include <string_view>

#include "plugins/xnnpack/model_weights.h"
#include "plugins/xnnpack/recipes.h"

namespace fusebox::xnnpack {

// Weights, and how they are packed. `bias` may be NULL.
struct PackRequest {
  const Recipe& recipe;
  const fbx_tensor* kernel;
  const fbx_tensor* bias;
};

cache::Key KeyOf(ModelWeights& weights, const PackRequest& request);

// A line for people, then NAME=VALUE lines.
struct PackNote {
  std::string what;     // "f32 64x3x3x32, bias f32"
  std::string cpu;      // CpuText
  std::string library;  // LibraryBuildText
  std::string recipe;   // a digest of how it is packed, whatever the weights are
  std::string source;   // a digest of recipe and weights, whatever the CPU is

  std::string Text() const;
  // Of any text: what it does not say is empty.
  static PackNote Parse(std::string_view text);
};
PackNote NoteOf(ModelWeights& weights, const PackRequest& request);

}  // namespace fusebox::xnnpack
