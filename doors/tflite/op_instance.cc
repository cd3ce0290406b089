// SPDX-License-Identifier: Apache-2.0
#include "doors/tflite/op_instance.h"

#include <cstring>
#include <new>
#include <span>

namespace fusebox::tflite {
namespace {

bool IsAbsent(const fbx_tensor& tensor) { return (tensor.flags & FBX_TENSOR_ABSENT) != 0; }

std::span<const int64_t> DimsOf(const fbx_tensor& tensor) {
  return {tensor.dims, tensor.rank > 0 ? static_cast<size_t>(tensor.rank) : 0};
}

// Tells calls of prepare apart.
std::string ShapesOf(const fbx_node& node) {
  std::string key(1, '!');
  for (uint32_t i = 0; i < node.operand_count; ++i) {
    const fbx_tensor& tensor = *node.operands[i];
    const auto dims = DimsOf(tensor);
    key.append(reinterpret_cast<const char*>(&tensor.dtype), sizeof tensor.dtype);
    key.append(reinterpret_cast<const char*>(&tensor.rank), sizeof tensor.rank);
    key.append(reinterpret_cast<const char*>(dims.data()), dims.size_bytes());
  }
  return key;
}

TfLiteAllocationType AllocationOf(const fbx_tensor& tensor) {
  if ((tensor.flags & FBX_TENSOR_CONST) != 0) return kTfLiteMmapRo;
  if ((tensor.flags & FBX_TENSOR_VARIABLE) != 0) return kTfLiteArenaRwPersistent;
  return tensor.dtype == FBX_STRING ? kTfLiteDynamic : kTfLiteArenaRw;
}

TfLiteIntArray* ArrayOf(const std::vector<int>& numbers) {
  TfLiteIntArray* array = TfLiteIntArrayCreate(static_cast<int>(numbers.size()));
  if (array == nullptr) throw std::bad_alloc();
  std::copy(numbers.begin(), numbers.end(), array->data);
  return array;
}

void Describe(TfLiteTensor& tensor, const fbx_tensor& from) {
  tensor.type = TypeOf(from.dtype);
  tensor.buffer_handle = kTfLiteNullBufferHandle;
  tensor.allocation_type = AllocationOf(from);
  tensor.is_variable = (from.flags & FBX_TENSOR_VARIABLE) != 0;
  tensor.name = from.name.ptr;
  SetDims(tensor, DimsOf(from));
  if (from.quant != nullptr && from.quant->kind != FBX_QUANT_BLOCKWISE)
    SetQuantization(tensor, {from.quant->scales, from.quant->count}, from.quant->zero_points,
                    from.quant->axis);
}

// An operand as it is now. The view lends its memory until the callback returns, a constant for longer.
void ShowOperand(TfLiteTensor& tensor, const fbx_tensor& from, bool with_data) {
  if (tensor.dims->size != static_cast<int>(DimsOf(from).size()) || tensor.type != TypeOf(from.dtype) ||
      !std::ranges::equal(DimsOf(from), std::span(tensor.dims->data, static_cast<size_t>(tensor.dims->size))))
    SetDims(tensor, DimsOf(from));
  const bool constant = (from.flags & FBX_TENSOR_CONST) != 0;
  tensor.data.data = with_data || constant ? from.data : nullptr;
  tensor.bytes = from.data != nullptr ? from.bytes : BytesOf(tensor.type, *tensor.dims);
}

}  // namespace

OpInstance::OpInstance(const AppOp& op, OpEnvironment& environment, const fbx_node& node)
    : op_(op),
      context_(environment, size_t{node.operand_count} + node.result_count + node.intermediate_count),
      options_(static_cast<const char*>(node.raw_options.ptr), node.raw_options.len) {
  Number(node);
  node_.custom_initial_data = options_.data();
  node_.custom_initial_data_size = static_cast<int>(options_.size());
  node_.user_data = op_.Init(context_.abi(), op_.custom() ? options_.data() : nullptr, options_.size());
}

OpInstance::~OpInstance() {
  op_.Free(context_.abi(), node_.user_data);
  for (TfLiteIntArray* array : {node_.inputs, node_.outputs, node_.intermediates, node_.temporaries})
    TfLiteIntArrayFree(array);
  for (TfLiteIntArray* dims : declared_) TfLiteIntArrayFree(dims);
  for (const int index : operands_)  // lent by the host
    if (index >= 0) At(index).data.data = nullptr;
}

void OpInstance::Number(const fbx_node& node) {
  int next = 0;
  const auto add = [&](const fbx_tensor& tensor) {
    const int index = next++;
    if (IsAbsent(tensor)) return kTfLiteOptionalTensor;
    Describe(At(index), tensor);
    return index;
  };
  std::vector<int> intermediates;
  for (uint32_t i = 0; i < node.operand_count; ++i) {
    operands_.push_back(add(*node.operands[i]));
    if (operands_.back() >= 0) ShowOperand(At(operands_.back()), *node.operands[i], false);
  }
  for (uint32_t i = 0; i < node.result_count; ++i) {
    results_.push_back(add(*node.results[i]));
    declared_.push_back(results_.back() < 0 ? nullptr : TfLiteIntArrayCopy(At(results_.back()).dims));
    if (results_.back() >= 0)
      At(results_.back()).bytes = BytesOf(At(results_.back()).type, *declared_.back());
  }
  for (uint32_t i = 0; i < node.intermediate_count; ++i) intermediates.push_back(add(*node.intermediates[i]));
  node_.inputs = ArrayOf(operands_);
  node_.outputs = ArrayOf(results_);
  node_.intermediates = ArrayOf(intermediates);
  node_.temporaries = ArrayOf({});
}

TfLiteStatus OpInstance::Prepare(const fbx_node& node, bool quiet) {
  std::string shapes = ShapesOf(node);
  if (shapes == prepared_) return kTfLiteOk;
  prepared_.clear();
  context_.Restart();
  context_.set_quiet(quiet);
  for (uint32_t i = 0; i < node.operand_count; ++i)
    if (operands_[i] >= 0) ShowOperand(At(operands_[i]), *node.operands[i], false);
  for (uint32_t i = 0; i < node.result_count; ++i) {
    if (results_[i] < 0) continue;
    TfLiteTensor& tensor = At(results_[i]);
    TfLiteTensorDataFree(&tensor);
    tensor.allocation_type = AllocationOf(*node.results[i]);
    TfLiteIntArrayFree(tensor.dims);
    tensor.dims = TfLiteIntArrayCopy(declared_[i]);
    tensor.bytes = BytesOf(tensor.type, *tensor.dims);
  }
  const TfLiteStatus status = op_.Prepare(context_.abi(), &node_);
  context_.set_quiet(false);
  if (status != kTfLiteOk) return status;
  context_.Allocate();
  prepared_ = std::move(shapes);
  return kTfLiteOk;
}

TfLiteStatus OpInstance::Invoke(const fbx_host* host, const fbx_node& node, const fbx_resize* resize) {
  if (Prepare(node, false) != kTfLiteOk) return kTfLiteError;
  for (uint32_t i = 0; i < node.operand_count; ++i)
    if (operands_[i] >= 0) ShowOperand(At(operands_[i]), *node.operands[i], true);
  for (uint32_t i = 0; i < node.result_count; ++i) {
    if (results_[i] < 0) continue;
    TfLiteTensor& tensor = At(results_[i]);
    if (tensor.allocation_type != kTfLiteDynamic) tensor.data.data = node.results[i]->data;
  }
  const TfLiteStatus status = op_.Invoke(context_.abi(), &node_);
  context_.EndInvoke();
  if (status != kTfLiteOk) return status;
  return Deliver(host, node, resize);
}

// Results of unknown size have separate memory, which TensorFlow Lite's functions reallocate.
TfLiteStatus OpInstance::Deliver(const fbx_host* host, const fbx_node& node, const fbx_resize* resize) {
  for (uint32_t i = 0; i < node.result_count; ++i) {
    if (results_[i] < 0) continue;
    const TfLiteTensor& tensor = At(results_[i]);
    if (tensor.data.data == node.results[i]->data) continue;
    const std::span dims(tensor.dims->data, static_cast<size_t>(tensor.dims->size));
    const std::vector<int64_t> wide(dims.begin(), dims.end());
    const size_t packed = tensor.type == kTfLiteString ? tensor.bytes : 0;
    if (resize != nullptr && resize->resize(host, &node, i, wide.data(), tensor.dims->size, packed) != FBX_OK)
      return kTfLiteError;
    if (node.results[i]->bytes != tensor.bytes) {
      context_.Report("Result %u has %zu bytes, but its dims need %zu.", i, tensor.bytes,
                      node.results[i]->bytes);
      return kTfLiteError;
    }
    if (tensor.bytes > 0) std::memcpy(node.results[i]->data, tensor.data.raw, tensor.bytes);
  }
  return kTfLiteOk;
}

}  // namespace fusebox::tflite
