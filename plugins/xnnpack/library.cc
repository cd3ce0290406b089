// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/library.h"

#include <fusebox/abi/ext/pthreadpool.h>
#include <pthreadpool.h>

#include <string>

#include "plugins/xnnpack/cache/digest.h"

namespace fusebox::xnnpack {

xnn_status StartLibrary() noexcept {
  static const xnn_status status = [] {
    cache::Hash({});  // selects xxHash's code
    return xnn_initialize(nullptr);
  }();
  return status;
}

const char* StatusName(xnn_status status) {
  static constexpr const char* kNames[] = {"success",       "uninitialized",         "invalid parameter",
                                           "invalid state", "unsupported parameter", "unsupported hardware",
                                           "out of memory", "reallocation required", "deprecated"};
  const auto index = static_cast<size_t>(status);
  return index < std::size(kNames) ? kNames[index] : "an unknown status";
}

void RequireLibrary() {
  if (const xnn_status status = StartLibrary(); status != xnn_status_success)
    throw Reject{"XNNPACK", std::string("it does not start: ") + StatusName(status)};
}

pthreadpool_t HostPool(const fbx_host* host) {
  const auto* shared =
      static_cast<const fbx_pthreadpool*>(host->get_extension(host, to_fbx_str(FBX_EXT_PTHREADPOOL)));
  if (!FBX_HAS(shared, pool) || !FBX_HAS(shared, parallelize_1d)) return nullptr;
  // pthreadpool.h overloads the name for C++.
  using Parallelize = void (*)(pthreadpool_t, pthreadpool_task_1d_t, void*, size_t, uint32_t);
  const auto ours = reinterpret_cast<void (*)()>(static_cast<Parallelize>(&pthreadpool_parallelize_1d));
  if (shared->parallelize_1d != ours) return nullptr;
  return static_cast<pthreadpool_t>(shared->pool(host));
}

}  // namespace fusebox::xnnpack
