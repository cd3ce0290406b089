// SPDX-License-Identifier: Apache-2.0
// Estimates of the kernels' times (fusebox.cost/1).
#pragma once

#include <fusebox/abi/plugin.h>

namespace fusebox::cpu {

// The extensions of this plugin; get_extension of its fbx_plugin.
const void* FindService(void* user, fbx_str id) noexcept;

}  // namespace fusebox::cpu
