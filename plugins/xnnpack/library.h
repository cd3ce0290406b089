// SPDX-License-Identifier: Apache-2.0
// The XNNPACK library itself.
#pragma once

#include <xnnpack.h>
#include <fusebox/base.hpp>

namespace fusebox::xnnpack {

// Looks at the CPU, once per process: some 0.2 ms.
xnn_status StartLibrary() noexcept;
// Throws Reject when this machine is not one for XNNPACK.
void RequireLibrary();

// The host's thread pool, where it is of the pthreadpool code that XNNPACK uses; NULL: one thread.
pthreadpool_t HostPool(const fbx_host* host);

}  // namespace fusebox::xnnpack
