// SPDX-License-Identifier: Apache-2.0
#include "host/base/cancel.h"
#include "host/base/log.h"
#include "host/graph/view.h"
#include "host/plugin/registry.h"

#ifndef FUSEBOX_VERSION
#define FUSEBOX_VERSION "0"
#endif

namespace fusebox {
namespace {

// Limits the memory for diagnostics of one call.
constexpr size_t kMostDiags = 200;
constexpr size_t kLongestText = 2000;

std::string Copy(fbx_str text) {
  return text.ptr == nullptr ? std::string() : std::string(text.ptr, std::min(text.len, kLongestText));
}

Code CodeOf(fbx_status status) {
  switch (status) {
    case FBX_INVALID: return Code::kInvalid;
    case FBX_NOT_APPLICABLE:
    case FBX_UNSUPPORTED: return Code::kUnsupported;
    case FBX_OUT_OF_MEMORY: return Code::kOutOfMemory;
    case FBX_IO: return Code::kIo;
    default: return Code::kInternal;
  }
}

std::string StatusName(fbx_status status) {
  const auto mute = [](const std::string& name) {
    return "it returned " + name + " without a reason; report this to its author";
  };
  switch (status) {
    case FBX_NOT_APPLICABLE: return "declined without a reason";
    case FBX_INVALID: return mute("FBX_INVALID");
    case FBX_UNSUPPORTED: return mute("FBX_UNSUPPORTED");
    case FBX_OUT_OF_MEMORY: return "out of memory";
    case FBX_IO: return mute("FBX_IO");
    case FBX_INTERNAL: return mute("FBX_INTERNAL");
    case FBX_CANCELLED: return "it ended as cancelled, but the run was not cancelled";
    default: return "unknown status " + std::to_string(status);
  }
}

}  // namespace

std::string ToString(const Diag& diag) {
  std::string text = diag.code.empty() ? diag.message : diag.code + ": " + diag.message;
  if (!diag.subject.empty()) text += " (" + diag.subject + ")";
  return text;
}

HostCall::HostCall(const LoadedPlugin& plugin, const Services* services)
    : plugin_(plugin), services_(services), limits_{services != nullptr ? services->cancelled() : nullptr} {
  if (limits_.flag == nullptr) limits_ = CancelScope::Current();
  table_.host = {.head = FBX_HEAD(fbx_host),
                 .emit = Emit,
                 .get_extension = GetExtension,
                 .attrs = &AttrApi(),
                 .options = AsAbi(plugin.options()),
                 .name = AsAbi("fusebox"),
                 .version = AsAbi(FUSEBOX_VERSION),
                 .cancelled = Cancelled};
  table_.self = this;
}

const HostCall& HostCall::From(const fbx_host* host) { return *reinterpret_cast<const Table*>(host)->self; }

void HostCall::Emit(const fbx_host* host, const fbx_diag* diag) noexcept {
  if (host == nullptr || diag == nullptr || diag->head.size < offsetof(fbx_diag, subject) + sizeof(fbx_str))
    return;
  HostCall& self = *reinterpret_cast<const Table*>(host)->self;
  try {
    Diag copy{diag->severity, Copy(diag->code), Copy(diag->message), Copy(diag->subject)};
    const std::lock_guard lock(self.mutex_);
    if (self.diags_.size() < kMostDiags) self.diags_.push_back(std::move(copy));
    self.emitted_ = true;
  } catch (...) {
    return;  // out of memory: drops the text; the status still reports the failure
  }
}

const void* HostCall::GetExtension(const fbx_host* host, fbx_str id) noexcept try {
  if (host == nullptr || id.ptr == nullptr) return nullptr;
  const HostCall& self = From(host);
  const void* found = self.services_ ? self.services_->Find(FromAbi(id)) : nullptr;
  return found ? found : self.plugin_.FindExtension(FromAbi(id), self.services_);
} catch (const std::bad_alloc&) {
  return nullptr;  // as if there were none
}

int32_t HostCall::Cancelled(const fbx_host* host) noexcept { return From(host).cancelled() ? 1 : 0; }

std::vector<Diag> HostCall::TakeDiags() {
  if (!emitted_) return {};
  const std::lock_guard lock(mutex_);
  emitted_ = false;
  return std::exchange(diags_, {});
}

Status HostCall::Check(fbx_status status) {
  if (status == FBX_OK && !emitted_) return {};
  const std::vector<Diag> diags = TakeDiags();
  if (status == FBX_OK) {
    for (const Diag& diag : diags) {
      auto& log = Log("plugin");
      if (diag.severity >= FBX_WARNING) {
        log.warn("{}: {}", plugin_.id(), ToString(diag));
      } else {
        log.debug("{}: {}", plugin_.id(), ToString(diag));
      }
    }
    return {};
  }
  if (status == FBX_CANCELLED && cancelled()) return Fail(Code::kCancelled, "it was cancelled");
  if (status == FBX_CANCELLED)
    return Internal("plugin " + std::string(plugin_.id()) + ": " + StatusName(status));
  std::string message;
  for (const Diag& diag : diags) message += (message.empty() ? "" : "; ") + ToString(diag);
  if (message.empty()) message = StatusName(status);
  return Fail(CodeOf(status), "plugin " + std::string(plugin_.id()) + ": " + message);
}

}  // namespace fusebox
