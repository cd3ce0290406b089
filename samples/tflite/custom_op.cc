// SPDX-License-Identifier: Apache-2.0
// custom_op: TensorFlow's guide to fused ops in C++: a TfLiteRegistration for the op my_custom_fused_op,
// which a converter writes for a function with that name, added to a resolver.
//
//   custom_op MODEL
//
// The op returns the sum of its operands, and the larger one of each two elements.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "tensorflow/lite/interpreter.h"
#include "tensorflow/lite/kernels/register.h"
#include "tensorflow/lite/model.h"

namespace {

TfLiteRegistration* Register() {
  static TfLiteRegistration registration{};
  registration.builtin_code = kTfLiteBuiltinCustom;
  registration.custom_name = "my_custom_fused_op";
  registration.prepare = [](TfLiteContext* context, TfLiteNode* node) -> TfLiteStatus {
    const TfLiteTensor& first = context->tensors[node->inputs->data[0]];
    for (int i = 0; i < node->outputs->size; ++i) {
      TfLiteTensor* output = &context->tensors[node->outputs->data[i]];
      TF_LITE_ENSURE_STATUS(context->ResizeTensor(context, output, TfLiteIntArrayCopy(first.dims)));
    }
    return kTfLiteOk;
  };
  registration.invoke = [](TfLiteContext* context, TfLiteNode* node) -> TfLiteStatus {
    const TfLiteTensor& x = context->tensors[node->inputs->data[0]];
    const TfLiteTensor& y = context->tensors[node->inputs->data[1]];
    TF_LITE_ENSURE_EQ(context, x.bytes, y.bytes);
    for (size_t i = 0; i < x.bytes / sizeof(float); ++i) {
      context->tensors[node->outputs->data[0]].data.f[i] = x.data.f[i] + y.data.f[i];
      if (node->outputs->size > 1)
        context->tensors[node->outputs->data[1]].data.f[i] = std::max(x.data.f[i], y.data.f[i]);
    }
    return kTfLiteOk;
  };
  return &registration;
}

void AddOps(tflite::MutableOpResolver* resolver) {
  TfLiteRegistration* registration = Register();
  resolver->AddCustom(registration->custom_name, registration);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: custom_op MODEL.tflite\n");
    return 2;
  }
  const auto model = tflite::FlatBufferModel::BuildFromFile(argv[1]);
  if (model == nullptr) return 2;
  tflite::ops::builtin::BuiltinOpResolver resolver;
  AddOps(&resolver);
  std::unique_ptr<tflite::Interpreter> interpreter;
  if (tflite::InterpreterBuilder(*model, resolver)(&interpreter) != kTfLiteOk) return 2;
  if (interpreter->AllocateTensors() != kTfLiteOk) return 2;
  for (size_t i = 0; i < interpreter->inputs().size(); ++i) {
    float* values = interpreter->typed_input_tensor<float>(static_cast<int>(i));
    const size_t count = interpreter->input_tensor(i)->bytes / sizeof(float);
    for (size_t k = 0; values != nullptr && k < count; ++k) values[k] = static_cast<float>(i + k);
  }
  if (interpreter->Invoke() != kTfLiteOk) return 2;
  for (size_t i = 0; i < interpreter->outputs().size(); ++i)
    std::printf("%s %g\n", interpreter->GetOutputName(static_cast<int>(i)),
                interpreter->typed_output_tensor<float>(static_cast<int>(i))[0]);
  return 0;
}
