// SPDX-License-Identifier: Apache-2.0
// The XNNPACK library itself: initialised at first use, since that costs what loading a plugin may not.
#pragma once

#include <xnnpack.h>
#include <fusebox/base.hpp>

namespace fusebox::xnnpack {

// Throws Reject when this machine is not one for XNNPACK.
void InitialiseLibrary();

// The host's thread pool, where it is of the pthreadpool code that XNNPACK uses; NULL: one thread.
pthreadpool_t HostPool(const fbx_host* host);

}  // namespace fusebox::xnnpack
