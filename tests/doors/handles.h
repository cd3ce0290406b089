// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>

#include "fusebox/tflite/c/c_api.h"

namespace fusebox::doors {

// An interpreter of a file in memory.
class Opened {
 public:
  explicit Opened(std::string bytes, const TfLiteInterpreterOptions* options = nullptr)
      : bytes_(std::move(bytes)), model_(TfLiteModelCreate(bytes_.data(), bytes_.size())) {
    if (model_ != nullptr) interpreter_ = TfLiteInterpreterCreate(model_, options);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() {
    TfLiteInterpreterDelete(interpreter_);
    TfLiteModelDelete(model_);
  }
  TfLiteInterpreter* get() const { return interpreter_; }
  TfLiteModel* model() const { return model_; }

 private:
  std::string bytes_;
  TfLiteModel* model_;
  TfLiteInterpreter* interpreter_ = nullptr;
};

// An error reporter; `text` is a std::string.
inline void Collect(void* text, const char* format, va_list args) {
  char line[1024];
  std::vsnprintf(line, sizeof line, format, args);
  static_cast<std::string*>(text)->append(line).append("\n");
}

}  // namespace fusebox::doors
