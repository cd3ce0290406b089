// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/profile.h"

#include <cstring>
#include <fusebox/base.hpp>
#include <numeric>
#include <string>
#include <vector>

namespace fusebox::xnnpack {
namespace {

// XNNPACK cuts times to whole microseconds; without it, the sum of many short operators is too small.
constexpr uint64_t kHalfMicrosecond = 500;  // ns

const fbx_profile* ProfileOf(const fbx_host* host) {
  const auto* const profile =
      static_cast<const fbx_profile*>(host->get_extension(host, sdk::to_fbx_str(FBX_EXT_PROFILE)));
  return FBX_HAS(profile, add) && profile->enabled(host) != 0 ? profile : nullptr;
}

template <class T>
std::vector<T> Info(xnn_runtime_t runtime, xnn_profile_info what) {
  size_t bytes = 0;
  xnn_get_runtime_profiling_info(runtime, what, 0, nullptr, &bytes);
  std::vector<T> out(bytes / sizeof(T));
  if (xnn_get_runtime_profiling_info(runtime, what, bytes, out.data(), &bytes) != xnn_status_success)
    out.clear();
  return out;
}

}  // namespace

LookUpSpan::LookUpSpan(const fbx_host* host)
    : host_(host),
      profile_(host != nullptr ? ProfileOf(host) : nullptr),
      start_(profile_ != nullptr ? profile_->now_ns(host) : 0) {}

void LookUpSpan::End(bool found, uint64_t bytes) {
  if (profile_ == nullptr) return;
  const uint64_t duration = profile_->now_ns(host_) - start_;
  const fbx_str name = sdk::to_fbx_str(found ? "weight cache hit" : "weight cache miss");
  const fbx_span span{.head = FBX_HEAD(fbx_span),
                      .name = name,
                      .worker = 0,
                      .duration_ns = duration,
                      .bytes = bytes,
                      .flops = 0,
                      .start_ns = start_};
  profile_->add(host_, &span);
}

uint32_t ProfilingFlag(const fbx_host* host) {
  return ProfileOf(host) != nullptr ? XNN_FLAG_BASIC_PROFILING : 0;
}

void AddOperatorTimes(const fbx_host* host, xnn_runtime_t runtime) {
  const fbx_profile* const profile = ProfileOf(host);
  if (profile == nullptr) return;
  const auto names = Info<char>(runtime, xnn_profile_info_operator_name);
  const auto times = Info<uint64_t>(runtime, xnn_profile_info_operator_timing);
  const char* name = names.data();
  size_t index = 0;
  // XNNPACK reports no starts: one after another, until now.
  uint64_t start = profile->now_ns(host) - 1000 * std::accumulate(times.begin(), times.end(), uint64_t{0});
  for (const uint64_t us : times) {
    if (name >= names.data() + names.size()) return;
    const std::string text = std::to_string(index++) + " " + name;
    name += std::strlen(name) + 1;
    const fbx_span span{.head = FBX_HEAD(fbx_span),
                        .name = sdk::to_fbx_str(text),
                        .worker = 0,
                        .duration_ns = us * 1000 + kHalfMicrosecond,
                        .bytes = 0,
                        .flops = 0,
                        .start_ns = start};
    profile->add(host, &span);
    start += us * 1000;
  }
}

}  // namespace fusebox::xnnpack
