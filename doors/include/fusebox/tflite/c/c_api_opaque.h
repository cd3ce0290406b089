/* SPDX-License-Identifier: Apache-2.0 */
/* Accessors of opaque tensors, nodes and contexts, for ops and delegates of the application. */
#ifndef FUSEBOX_TFLITE_C_C_API_OPAQUE_H_
#define FUSEBOX_TFLITE_C_C_API_OPAQUE_H_

#include <stdarg.h>

#include "fusebox/tflite/c/c_api.h"
#include "fusebox/tflite/c/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Tensors. */

TFL_CAPI_EXPORT TfLiteType TfLiteOpaqueTensorType(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT int32_t TfLiteOpaqueTensorNumDims(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT int32_t TfLiteOpaqueTensorDim(const TfLiteOpaqueTensor* opaque_tensor, int32_t dim_index);
/* -1: no signature. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorGetNumDimsSignature(const TfLiteOpaqueTensor* opaque_tensor,
                                                                   int32_t* num_dims);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorGetDimSignature(const TfLiteOpaqueTensor* opaque_tensor,
                                                               int32_t dim_index, int32_t* dim_length);
TFL_CAPI_EXPORT int TfLiteOpaqueTensorIsVariable(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT size_t TfLiteOpaqueTensorByteSize(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT void* TfLiteOpaqueTensorData(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT TfLiteAllocationType
TfLiteOpaqueTensorGetAllocationType(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT TfLiteAllocationStrategy
TfLiteOpaqueTensorGetAllocationStrategy(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT TfLiteRunStability
TfLiteOpaqueTensorGetBufferAddressStability(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT TfLiteRunStability
TfLiteOpaqueTensorGetDataStability(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT TfLiteRunStep TfLiteOpaqueTensorGetDataKnownStep(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT TfLiteRunStep TfLiteOpaqueTensorGetShapeKnownStep(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT const char* TfLiteOpaqueTensorName(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT TfLiteQuantization TfLiteOpaqueTensorGetQuantization(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT TfLiteQuantizationParams
TfLiteOpaqueTensorGetQuantizationParams(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorCopyFromBuffer(TfLiteOpaqueTensor* opaque_tensor,
                                                              const void* input_data, size_t input_data_size);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorCopyToBuffer(const TfLiteOpaqueTensor* opaque_tensor,
                                                            void* output_data, size_t output_data_size);

/* ---- Strings. A string need not end in NUL; it lives until the tensor changes. */

/* -1: no strings. */
TFL_CAPI_EXPORT int TfLiteOpaqueTensorGetStringCount(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorGetString(const TfLiteOpaqueTensor* opaque_tensor, int index,
                                                         const char** str, int* len);
/* Replace the value; dims stay unless their number of elements differs. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorWriteStrings(TfLiteOpaqueTensor* tensor,
                                                            const char* const* str_array, int str_array_len,
                                                            const int* str_n_len);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorWriteString(TfLiteOpaqueTensor* tensor, const char* str,
                                                           int len);

/* ---- New tensors, for TfLiteOpaqueContextAddTensor. Setters return the builder. */

typedef struct TfLiteOpaqueTensorBuilder TfLiteOpaqueTensorBuilder;
TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderCreate(void);
TFL_CAPI_EXPORT void TfLiteOpaqueTensorBuilderDelete(TfLiteOpaqueTensorBuilder* builder);
TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetType(
    TfLiteOpaqueTensorBuilder* builder, TfLiteType type);
TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetData(
    TfLiteOpaqueTensorBuilder* builder, void* data);
TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetAllocationType(
    TfLiteOpaqueTensorBuilder* builder, TfLiteAllocationType allocation_type);
TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetQuantizationParams(
    TfLiteOpaqueTensorBuilder* builder, TfLiteQuantizationParams params);
TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetQuantization(
    TfLiteOpaqueTensorBuilder* builder, TfLiteQuantization quantization);
TFL_CAPI_EXPORT void TfLiteOpaqueTensorSetAllocationTypeToDynamic(TfLiteOpaqueTensor* tensor);

/* ---- Nodes. NULL or -1: a wrong index. */

TFL_CAPI_EXPORT const TfLiteOpaqueTensor* TfLiteOpaqueNodeGetInput(const TfLiteOpaqueContext* opaque_context,
                                                                   const TfLiteOpaqueNode* opaque_node,
                                                                   int index);
TFL_CAPI_EXPORT TfLiteOpaqueTensor* TfLiteOpaqueNodeGetOutput(TfLiteOpaqueContext* opaque_context,
                                                              const TfLiteOpaqueNode* opaque_node, int index);
TFL_CAPI_EXPORT int TfLiteOpaqueNodeNumberOfInputs(const TfLiteOpaqueNode* opaque_node);
TFL_CAPI_EXPORT int TfLiteOpaqueNodeNumberOfOutputs(const TfLiteOpaqueNode* opaque_node);
TFL_CAPI_EXPORT void* TfLiteOpaqueNodeGetUserData(const TfLiteOpaqueNode* opaque_node);
TFL_CAPI_EXPORT void* TfLiteOpaqueNodeGetBuiltinData(const TfLiteOpaqueNode* opaque_node);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueNodeGetCustomInitialData(const TfLiteOpaqueNode* opaque_node,
                                                                  const void** init_data, int* size);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueNodeInputs(const TfLiteOpaqueNode* opaque_node, const int** inputs,
                                                    int* num_inputs);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueNodeOutputs(const TfLiteOpaqueNode* opaque_node, const int** outputs,
                                                     int* num_outputs);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueNodeSetTemporaries(TfLiteOpaqueNode* opaque_node,
                                                            const int* temporaries, int num_temporaries);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueNodeTemporaries(const TfLiteOpaqueNode* opaque_node,
                                                         const int** temporaries, int* num_temporaries);
TFL_CAPI_EXPORT int TfLiteOpaqueNodeGetInputTensorIndex(const TfLiteOpaqueNode* opaque_node,
                                                        int index_of_input);
TFL_CAPI_EXPORT int TfLiteOpaqueNodeGetOutputTensorIndex(const TfLiteOpaqueNode* opaque_node,
                                                         int index_of_output);

/* ---- Contexts: as the members of TfLiteContext. An op sees its own tensors only. */

TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetExecutionPlan(TfLiteOpaqueContext* opaque_context,
                                                                 TfLiteIntArray** execution_plan);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetExternalContext(TfLiteOpaqueContext* opaque_context,
                                                                   void** external_context,
                                                                   TfLiteExternalContextType type);
TFL_CAPI_EXPORT TfLiteStatus
TfLiteOpaqueContextGetNodeAndRegistration(TfLiteOpaqueContext* opaque_context, int node_index,
                                          TfLiteOpaqueNode** node, TfLiteOperator** registration_external);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextReplaceNodeSubsetsWithDelegateKernels(
    TfLiteOpaqueContext* opaque_context, TfLiteOperator* registration_external,
    const TfLiteIntArray* nodes_to_replace, TfLiteOpaqueDelegate* opaque_delegate);
TFL_CAPI_EXPORT TfLiteOpaqueTensor* TfLiteOpaqueContextGetOpaqueTensor(
    const TfLiteOpaqueContext* opaque_context, int index);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetInputs(const TfLiteOpaqueContext* opaque_context,
                                                          const int** inputs, int* num_inputs);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetOutputs(const TfLiteOpaqueContext* opaque_context,
                                                           const int** outputs, int* num_outputs);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetVariables(const TfLiteOpaqueContext* opaque_context,
                                                             const int** variables, int* num_variables);
TFL_CAPI_EXPORT size_t TfLiteOpaqueContextGetNumNodes(const TfLiteOpaqueContext* opaque_context);
TFL_CAPI_EXPORT size_t TfLiteOpaqueContextGetNumTensors(const TfLiteOpaqueContext* opaque_context);
TFL_CAPI_EXPORT const char* TfLiteOpaqueContextGetName(const TfLiteOpaqueContext* opaque_context);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextResizeTensor(TfLiteOpaqueContext* context,
                                                             TfLiteOpaqueTensor* tensor,
                                                             TfLiteIntArray* new_size);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextAcquireSubgraphContext(
    TfLiteOpaqueContext* opaque_context, int subgraph_index, TfLiteOpaqueContext** acquired_opaque_context);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextReleaseSubgraphContext(TfLiteOpaqueContext* opaque_context,
                                                                       int subgraph_index);
TFL_CAPI_EXPORT TfLiteStatus
TfLiteOpaqueContextMarkSubgraphAsDelegationSkippable(TfLiteOpaqueContext* opaque_context, int subgraph_index);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetNodeInitDataMmapInfo(
    const TfLiteOpaqueContext* context, const TfLiteOpaqueNode* node, int* fd,
    int64_t* custom_initial_data_offset_in_file, int64_t* custom_initial_data_size);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextAddTensor(TfLiteOpaqueContext* context,
                                                          TfLiteOpaqueTensorBuilder* builder,
                                                          int* new_tensor_index);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetSizeOfType(TfLiteOpaqueContext* context, TfLiteType type,
                                                              size_t* bytes);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetMetadata(TfLiteOpaqueContext* context, const char* name,
                                                            const char** ptr, size_t* bytes);
TFL_CAPI_EXPORT void TfLiteOpaqueContextReportError(TfLiteOpaqueContext* opaque_context, const char* format,
                                                    ...);
TFL_CAPI_EXPORT void TfLiteOpaqueContextReportErrorVa(TfLiteOpaqueContext* opaque_context, const char* format,
                                                      va_list vlist);

#define TF_LITE_OPAQUE_KERNEL_LOG(context, ...) TfLiteOpaqueContextReportError((context), __VA_ARGS__)
#define TF_LITE_OPAQUE_MAYBE_KERNEL_LOG(context, ...)                       \
  do {                                                                      \
    if ((context) != NULL) TF_LITE_OPAQUE_KERNEL_LOG(context, __VA_ARGS__); \
  } while (0)
/* Returns kTfLiteError unless `holds`; the other arguments are the message. */
#define FUSEBOX_TFLITE_OPAQUE_ENSURE(context, holds, ...) \
  do {                                                    \
    if (!(holds)) {                                       \
      TF_LITE_OPAQUE_KERNEL_LOG(context, __VA_ARGS__);    \
      return kTfLiteError;                                \
    }                                                     \
  } while (0)
#define TF_LITE_OPAQUE_ENSURE_MSG(context, value, msg) \
  FUSEBOX_TFLITE_OPAQUE_ENSURE(context, value, __FILE__ " " msg)
#define TF_LITE_OPAQUE_ENSURE(context, a) \
  FUSEBOX_TFLITE_OPAQUE_ENSURE(context, a, "%s:%d: %s was not true.", __FILE__, __LINE__, #a)
#define TF_LITE_OPAQUE_ENSURE_EQ(context, a, b)                                                           \
  FUSEBOX_TFLITE_OPAQUE_ENSURE(context, (a) == (b), "%s:%d: %s != %s (%d != %d)", __FILE__, __LINE__, #a, \
                               #b, (int)(a), (int)(b))
#define TF_LITE_OPAQUE_ENSURE_TYPES_EQ(context, a, b)                                                     \
  FUSEBOX_TFLITE_OPAQUE_ENSURE(context, (a) == (b), "%s:%d: %s != %s (%s != %s)", __FILE__, __LINE__, #a, \
                               #b, TfLiteTypeGetName(a), TfLiteTypeGetName(b))

#ifdef __cplusplus
}
#endif

#endif
