// SPDX-License-Identifier: Apache-2.0
#include "doors/tflite/app_op.h"

namespace fusebox::tflite {
namespace {

// The opaque types are the real ones.
TfLiteOpaqueContext* Opaque(TfLiteContext* context) {
  return reinterpret_cast<TfLiteOpaqueContext*>(context);
}
TfLiteOpaqueNode* Opaque(TfLiteNode* node) { return reinterpret_cast<TfLiteOpaqueNode*>(node); }

}  // namespace

AppOp::AppOp(const fusebox_opcode& code, const TfLiteRegistration_V1& registration)
    : builtin_code_(code.builtin_code),
      name_(code.name),
      version_(code.version),
      registration_(registration) {}

AppOp::AppOp(const fusebox_opcode& code, const TfLiteOperator* op)
    : builtin_code_(code.builtin_code), name_(code.name), version_(code.version), op_(op) {}

void* AppOp::Init(TfLiteContext* context, const char* buffer, size_t length) const {
  if (op_ == nullptr) return registration_.init ? registration_.init(context, buffer, length) : nullptr;
  if (op_->init_with_data) return op_->init_with_data(op_->user_data, Opaque(context), buffer, length);
  return op_->init ? op_->init(Opaque(context), buffer, length) : nullptr;
}

void AppOp::Free(TfLiteContext* context, void* user_data) const {
  if (user_data == nullptr || user_data == TfLiteKernelInitFailed()) return;
  if (op_ == nullptr) {
    if (registration_.free) registration_.free(context, user_data);
  } else if (op_->free_with_data) {
    op_->free_with_data(op_->user_data, Opaque(context), user_data);
  } else if (op_->free) {
    op_->free(Opaque(context), user_data);
  }
}

TfLiteStatus AppOp::Prepare(TfLiteContext* context, TfLiteNode* node) const {
  if (op_ == nullptr) return registration_.prepare ? registration_.prepare(context, node) : kTfLiteOk;
  if (op_->prepare_with_data) return op_->prepare_with_data(op_->user_data, Opaque(context), Opaque(node));
  return op_->prepare ? op_->prepare(Opaque(context), Opaque(node)) : kTfLiteOk;
}

TfLiteStatus AppOp::Invoke(TfLiteContext* context, TfLiteNode* node) const {
  if (op_ == nullptr) return registration_.invoke ? registration_.invoke(context, node) : kTfLiteError;
  if (op_->invoke_with_data) return op_->invoke_with_data(op_->user_data, Opaque(context), Opaque(node));
  return op_->invoke ? op_->invoke(Opaque(context), Opaque(node)) : kTfLiteError;
}

}  // namespace fusebox::tflite
