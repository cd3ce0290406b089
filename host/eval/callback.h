// SPDX-License-Identifier: Apache-2.0
// The border of functions that plugins call.
#pragma once

#include "host/eval/budget.h"
#include "host/graph/view.h"

namespace fusebox {

// Sends the reason to the host of the call, if there is one, and returns the status.
inline fbx_status Refuse(const fbx_host* host, fbx_status status, std::string_view why) noexcept {
  const fbx_diag diag{.head = FBX_HEAD(fbx_diag), .severity = FBX_ERROR, .message = AsAbi(why)};
  if (host != nullptr) host->emit(host, &diag);
  return status;
}

// Calls `body`, which returns a status. Memory that it does not get becomes one: no exception may reach the
// plugin.
template <class F>
fbx_status CallFromPlugin(const fbx_host* host, const F& body) noexcept {
  try {
    return body();
  } catch (const NoMemory& refused) {
    return Refuse(host, FBX_OUT_OF_MEMORY, refused.text);
  } catch (const std::bad_alloc&) {
    return FBX_OUT_OF_MEMORY;
  }
}

}  // namespace fusebox
