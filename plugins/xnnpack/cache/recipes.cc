// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/cache/recipes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

namespace fusebox::xnnpack {

namespace {

// Of the layout of the text that MakeKey hashes, and of what the recipes in ops/ say.
constexpr uint32_t kSchema = 1;

void Append(std::string& text, const void* data, size_t size) {
  text.append(static_cast<const char*>(data), size);
}

}  // namespace

std::string_view FamilyName(Family family) {
  switch (family) {
    case Family::kConvolution: return "convolution";
    case Family::kTransposedConvolution: return "transposed convolution";
    case Family::kFullyConnected: return "fully connected";
  }
  return "unknown";
}

std::array<uint8_t, 16> Digest(const void* data, size_t size) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, size));
  std::array<uint8_t, 16> digest;
  std::memcpy(digest.data(), canonical.digest, digest.size());
  return digest;
}

PackKey MakeKey(const std::array<uint8_t, 16>& fingerprint, const Recipe& recipe, const Contents& kernel,
                const Contents& bias) {
  std::string text;
  const uint64_t length = recipe.text().size();
  const Family family = recipe.family();
  Append(text, &kSchema, sizeof kSchema);
  Append(text, fingerprint.data(), fingerprint.size());
  Append(text, &family, sizeof family);
  Append(text, &length, sizeof length);
  text += recipe.text();
  for (const Contents* part : {&kernel, &bias}) {
    Append(text, part->digest.data(), part->digest.size());
    Append(text, &part->size, sizeof part->size);
  }
  return {Digest(text.data(), text.size())};
}

}  // namespace fusebox::xnnpack
