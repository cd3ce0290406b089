// SPDX-License-Identifier: Apache-2.0
// The callbacks of rules.
#include <new>

#include "check/child.h"
#include "check/shown.h"
#include "host/graph/view.h"

namespace fusebox::check {
namespace {

// Calls `call(real rule, host as shown, composite as shown)`.
template <class Call>
fbx_status WithSite(const char* callback, void* user, const fbx_host* host, const fbx_composite* composite,
                    const Call& call) noexcept {
  const RuleProxy& proxy = *static_cast<const RuleProxy*>(user);
  SetPlace(callback, FromAbi(proxy.real->id));
  const Conditions::Abi abi = proxy.rig->conditions().abi;
  try {
    ViewPages pages;
    auto* const shown = pages.Make(*composite);
    const auto operands = Show(composite->operands, composite->operand_count, *proxy.rig, pages);
    const auto results = Show(composite->results, composite->result_count, *proxy.rig, pages);
    shown->operands = pages.Array<const fbx_tensor*>(operands.data(), operands.size());
    shown->results = pages.Array<const fbx_tensor*>(results.data(), results.size());
    FUSEBOX_AGE(*shown, location, abi);
    return call(*proxy.real, Show(host, *proxy.rig, pages), shown);
  } catch (const std::bad_alloc&) {
    return FBX_OUT_OF_MEMORY;
  }
}

fbx_status Match(const fbx_host* host, void* user, const fbx_composite* composite) noexcept {
  return WithSite("match", user, host, composite, [](auto& real, auto* shown_host, auto* shown) {
    return real.match(shown_host, real.user, shown);
  });
}

fbx_status Rewrite(const fbx_host* host, void* user, const fbx_composite* composite,
                   const fbx_builder* builder) noexcept {
  const AgedInPlace aged(builder->head, offsetof(fbx_builder, add_variable) + sizeof(builder->add_variable),
                         static_cast<const RuleProxy*>(user)->rig->conditions().abi);
  return WithSite("rewrite", user, host, composite, [&](auto& real, auto* shown_host, auto* shown) {
    return real.rewrite(shown_host, real.user, shown, builder);
  });
}

}  // namespace

void Wrap(RuleProxy& proxy) {
  proxy.abi = *proxy.real;
  proxy.abi.head = FBX_HEAD(fbx_rule);
  proxy.abi.user = &proxy;
  if (proxy.abi.match) proxy.abi.match = Match;
  proxy.abi.rewrite = Rewrite;
}

}  // namespace fusebox::check
