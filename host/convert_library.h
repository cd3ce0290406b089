// SPDX-License-Identifier: Apache-2.0
// ConvertLibrary: functions of libfusebox-convert (<fusebox/c_convert.h>), which is opened on demand.
#pragma once

#include "fusebox/c_convert.h"
#include "host/base/status.h"

namespace fusebox {

struct ConvertLibrary {
  decltype(&fusebox_convert_bytes) convert_bytes;
  decltype(&fusebox_convert_free) free;
};
// Opened once per process and never closed. Any thread. Error: it is not installed, cannot be loaded, or is
// too old; the next call tries again.
Result<const ConvertLibrary*> LoadConvertLibrary();

}  // namespace fusebox
