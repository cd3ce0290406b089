/* SPDX-License-Identifier: Apache-2.0 */
/* TfLiteOperator: an op of the application over opaque types. */
#ifndef FUSEBOX_TFLITE_C_OPERATOR_H_
#define FUSEBOX_TFLITE_C_OPERATOR_H_

#include <stddef.h>
#include <stdint.h>

#include "fusebox/tflite/builtin_ops.h"
#include "fusebox/tflite/c/c_api_types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct TfLiteAsyncKernel;

/* An op without functions. `custom_name`: copied; NULL: a builtin op. `user_data`: passed to functions of
 * ...WithData. Outlives the interpreters that use it. */
TFL_CAPI_EXPORT TfLiteOperator* TfLiteOperatorCreate(TfLiteBuiltinOperator builtin_code,
                                                     const char* custom_name, int version, void* user_data);
TFL_CAPI_EXPORT TfLiteOperator* TfLiteOperatorCreateWithData(TfLiteBuiltinOperator builtin_code,
                                                             const char* custom_name, int version,
                                                             void* user_data);
TFL_CAPI_EXPORT void TfLiteOperatorDelete(TfLiteOperator* registration);
TFL_CAPI_EXPORT TfLiteBuiltinOperator TfLiteOperatorGetBuiltInCode(const TfLiteOperator* registration);
TFL_CAPI_EXPORT const char* TfLiteOperatorGetCustomName(const TfLiteOperator* registration);
/* -1: NULL. */
TFL_CAPI_EXPORT int TfLiteOperatorGetVersion(const TfLiteOperator* registration);
TFL_CAPI_EXPORT void* TfLiteOperatorGetUserData(const TfLiteOperator* registration);

/* The functions, with the meanings of TfLiteRegistration's. */
TFL_CAPI_EXPORT void TfLiteOperatorSetInit(TfLiteOperator* registration,
                                           void* (*init)(TfLiteOpaqueContext* context, const char* buffer,
                                                         size_t length));
TFL_CAPI_EXPORT TfLiteStatus TfLiteOperatorSetInitWithData(TfLiteOperator* registration,
                                                           void* (*init)(void* user_data,
                                                                         TfLiteOpaqueContext* context,
                                                                         const char* buffer, size_t length));
TFL_CAPI_EXPORT void TfLiteOperatorSetFree(TfLiteOperator* registration,
                                           void (*free)(TfLiteOpaqueContext* context, void* data));
TFL_CAPI_EXPORT TfLiteStatus TfLiteOperatorSetFreeWithData(
    TfLiteOperator* registration, void (*free)(void* user_data, TfLiteOpaqueContext* context, void* data));
TFL_CAPI_EXPORT void TfLiteOperatorSetPrepare(TfLiteOperator* registration,
                                              TfLiteStatus (*prepare)(TfLiteOpaqueContext* context,
                                                                      TfLiteOpaqueNode* node));
TFL_CAPI_EXPORT TfLiteStatus TfLiteOperatorSetPrepareWithData(
    TfLiteOperator* registration,
    TfLiteStatus (*prepare)(void* user_data, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node));
TFL_CAPI_EXPORT void TfLiteOperatorSetInvoke(TfLiteOperator* registration,
                                             TfLiteStatus (*invoke)(TfLiteOpaqueContext* context,
                                                                    TfLiteOpaqueNode* node));
TFL_CAPI_EXPORT TfLiteStatus TfLiteOperatorSetInvokeWithData(
    TfLiteOperator* registration,
    TfLiteStatus (*invoke)(void* user_data, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node));
/* Accepted and not used: ops run in the thread of Invoke. */
TFL_CAPI_EXPORT void TfLiteOperatorSetAsyncKernel(
    TfLiteOperator* registration,
    struct TfLiteAsyncKernel* (*async_kernel)(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node));
TFL_CAPI_EXPORT TfLiteStatus TfLiteOperatorSetAsyncKernelWithData(
    TfLiteOperator* registration,
    struct TfLiteAsyncKernel* (*async_kernel)(void* user_data, TfLiteOpaqueContext* context,
                                              TfLiteOpaqueNode* node));
/* Accepted and not used: results never share memory with operands. */
TFL_CAPI_EXPORT void TfLiteOperatorSetInplaceOperator(TfLiteOperator* registration,
                                                      uint64_t inplace_operator);

/* Names of releases 2.11 to 2.15. */
TFL_CAPI_EXPORT TfLiteOperator* TfLiteRegistrationExternalCreate(TfLiteBuiltinOperator builtin_code,
                                                                 const char* custom_name, int version);
TFL_CAPI_EXPORT void TfLiteRegistrationExternalDelete(TfLiteOperator* registration);
TFL_CAPI_EXPORT TfLiteBuiltinOperator
TfLiteRegistrationExternalGetBuiltInCode(const TfLiteOperator* registration);
TFL_CAPI_EXPORT const char* TfLiteRegistrationExternalGetCustomName(const TfLiteOperator* registration);
TFL_CAPI_EXPORT int TfLiteRegistrationExternalGetVersion(const TfLiteOperator* registration);
TFL_CAPI_EXPORT void TfLiteRegistrationExternalSetInit(TfLiteOperator* registration,
                                                       void* (*init)(TfLiteOpaqueContext* context,
                                                                     const char* buffer, size_t length));
TFL_CAPI_EXPORT void TfLiteRegistrationExternalSetFree(TfLiteOperator* registration,
                                                       void (*free)(TfLiteOpaqueContext* context,
                                                                    void* data));
TFL_CAPI_EXPORT void TfLiteRegistrationExternalSetPrepare(
    TfLiteOperator* registration,
    TfLiteStatus (*prepare)(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node));
TFL_CAPI_EXPORT void TfLiteRegistrationExternalSetInvoke(TfLiteOperator* registration,
                                                         TfLiteStatus (*invoke)(TfLiteOpaqueContext* context,
                                                                                TfLiteOpaqueNode* node));

#ifdef __cplusplus
}
#endif

#endif
