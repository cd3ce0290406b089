// SPDX-License-Identifier: Apache-2.0
// weight_cache MODEL CACHE: the XNNPACK delegate of TensorFlow Lite with a weight cache. The first start
// packs the weights and writes CACHE, later ones map it.
#include <cstdio>
#include <memory>

#include "tensorflow/lite/delegates/xnnpack/xnnpack_delegate.h"
#include "tensorflow/lite/interpreter.h"
#include "tensorflow/lite/kernels/register.h"
#include "tensorflow/lite/model.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: weight_cache MODEL.tflite CACHE\n");
    return 2;
  }
  const auto model = tflite::FlatBufferModel::BuildFromFile(argv[1]);
  if (model == nullptr) return 2;
  tflite::ops::builtin::BuiltinOpResolver resolver;
  std::unique_ptr<tflite::Interpreter> interpreter;
  if (tflite::InterpreterBuilder(*model, resolver)(&interpreter) != kTfLiteOk) return 2;

  TfLiteXNNPackDelegateOptions options = TfLiteXNNPackDelegateOptionsDefault();
  options.weight_cache_file_path = argv[2];
  TfLiteDelegate* delegate = TfLiteXNNPackDelegateCreate(&options);
  if (interpreter->ModifyGraphWithDelegate(delegate) != kTfLiteOk) return 2;
  if (interpreter->AllocateTensors() != kTfLiteOk || interpreter->Invoke() != kTfLiteOk) return 2;
  for (const int output : interpreter->outputs()) std::printf("%s\n", interpreter->tensor(output)->name);
  interpreter.reset();
  TfLiteXNNPackDelegateDelete(delegate);  // after the interpreter
  return 0;
}
