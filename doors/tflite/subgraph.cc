// SPDX-License-Identifier: Apache-2.0
#include "doors/tflite/subgraph.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "doors/tflite/strings.h"

namespace fusebox::tflite {
namespace {

// Reports a failed call.
TfLiteStatus Checked(fusebox_status status, const ErrorText& error, const Reporter& reporter) {
  if (status == FUSEBOX_OK) return kTfLiteOk;
  reporter.Report("%s", error.text());
  return kTfLiteError;
}

std::vector<size_t> SortedByName(const std::deque<Port>& ports) {
  std::vector<size_t> order(ports.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) -> const std::string& { return ports[i].name; });
  return order;
}

std::vector<int64_t> DimsOf(const TfLiteTensor& tensor) {
  return {tensor.dims->data, tensor.dims->data + tensor.dims->size};
}

using Bind = fusebox_status (*)(fusebox_session*, int32_t, void*, size_t, char**);

// Gives a tensor of known size its memory, and the session too.
TfLiteStatus BindMemory(fusebox_session* session, Bind bind, size_t index, Port& port,
                        const Reporter& reporter) {
  TfLiteTensor& tensor = port.tensor.get();
  const bool custom = port.custom.data != nullptr;
  if (custom && port.custom.bytes < tensor.bytes) {
    reporter.Report("%s: its custom allocation has %zu bytes, but the tensor needs %zu", tensor.name,
                    port.custom.bytes, tensor.bytes);
    return kTfLiteError;
  }
  if (!custom) port.memory.Reserve(tensor.bytes);
  tensor.allocation_type = custom ? kTfLiteCustom : kTfLiteArenaRw;
  tensor.data.raw = custom ? static_cast<char*>(port.custom.data) : port.memory.data();
  if (tensor.bytes == 0) return kTfLiteOk;
  ErrorText error;
  const size_t bytes = tensor.bytes + (custom ? 0 : AlignedMemory::kReadable);
  return Checked(bind(session, static_cast<int32_t>(index), tensor.data.raw, bytes, error), error, reporter);
}

TfLiteStatus Fill(const fusebox_file* file, const char* key, std::deque<Port>& ports,
                  std::vector<int>& numbers, const int32_t* list, int32_t count, const char* const* names) {
  for (int32_t i = 0; i < count; ++i) {
    Port& port = ports.emplace_back();
    fusebox_tensor declared = FUSEBOX_TENSOR;
    if (fusebox_file_tensor(file, key, list[i], &declared, nullptr, nullptr) != FUSEBOX_OK)
      return kTfLiteError;
    Declare(port.tensor.get(), declared);
    const bool dynamic = port.tensor.get().type == kTfLiteString;
    port.tensor.get().allocation_type = dynamic ? kTfLiteDynamic : kTfLiteArenaRw;
    port.number = list[i];
    port.name = names != nullptr ? names[i] : declared.name;
    numbers.push_back(list[i]);
  }
  return kTfLiteOk;
}

}  // namespace

std::unique_ptr<Subgraph> Subgraph::Create(const fusebox_file* file, const char* key) {
  fusebox_function function = FUSEBOX_FUNCTION;
  if (fusebox_file_function(file, key, &function, nullptr) != FUSEBOX_OK) return nullptr;
  auto graph = std::make_unique<Subgraph>();
  graph->key_ = function.signature;
  if (Fill(file, key, graph->inputs, graph->input_numbers, function.inputs, function.input_count,
           function.input_names) != kTfLiteOk ||
      Fill(file, key, graph->outputs, graph->output_numbers, function.outputs, function.output_count,
           function.output_names) != kTfLiteOk)
    return nullptr;
  graph->inputs_by_name = SortedByName(graph->inputs);
  graph->outputs_by_name = SortedByName(graph->outputs);
  return graph;
}

TfLiteStatus Subgraph::Resize(size_t input, std::span<const int> dims, bool strict,
                              const Reporter& reporter) {
  TfLiteTensor& tensor = inputs[input].tensor.get();
  const TfLiteIntArray* signature = TfLiteTensorGetDimsSignature(&tensor);
  bool fits = !strict || signature->size == static_cast<int>(dims.size());
  for (size_t i = 0; fits && i < dims.size(); ++i)
    fits = dims[i] >= 0 && (!strict || signature->data[i] == -1 || signature->data[i] == dims[i]);
  if (!fits) {
    reporter.Report("input %zu (%s) cannot be resized: %s", input, tensor.name,
                    strict ? "the model fixes other dims" : "a dim is negative");
    return kTfLiteError;
  }
  if (TfLiteIntArrayEqualsArray(tensor.dims, static_cast<int>(dims.size()), dims.data())) return kTfLiteOk;
  SetDims(tensor, std::vector<int64_t>(dims.begin(), dims.end()));
  TfLiteTensorDataFree(&tensor);
  tensor.bytes = BytesOf(tensor.type, *tensor.dims);
  allocated_ = false;
  return kTfLiteOk;
}

TfLiteStatus Subgraph::Allocate(fusebox_session* session, const Reporter& reporter) {
  allocated_ = false;
  if (AllocateInputs(session, reporter) != kTfLiteOk) return kTfLiteError;
  ErrorText error;
  if (Checked(fusebox_session_prepare(session, error), error, reporter) != kTfLiteOk) return kTfLiteError;
  if (AllocateOutputs(session, reporter) != kTfLiteOk) return kTfLiteError;
  allocated_ = allocated_before_ = bound_ = true;
  return kTfLiteOk;
}

TfLiteStatus Subgraph::AllocateInputs(fusebox_session* session, const Reporter& reporter) {
  pushes_ = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    TfLiteTensor& tensor = inputs[i].tensor.get();
    if (tensor.type == kTfLiteString) {
      if (PushStrings(session, static_cast<int32_t>(i), tensor, reporter) != kTfLiteOk) return kTfLiteError;
      pushes_ = true;
      continue;
    }
    ErrorText error;
    const std::vector<int64_t> dims = DimsOf(tensor);
    const auto index = static_cast<int32_t>(i);
    if (Checked(fusebox_session_resize_input(session, index, dims.data(), tensor.dims->size, error), error,
                reporter) != kTfLiteOk)
      return kTfLiteError;
    if (BindMemory(session, fusebox_session_bind_input, i, inputs[i], reporter) != kTfLiteOk)
      return kTfLiteError;
  }
  return kTfLiteOk;
}

TfLiteStatus Subgraph::AllocateOutputs(fusebox_session* session, const Reporter& reporter) {
  pulls_ = false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    TfLiteTensor& tensor = outputs[i].tensor.get();
    const auto index = static_cast<int32_t>(i);
    fusebox_tensor planned = FUSEBOX_TENSOR;
    ErrorText error;
    if (Checked(fusebox_session_output(session, index, &planned, error), error, reporter) != kTfLiteOk)
      return kTfLiteError;
    const std::span<const int64_t> dims(planned.dims,
                                        planned.rank > 0 ? static_cast<size_t>(planned.rank) : 0);
    const bool known = planned.rank >= 0 && std::ranges::find(dims, -1) == dims.end();
    TfLiteTensorDataFree(&tensor);
    if (known || planned.rank > 0) SetDims(tensor, dims);
    if (!known || tensor.type == kTfLiteString) {
      tensor.allocation_type = kTfLiteDynamic;
      tensor.bytes = 0;
      pulls_ = true;
      continue;
    }
    tensor.bytes = BytesOf(tensor.type, *tensor.dims);
    if (BindMemory(session, fusebox_session_bind_output, i, outputs[i], reporter) != kTfLiteOk)
      return kTfLiteError;
  }
  return kTfLiteOk;
}

TfLiteStatus Subgraph::Push(fusebox_session* session, const Reporter& reporter) {
  if (!pushes_) return kTfLiteOk;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TfLiteTensor& tensor = inputs[i].tensor.get();
    if (tensor.type != kTfLiteString) continue;
    if (PushStrings(session, static_cast<int32_t>(i), tensor, reporter) != kTfLiteOk) return kTfLiteError;
  }
  return kTfLiteOk;
}

TfLiteStatus Subgraph::Pull(fusebox_session* session, const Reporter& reporter) {
  if (!pulls_) return kTfLiteOk;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].dynamic()) continue;
    TfLiteTensor& tensor = outputs[i].tensor.get();
    fusebox_tensor value = FUSEBOX_TENSOR;
    ErrorText error;
    if (Checked(fusebox_session_output(session, static_cast<int32_t>(i), &value, error), error, reporter) !=
        kTfLiteOk)
      return kTfLiteError;
    SetDims(tensor, {value.dims, value.rank > 0 ? static_cast<size_t>(value.rank) : 0});
    if (TfLiteTensorRealloc(value.bytes, &tensor) != kTfLiteOk) {
      reporter.Report("%s: no memory for %zu bytes", tensor.name, value.bytes);
      return kTfLiteError;
    }
    if (value.bytes > 0) std::memcpy(tensor.data.raw, value.data, value.bytes);
  }
  return kTfLiteOk;
}

}  // namespace fusebox::tflite
