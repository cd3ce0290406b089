// SPDX-License-Identifier: Apache-2.0
// Interpreters of TensorFlow Lite's C API.
#include <algorithm>

#include "doors/tflite/interpreter.h"

using fusebox::tflite::Guarded;
using fusebox::tflite::Port;
using fusebox::tflite::Reporter;

namespace {

TfLiteInterpreter* NewInterpreter(const TfLiteModel* model, const TfLiteInterpreterOptions* options,
                                  bool selected) noexcept {
  const Reporter reporter = options != nullptr ? options->reporter : Reporter();
  if (model == nullptr) return nullptr;
  return Guarded(reporter, static_cast<TfLiteInterpreter*>(nullptr), [&] {
    return TfLiteInterpreter::Create(model->file, options != nullptr ? *options : TfLiteInterpreterOptions(),
                                     selected)
        .release();
  });
}

// The C API passes interpreters that functions change as const.
TfLiteInterpreter& Changed(const TfLiteInterpreter* interpreter) {
  return *const_cast<TfLiteInterpreter*>(interpreter);
}

template <class Ports>
auto* At(Ports& ports, int32_t index) {
  return index >= 0 && static_cast<size_t>(index) < ports.size() ? &ports[static_cast<size_t>(index)]
                                                                 : nullptr;
}

int32_t NumberAt(const std::deque<Port>& ports, int32_t index) {
  const Port* port = At(ports, index);
  return port != nullptr ? port->number : -1;
}

}  // namespace

TfLiteInterpreter* TfLiteInterpreterCreate(const TfLiteModel* model,
                                           const TfLiteInterpreterOptions* optional_options) {
  return NewInterpreter(model, optional_options, false);
}

TfLiteInterpreter* TfLiteInterpreterCreateWithSelectedOps(const TfLiteModel* model,
                                                          const TfLiteInterpreterOptions* options) {
  return NewInterpreter(model, options, true);
}

void TfLiteInterpreterDelete(TfLiteInterpreter* interpreter) { delete interpreter; }

int32_t TfLiteInterpreterGetInputTensorCount(const TfLiteInterpreter* interpreter) {
  return static_cast<int32_t>(interpreter->main().inputs.size());
}

const int* TfLiteInterpreterInputTensorIndices(const TfLiteInterpreter* interpreter) {
  return interpreter->main().input_numbers.data();
}

TfLiteTensor* TfLiteInterpreterGetInputTensor(const TfLiteInterpreter* interpreter, int32_t input_index) {
  Port* port = At(interpreter->main().inputs, input_index);
  return port != nullptr ? &port->tensor.get() : nullptr;
}

TfLiteStatus TfLiteInterpreterResizeInputTensor(TfLiteInterpreter* interpreter, int32_t input_index,
                                                const int* input_dims, int32_t input_dims_size) {
  if (At(interpreter->main().inputs, input_index) == nullptr) return kTfLiteError;
  return Guarded(interpreter->reporter(), kTfLiteError, [&] {
    return interpreter->Resize(interpreter->main(), static_cast<size_t>(input_index), input_dims,
                               input_dims_size, false);
  });
}

TfLiteStatus TfLiteInterpreterAllocateTensors(TfLiteInterpreter* interpreter) {
  return Guarded(interpreter->reporter(), kTfLiteError,
                 [&] { return interpreter->Allocate(interpreter->main()); });
}

TfLiteStatus TfLiteInterpreterInvoke(TfLiteInterpreter* interpreter) {
  return Guarded(interpreter->reporter(), kTfLiteError,
                 [&] { return interpreter->Invoke(interpreter->main()); });
}

int32_t TfLiteInterpreterGetOutputTensorCount(const TfLiteInterpreter* interpreter) {
  return static_cast<int32_t>(interpreter->main().outputs.size());
}

const int* TfLiteInterpreterOutputTensorIndices(const TfLiteInterpreter* interpreter) {
  return interpreter->main().output_numbers.data();
}

const TfLiteTensor* TfLiteInterpreterGetOutputTensor(const TfLiteInterpreter* interpreter,
                                                     int32_t output_index) {
  const Port* port = At(interpreter->main().outputs, output_index);
  return port != nullptr ? &port->tensor.get() : nullptr;
}

TfLiteTensor* TfLiteInterpreterGetTensor(const TfLiteInterpreter* interpreter, int index) {
  return Guarded(interpreter->reporter(), static_cast<TfLiteTensor*>(nullptr),
                 [&] { return Changed(interpreter).Tensor(index); });
}

TfLiteStatus TfLiteInterpreterCancel(const TfLiteInterpreter* interpreter) {
  return Changed(interpreter).Cancel();
}

TfLiteStatus TfLiteInterpreterResetVariableTensors(TfLiteInterpreter* interpreter) {
  return interpreter->ResetVariables();
}

int32_t TfLiteInterpreterGetVariableTensorCount(const TfLiteInterpreter* interpreter) {
  return Guarded(interpreter->reporter(), int32_t{0},
                 [&] { return static_cast<int32_t>(Changed(interpreter).variables().size()); });
}

TfLiteTensor* TfLiteInterpreterGetVariableTensor(const TfLiteInterpreter* interpreter,
                                                 int32_t variable_index) {
  return Guarded(interpreter->reporter(), static_cast<TfLiteTensor*>(nullptr), [&]() -> TfLiteTensor* {
    const int* number = At(Changed(interpreter).variables(), variable_index);
    return number != nullptr ? Changed(interpreter).Tensor(*number) : nullptr;
  });
}

TfLiteStatus TfLiteInterpreterModifyGraphWithDelegate(const TfLiteInterpreter* interpreter,
                                                      TfLiteDelegate* delegate) {
  return Guarded(interpreter->reporter(), kTfLiteError, [&] { return Changed(interpreter).Apply(delegate); });
}

int32_t TfLiteInterpreterGetInputTensorIndex(const TfLiteInterpreter* interpreter, int32_t input_index) {
  return NumberAt(interpreter->main().inputs, input_index);
}

int32_t TfLiteInterpreterGetOutputTensorIndex(const TfLiteInterpreter* interpreter, int32_t output_index) {
  return NumberAt(interpreter->main().outputs, output_index);
}

TfLiteStatus TfLiteInterpreterSetCustomAllocationForTensor(TfLiteInterpreter* interpreter, int tensor_index,
                                                           const TfLiteCustomAllocation* allocation,
                                                           int64_t flags) {
  const bool aligned = allocation != nullptr && reinterpret_cast<uintptr_t>(allocation->data) % 64 == 0;
  if (allocation == nullptr || allocation->data == nullptr ||
      (!aligned && (flags & kTfLiteCustomAllocationFlagsSkipAlignCheck) == 0)) {
    interpreter->reporter().Report("A custom allocation must be aligned to 64 bytes.");
    return kTfLiteError;
  }
  return interpreter->SetMemory(tensor_index, *allocation);
}

// No tensor has a buffer handle: data is always readable.
TfLiteStatus TfLiteInterpreterSetBufferHandle(TfLiteInterpreter*, TfLiteTensor*, TfLiteBufferHandle,
                                              TfLiteOpaqueDelegate*) {
  return kTfLiteError;
}
TfLiteStatus TfLiteInterpreterGetBufferHandle(TfLiteInterpreter*, int, TfLiteBufferHandle*,
                                              TfLiteOpaqueDelegate**) {
  return kTfLiteError;
}
void TfLiteSetAllowBufferHandleOutput(const TfLiteInterpreter*, bool) {}
TfLiteStatus TfLiteInterpreterEnsureTensorDataIsReadable(TfLiteInterpreter* interpreter, int tensor_index) {
  return TfLiteInterpreterGetTensor(interpreter, tensor_index) != nullptr ? kTfLiteOk : kTfLiteError;
}
