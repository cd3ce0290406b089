// SPDX-License-Identifier: Apache-2.0
// What decides the bytes of packed weights. XNNPACK's own key {seed, kernel pointer, bias pointer} does not: zero points,
// scales, block sizes and the layout that a CPU wants are packed in, and are not in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace fusebox::xnnpack {

// The op families that XNNPACK packs through a cache, each with a canary of its own.
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

// How an op packs its weights: everything that XNNPACK folds into the bytes but for the weights and the bias
// themselves. Two ops whose recipes differ never share a blob.
class Recipe {
 public:
  explicit Recipe(Family family) : family_(family) {}
  Family family() const { return family_; }
  // Appends numbers, in the order in which the op names them.
  template <class... Ts>
  Recipe& Add(Ts... values) {
    (Append(values), ...);
    return *this;
  }
  // Appends a list with its length.
  template <class T>
  Recipe& AddList(std::span<const T> values) {
    Append(uint64_t{values.size()});
    text_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    return *this;
  }
  // The same for people, where an op says it: "fp32 64x3x3x32".
  void Describe(std::string text) { description_ = std::move(text); }
  const std::string& text() const { return text_; }
  const std::string& description() const { return description_; }

 private:
  template <class T>
  void Append(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  Family family_;
  std::string text_, description_;
};

}  // namespace fusebox::xnnpack
