// SPDX-License-Identifier: Apache-2.0
// The packed strings of a tensor: an int32 count n, n + 1 int32 offsets, then the bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doors/tflite/reporter.h"
#include "fusebox/c.h"
#include "fusebox/tflite/c/common.h"

namespace fusebox::tflite {

// Nothing: damaged. No data: no strings.
std::optional<std::vector<std::string_view>> StringsOf(const TfLiteTensor& tensor);
// Replaces the value of a kTfLiteDynamic tensor; its dims become one dim unless they have this many elements.
// Throws std::bad_alloc.
void SetStrings(TfLiteTensor& tensor, const std::vector<std::string_view>& strings);
// Copies the value to an input of the session. A tensor without a value reads as empty strings.
TfLiteStatus PushStrings(fusebox_session* session, int32_t input, const TfLiteTensor& tensor,
                         const Reporter& reporter);

}  // namespace fusebox::tflite
