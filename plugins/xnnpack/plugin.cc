// SPDX-License-Identifier: Apache-2.0
#include <fusebox/plugin.hpp>

#include "plugins/xnnpack/delegate.h"
#include "plugins/xnnpack/library.h"

namespace fusebox::xnnpack {
namespace {

using Plugin = detail::Tables<Delegate>;

constexpr fbx_plugin kPlugin = detail::make_plugin("fusebox.xnnpack", "1.0.0", Plugin::rule_table,
                                                   Plugin::kernel_table, Plugin::delegate_table);

// XNNPACK looks at the CPU once and for all. Where it does not start, sessions say so.
fbx_status Load(const fbx_host*, const fbx_plugin** out) noexcept {
  StartLibrary();
  *out = &kPlugin;
  return FBX_OK;
}

}  // namespace
}  // namespace fusebox::xnnpack

extern "C" FBX_EXPORT constinit const fbx_entry fusebox_entry_v1 =
    fusebox::detail::make_entry(&fusebox::xnnpack::Load);
