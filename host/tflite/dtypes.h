// SPDX-License-Identifier: Apache-2.0
// Conversion between element types of the .tflite format and DType.
#pragma once

#include <optional>

#include "host/graph/types.h"

namespace fusebox::tflite {

DType DTypeOf(int tensor_type);          // kNone: not one that we know
std::optional<int> TensorTypeOf(DType);  // nothing: the format has no such type

}  // namespace fusebox::tflite
