// SPDX-License-Identifier: Apache-2.0
#include "doors/tflite/settings.h"

#include <cstdlib>
#include <mutex>

namespace fusebox::tflite {

const char* ConfigPath() {
  const char* path = secure_getenv("FUSEBOX_CONFIG");
  return path != nullptr && *path != '\0' ? path : nullptr;
}

const RegistryPtr* SharedRegistry(const Reporter& reporter) {
  static std::mutex mutex;
  static RegistryPtr shared;
  static bool made = false;
  const std::lock_guard lock(mutex);
  if (made) return &shared;
  if (const char* path = ConfigPath(); path != nullptr) {
    fusebox_registry* registry = nullptr;
    ErrorText error;
    if (fusebox_registry_create(path, nullptr, &registry, error) != FUSEBOX_OK) {
      reporter.Report("FUSEBOX_CONFIG: %s", error.text());
      return nullptr;
    }
    shared = RegistryPtr(registry, Free());
  }
  made = true;
  return &shared;
}

}  // namespace fusebox::tflite
