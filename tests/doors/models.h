// SPDX-License-Identifier: Apache-2.0
// Small .tflite files for the tests of the doors.
#pragma once

#include <string>

namespace fusebox::doors {

// x f32[1,4] -> my_scale (option byte 3) -> scaled; scaled -> my_positive -> chosen; scaled, variable ->
// my_sum -> sum.
std::string ThreeOpsModel();
// x f32[-1,3] -> y = x + x. Signature "double": value -> doubled. Metadata "note".
std::string DoubleModel();
// Signatures "add" (x, y -> sum; the main subgraph) and "negate" (x -> y), f32[2,2].
std::string TwoSignaturesModel();
// Signatures "train" (x -> unknown_op -> loss; the main subgraph) and "negate" (x -> y), f32[2,2].
std::string HalfRunnableModel();
// text string[-1] -> the same.
std::string TextModel();
// u8[1,2] -> u8[2] by RESHAPE, scale 0.5, zero point 128; the input is called "quantized".
std::string QuantizedModel();
// A chain of so many NEG over f32[1,size].
std::string ChainModel(int nodes, int64_t size);

// x f32[2,2] -> a custom op of this name -> y f32[2,2].
std::string CustomModel(const char* op);
// x f32[1,size] -> FULLY_CONNECTED with ones.
std::string DenseModel(int64_t size);

// x, y f32[2,2] -> my_custom_fused_op -> sum, larger.
std::string FusedOpModel();
// picture f32[1,4,4,3] -> f32[1,3]: the mean of each color.
std::string PictureModel();

// Writes a file into the build folder's temporary space and returns its path.
std::string WriteModel(const std::string& bytes, const std::string& name);

}  // namespace fusebox::doors
