// SPDX-License-Identifier: Apache-2.0
// Tensors, arrays and options of a Fusebox graph as TensorFlow Lite's C structs.
#pragma once

#include <fusebox/graph.hpp>

#include <span>
#include <vector>

#include "doors/builtin_data/int_arrays.h"
#include "fusebox/tflite/c/common.h"

namespace fusebox::tflite_delegate {

using namespace sdk;
using builtin_data::NewIntArray;

// A tensor without memory, or for a constant with its data. Throws Reject for a type, rank or dim that the
// struct cannot hold. FreeTensor frees what it owns.
TfLiteTensor NewTensor(const Tensor& tensor);
void FreeTensor(TfLiteTensor& tensor);
// Sets dims and bytes.
void SetDims(TfLiteTensor& tensor, TfLiteIntArray* dims);

// The struct with the options of a builtin op, and zeros behind it where later releases have more. Throws
// Reject if the struct of the op is not known.
std::vector<std::byte> BuiltinData(const GraphNode& node);
// The code of the op; of a custom op 32.
int32_t CodeOf(const GraphNode& node);

}  // namespace fusebox::tflite_delegate
