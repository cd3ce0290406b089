// SPDX-License-Identifier: Apache-2.0
// Forward: kernels run a partition that a delegate claimed (abi/ext/forward.h, which has the contract).
//
//   struct Partition {
//     void reshape(const Call&) {}                                      // kernels run other shapes too
//     void prepare(const Call& call, Infer&, Plan&) { Forward(call).prepare(); }
//     void invoke(const Call& call) { Forward(call).run(); }            // or run(watch)
//   };
//
// A watch has `void before(uint32_t node)` and `void after(uint32_t node)`, which may not throw. In the
// manifest: "requires": {"extensions": ["fusebox.forward/1"]}.
#pragma once

#include "fusebox/abi/ext/forward.h"
#include "fusebox/call.hpp"

namespace fusebox::sdk {
inline namespace v1 {

class Forward {
 public:
  // Returns whether the host can forward. In any callback of a delegate.
  static bool available(const fbx_host* host) noexcept { return find(host) != nullptr; }

  explicit Forward(const Call& call) : call_(call), ext_(find(call.host())) {
    if (ext_ == nullptr) throw Error{FBX_UNSUPPORTED, "fusebox.forward/1 is absent here"};
  }
  void prepare() const { check(ext_->prepare(call_.host(), call_.abi())); }
  void run() const { check(ext_->run(call_.host(), call_.abi(), nullptr)); }
  template <class Watch>
  void run(Watch& watch) const {
    static_assert(noexcept(watch.before(0u)) && noexcept(watch.after(0u)),
                  "before and after of a watch are `void (uint32_t node) noexcept`");
    const fbx_forward_watch abi{
        FBX_HEAD(fbx_forward_watch), &watch,
        [](const fbx_host*, void* user, uint32_t node) noexcept { static_cast<Watch*>(user)->before(node); },
        [](const fbx_host*, void* user, uint32_t node) noexcept { static_cast<Watch*>(user)->after(node); }};
    check(ext_->run(call_.host(), call_.abi(), &abi));
  }

 private:
  static const fbx_forward* find(const fbx_host* host) noexcept {
    const auto* ext = static_cast<const fbx_forward*>(host->get_extension(host, to_fbx_str(FBX_EXT_FORWARD)));
    return FBX_HAS(ext, run) ? ext : nullptr;
  }
  // The host has emitted the reason.
  static void check(fbx_status status) {
    if (status != FBX_OK) throw Error{status, "kernels do not run the partition"};
  }

  const Call& call_;
  const fbx_forward* ext_;
};

}  // namespace v1
}  // namespace fusebox::sdk
