// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/packing/settings.h"

namespace fusebox::xnnpack {

std::optional<Settings> Settings::Of(const fbx_host* host, const fbx_caller& caller) {
  const fbx_attrs* const given = caller.delegate_options(host, to_fbx_str(kDelegateName));
  if (given == nullptr) return std::nullopt;
  return Settings(Attrs(host, given));
}

}  // namespace fusebox::xnnpack
