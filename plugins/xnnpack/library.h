// SPDX-License-Identifier: Apache-2.0
// Initialization of the XNNPACK library.
#pragma once

#include <xnnpack.h>
#include <fusebox/base.hpp>

namespace fusebox::xnnpack {

using namespace sdk;

// Detects the CPU, once per process: about 0.2 ms.
xnn_status StartLibrary() noexcept;
const char* StatusName(xnn_status status);
// Throws Reject if XNNPACK does not support this machine.
void RequireLibrary();

// Returns the host's thread pool, if it is from the pthreadpool code that XNNPACK uses, or NULL for one
// thread.
pthreadpool_t HostPool(const fbx_host* host);

}  // namespace fusebox::xnnpack
