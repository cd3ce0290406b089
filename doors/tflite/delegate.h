// SPDX-License-Identifier: Apache-2.0
// Delegates of the application as options of Fusebox.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doors/tflite/reporter.h"
#include "fusebox/tflite/c/common.h"

namespace fusebox::tflite {

// JSON options of fusebox_model_open and fusebox_session_create.
struct Settings {
  std::string model, session;
};

// Without delegates, the configuration decides (FUSEBOX_CONFIG); without one, there are none. Nothing: a
// delegate that was not made by this library; reported.
std::optional<Settings> DelegateSettings(const std::vector<TfLiteDelegate*>& delegates, int threads,
                                         const Reporter& reporter);

}  // namespace fusebox::tflite
