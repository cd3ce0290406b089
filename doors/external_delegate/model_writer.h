// SPDX-License-Identifier: Apache-2.0
// Writes nodes of a TensorFlow Lite graph as a separate .tflite file.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fusebox/tflite/c/common.h"

namespace fusebox::external_delegate {

// A group of nodes and the tensors at its border, by the numbers of the context. `inputs` may hold constants.
struct Part {
  std::vector<int> nodes, inputs, outputs;
};

struct WrittenModel {
  std::shared_ptr<const std::byte> file;  // aligned to 64 bytes
  size_t size = 0;
  std::vector<int> inputs;   // tensors of the context, in the order of the file's inputs
  std::vector<int> outputs;  // same, of its outputs; `states` of them follow: inputs that the nodes update
  size_t states = 0;
};

// Throws std::runtime_error with the reason if the file cannot express a node or a tensor.
WrittenModel WriteModel(TfLiteContext* context, const Part& part);

// True if nothing writes the tensor: the file holds its value.
bool IsConstant(const TfLiteTensor& tensor);
// The name of the op in the file format, of a custom op its own; empty: an unknown op.
std::string OpName(const TfLiteRegistration& registration);
// True for a builtin op that has operands for its state, which a node may omit.
bool IsRecurrent(const TfLiteRegistration& registration);
// Operands that the op updates in place, as tensors of the context.
std::vector<int> StatesOf(const TfLiteNode& node, const TfLiteRegistration& registration);
// Throws std::runtime_error with the reason if the type, quantization or form of the tensor is not supported.
void CheckTensor(const TfLiteTensor& tensor);

}  // namespace fusebox::external_delegate
