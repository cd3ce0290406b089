// SPDX-License-Identifier: Apache-2.0
// minimal MODEL: runs a .tflite file with the C++ interface of TensorFlow Lite, on inputs of ones.
#include <cstdio>
#include <memory>

#include "tensorflow/lite/interpreter.h"
#include "tensorflow/lite/kernels/register.h"
#include "tensorflow/lite/model.h"

namespace {

void Fill(TfLiteTensor* tensor) {
  for (size_t i = 0; tensor->type == kTfLiteFloat32 && i < tensor->bytes / sizeof(float); ++i)
    tensor->data.f[i] = 1;
}

void Print(const TfLiteTensor* tensor) {
  std::printf("%s %s[", tensor->name, TfLiteTypeGetName(tensor->type));
  for (int d = 0; d < tensor->dims->size; ++d) std::printf(d == 0 ? "%d" : ",%d", tensor->dims->data[d]);
  std::printf("]");
  for (size_t i = 0; tensor->type == kTfLiteFloat32 && i < tensor->bytes / sizeof(float) && i < 4; ++i)
    std::printf(" %g", tensor->data.f[i]);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: minimal MODEL.tflite\n");
    return 2;
  }
  const std::unique_ptr<tflite::FlatBufferModel> model = tflite::FlatBufferModel::BuildFromFile(argv[1]);
  if (model == nullptr) return 2;
  tflite::ops::builtin::BuiltinOpResolver resolver;
  std::unique_ptr<tflite::Interpreter> interpreter;
  tflite::InterpreterBuilder builder(*model, resolver);
  if (builder(&interpreter) != kTfLiteOk || interpreter->AllocateTensors() != kTfLiteOk) return 2;
  for (const int input : interpreter->inputs()) Fill(interpreter->tensor(input));
  if (interpreter->Invoke() != kTfLiteOk) return 2;
  for (const int output : interpreter->outputs()) Print(interpreter->tensor(output));
  return 0;
}
