// SPDX-License-Identifier: Apache-2.0
// Recipe: what determines the bytes of packed weights. XNNPACK's key {seed, kernel pointer, bias pointer} is
// not sufficient: it lacks zero points, scales, block sizes and the CPU-dependent layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "plugins/xnnpack/cache/digest.h"

namespace fusebox::xnnpack {

// The op families that XNNPACK packs through a cache.
enum class Family : uint8_t {
  kConvolution,
  kTransposedConvolution,
  kFullyConnected,
};
inline constexpr size_t kFamilies = 3;

inline std::string_view FamilyName(Family family) {
  switch (family) {
    case Family::kConvolution: return "convolution";
    case Family::kTransposedConvolution: return "transposed convolution";
    case Family::kFullyConnected: return "fully connected";
  }
  return "unknown";
}

// Types of weights and activations in the computation; each has its own packing code.
enum class Form : uint8_t {
  kFloat,
  kInt8,            // i8 x i8, a scale per channel
  kUint8,           // u8 x u8
  kHalf,            // f16, from f32 weights
  kDynamicInt8,     // f32 x i8, activations quantized at run time
  kDynamicInt4,     // f32 x i4, a scale per channel
  kDynamicBlocks4,  // f32 x i4, a scale per block
};
inline constexpr size_t kForms = 7;

// How an op packs its weights: everything that determines the bytes except the weights and the bias. Two ops
// with different recipes never share a blob.
class Recipe {
 public:
  explicit Recipe(Family family) : family_(family) {}
  Family family() const { return family_; }
  Form form() const { return form_; }
  void SetForm(Form form) { form_ = form; }
  // Appends numbers, in the order of the op.
  template <class... Ts>
  Recipe& Add(Ts... values) {
    (Append(values), ...);
    return *this;
  }
  // Appends a list by its digest.
  template <class T>
  Recipe& AddList(std::span<const T> values) {
    parts_.Buffer(cache::Hash(std::as_bytes(values)), values.size());
    return *this;
  }
  const std::string& text() const { return parts_.parts(); }

 private:
  template <class T>
  void Append(T value) {
    if constexpr (std::is_same_v<T, float>) {
      parts_.Real(value);
    } else {
      static_assert(std::is_integral_v<T> || std::is_enum_v<T>);
      parts_.Number(static_cast<uint64_t>(value));
    }
  }
  Family family_;
  Form form_ = Form::kFloat;
  cache::KeyBuilder parts_;
};

}  // namespace fusebox::xnnpack
