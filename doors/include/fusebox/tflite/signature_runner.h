/* SPDX-License-Identifier: Apache-2.0 */
// tflite::SignatureRunner: a signature of an interpreter, with inputs and outputs by name.
#ifndef FUSEBOX_TFLITE_SIGNATURE_RUNNER_H_
#define FUSEBOX_TFLITE_SIGNATURE_RUNNER_H_

#include <string>
#include <vector>

#include "fusebox/tflite/c/c_api.h"

namespace tflite {

class SignatureRunner {
 public:
  SignatureRunner(TfLiteSignatureRunner* runner, std::string key) : runner_(runner), key_(std::move(key)) {
    for (size_t i = 0; i < input_size(); ++i)
      input_names_.push_back(TfLiteSignatureRunnerGetInputName(runner_, static_cast<int32_t>(i)));
    for (size_t i = 0; i < output_size(); ++i)
      output_names_.push_back(TfLiteSignatureRunnerGetOutputName(runner_, static_cast<int32_t>(i)));
  }
  SignatureRunner(const SignatureRunner&) = delete;
  SignatureRunner& operator=(const SignatureRunner&) = delete;
  ~SignatureRunner() { TfLiteSignatureRunnerDelete(runner_); }

  const std::string& signature_key() const { return key_; }
  size_t input_size() const { return TfLiteSignatureRunnerGetInputCount(runner_); }
  size_t output_size() const { return TfLiteSignatureRunnerGetOutputCount(runner_); }
  const std::vector<const char*>& input_names() const { return input_names_; }
  const std::vector<const char*>& output_names() const { return output_names_; }
  // Null: no such name.
  TfLiteTensor* input_tensor(const char* name) { return TfLiteSignatureRunnerGetInputTensor(runner_, name); }
  const TfLiteTensor* output_tensor(const char* name) const {
    return TfLiteSignatureRunnerGetOutputTensor(runner_, name);
  }
  TfLiteStatus ResizeInputTensor(const char* name, const std::vector<int>& dims) {
    return TfLiteSignatureRunnerResizeInputTensor(runner_, name, dims.data(),
                                                  static_cast<int32_t>(dims.size()));
  }
  TfLiteStatus ResizeInputTensorStrict(const char* name, const std::vector<int>& dims) {
    return ResizeInputTensor(name, dims);
  }
  TfLiteStatus AllocateTensors() { return TfLiteSignatureRunnerAllocateTensors(runner_); }
  TfLiteStatus Invoke() { return TfLiteSignatureRunnerInvoke(runner_); }

 private:
  TfLiteSignatureRunner* runner_;
  std::string key_;
  std::vector<const char*> input_names_, output_names_;
};

}  // namespace tflite

#endif
