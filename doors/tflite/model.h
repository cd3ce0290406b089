// SPDX-License-Identifier: Apache-2.0
// The file of a TfLiteModel, which its interpreters keep, and the models that they share.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "doors/tflite/handles.h"
#include "doors/tflite/reporter.h"
#include "fusebox/tflite/c/c_api.h"

namespace fusebox::tflite {

class SharedFile {
 public:
  explicit SharedFile(FilePtr file) : file_(std::move(file)) {}
  const fusebox_file* get() const { return file_.get(); }
  const FilePtr& shared() const { return file_; }
  // Opens the file with options of fusebox_model_open and the registry of the process. Models in use are
  // shared. Null: reported. Any thread.
  ModelPtr Open(const std::string& options, const Reporter& reporter);
  // Same, for one interpreter.
  ModelPtr Open(const std::string& options, fusebox_registry* registry, const Reporter& reporter) const;

 private:
  FilePtr file_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<fusebox_model>> models_;
};

}  // namespace fusebox::tflite

struct TfLiteModel {
  std::shared_ptr<fusebox::tflite::SharedFile> file;
};
