// SPDX-License-Identifier: Apache-2.0
// fusebox.kernel_init/1: the services of a kernel's init.
#pragma once

#include <vector>

#include "fusebox/abi/ext/kernel_init.h"
#include "host/run/run.h"

namespace fusebox::run {

// One thread. The destructor, after all kernels are created, calls `done` of the kept objects.
class KernelInitServices final : public ThreadedServices {
 public:
  // `options` must outlive this.
  KernelInitServices(Threads& threads, const DelegateOptions& options)
      : ThreadedServices(threads), options_(options) {}
  ~KernelInitServices() override;
  KernelInitServices(const KernelInitServices&) = delete;
  const void* Find(std::string_view id) const override;
  // A plugin whose delegates are off for this model is loaded for its services only if it was given options.
  bool MayLoad(const Manifest& provider) const override;

 private:
  struct Kept {
    const void* key;
    void* object;
    void (*done)(void*) noexcept;
  };
  static const KernelInitServices& From(const fbx_host* host) {
    return static_cast<const KernelInitServices&>(*HostCall::From(host).services());
  }
  static const fbx_plugin* Plugin(const fbx_host*) noexcept;
  static const fbx_attrs* Options(const fbx_host*, fbx_str delegate) noexcept;
  static void* FindKept(const fbx_host*, const void* key) noexcept;
  static fbx_status Keep(const fbx_host*, const void* key, void* object,
                         void (*done)(void*) noexcept) noexcept;

  const DelegateOptions& options_;
  mutable std::vector<Kept> kept_;
};

}  // namespace fusebox::run
