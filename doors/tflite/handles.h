// SPDX-License-Identifier: Apache-2.0
// Handles of <fusebox/c.h> that free themselves.
#pragma once

#include <memory>

#include "fusebox/c_file.h"

namespace fusebox::tflite {

struct Free {
  void operator()(fusebox_file* file) const { fusebox_file_free(file); }
  void operator()(fusebox_model* model) const { fusebox_model_free(model); }
  void operator()(fusebox_session* session) const { fusebox_session_free(session); }
  void operator()(fusebox_registry* registry) const { fusebox_registry_free(registry); }
};

using FilePtr = std::shared_ptr<fusebox_file>;
using ModelPtr = std::shared_ptr<fusebox_model>;
using SessionPtr = std::unique_ptr<fusebox_session, Free>;
using RegistryPtr = std::shared_ptr<fusebox_registry>;

}  // namespace fusebox::tflite
