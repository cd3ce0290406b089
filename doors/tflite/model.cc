// SPDX-License-Identifier: Apache-2.0
#include "doors/tflite/model.h"

#include "doors/tflite/settings.h"

namespace fusebox::tflite {
namespace {

TfLiteModel* NewModel(fusebox_file* file) {
  FilePtr owned(file, Free());
  return new TfLiteModel{std::make_shared<SharedFile>(std::move(owned))};
}

TfLiteModel* ModelFromMemory(const void* data, size_t size, const Reporter& reporter) noexcept {
  return Guarded(reporter, static_cast<TfLiteModel*>(nullptr), [&]() -> TfLiteModel* {
    fusebox_file* file = nullptr;
    ErrorText error;
    if (fusebox_file_from_memory(data, size, nullptr, nullptr, &file, error) == FUSEBOX_OK)
      return NewModel(file);
    reporter.Report("%s", error.text());
    return nullptr;
  });
}

TfLiteModel* ModelFromFile(const char* path, const Reporter& reporter) noexcept {
  return Guarded(reporter, static_cast<TfLiteModel*>(nullptr), [&]() -> TfLiteModel* {
    fusebox_file* file = nullptr;
    ErrorText error;
    if (fusebox_file_open(path, &file, error) == FUSEBOX_OK) return NewModel(file);
    reporter.Report("%s", error.text());
    return nullptr;
  });
}

}  // namespace

ModelPtr SharedFile::Open(const std::string& options, fusebox_registry* registry,
                          const Reporter& reporter) const {
  fusebox_model* model = nullptr;
  ErrorText error;
  if (fusebox_file_model(file_.get(), options.c_str(), registry, &model, error) == FUSEBOX_OK)
    return ModelPtr(model, Free());
  reporter.Report("%s", error.text());
  return nullptr;
}

ModelPtr SharedFile::Open(const std::string& options, const Reporter& reporter) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<fusebox_model>& shared = models_[options];
  ModelPtr model = shared.lock();
  if (model != nullptr) return model;
  const RegistryPtr* registry = SharedRegistry(reporter);
  if (registry == nullptr) return nullptr;
  model = Open(options, registry->get(), reporter);
  shared = model;
  return model;
}

}  // namespace fusebox::tflite

using fusebox::tflite::Reporter;

TfLiteModel* TfLiteModelCreate(const void* model_data, size_t model_size) {
  return fusebox::tflite::ModelFromMemory(model_data, model_size, Reporter());
}

TfLiteModel* TfLiteModelCreateWithErrorReporter(const void* model_data, size_t model_size,
                                                void (*reporter)(void* user_data, const char* format,
                                                                 va_list args),
                                                void* user_data) {
  return fusebox::tflite::ModelFromMemory(model_data, model_size, Reporter(reporter, user_data));
}

TfLiteModel* TfLiteModelCreateFromFile(const char* model_path) {
  return fusebox::tflite::ModelFromFile(model_path, Reporter());
}

TfLiteModel* TfLiteModelCreateFromFileWithErrorReporter(const char* model_path,
                                                        void (*reporter)(void* user_data, const char* format,
                                                                         va_list args),
                                                        void* user_data) {
  return fusebox::tflite::ModelFromFile(model_path, Reporter(reporter, user_data));
}

void TfLiteModelDelete(TfLiteModel* model) { delete model; }

const char* TfLiteVersion(void) { return "2.18.0"; }
const char* TfLiteExtensionApisVersion(void) { return "2.18.0"; }
int TfLiteSchemaVersion(void) { return 3; }
