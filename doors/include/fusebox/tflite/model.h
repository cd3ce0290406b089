/* SPDX-License-Identifier: Apache-2.0 */
// tflite::FlatBufferModel: a .tflite file, which interpreters keep.
#ifndef FUSEBOX_TFLITE_MODEL_H_
#define FUSEBOX_TFLITE_MODEL_H_

#include <memory>

#include "fusebox/tflite/c/c_api.h"
#include "fusebox/tflite/error_reporter.h"

namespace tflite {

class FlatBufferModel {
 public:
  // Null: no valid file; reported. Files are always verified.
  static std::unique_ptr<FlatBufferModel> BuildFromFile(const char* filename,
                                                        ErrorReporter* reporter = DefaultErrorReporter()) {
    return Built(TfLiteModelCreateFromFileWithErrorReporter(filename, detail::ReportTo, reporter), reporter);
  }
  // The bytes outlive the model and its interpreters.
  static std::unique_ptr<FlatBufferModel> BuildFromBuffer(const char* buffer, size_t size,
                                                          ErrorReporter* reporter = DefaultErrorReporter()) {
    return Built(TfLiteModelCreateWithErrorReporter(buffer, size, detail::ReportTo, reporter), reporter);
  }
  static std::unique_ptr<FlatBufferModel> VerifyAndBuildFromFile(
      const char* filename, std::nullptr_t = nullptr, ErrorReporter* reporter = DefaultErrorReporter()) {
    return BuildFromFile(filename, reporter);
  }
  static std::unique_ptr<FlatBufferModel> VerifyAndBuildFromBuffer(
      const char* buffer, size_t size, std::nullptr_t = nullptr,
      ErrorReporter* reporter = DefaultErrorReporter()) {
    return BuildFromBuffer(buffer, size, reporter);
  }

  bool initialized() const { return true; }
  ErrorReporter* error_reporter() const { return reporter_; }
  // The handle of the C API, which interpreters share.
  const std::shared_ptr<TfLiteModel>& handle() const { return handle_; }

  template <class T = void>
  const void* GetModel() const {
    static_assert(sizeof(T*) == 0, "Fusebox does not show the FlatBuffer of a model: use <fusebox/c_file.h>");
    return nullptr;
  }

 private:
  FlatBufferModel(TfLiteModel* model, ErrorReporter* reporter)
      : handle_(model, TfLiteModelDelete), reporter_(reporter) {}
  static std::unique_ptr<FlatBufferModel> Built(TfLiteModel* model, ErrorReporter* reporter) {
    if (model == nullptr) return nullptr;
    return std::unique_ptr<FlatBufferModel>(new FlatBufferModel(model, reporter));
  }

  std::shared_ptr<TfLiteModel> handle_;
  ErrorReporter* reporter_;
};

}  // namespace tflite

#endif
