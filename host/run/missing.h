// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fusebox {

// The consequence if the plugin of a composite or of a fused op is missing, and its body could run: it runs,
// with or without a notice, or the model does not open.
enum class Missing { kWarn, kBody, kError };

}  // namespace fusebox
