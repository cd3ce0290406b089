// SPDX-License-Identifier: Apache-2.0
// The functions of TfLiteContext that delegates call.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "plugins/tflite_delegate/network.h"

namespace fusebox::tflite_delegate {
namespace {

Network& Of(const TfLiteContext* context) { return *static_cast<Network*>(context->impl_); }

constexpr const char* kNotOffered[] = {"SetExternalContext",    "AllocatePersistentBuffer",
                                       "AllocateBufferForEval", "RequestScratchBufferInArena",
                                       "GetScratchBuffer",      "GetEvalTensor",
                                       "GetModelMetadata",      "AcquireSubgraphContext",
                                       "ReleaseSubgraphContext"};

template <int kName, class R, class C, class... A>
R NotOffered(C* context, A...) {
  auto* writable = const_cast<TfLiteContext*>(context);
  writable->ReportError(writable, "the delegate called %s, which Fusebox does not offer", kNotOffered[kName]);
  if constexpr (std::is_same_v<R, TfLiteStatus>) return kTfLiteError;
  if constexpr (std::is_pointer_v<R>) return nullptr;
}

}  // namespace

struct Callbacks {
  static TfLiteStatus GetExecutionPlan(TfLiteContext* context, TfLiteIntArray** plan) {
    Network& network = Of(context);
    std::free(network.shown_plan_);
    network.shown_plan_ = NewIntArray(network.plan_);
    *plan = network.shown_plan_;
    return kTfLiteOk;
  }

  static TfLiteStatus GetNodeAndRegistration(TfLiteContext* context, int index, TfLiteNode** node,
                                             TfLiteRegistration** registration) {
    Network& network = Of(context);
    if (index < 0 || static_cast<size_t>(index) >= network.ops_.size()) {
      context->ReportError(context, "node %d does not exist", index);
      return kTfLiteError;
    }
    *node = &network.ops_[static_cast<size_t>(index)]->node;
    *registration = &network.ops_[static_cast<size_t>(index)]->registration;
    return kTfLiteOk;
  }

  static TfLiteStatus Replace(TfLiteContext* context, TfLiteRegistration kernel, const TfLiteIntArray* nodes,
                              TfLiteDelegate* delegate) {
    return Of(context).Replace(kernel, nodes, delegate);
  }

  static TfLiteStatus Preview(TfLiteContext* context, const TfLiteIntArray* nodes, TfLiteDelegateParams** out,
                              int* count) {
    return Of(context).Preview(nodes, out, count);
  }

  static TfLiteStatus ResizeTensor(TfLiteContext*, TfLiteTensor* tensor, TfLiteIntArray* dims) {
    SetDims(*tensor, dims);
    return kTfLiteOk;
  }

  static TfLiteStatus ResizeTensorExplicit(TfLiteContext*, TfLiteTensor* tensor, int rank, const int* dims) {
    SetDims(*tensor, NewIntArray({dims, static_cast<size_t>(rank)}));
    return kTfLiteOk;
  }

  static void ReportError(TfLiteContext* context, const char* format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    Of(context).error_ = line;
  }

  static TfLiteStatus AddTensors(TfLiteContext* context, int count, int* first) {
    Network& network = Of(context);
    if (first != nullptr) *first = static_cast<int>(network.tensors_.size());
    TfLiteTensor blank = {};
    blank.buffer_handle = kTfLiteNullBufferHandle;
    network.tensors_.resize(network.tensors_.size() + static_cast<size_t>(count), blank);
    network.context_.tensors = network.tensors_.data();
    network.context_.tensors_size = network.tensors_.size();
    return kTfLiteOk;
  }

  static TfLiteTensor* GetTensor(const TfLiteContext* context, int index) { return &context->tensors[index]; }
  static TfLiteExternalContext* GetExternalContext(TfLiteContext*, TfLiteExternalContextType) {
    return nullptr;
  }
};

void Network::FillContext() {
  context_.impl_ = this;
  context_.tensors = tensors_.data();
  context_.tensors_size = tensors_.size();
  context_.recommended_num_threads = 1;
  context_.GetExecutionPlan = Callbacks::GetExecutionPlan;
  context_.ResizeTensor = Callbacks::ResizeTensor;
  context_.ReportError = Callbacks::ReportError;
  context_.AddTensors = Callbacks::AddTensors;
  context_.GetNodeAndRegistration = Callbacks::GetNodeAndRegistration;
  context_.ReplaceNodeSubsetsWithDelegateKernels = Callbacks::Replace;
  context_.GetExternalContext = Callbacks::GetExternalContext;
  context_.SetExternalContext = NotOffered<0>;
  context_.AllocatePersistentBuffer = NotOffered<1>;
  context_.AllocateBufferForEval = NotOffered<2>;
  context_.RequestScratchBufferInArena = NotOffered<3>;
  context_.GetScratchBuffer = NotOffered<4>;
  context_.ResizeTensorExplicit = Callbacks::ResizeTensorExplicit;
  context_.PreviewDelegatePartitioning = Callbacks::Preview;
  context_.GetTensor = Callbacks::GetTensor;
  context_.GetEvalTensor = NotOffered<5>;
  context_.GetModelMetadata = NotOffered<6>;
  context_.AcquireSubgraphContext = NotOffered<7>;
  context_.ReleaseSubgraphContext = NotOffered<8>;
}

}  // namespace fusebox::tflite_delegate
