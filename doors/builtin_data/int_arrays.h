// SPDX-License-Identifier: Apache-2.0
// Arrays of TensorFlow Lite's C structs, made with malloc: the runtime frees those that it takes over.
#pragma once

#include <cstdlib>
#include <new>
#include <span>
#include <vector>

#include "fusebox/tflite/c/tensor.h"

namespace fusebox::builtin_data {

template <class T>
TfLiteIntArray* NewIntArray(std::span<const T> values) {
  auto* out = static_cast<TfLiteIntArray*>(std::malloc(sizeof(TfLiteIntArray) + values.size() * sizeof(int)));
  if (out == nullptr) throw std::bad_alloc();
  out->size = static_cast<int>(values.size());
  for (size_t i = 0; i < values.size(); ++i) out->data[i] = static_cast<int>(values[i]);
  return out;
}

inline TfLiteIntArray* NewIntArray(std::span<const int> values) { return NewIntArray<int>(values); }

inline std::vector<int> ToVector(const TfLiteIntArray* array) {
  return {array->data, array->data + array->size};
}

}  // namespace fusebox::builtin_data
