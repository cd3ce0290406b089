// SPDX-License-Identifier: Apache-2.0
// An op of the application: a TfLiteRegistration or a TfLiteOperator.
#pragma once

#include <cstdint>
#include <string>

#include "fusebox/c_file.h"
#include "fusebox/tflite/c/c_api.h"
#include "fusebox/tflite/c/common.h"

// The functions that an application has set. Those with data win.
struct TfLiteOperator {
  TfLiteBuiltinOperator builtin_code = kTfLiteBuiltinCustom;
  std::string custom_name;
  int version = 1;
  void* user_data = nullptr;
  void* (*init)(TfLiteOpaqueContext*, const char*, size_t) = nullptr;
  void* (*init_with_data)(void*, TfLiteOpaqueContext*, const char*, size_t) = nullptr;
  void (*free)(TfLiteOpaqueContext*, void*) = nullptr;
  void (*free_with_data)(void*, TfLiteOpaqueContext*, void*) = nullptr;
  TfLiteStatus (*prepare)(TfLiteOpaqueContext*, TfLiteOpaqueNode*) = nullptr;
  TfLiteStatus (*prepare_with_data)(void*, TfLiteOpaqueContext*, TfLiteOpaqueNode*) = nullptr;
  TfLiteStatus (*invoke)(TfLiteOpaqueContext*, TfLiteOpaqueNode*) = nullptr;
  TfLiteStatus (*invoke_with_data)(void*, TfLiteOpaqueContext*, TfLiteOpaqueNode*) = nullptr;
};

namespace fusebox::tflite {

class AppOp {
 public:
  // An op of a file. The members of V1 are copied: an application that was built for an older release has no
  // others.
  AppOp(const fusebox_opcode& code, const TfLiteRegistration_V1& registration);
  // The operator outlives the op.
  AppOp(const fusebox_opcode& code, const TfLiteOperator* op);

  bool custom() const { return builtin_code_ == kTfLiteBuiltinCustom; }
  const std::string& name() const { return name_; }
  int version() const { return version_; }

  void* Init(TfLiteContext* context, const char* buffer, size_t length) const;
  void Free(TfLiteContext* context, void* user_data) const;
  TfLiteStatus Prepare(TfLiteContext* context, TfLiteNode* node) const;
  TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node) const;

 private:
  int32_t builtin_code_;
  std::string name_;
  int version_;
  TfLiteRegistration_V1 registration_{};
  const TfLiteOperator* op_ = nullptr;
};

}  // namespace fusebox::tflite
