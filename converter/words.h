// SPDX-License-Identifier: Apache-2.0
// The words for a conversion's options, on the command line and in JSON.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "converter/convert.h"

namespace fusebox::converter {

template <class T>
using Words = std::vector<std::pair<std::string, T>>;
inline const Words<Composites> kComposites = {
    {"fuse", Composites::kFuse}, {"keep", Composites::kKeep}, {"inline", Composites::kInline}};
inline const Words<FusionOptions::KeepBodies> kKeepBodies = {{"none", FusionOptions::KeepBodies::kNone},
                                                             {"custom", FusionOptions::KeepBodies::kCustom},
                                                             {"all", FusionOptions::KeepBodies::kAll}};
inline const Words<Verification> kVerify = {
    {"off", Verification::kOff}, {"sample", Verification::kSample}, {"strict", Verification::kStrict}};
inline const Words<Placeholders> kPlaceholders = {{"fuse", Placeholders::kFuse},
                                                  {"error", Placeholders::kError}};
inline const Words<Quantization> kQuantize = {{"none", Quantization::kNone},
                                              {"float16", Quantization::kFloat16},
                                              {"dynamic", Quantization::kDynamic},
                                              {"int8", Quantization::kInt8},
                                              {"int16x8", Quantization::kInt16x8}};
inline const Words<DType> kEndTypes = {
    {"float32", DType::kF32}, {"int8", DType::kI8}, {"uint8", DType::kU8}, {"int16", DType::kI16}};

// `word` must be one of `words`.
template <class T>
T Meaning(const Words<T>& words, const std::string& word) {
  for (const auto& [name, meaning] : words) {
    if (name == word) return meaning;
  }
  FUSEBOX_CHECK(false);
}

// The conversion of a path, by what is there.
Result<Conversion> FromPath(const std::string& source);

}  // namespace fusebox::converter
