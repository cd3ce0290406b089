// SPDX-License-Identifier: Apache-2.0
#include "fusebox/abi/ext/caller.h"

#include <fmt/format.h>

#include <algorithm>

#include "fusebox/abi/ext/resources.h"
#include "host/eval/callback.h"
#include "host/run/run.h"

namespace fusebox::run {

Result<void*> SharedMemory::Acquire(const LoadedPlugin& plugin, std::string_view name, size_t bytes) {
  if (name.empty() || bytes == 0)
    return Invalid(fmt::format("session memory '{}': {} bytes were requested", name, bytes));
  std::pair key(&plugin, std::string(name));
  if (const auto found = pieces_.find(key); found != pieces_.end()) {
    const Piece& piece = *found->second;
    if (piece.bytes == bytes) return piece.memory.data();
    return Invalid(
        fmt::format("session memory '{}' has {} bytes, but {} were requested", name, piece.bytes, bytes));
  }
  auto piece = std::make_unique<Piece>(bytes);
  piece->memory.Reserve(bytes, true);
  return pieces_.emplace(std::move(key), std::move(piece)).first->second->memory.data();
}

void SharedMemory::Clear() {
  for (const auto& [key, piece] : pieces_) std::fill_n(piece->memory.data(), piece->bytes, std::byte{0});
}

struct CallerFunctions {
  static const CallerServices& From(const fbx_host* host) {
    return static_cast<const CallerServices&>(*HostCall::From(host).services());
  }

  static const fbx_plugin* Plugin(const fbx_host* host) noexcept {
    return HostCall::From(host).plugin().abi();
  }

  static const fbx_attrs* Options(const fbx_host* host, fbx_str delegate) noexcept {
    if (delegate.ptr == nullptr) return nullptr;
    const DelegateOptions& options = From(host).options_;
    const auto found = options.find(FromAbi(delegate));
    return found == options.end() ? nullptr : AsAbi(*found->second);
  }

  static void* FindKept(const CallerServices& services, const void* key) {
    const auto found = std::ranges::find(services.kept_, key, &CallerServices::Kept::key);
    return found == services.kept_.end() ? nullptr : found->object;
  }

  static void* Find(const fbx_host* host, const void* key) noexcept {
    const CallerServices& services = From(host);
    const std::lock_guard lock(services.mutex_);
    return FindKept(services, key);
  }

  static fbx_status Keep(const fbx_host* host, const void* key, void* object,
                         void (*done)(void*, void*) noexcept, void* user) noexcept {
    const CallerServices& services = From(host);
    if (services.phases_ == 0) return FBX_NOT_APPLICABLE;
    const std::lock_guard lock(services.mutex_);
    if (done == nullptr || FindKept(services, key) != nullptr) return FBX_INVALID;
    return CallFromPlugin(host, [&] {
      services.kept_.push_back({key, object, done, user});
      return FBX_OK;
    });
  }

  static fbx_status Acquire(const fbx_host* host, fbx_str name, size_t bytes, void** memory) noexcept {
    const CallerServices& services = From(host);
    if (services.phases_ == 0)
      return Refuse(host, FBX_NOT_APPLICABLE, "session memory is acquired in prepare only");
    return CallFromPlugin(host, [&]() -> fbx_status {
      auto acquired = services.memory_->Acquire(HostCall::From(host).plugin(), FromAbi(name), bytes);
      if (!acquired) return Refuse(host, FBX_INVALID, acquired.error().message);
      *memory = *acquired;
      return FBX_OK;
    });
  }
};

const void* CallerServices::Find(std::string_view id) const {
  using F = CallerFunctions;
  static constexpr fbx_caller kCaller{.head = FBX_HEAD(fbx_caller),
                                      .plugin = F::Plugin,
                                      .delegate_options = F::Options,
                                      .find = F::Find,
                                      .keep = F::Keep};
  static constexpr fbx_resources kResources{FBX_HEAD(fbx_resources), F::Acquire};
  if (id == FBX_EXT_FORWARD) return &ForwardApi();
  if (phases_ > 0 && id == FBX_EXT_CALLER) return &kCaller;
  if (phases_ > 0 && memory_ != nullptr && id == FBX_EXT_RESOURCES) return &kResources;
  return ThreadedServices::Find(id);
}

bool CallerServices::MayLoad(const Manifest& provider) const {
  const auto has_options = [&](const ManifestDelegate& d) { return options_.contains(d.name); };
  return phases_ == 0 || provider.delegates.empty() || std::ranges::any_of(provider.delegates, has_options);
}

CallerServices::Phase::~Phase() {
  if (--services_.phases_ > 0) return;
  const std::vector<Kept> kept = std::exchange(services_.kept_, {});
  for (auto it = kept.rbegin(); it != kept.rend(); ++it) it->done(it->user, it->object);
}

}  // namespace fusebox::run
