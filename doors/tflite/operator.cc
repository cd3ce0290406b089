// SPDX-License-Identifier: Apache-2.0
// TfLiteOperator of TensorFlow Lite's C API.
#include <new>

#include "doors/tflite/app_op.h"

TfLiteOperator* TfLiteOperatorCreate(TfLiteBuiltinOperator builtin_code, const char* custom_name, int version,
                                     void* user_data) {
  try {
    return new TfLiteOperator{.builtin_code = builtin_code,
                              .custom_name = custom_name != nullptr ? custom_name : "",
                              .version = version,
                              .user_data = user_data};
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

TfLiteOperator* TfLiteOperatorCreateWithData(TfLiteBuiltinOperator builtin_code, const char* custom_name,
                                             int version, void* user_data) {
  return TfLiteOperatorCreate(builtin_code, custom_name, version, user_data);
}

void TfLiteOperatorDelete(TfLiteOperator* registration) { delete registration; }

TfLiteBuiltinOperator TfLiteOperatorGetBuiltInCode(const TfLiteOperator* registration) {
  return registration->builtin_code;
}

const char* TfLiteOperatorGetCustomName(const TfLiteOperator* registration) {
  return registration->custom_name.empty() ? nullptr : registration->custom_name.c_str();
}

int TfLiteOperatorGetVersion(const TfLiteOperator* registration) {
  return registration == nullptr ? -1 : registration->version;
}

void* TfLiteOperatorGetUserData(const TfLiteOperator* registration) {
  return registration == nullptr ? nullptr : registration->user_data;
}

void TfLiteOperatorSetInit(TfLiteOperator* registration,
                           void* (*init)(TfLiteOpaqueContext*, const char*, size_t)) {
  registration->init = init;
}

TfLiteStatus TfLiteOperatorSetInitWithData(TfLiteOperator* registration,
                                           void* (*init)(void*, TfLiteOpaqueContext*, const char*, size_t)) {
  registration->init_with_data = init;
  return kTfLiteOk;
}

void TfLiteOperatorSetFree(TfLiteOperator* registration, void (*free)(TfLiteOpaqueContext*, void*)) {
  registration->free = free;
}

TfLiteStatus TfLiteOperatorSetFreeWithData(TfLiteOperator* registration,
                                           void (*free)(void*, TfLiteOpaqueContext*, void*)) {
  registration->free_with_data = free;
  return kTfLiteOk;
}

void TfLiteOperatorSetPrepare(TfLiteOperator* registration,
                              TfLiteStatus (*prepare)(TfLiteOpaqueContext*, TfLiteOpaqueNode*)) {
  registration->prepare = prepare;
}

TfLiteStatus TfLiteOperatorSetPrepareWithData(TfLiteOperator* registration,
                                              TfLiteStatus (*prepare)(void*, TfLiteOpaqueContext*,
                                                                      TfLiteOpaqueNode*)) {
  registration->prepare_with_data = prepare;
  return kTfLiteOk;
}

void TfLiteOperatorSetInvoke(TfLiteOperator* registration,
                             TfLiteStatus (*invoke)(TfLiteOpaqueContext*, TfLiteOpaqueNode*)) {
  registration->invoke = invoke;
}

TfLiteStatus TfLiteOperatorSetInvokeWithData(TfLiteOperator* registration,
                                             TfLiteStatus (*invoke)(void*, TfLiteOpaqueContext*,
                                                                    TfLiteOpaqueNode*)) {
  registration->invoke_with_data = invoke;
  return kTfLiteOk;
}

void TfLiteOperatorSetAsyncKernel(TfLiteOperator*,
                                  TfLiteAsyncKernel* (*)(TfLiteOpaqueContext*, TfLiteOpaqueNode*)) {}

TfLiteStatus TfLiteOperatorSetAsyncKernelWithData(TfLiteOperator*,
                                                  TfLiteAsyncKernel* (*)(void*, TfLiteOpaqueContext*,
                                                                         TfLiteOpaqueNode*)) {
  return kTfLiteOk;
}

void TfLiteOperatorSetInplaceOperator(TfLiteOperator*, uint64_t) {}

TfLiteOperator* TfLiteRegistrationExternalCreate(TfLiteBuiltinOperator builtin_code, const char* custom_name,
                                                 int version) {
  return TfLiteOperatorCreate(builtin_code, custom_name, version, nullptr);
}
void TfLiteRegistrationExternalDelete(TfLiteOperator* registration) { TfLiteOperatorDelete(registration); }
TfLiteBuiltinOperator TfLiteRegistrationExternalGetBuiltInCode(const TfLiteOperator* registration) {
  return TfLiteOperatorGetBuiltInCode(registration);
}
const char* TfLiteRegistrationExternalGetCustomName(const TfLiteOperator* registration) {
  return TfLiteOperatorGetCustomName(registration);
}
int TfLiteRegistrationExternalGetVersion(const TfLiteOperator* registration) {
  return TfLiteOperatorGetVersion(registration);
}
void TfLiteRegistrationExternalSetInit(TfLiteOperator* registration,
                                       void* (*init)(TfLiteOpaqueContext*, const char*, size_t)) {
  TfLiteOperatorSetInit(registration, init);
}
void TfLiteRegistrationExternalSetFree(TfLiteOperator* registration,
                                       void (*free)(TfLiteOpaqueContext*, void*)) {
  TfLiteOperatorSetFree(registration, free);
}
void TfLiteRegistrationExternalSetPrepare(TfLiteOperator* registration,
                                          TfLiteStatus (*prepare)(TfLiteOpaqueContext*, TfLiteOpaqueNode*)) {
  TfLiteOperatorSetPrepare(registration, prepare);
}
void TfLiteRegistrationExternalSetInvoke(TfLiteOperator* registration,
                                         TfLiteStatus (*invoke)(TfLiteOpaqueContext*, TfLiteOpaqueNode*)) {
  TfLiteOperatorSetInvoke(registration, invoke);
}
