// SPDX-License-Identifier: Apache-2.0
#include "fusebox/abi/ext/threads.h"
#include "host/eval/callback.h"
#include "host/eval/eval.h"

namespace fusebox {
namespace {

uint32_t OneThread(const fbx_host*) noexcept { return 1; }

void RunSerially(const fbx_host*, size_t n, size_t, void (*task)(void*, size_t, size_t, uint32_t) noexcept,
                 void* context) noexcept {
  if (n > 0) task(context, 0, n, 0);
}

fbx_status ResizeResult(const fbx_host* host, const fbx_node* node, uint32_t result, const int64_t* dims,
                        int32_t rank, size_t bytes) noexcept {
  if (node == nullptr || result >= node->result_count || rank < 0 || (rank > 0 && dims == nullptr))
    return FBX_INVALID;
  const auto& target = *reinterpret_cast<const ResizableNode*>(node);
  return CallFromPlugin(host, [&] {
    return target.resizer->Resize(target.index, result, {dims, static_cast<size_t>(rank)}, bytes);
  });
}

class Serial final : public Services {
 public:
  const void* Find(std::string_view id) const override {
    static constexpr fbx_threads kThreads{FBX_HEAD(fbx_threads), OneThread, RunSerially};
    if (id == FBX_EXT_THREADS) return &kThreads;
    if (id == FBX_EXT_RESIZE) return &ResizeApi();
    return nullptr;
  }
};

}  // namespace

const fbx_resize& ResizeApi() {
  static constexpr fbx_resize kResize{FBX_HEAD(fbx_resize), ResizeResult};
  return kResize;
}

const Services& SerialServices() {
  static const Serial services;
  return services;
}

HostCall& HostCalls::For(const LoadedPlugin& plugin) {
  for (const auto& call : calls_) {
    if (&call->plugin() == &plugin) return *call;
  }
  return *calls_.emplace_back(std::make_unique<HostCall>(plugin, &services_));
}

void HostCalls::DropDiags() {
  for (const auto& call : calls_) call->TakeDiags();
}

}  // namespace fusebox
