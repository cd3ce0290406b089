// SPDX-License-Identifier: Apache-2.0
// Span: the time of a piece of a kernel or delegate, over fusebox.profile/1.
//
//   Span span(node.host(), "gemm", worker);
//   span.count(bytes, flops);
//
// Lives on the thread that does the work. Without a profile it does nothing.
#pragma once

#include "fusebox/abi/ext/profile.h"
#include "fusebox/base.hpp"

namespace fusebox::sdk {
inline namespace v1 {

class Span {
 public:
  // `name` outlives the span.
  Span(const fbx_host* host, std::string_view name, uint32_t worker = 0) noexcept : host_(host) {
    const auto* profile =
        static_cast<const fbx_profile*>(host->get_extension(host, to_fbx_str(FBX_EXT_PROFILE)));
    if (!FBX_HAS(profile, add) || profile->enabled(host) == 0) return;
    profile_ = profile;
    span_.name = to_fbx_str(name);
    span_.worker = worker;
    span_.start_ns = profile->now_ns(host);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span() {
    if (profile_ == nullptr) return;
    span_.duration_ns = profile_->now_ns(host_) - span_.start_ns;
    profile_->add(host_, &span_);
  }
  void count(uint64_t bytes, uint64_t flops = 0) noexcept {
    span_.bytes += bytes;
    span_.flops += flops;
  }

 private:
  const fbx_host* host_;
  const fbx_profile* profile_ = nullptr;
  fbx_span span_ = {.head = FBX_HEAD(fbx_span),
                    .name = {},
                    .worker = 0,
                    .duration_ns = 0,
                    .bytes = 0,
                    .flops = 0,
                    .start_ns = 0};
};

}  // namespace v1
}  // namespace fusebox::sdk
