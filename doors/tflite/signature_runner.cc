// SPDX-License-Identifier: Apache-2.0
// Signature runners of TensorFlow Lite's C API.
#include <algorithm>
#include <string_view>

#include "doors/tflite/interpreter.h"

using fusebox::tflite::Guarded;
using fusebox::tflite::Port;
using fusebox::tflite::Subgraph;

struct TfLiteSignatureRunner {
  TfLiteInterpreter* interpreter;
  Subgraph* graph;
};

namespace {

// The port of this name, or -1.
int IndexOf(const std::deque<Port>& ports, std::string_view name) {
  const auto found = std::ranges::find(ports, name, &Port::name);
  return found != ports.end() ? static_cast<int>(found - ports.begin()) : -1;
}

const char* NameAt(const std::deque<Port>& ports, const std::vector<size_t>& order, int32_t index) {
  if (index < 0 || static_cast<size_t>(index) >= order.size()) return nullptr;
  return ports[order[static_cast<size_t>(index)]].name.c_str();
}

TfLiteTensor* Named(std::deque<Port>& ports, const char* name) {
  const int index = IndexOf(ports, name);
  return index < 0 ? nullptr : &ports[static_cast<size_t>(index)].tensor.get();
}

}  // namespace

int32_t TfLiteInterpreterGetSignatureCount(const TfLiteInterpreter* interpreter) {
  return fusebox_file_signature_count(interpreter->file());
}

const char* TfLiteInterpreterGetSignatureKey(const TfLiteInterpreter* interpreter, int32_t signature_index) {
  return fusebox_file_signature(interpreter->file(), signature_index);
}

TfLiteSignatureRunner* TfLiteInterpreterGetSignatureRunner(const TfLiteInterpreter* interpreter,
                                                           const char* signature_key) {
  auto* changed = const_cast<TfLiteInterpreter*>(interpreter);
  return Guarded(interpreter->reporter(), static_cast<TfLiteSignatureRunner*>(nullptr), [&] {
    Subgraph* graph = changed->Find(signature_key);
    if (graph == nullptr) interpreter->reporter().Report("There is no signature '%s'.", signature_key);
    return graph != nullptr ? new TfLiteSignatureRunner{changed, graph} : nullptr;
  });
}

size_t TfLiteSignatureRunnerGetInputCount(const TfLiteSignatureRunner* signature_runner) {
  return signature_runner->graph->inputs.size();
}

const char* TfLiteSignatureRunnerGetInputName(const TfLiteSignatureRunner* signature_runner,
                                              int32_t input_index) {
  const Subgraph& graph = *signature_runner->graph;
  return NameAt(graph.inputs, graph.inputs_by_name, input_index);
}

TfLiteStatus TfLiteSignatureRunnerResizeInputTensor(TfLiteSignatureRunner* signature_runner,
                                                    const char* input_name, const int* input_dims,
                                                    int32_t input_dims_size) {
  TfLiteInterpreter& interpreter = *signature_runner->interpreter;
  Subgraph& graph = *signature_runner->graph;
  const int index = IndexOf(graph.inputs, input_name);
  if (index < 0) {
    interpreter.reporter().Report("Signature '%s' has no input '%s'.", graph.key().c_str(), input_name);
    return kTfLiteError;
  }
  return Guarded(interpreter.reporter(), kTfLiteError, [&] {
    return interpreter.Resize(graph, static_cast<size_t>(index), input_dims, input_dims_size, true);
  });
}

TfLiteStatus TfLiteSignatureRunnerAllocateTensors(TfLiteSignatureRunner* signature_runner) {
  TfLiteInterpreter& interpreter = *signature_runner->interpreter;
  return Guarded(interpreter.reporter(), kTfLiteError,
                 [&] { return interpreter.Allocate(*signature_runner->graph); });
}

TfLiteTensor* TfLiteSignatureRunnerGetInputTensor(TfLiteSignatureRunner* signature_runner,
                                                  const char* input_name) {
  return Named(signature_runner->graph->inputs, input_name);
}

TfLiteStatus TfLiteSignatureRunnerInvoke(TfLiteSignatureRunner* signature_runner) {
  TfLiteInterpreter& interpreter = *signature_runner->interpreter;
  return Guarded(interpreter.reporter(), kTfLiteError,
                 [&] { return interpreter.Invoke(*signature_runner->graph); });
}

size_t TfLiteSignatureRunnerGetOutputCount(const TfLiteSignatureRunner* signature_runner) {
  return signature_runner->graph->outputs.size();
}

const char* TfLiteSignatureRunnerGetOutputName(const TfLiteSignatureRunner* signature_runner,
                                               int32_t output_index) {
  const Subgraph& graph = *signature_runner->graph;
  return NameAt(graph.outputs, graph.outputs_by_name, output_index);
}

const TfLiteTensor* TfLiteSignatureRunnerGetOutputTensor(const TfLiteSignatureRunner* signature_runner,
                                                         const char* output_name) {
  return Named(signature_runner->graph->outputs, output_name);
}

TfLiteStatus TfLiteSignatureRunnerCancel(TfLiteSignatureRunner* signature_runner) {
  return signature_runner->interpreter->Cancel();
}

void TfLiteSignatureRunnerDelete(TfLiteSignatureRunner* signature_runner) { delete signature_runner; }
