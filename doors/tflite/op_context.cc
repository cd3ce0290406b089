// SPDX-License-Identifier: Apache-2.0
#include "doors/tflite/op_context.h"

#include <cstring>
#include <new>

namespace fusebox::tflite {
namespace {

// An op may add this many tensors before those that it holds move.
constexpr size_t kHeadroom = 16;

template <class... Arguments>
TfLiteStatus ForDelegates(TfLiteContext* context, Arguments...) {
  OpContext::Of(context).Report("The function is only for delegates, not for ops.");
  return kTfLiteError;
}

void ReportFromOp(TfLiteContext* context, const char* format, ...) {
  va_list args;
  va_start(args, format);
  OpContext::Of(context).Report(format, args);
  va_end(args);
}

TfLiteStatus ResizeExplicit(TfLiteContext* context, TfLiteTensor* tensor, int rank, const int* dims) {
  TfLiteIntArray* array = TfLiteIntArrayCreate(rank);
  if (array == nullptr) return kTfLiteError;
  if (rank > 0) std::memcpy(array->data, dims, sizeof(int) * static_cast<size_t>(rank));
  return OpContext::Of(context).Resize(tensor, array);
}

TfLiteTensor* TensorAt(const TfLiteContext* context, int index) {
  auto& tensors = OpContext::Of(context).tensors();
  return index >= 0 && static_cast<size_t>(index) < tensors.size() ? &tensors[static_cast<size_t>(index)]
                                                                   : nullptr;
}

TfLiteExternalContext** ExternalAt(TfLiteContext* context, TfLiteExternalContextType type) {
  const bool known = type >= 0 && type < kTfLiteMaxExternalContexts;
  return known ? &OpContext::Of(context).environment().external[type] : nullptr;
}

void ShowFunctions(TfLiteContext& context) {
  context.GetExecutionPlan = ForDelegates<TfLiteIntArray**>;
  context.GetNodeAndRegistration = ForDelegates<int, TfLiteNode**, TfLiteRegistration**>;
  context.ReplaceNodeSubsetsWithDelegateKernels =
      ForDelegates<TfLiteRegistration, const TfLiteIntArray*, TfLiteDelegate*>;
  context.PreviewDelegatePartitioning = ForDelegates<const TfLiteIntArray*, TfLiteDelegateParams**, int*>;
  context.AcquireSubgraphContext = ForDelegates<int, TfLiteContext**>;
  context.ReleaseSubgraphContext = ForDelegates<int>;
  context.ReportError = ReportFromOp;
  context.ResizeTensorExplicit = ResizeExplicit;
  context.GetTensor = TensorAt;
  context.GetEvalTensor = [](const TfLiteContext*, int) -> TfLiteEvalTensor* { return nullptr; };
  context.ResizeTensor = [](TfLiteContext* c, TfLiteTensor* tensor, TfLiteIntArray* dims) {
    return OpContext::Of(c).Resize(tensor, dims);
  };
  context.AddTensors = [](TfLiteContext* c, int count, int* first) {
    return OpContext::Of(c).AddTensors(count, first);
  };
  context.GetModelMetadata = [](const TfLiteContext* c, const char* name, const char** data, size_t* bytes) {
    return OpContext::Of(c).Metadata(name, data, bytes);
  };
  context.GetExternalContext = [](TfLiteContext* c, TfLiteExternalContextType type) {
    TfLiteExternalContext** external = ExternalAt(c, type);
    return external != nullptr ? *external : nullptr;
  };
  context.SetExternalContext = [](TfLiteContext* c, TfLiteExternalContextType type,
                                  TfLiteExternalContext* value) {
    if (TfLiteExternalContext** external = ExternalAt(c, type)) *external = value;
  };
  context.AllocatePersistentBuffer = [](TfLiteContext* c, size_t bytes) {
    return OpContext::Of(c).Persistent(bytes);
  };
  context.AllocateBufferForEval = [](TfLiteContext* c, size_t bytes, void** memory) {
    return OpContext::Of(c).Buffer(bytes, memory);
  };
  context.RequestScratchBufferInArena = [](TfLiteContext* c, size_t bytes, int* index) {
    *index = OpContext::Of(c).RequestScratch(bytes);
    return *index < 0 ? kTfLiteError : kTfLiteOk;
  };
  context.GetScratchBuffer = [](TfLiteContext* c, int index) { return OpContext::Of(c).Scratch(index); };
}

// Null: no memory.
void* AddTo(std::deque<AlignedMemory>& blocks, size_t bytes) {
  try {
    blocks.emplace_back().Reserve(bytes);
    return blocks.back().data();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

OpContext::OpContext(OpEnvironment& environment, size_t tensors) : environment_(environment), own_(tensors) {
  tensors_.reserve(tensors + kHeadroom);
  tensors_.resize(tensors);
  ShowFunctions(context_);
  context_.impl_ = this;
  context_.recommended_num_threads = environment.threads;
  context_.tensors = tensors_.data();
  context_.tensors_size = tensors_.size();
}

OpContext::~OpContext() {
  for (TfLiteTensor& tensor : tensors_) TfLiteTensorFree(&tensor);
}

void OpContext::Restart() { scratch_.clear(); }

void OpContext::Allocate() {
  for (size_t i = own_; i < tensors_.size(); ++i) {
    TfLiteTensor& tensor = tensors_[i];
    if (tensor.allocation_type != kTfLiteArenaRw && tensor.allocation_type != kTfLiteArenaRwPersistent)
      continue;
    AlignedMemory& memory = added_[i - own_];
    memory.Reserve(tensor.bytes);
    tensor.data.raw = memory.data();
  }
}

void OpContext::Report(const char* format, va_list args) const {
  if (!quiet_) environment_.reporter.Report(format, args);
}

void OpContext::Report(const char* format, ...) const {
  va_list args;
  va_start(args, format);
  Report(format, args);
  va_end(args);
}

TfLiteStatus OpContext::Resize(TfLiteTensor* tensor, TfLiteIntArray* dims) {
  if (tensor->allocation_type == kTfLiteMmapRo || tensor->allocation_type == kTfLiteMemNone) {
    Report("A tensor of a fixed size cannot be resized.");
    TfLiteIntArrayFree(dims);
    return kTfLiteError;
  }
  if (tensor->dims != dims) TfLiteIntArrayFree(tensor->dims);
  tensor->dims = dims;
  if (tensor->type == kTfLiteString) return kTfLiteOk;
  const size_t bytes = BytesOf(tensor->type, *dims);
  if (tensor->allocation_type == kTfLiteDynamic || tensor->allocation_type == kTfLitePersistentRo)
    return TfLiteTensorRealloc(bytes, tensor);
  tensor->bytes = bytes;
  return kTfLiteOk;
}

TfLiteStatus OpContext::AddTensors(int count, int* first) {
  if (count < 0) return kTfLiteError;
  try {
    if (first != nullptr) *first = static_cast<int>(tensors_.size());
    tensors_.resize(tensors_.size() + static_cast<size_t>(count));
    added_.resize(tensors_.size() - own_);
  } catch (const std::bad_alloc&) {
    return kTfLiteError;
  }
  for (size_t i = tensors_.size() - static_cast<size_t>(count); i < tensors_.size(); ++i)
    tensors_[i].buffer_handle = kTfLiteNullBufferHandle;
  context_.tensors = tensors_.data();
  context_.tensors_size = tensors_.size();
  return kTfLiteOk;
}

TfLiteStatus OpContext::Metadata(const char* name, const char** data, size_t* bytes) const {
  const void* found = nullptr;
  if (fusebox_file_metadata(environment_.file.get(), name, &found, bytes, nullptr) != FUSEBOX_OK)
    return kTfLiteError;
  *data = static_cast<const char*>(found);
  return kTfLiteOk;
}

void* OpContext::Persistent(size_t bytes) { return AddTo(persistent_, bytes); }

TfLiteStatus OpContext::Buffer(size_t bytes, void** memory) {
  *memory = AddTo(buffers_, bytes);
  return *memory != nullptr ? kTfLiteOk : kTfLiteError;
}

int OpContext::RequestScratch(size_t bytes) {
  return AddTo(scratch_, bytes) != nullptr ? static_cast<int>(scratch_.size()) - 1 : -1;
}

void* OpContext::Scratch(int index) {
  return index >= 0 && static_cast<size_t>(index) < scratch_.size()
             ? scratch_[static_cast<size_t>(index)].data()
             : nullptr;
}

}  // namespace fusebox::tflite
