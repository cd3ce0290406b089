// SPDX-License-Identifier: Apache-2.0
// Writes .tflite files as TensorFlow's converter writes recurrent layers with SELECT_TF_OPS: loops over Flex
// tensor lists.
#pragma once

#include <string>

#include "converter/convert.h"

namespace fusebox::testing {

// Weights of FULLY_CONNECTED: as after dynamic range quantization, with a scale per tensor or, as TensorFlow
// writes them since 2.17, with a scale per row, and small matrices in floats.
enum class FlexWeights { kFloat, kEightBits, kRowsOfEightBits };

// The options of a Flex op: a pair of its name and its NodeDef, whose attributes are element_dtype = float
// and shape_type = int32.
std::string FlexListOptions(const std::string& op);

// Converts the model without fusion and writes its graph before lists are lowered. Error: it has no lists.
Status WriteFlex(converter::Conversion conversion, const std::string& path,
                 FlexWeights weights = FlexWeights::kFloat);

}  // namespace fusebox::testing
