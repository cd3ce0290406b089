/* SPDX-License-Identifier: Apache-2.0 */
/* The experimental part of TensorFlow Lite's C API: ops of the application, delegates, state, memory. */
#ifndef FUSEBOX_TFLITE_C_C_API_EXPERIMENTAL_H_
#define FUSEBOX_TFLITE_C_C_API_EXPERIMENTAL_H_

#include "fusebox/tflite/c/c_api.h"
#include "fusebox/tflite/c/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- State. */

/* Sets variable tensors to zero, resource variables and hash tables to their initial values. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterResetVariableTensors(TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT int32_t TfLiteInterpreterGetVariableTensorCount(const TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT TfLiteTensor* TfLiteInterpreterGetVariableTensor(const TfLiteInterpreter* interpreter,
                                                                 int32_t variable_index);

/* ---- Ops of the application. They come before Fusebox's own. The registration is copied, `name` too. A
 * builtin op receives no builtin_data. */

TFL_CAPI_EXPORT void TfLiteInterpreterOptionsAddBuiltinOp(TfLiteInterpreterOptions* options,
                                                          TfLiteBuiltinOperator op,
                                                          const TfLiteRegistration* registration,
                                                          int32_t min_version, int32_t max_version);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsAddCustomOp(TfLiteInterpreterOptions* options, const char* name,
                                                         const TfLiteRegistration* registration,
                                                         int32_t min_version, int32_t max_version);
/* The functions are called for each op of a model when an interpreter is created; NULL: none. */
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetOpResolver(
    TfLiteInterpreterOptions* options,
    const TfLiteRegistration* (*find_builtin_op)(void* user_data, TfLiteBuiltinOperator op, int version),
    const TfLiteRegistration* (*find_custom_op)(void* user_data, const char* custom_op, int version),
    void* op_resolver_user_data);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetOpResolverExternal(
    TfLiteInterpreterOptions* options,
    const TfLiteOperator* (*find_builtin_op)(void* user_data, int op, int version),
    const TfLiteOperator* (*find_custom_op)(void* user_data, const char* custom_op, int version),
    void* op_resolver_user_data);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetOpResolverV1(
    TfLiteInterpreterOptions* options,
    const TfLiteRegistration_V1* (*find_builtin_op)(void* user_data, TfLiteBuiltinOperator op, int version),
    const TfLiteRegistration_V1* (*find_custom_op)(void* user_data, const char* op, int version),
    void* op_resolver_user_data);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetOpResolverV2(
    TfLiteInterpreterOptions* options,
    const TfLiteRegistration_V2* (*find_builtin_op)(void* user_data, TfLiteBuiltinOperator op, int version),
    const TfLiteRegistration_V2* (*find_custom_op)(void* user_data, const char* op, int version),
    void* op_resolver_user_data);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetOpResolverV3(
    TfLiteInterpreterOptions* options,
    const TfLiteRegistration_V3* (*find_builtin_op)(void* user_data, TfLiteBuiltinOperator op, int version),
    const TfLiteRegistration_V3* (*find_custom_op)(void* user_data, const char* op, int version),
    void* op_resolver_user_data);
/* As TfLiteInterpreterCreate, with the ops of the options only. */
TFL_CAPI_EXPORT TfLiteInterpreter* TfLiteInterpreterCreateWithSelectedOps(
    const TfLiteModel* model, const TfLiteInterpreterOptions* options);

/* ---- Delegates. */

/* Does nothing: there is no NNAPI here. */
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetUseNNAPI(TfLiteInterpreterOptions* options, bool enable);
/* Does nothing: what a delegate fails to run always runs on kernels. */
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetEnableDelegateFallback(TfLiteInterpreterOptions* options,
                                                                       bool enable);
/* Prepares the model again; state is lost. The delegate must outlive the interpreter. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterModifyGraphWithDelegate(const TfLiteInterpreter* interpreter,
                                                                      TfLiteDelegate* delegate);

/* ---- Tensors. */

/* Numbers of tensors in the file. -1: a wrong index. */
TFL_CAPI_EXPORT int32_t TfLiteInterpreterGetInputTensorIndex(const TfLiteInterpreter* interpreter,
                                                             int32_t input_index);
TFL_CAPI_EXPORT int32_t TfLiteInterpreterGetOutputTensorIndex(const TfLiteInterpreter* interpreter,
                                                              int32_t output_index);
/* Memory for an input or output, from the next AllocateTensors on; it must be large enough then. Its last
 * page must be readable to the end. */
TFL_CAPI_EXPORT TfLiteStatus
TfLiteInterpreterSetCustomAllocationForTensor(TfLiteInterpreter* interpreter, int tensor_index,
                                              const TfLiteCustomAllocation* allocation, int64_t flags);
/* Errors: tensors have no buffer handles. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterSetBufferHandle(TfLiteInterpreter* interpreter,
                                                              TfLiteTensor* tensor,
                                                              TfLiteBufferHandle buffer_handle,
                                                              TfLiteOpaqueDelegate* delegate);
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterGetBufferHandle(TfLiteInterpreter* interpreter,
                                                              int tensor_index,
                                                              TfLiteBufferHandle* buffer_handle,
                                                              TfLiteOpaqueDelegate** delegate);
/* Does nothing: data is always readable. */
TFL_CAPI_EXPORT void TfLiteSetAllowBufferHandleOutput(const TfLiteInterpreter* interpreter,
                                                      bool allow_buffer_handle_output);
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterEnsureTensorDataIsReadable(TfLiteInterpreter* interpreter,
                                                                         int tensor_index);

#ifdef __cplusplus
}
#endif

#endif
