/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C API of TensorFlow Lite, run by Fusebox (libfusebox-tflite_c).
 *
 * A model is read by TfLiteModelCreate*, an interpreter runs it: AllocateTensors after creation and after
 * each change of shapes, then Invoke. Tensors belong to the interpreter; the address of their data is valid
 * until shapes change, and is the same for each Invoke unless a shape depends on data.
 *
 * Errors: functions return NULL or a status and send the text to the error reporter, or to stderr.
 * Threads: models may be shared. An interpreter, and its signature runners, are used by one thread at a time,
 * except TfLiteInterpreterCancel.
 */
#ifndef FUSEBOX_TFLITE_C_C_API_H_
#define FUSEBOX_TFLITE_C_C_API_H_

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "fusebox/tflite/c/c_api_types.h"
#include "fusebox/tflite/c/operator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TfLiteModel TfLiteModel;
typedef struct TfLiteInterpreterOptions TfLiteInterpreterOptions;
typedef struct TfLiteInterpreter TfLiteInterpreter;
typedef struct TfLiteSignatureRunner TfLiteSignatureRunner;

/* ---- The library. Static texts. */

/* The release of TensorFlow Lite whose C API this is. */
TFL_CAPI_EXPORT const char* TfLiteVersion(void);
TFL_CAPI_EXPORT const char* TfLiteExtensionApisVersion(void);
TFL_CAPI_EXPORT int TfLiteSchemaVersion(void);

/* ---- Models. */

/* NULL: no valid .tflite file. The bytes must outlive the model and its interpreters. */
TFL_CAPI_EXPORT TfLiteModel* TfLiteModelCreate(const void* model_data, size_t model_size);
TFL_CAPI_EXPORT TfLiteModel* TfLiteModelCreateWithErrorReporter(
    const void* model_data, size_t model_size,
    void (*reporter)(void* user_data, const char* format, va_list args), void* user_data);
TFL_CAPI_EXPORT TfLiteModel* TfLiteModelCreateFromFile(const char* model_path);
TFL_CAPI_EXPORT TfLiteModel* TfLiteModelCreateFromFileWithErrorReporter(
    const char* model_path, void (*reporter)(void* user_data, const char* format, va_list args),
    void* user_data);
/* Interpreters of the model may still run. */
TFL_CAPI_EXPORT void TfLiteModelDelete(TfLiteModel* model);

/* ---- Options of interpreters. They may be deleted when the interpreter is created. */

TFL_CAPI_EXPORT TfLiteInterpreterOptions* TfLiteInterpreterOptionsCreate(void);
TFL_CAPI_EXPORT TfLiteInterpreterOptions* TfLiteInterpreterOptionsCopy(const TfLiteInterpreterOptions* from);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsDelete(TfLiteInterpreterOptions* options);
/* Less than 1: 1. */
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetNumThreads(TfLiteInterpreterOptions* options,
                                                           int32_t num_threads);
/* The delegate must outlive the interpreters. */
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsAddDelegate(TfLiteInterpreterOptions* options,
                                                         TfLiteOpaqueDelegate* delegate);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetErrorReporter(
    TfLiteInterpreterOptions* options, void (*reporter)(void* user_data, const char* format, va_list args),
    void* user_data);
/* The op must outlive the interpreters. */
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsAddOperator(TfLiteInterpreterOptions* options,
                                                         TfLiteOperator* registration);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsAddRegistrationExternal(
    TfLiteInterpreterOptions* options, TfLiteRegistrationExternal* registration);
/* Off by default. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterOptionsEnableCancellation(TfLiteInterpreterOptions* options,
                                                                        bool enable);

/* ---- Interpreters: the main subgraph of a model. */

/* `optional_options`: NULL: all defaults. NULL: the model cannot run. */
TFL_CAPI_EXPORT TfLiteInterpreter* TfLiteInterpreterCreate(const TfLiteModel* model,
                                                           const TfLiteInterpreterOptions* optional_options);
TFL_CAPI_EXPORT void TfLiteInterpreterDelete(TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT int32_t TfLiteInterpreterGetInputTensorCount(const TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT const int* TfLiteInterpreterInputTensorIndices(const TfLiteInterpreter* interpreter);
/* NULL: a wrong index. */
TFL_CAPI_EXPORT TfLiteTensor* TfLiteInterpreterGetInputTensor(const TfLiteInterpreter* interpreter,
                                                              int32_t input_index);
/* Takes effect in AllocateTensors. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterResizeInputTensor(TfLiteInterpreter* interpreter,
                                                                int32_t input_index, const int* input_dims,
                                                                int32_t input_dims_size);
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterAllocateTensors(TfLiteInterpreter* interpreter);
/* kTfLiteCancelled: by TfLiteInterpreterCancel. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterInvoke(TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT int32_t TfLiteInterpreterGetOutputTensorCount(const TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT const int* TfLiteInterpreterOutputTensorIndices(const TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT const TfLiteTensor* TfLiteInterpreterGetOutputTensor(const TfLiteInterpreter* interpreter,
                                                                     int32_t output_index);
/* A tensor by its number in the file. Only inputs, outputs and constants have data. */
TFL_CAPI_EXPORT TfLiteTensor* TfLiteInterpreterGetTensor(const TfLiteInterpreter* interpreter, int index);
/* Ends the Invoke in progress, if any. Error: not enabled. Any thread. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterCancel(const TfLiteInterpreter* interpreter);

/* ---- Signature runners: a signature of a model, with inputs and outputs by name. */

TFL_CAPI_EXPORT int32_t TfLiteInterpreterGetSignatureCount(const TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT const char* TfLiteInterpreterGetSignatureKey(const TfLiteInterpreter* interpreter,
                                                             int32_t signature_index);
/* NULL: no such signature. Deleted before the interpreter. */
TFL_CAPI_EXPORT TfLiteSignatureRunner* TfLiteInterpreterGetSignatureRunner(
    const TfLiteInterpreter* interpreter, const char* signature_key);
TFL_CAPI_EXPORT size_t TfLiteSignatureRunnerGetInputCount(const TfLiteSignatureRunner* signature_runner);
/* Names are sorted. NULL: a wrong index. */
TFL_CAPI_EXPORT const char* TfLiteSignatureRunnerGetInputName(const TfLiteSignatureRunner* signature_runner,
                                                              int32_t input_index);
/* Error: a dim that the model fixes. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteSignatureRunnerResizeInputTensor(TfLiteSignatureRunner* signature_runner,
                                                                    const char* input_name,
                                                                    const int* input_dims,
                                                                    int32_t input_dims_size);
TFL_CAPI_EXPORT TfLiteStatus TfLiteSignatureRunnerAllocateTensors(TfLiteSignatureRunner* signature_runner);
TFL_CAPI_EXPORT TfLiteTensor* TfLiteSignatureRunnerGetInputTensor(TfLiteSignatureRunner* signature_runner,
                                                                  const char* input_name);
TFL_CAPI_EXPORT TfLiteStatus TfLiteSignatureRunnerInvoke(TfLiteSignatureRunner* signature_runner);
TFL_CAPI_EXPORT size_t TfLiteSignatureRunnerGetOutputCount(const TfLiteSignatureRunner* signature_runner);
TFL_CAPI_EXPORT const char* TfLiteSignatureRunnerGetOutputName(const TfLiteSignatureRunner* signature_runner,
                                                               int32_t output_index);
TFL_CAPI_EXPORT const TfLiteTensor* TfLiteSignatureRunnerGetOutputTensor(
    const TfLiteSignatureRunner* signature_runner, const char* output_name);
TFL_CAPI_EXPORT TfLiteStatus TfLiteSignatureRunnerCancel(TfLiteSignatureRunner* signature_runner);
TFL_CAPI_EXPORT void TfLiteSignatureRunnerDelete(TfLiteSignatureRunner* signature_runner);

/* ---- Tensors. */

TFL_CAPI_EXPORT TfLiteType TfLiteTensorType(const TfLiteTensor* tensor);
/* -1: no dims. */
TFL_CAPI_EXPORT int32_t TfLiteTensorNumDims(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT int32_t TfLiteTensorDim(const TfLiteTensor* tensor, int32_t dim_index);
TFL_CAPI_EXPORT size_t TfLiteTensorByteSize(const TfLiteTensor* tensor);
/* NULL: not allocated yet. */
TFL_CAPI_EXPORT void* TfLiteTensorData(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT const char* TfLiteTensorName(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT TfLiteQuantizationParams TfLiteTensorQuantizationParams(const TfLiteTensor* tensor);
/* Error: another size than TfLiteTensorByteSize. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteTensorCopyFromBuffer(TfLiteTensor* tensor, const void* input_data,
                                                        size_t input_data_size);
TFL_CAPI_EXPORT TfLiteStatus TfLiteTensorCopyToBuffer(const TfLiteTensor* output_tensor, void* output_data,
                                                      size_t output_data_size);

#ifdef __cplusplus
}
#endif

#endif
