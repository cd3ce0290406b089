// SPDX-License-Identifier: Apache-2.0
// Opaque nodes, contexts and delegates: the accessors of the real ones.
#include <cstdlib>
#include <cstring>
#include <new>

#include "doors/tflite/op_context.h"
#include "doors/tflite/tensor_builder.h"

using fusebox::tflite::BitsOf;
using fusebox::tflite::OpContext;

namespace {

const TfLiteNode* RealNode(const TfLiteOpaqueNode* node) { return reinterpret_cast<const TfLiteNode*>(node); }
TfLiteContext* RealContext(const TfLiteOpaqueContext* context) {
  return reinterpret_cast<TfLiteContext*>(const_cast<TfLiteOpaqueContext*>(context));
}

int NumberIn(const TfLiteIntArray* list, int index) {
  return index >= 0 && index < list->size ? list->data[index] : -1;
}

TfLiteOpaqueTensor* TensorAt(const TfLiteOpaqueContext* context, int number) {
  TfLiteContext* real = RealContext(context);
  if (number < 0 || static_cast<size_t>(number) >= real->tensors_size) return nullptr;
  return reinterpret_cast<TfLiteOpaqueTensor*>(&real->tensors[number]);
}

TfLiteStatus List(const TfLiteIntArray* from, const int** list, int* size) {
  *list = from->data;
  *size = from->size;
  return kTfLiteOk;
}

TfLiteStatus OnlyForDelegates(const TfLiteOpaqueContext* context) {
  RealContext(context)->ReportError(RealContext(context), "The function is only for delegates, not for ops.");
  return kTfLiteError;
}

}  // namespace

const TfLiteOpaqueTensor* TfLiteOpaqueNodeGetInput(const TfLiteOpaqueContext* context,
                                                   const TfLiteOpaqueNode* node, int index) {
  return TensorAt(context, NumberIn(RealNode(node)->inputs, index));
}
TfLiteOpaqueTensor* TfLiteOpaqueNodeGetOutput(TfLiteOpaqueContext* context, const TfLiteOpaqueNode* node,
                                              int index) {
  return TensorAt(context, NumberIn(RealNode(node)->outputs, index));
}
int TfLiteOpaqueNodeNumberOfInputs(const TfLiteOpaqueNode* node) { return RealNode(node)->inputs->size; }
int TfLiteOpaqueNodeNumberOfOutputs(const TfLiteOpaqueNode* node) { return RealNode(node)->outputs->size; }
void* TfLiteOpaqueNodeGetUserData(const TfLiteOpaqueNode* node) { return RealNode(node)->user_data; }
void* TfLiteOpaqueNodeGetBuiltinData(const TfLiteOpaqueNode* node) { return RealNode(node)->builtin_data; }

TfLiteStatus TfLiteOpaqueNodeGetCustomInitialData(const TfLiteOpaqueNode* node, const void** init_data,
                                                  int* size) {
  *init_data = RealNode(node)->custom_initial_data;
  *size = RealNode(node)->custom_initial_data_size;
  return kTfLiteOk;
}
TfLiteStatus TfLiteOpaqueNodeInputs(const TfLiteOpaqueNode* node, const int** inputs, int* num_inputs) {
  return List(RealNode(node)->inputs, inputs, num_inputs);
}
TfLiteStatus TfLiteOpaqueNodeOutputs(const TfLiteOpaqueNode* node, const int** outputs, int* num_outputs) {
  return List(RealNode(node)->outputs, outputs, num_outputs);
}
TfLiteStatus TfLiteOpaqueNodeTemporaries(const TfLiteOpaqueNode* node, const int** temporaries,
                                         int* num_temporaries) {
  return List(RealNode(node)->temporaries, temporaries, num_temporaries);
}

TfLiteStatus TfLiteOpaqueNodeSetTemporaries(TfLiteOpaqueNode* node, const int* temporaries,
                                            int num_temporaries) {
  if (num_temporaries < 0) return kTfLiteError;
  TfLiteIntArray* list = TfLiteIntArrayCreate(num_temporaries);
  if (list == nullptr) return kTfLiteError;
  for (int i = 0; i < num_temporaries; ++i) list->data[i] = temporaries[i];
  auto* real = reinterpret_cast<TfLiteNode*>(node);
  TfLiteIntArrayFree(real->temporaries);
  real->temporaries = list;
  return kTfLiteOk;
}

int TfLiteOpaqueNodeGetInputTensorIndex(const TfLiteOpaqueNode* node, int index_of_input) {
  return NumberIn(RealNode(node)->inputs, index_of_input);
}
int TfLiteOpaqueNodeGetOutputTensorIndex(const TfLiteOpaqueNode* node, int index_of_output) {
  return NumberIn(RealNode(node)->outputs, index_of_output);
}

TfLiteStatus TfLiteOpaqueContextGetExternalContext(TfLiteOpaqueContext* context, void** external_context,
                                                   TfLiteExternalContextType type) {
  *external_context = RealContext(context)->GetExternalContext(RealContext(context), type);
  return kTfLiteOk;
}
TfLiteOpaqueTensor* TfLiteOpaqueContextGetOpaqueTensor(const TfLiteOpaqueContext* context, int index) {
  return TensorAt(context, index);
}
size_t TfLiteOpaqueContextGetNumTensors(const TfLiteOpaqueContext* context) {
  return RealContext(context)->tensors_size;
}
TfLiteStatus TfLiteOpaqueContextResizeTensor(TfLiteOpaqueContext* context, TfLiteOpaqueTensor* tensor,
                                             TfLiteIntArray* new_size) {
  return RealContext(context)->ResizeTensor(RealContext(context), reinterpret_cast<TfLiteTensor*>(tensor),
                                            new_size);
}

TfLiteStatus TfLiteOpaqueContextAddTensor(TfLiteOpaqueContext* context, TfLiteOpaqueTensorBuilder* builder,
                                          int* new_tensor_index) {
  const TfLiteAllocationType type = builder->allocation_type;
  TfLiteContext* real = RealContext(context);
  if (type != kTfLiteDynamic && type != kTfLiteArenaRw && type != kTfLiteArenaRwPersistent) {
    real->ReportError(real, "A new tensor is kTfLiteDynamic, kTfLiteArenaRw or kTfLiteArenaRwPersistent.");
    return kTfLiteError;
  }
  if (type != kTfLiteDynamic && builder->data != nullptr) {
    real->ReportError(real, "Only a new kTfLiteDynamic tensor may have data.");
    return kTfLiteError;
  }
  int number = -1;
  if (real->AddTensors(real, 1, &number) != kTfLiteOk) return kTfLiteError;
  TfLiteTensor& tensor = real->tensors[number];
  tensor.type = builder->type;
  tensor.data.data = builder->data;
  tensor.allocation_type = type;
  tensor.params = builder->params;
  tensor.quantization = builder->quantization;
  if (new_tensor_index != nullptr) *new_tensor_index = number;
  return kTfLiteOk;
}

TfLiteStatus TfLiteOpaqueContextGetSizeOfType(TfLiteOpaqueContext*, TfLiteType type, size_t* bytes) {
  if (BitsOf(type) == 0) return kTfLiteError;
  *bytes = (BitsOf(type) + 7) / 8;
  return kTfLiteOk;
}

TfLiteStatus TfLiteOpaqueContextGetMetadata(TfLiteOpaqueContext* context, const char* name, const char** ptr,
                                            size_t* bytes) {
  return RealContext(context)->GetModelMetadata(RealContext(context), name, ptr, bytes);
}

void TfLiteOpaqueContextReportErrorVa(TfLiteOpaqueContext* context, const char* format, va_list vlist) {
  OpContext::Of(RealContext(context)).Report(format, vlist);
}

void TfLiteOpaqueContextReportError(TfLiteOpaqueContext* context, const char* format, ...) {
  va_list args;
  va_start(args, format);
  TfLiteOpaqueContextReportErrorVa(context, format, args);
  va_end(args);
}

TfLiteStatus TfLiteOpaqueContextGetExecutionPlan(TfLiteOpaqueContext* context, TfLiteIntArray**) {
  return OnlyForDelegates(context);
}
TfLiteStatus TfLiteOpaqueContextGetNodeAndRegistration(TfLiteOpaqueContext* context, int, TfLiteOpaqueNode**,
                                                       TfLiteOperator**) {
  return OnlyForDelegates(context);
}
TfLiteStatus TfLiteOpaqueContextReplaceNodeSubsetsWithDelegateKernels(TfLiteOpaqueContext* context,
                                                                      TfLiteOperator*, const TfLiteIntArray*,
                                                                      TfLiteOpaqueDelegate*) {
  return OnlyForDelegates(context);
}
TfLiteStatus TfLiteOpaqueContextGetInputs(const TfLiteOpaqueContext* context, const int**, int*) {
  return OnlyForDelegates(context);
}
TfLiteStatus TfLiteOpaqueContextGetOutputs(const TfLiteOpaqueContext* context, const int**, int*) {
  return OnlyForDelegates(context);
}
TfLiteStatus TfLiteOpaqueContextGetVariables(const TfLiteOpaqueContext* context, const int**, int*) {
  return OnlyForDelegates(context);
}
size_t TfLiteOpaqueContextGetNumNodes(const TfLiteOpaqueContext*) { return 1; }
const char* TfLiteOpaqueContextGetName(const TfLiteOpaqueContext*) { return ""; }
TfLiteStatus TfLiteOpaqueContextAcquireSubgraphContext(TfLiteOpaqueContext* context, int,
                                                       TfLiteOpaqueContext**) {
  return OnlyForDelegates(context);
}
TfLiteStatus TfLiteOpaqueContextReleaseSubgraphContext(TfLiteOpaqueContext* context, int) {
  return OnlyForDelegates(context);
}
TfLiteStatus TfLiteOpaqueContextMarkSubgraphAsDelegationSkippable(TfLiteOpaqueContext* context, int) {
  return OnlyForDelegates(context);
}
TfLiteStatus TfLiteOpaqueContextGetNodeInitDataMmapInfo(const TfLiteOpaqueContext*, const TfLiteOpaqueNode*,
                                                        int*, int64_t*, int64_t*) {
  return kTfLiteError;
}

TfLiteOpaqueDelegate* TfLiteOpaqueDelegateCreate(const TfLiteOpaqueDelegateBuilder* builder) {
  if (builder == nullptr) return nullptr;
  auto* copy = new (std::nothrow) TfLiteOpaqueDelegateBuilder(*builder);
  auto* delegate = new (std::nothrow) TfLiteDelegate();
  if (copy == nullptr || delegate == nullptr) {
    delete copy;
    delete delegate;
    return nullptr;
  }
  delegate->data_ = builder->data;
  delegate->flags = builder->flags;
  delegate->opaque_delegate_builder = copy;
  return delegate;
}

void TfLiteOpaqueDelegateDelete(TfLiteOpaqueDelegate* delegate) {
  if (delegate == nullptr) return;
  delete delegate->opaque_delegate_builder;
  delete delegate;
}

void* TfLiteOpaqueDelegateGetData(const TfLiteOpaqueDelegate* delegate) {
  return delegate != nullptr ? delegate->data_ : nullptr;
}
