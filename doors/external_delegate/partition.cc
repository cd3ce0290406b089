// SPDX-License-Identifier: Apache-2.0
#include "doors/external_delegate/partition.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "doors/builtin_data/int_arrays.h"

namespace fusebox::external_delegate {

using builtin_data::NewIntArray;
namespace {

void Require(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

template <class T>
T Require(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}

std::vector<int64_t> DimsOf(const TfLiteTensor& tensor) {
  return {tensor.dims->data, tensor.dims->data + tensor.dims->size};
}

void Resize(TfLiteContext* context, int tensor, std::span<const int64_t> dims) {
  if (context->ResizeTensor(context, &context->tensors[tensor], NewIntArray(dims)) != kTfLiteOk)
    throw std::runtime_error("the runtime cannot resize an output");
}

void MakeDynamic(TfLiteTensor& tensor) {
  if (tensor.allocation_type == kTfLiteDynamic) return;
  tensor.allocation_type = kTfLiteDynamic;
  tensor.data.raw = nullptr;
}

std::span<std::byte> BytesOf(const TfLiteTensor& tensor) {
  return {reinterpret_cast<std::byte*>(tensor.data.raw), tensor.bytes};
}

}  // namespace

Partition::Partition(TfLiteContext* context, Part part, const Settings& settings)
    : part_(std::move(part)), settings_(settings) {
  Open(context);
}

void Partition::Open(TfLiteContext* context) {
  session_.reset();
  model_ = WriteModel(context, part_);
  const std::span bytes(model_.file.get(), model_.size);
  const Model model = Require(Model::FromMemory(bytes, model_.file, settings_.model_options()));
  model_.file.reset();  // the model has it
  const int threads =
      settings_.threads > 0 ? settings_.threads : std::max(context->recommended_num_threads, 1);
  session_ = Require(Session::Create(model, {.threads = threads}));
  dynamic_.assign(model_.outputs.size(), 0);
  bound_inputs_.assign(model_.inputs.size(), nullptr);
  bound_outputs_.assign(model_.outputs.size(), nullptr);
}

void Partition::Plan(TfLiteContext* context) {
  const auto differs = [&](size_t i) {
    return Require(session_->Input(static_cast<int>(i))).rank() !=
           context->tensors[model_.inputs[i]].dims->size;
  };
  for (size_t i = 0; i < model_.inputs.size(); ++i) {
    if (!differs(i)) continue;
    Open(context);
    break;
  }
  for (size_t i = 0; i < model_.inputs.size(); ++i) {
    Require(session_->Resize(static_cast<int>(i), DimsOf(context->tensors[model_.inputs[i]])));
  }
  // Memory of the runtime may have moved.
  std::ranges::fill(bound_inputs_, nullptr);
  std::ranges::fill(bound_outputs_, nullptr);
  Require(session_->Prepare());
}

void Partition::Prepare(TfLiteContext* context) {
  Plan(context);
  for (size_t i = 0; i + model_.states < model_.outputs.size(); ++i) {
    const Value value = Require(session_->Output(static_cast<int>(i)));
    TfLiteTensor& tensor = context->tensors[model_.outputs[i]];
    dynamic_[i] = value.rank() < 0 || std::ranges::any_of(value.dims(), [](int64_t dim) { return dim < 0; });
    if (dynamic_[i]) {
      MakeDynamic(tensor);
    } else {
      Resize(context, model_.outputs[i], value.dims());
    }
  }
}

void Partition::Bind(TfLiteContext* context) {
  for (size_t i = 0; i < model_.inputs.size(); ++i) {
    const TfLiteTensor& tensor = context->tensors[model_.inputs[i]];
    if (tensor.bytes == 0 || bound_inputs_[i] == tensor.data.raw) continue;
    Require(session_->BindInput(static_cast<int>(i), BytesOf(tensor)));
    bound_inputs_[i] = tensor.data.raw;
  }
  for (size_t i = 0; i < model_.outputs.size(); ++i) {
    const TfLiteTensor& tensor = context->tensors[model_.outputs[i]];
    if (!IsBindable(i) || tensor.bytes == 0 || bound_outputs_[i] == tensor.data.raw) continue;
    Require(session_->BindOutput(static_cast<int>(i), BytesOf(tensor)));
    bound_outputs_[i] = tensor.data.raw;
  }
}

void Partition::CopyOut(TfLiteContext* context, size_t output) {
  const Value value = Require(session_->Output(static_cast<int>(output)));
  const TfLiteTensor* tensor = &context->tensors[model_.outputs[output]];
  if (dynamic_[output]) Resize(context, model_.outputs[output], value.dims());
  if (tensor->bytes != value.bytes().size())
    throw std::runtime_error("an output has " + std::to_string(value.bytes().size()) +
                             " bytes, and its tensor " + std::to_string(tensor->bytes));
  if (tensor->bytes > 0) std::memcpy(tensor->data.raw, value.bytes().data(), tensor->bytes);
}

void Partition::Invoke(TfLiteContext* context) {
  Bind(context);
  Require(session_->Run());
  for (size_t i = 0; i < model_.outputs.size(); ++i) {
    if (!IsBindable(i)) CopyOut(context, i);
  }
}

}  // namespace fusebox::external_delegate
