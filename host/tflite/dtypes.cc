// SPDX-License-Identifier: Apache-2.0
#include "host/tflite/dtypes.h"

#include <iterator>

namespace fusebox::tflite {
namespace {

// By number of the format.
constexpr DType kTypes[] = {
    DType::kF32,  DType::kF16,      DType::kI32,       DType::kU8,       DType::kI64,    DType::kString,
    DType::kBool, DType::kI16,      DType::kComplex64, DType::kI8,       DType::kF64,    DType::kComplex128,
    DType::kU64,  DType::kResource, DType::kVariant,   DType::kU32,      DType::kU16,    DType::kI4,
    DType::kBF16, DType::kI2,       DType::kU4,        DType::kF8E4M3FN, DType::kF8E5M2,
};

}  // namespace

DType DTypeOf(int tensor_type) {
  if (tensor_type < 0 || tensor_type >= static_cast<int>(std::size(kTypes))) return DType::kNone;
  return kTypes[tensor_type];
}

std::optional<int> TensorTypeOf(DType type) {
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    if (kTypes[i] == type) return static_cast<int>(i);
  }
  return std::nullopt;
}

}  // namespace fusebox::tflite
