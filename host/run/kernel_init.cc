// SPDX-License-Identifier: Apache-2.0
#include "host/run/kernel_init.h"

#include <algorithm>

namespace fusebox::run {

KernelInitServices::~KernelInitServices() {
  for (auto kept = kept_.rbegin(); kept != kept_.rend(); ++kept) kept->done(kept->object);
}

const void* KernelInitServices::Find(std::string_view id) const {
  static constexpr fbx_kernel_init kKernelInit{FBX_HEAD(fbx_kernel_init), Plugin, Options, FindKept, Keep};
  return id == FBX_EXT_KERNEL_INIT ? &kKernelInit : ThreadedServices::Find(id);
}

bool KernelInitServices::MayLoad(const Manifest& provider) const {
  const auto has_options = [&](const ManifestDelegate& d) { return options_.contains(d.name); };
  return provider.delegates.empty() ||
         std::any_of(provider.delegates.begin(), provider.delegates.end(), has_options);
}

const fbx_plugin* KernelInitServices::Plugin(const fbx_host* host) noexcept {
  return HostCall::From(host).plugin().abi();
}

const fbx_attrs* KernelInitServices::Options(const fbx_host* host, fbx_str delegate) noexcept {
  if (delegate.ptr == nullptr) return nullptr;
  const DelegateOptions& options = From(host).options_;
  const auto found = options.find(FromAbi(delegate));
  return found == options.end() ? nullptr : AsAbi(*found->second);
}

void* KernelInitServices::FindKept(const fbx_host* host, const void* key) noexcept {
  for (const Kept& kept : From(host).kept_) {
    if (kept.key == key) return kept.object;
  }
  return nullptr;
}

fbx_status KernelInitServices::Keep(const fbx_host* host, const void* key, void* object,
                                    void (*done)(void*) noexcept) noexcept {
  if (done == nullptr || FindKept(host, key) != nullptr) return FBX_INVALID;
  try {
    From(host).kept_.push_back({key, object, done});
    return FBX_OK;
  } catch (const std::bad_alloc&) {
    return FBX_OUT_OF_MEMORY;
  }
}

}  // namespace fusebox::run
