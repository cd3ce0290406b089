/* SPDX-License-Identifier: Apache-2.0 */
// tflite::MutableOpResolver: ops of the application.
#ifndef FUSEBOX_TFLITE_MUTABLE_OP_RESOLVER_H_
#define FUSEBOX_TFLITE_MUTABLE_OP_RESOLVER_H_

#include <string>
#include <vector>

#include "fusebox/tflite/c/c_api_experimental.h"

namespace tflite {

using BuiltinOperator = TfLiteBuiltinOperator;

class OpResolver {
 public:
  virtual ~OpResolver() = default;
  // Adds the ops to options of the C API.
  virtual void AddTo(TfLiteInterpreterOptions* options) const = 0;
  // Fusebox's own ops may run too.
  virtual bool has_builtins() const { return false; }
  // XNNPACK runs what it can, if its plugin is there.
  virtual bool has_default_delegates() const { return false; }
};

// Interpreters have these ops only. Registrations are copied.
class MutableOpResolver : public OpResolver {
 public:
  void AddBuiltin(BuiltinOperator op, const TfLiteRegistration* registration, int version = 1) {
    AddBuiltin(op, registration, version, version);
  }
  // A builtin op receives no builtin_data.
  void AddBuiltin(BuiltinOperator op, const TfLiteRegistration* registration, int min_version,
                  int max_version) {
    ops_.push_back({op, {}, *registration, min_version, max_version});
  }
  void AddCustom(const char* name, const TfLiteRegistration* registration, int version = 1) {
    AddCustom(name, registration, version, version);
  }
  void AddCustom(const char* name, const TfLiteRegistration* registration, int min_version, int max_version) {
    ops_.push_back({kTfLiteBuiltinCustom, name, *registration, min_version, max_version});
  }
  void AddAll(const MutableOpResolver& other) {
    const std::vector<Op> added = other.ops_;
    ops_.insert(ops_.end(), added.begin(), added.end());
  }

  void AddTo(TfLiteInterpreterOptions* options) const override {
    for (const Op& op : ops_) {
      if (op.code == kTfLiteBuiltinCustom)
        TfLiteInterpreterOptionsAddCustomOp(options, op.name.c_str(), &op.registration, op.min_version,
                                            op.max_version);
      else
        TfLiteInterpreterOptionsAddBuiltinOp(options, op.code, &op.registration, op.min_version,
                                             op.max_version);
    }
  }

 private:
  struct Op {
    BuiltinOperator code;
    std::string name;
    TfLiteRegistration registration;
    int min_version, max_version;
  };
  std::vector<Op> ops_;
};

}  // namespace tflite

#endif
