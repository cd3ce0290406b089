// SPDX-License-Identifier: Apache-2.0
// fusebox.opening/1: the services of the calls that make a program's kernels.
#pragma once

#include <vector>

#include "fusebox/abi/ext/opening.h"
#include "host/run/run.h"

namespace fusebox::run {

// One thread. Ends when the kernels are made: what plugins kept is told then.
class Opening final : public ThreadedServices {
 public:
  // `options` must outlive this.
  Opening(Threads& threads, const DelegateOptions& options) : ThreadedServices(threads), options_(options) {}
  ~Opening() override;
  Opening(const Opening&) = delete;
  const void* Find(std::string_view id) const override;
  // The plugin of delegates that this model has turned off is not loaded for its services, unless it was
  // given options.
  bool MayLoad(const Manifest& provider) const override;

 private:
  struct Kept {
    const void* key;
    void* object;
    void (*done)(void*) noexcept;
  };
  static const Opening& From(const fbx_host* host) {
    return static_cast<const Opening&>(*HostCall::From(host).services());
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
