// SPDX-License-Identifier: Apache-2.0
// Settings in the environment, for programs that know nothing of Fusebox: FUSEBOX_CONFIG, the path of a
// fusebox.json. Without it, a program gets what it asks for: no delegate unless it adds one.
#pragma once

#include "doors/tflite/handles.h"
#include "doors/tflite/reporter.h"

namespace fusebox::tflite {

// The path in FUSEBOX_CONFIG. Null: not set.
const char* ConfigPath();
// The registry that interpreters without custom ops share; holds null for the default search path.
// Null: the configuration is invalid; reported. Any thread.
const RegistryPtr* SharedRegistry(const Reporter& reporter);

}  // namespace fusebox::tflite
