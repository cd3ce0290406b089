// SPDX-License-Identifier: Apache-2.0
// HostCall: the host as a plugin sees it during a call; the extensions behind it, and what the plugin
// reports.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "host/base/cancel.h"
#include "host/plugin/manifest.h"

namespace fusebox {

struct Diag {
  int32_t severity = FBX_NOTE;
  std::string code, message, subject;
};
std::string ToString(const Diag&);  // "NONCONST: kernel is not constant (operand 3)"

// Extensions of the host that depend on the call (the session's threads, ...). The plugin layer defines none.
class Services {
 public:
  virtual ~Services() = default;
  virtual const void* Find(std::string_view id) const = 0;  // null: none here
  // Returns whether a plugin that is not loaded yet may be loaded to provide its service here.
  virtual bool MayLoad(const Manifest&) const { return true; }
  // Returns a flag that is set when the calls shall end early, or null for never. Lives as long as the
  // services.
  virtual const std::atomic<bool>* cancelled() const { return nullptr; }
};

class LoadedPlugin;  // an open library

// Finds the services that plugins provide for each other.
class Broker {
 public:
  struct Answer {
    const void* table = nullptr;  // null: no provider
    bool settled = true;          // false: the result may change later
    std::string notice = {};      // about a provider that is unusable
  };
  virtual Answer Find(const LoadedPlugin& asking, std::string_view id, const Services*) = 0;

 protected:
  ~Broker() = default;
};

// The fbx_host that one plugin receives in calls of one session, prepare or conversion. Reusable: TakeDiags()
// between calls. emit() may be called by several threads at once; everything else only by the calling thread.
class HostCall {
 public:
  HostCall(const LoadedPlugin& plugin, const Services* services);
  HostCall(const HostCall&) = delete;
  const fbx_host* abi() const { return &table_.host; }
  const LoadedPlugin& plugin() const { return plugin_; }
  const Services* services() const { return services_; }
  bool cancelled() const { return limits_.Reached(); }
  std::vector<Diag> TakeDiags();
  // OK, or an error with the diagnostics as message ("plugin acme: ..."). NOT_APPLICABLE is an error here
  // too. CANCELLED is Code::kCancelled if the call was cancelled, else a mistake of the plugin. Clears the
  // diagnostics in all cases; logs warnings of successful calls.
  Status Check(fbx_status status);
  // The HostCall of a table that a plugin passed back (for extension functions).
  static const HostCall& From(const fbx_host*);

 private:
  struct Table {
    fbx_host host;
    HostCall* self;
  };
  const LoadedPlugin& plugin_;
  const Services* services_;
  Limits limits_;
  Table table_;
  std::atomic<bool> emitted_ = false;  // avoids the lock for calls without diagnostics
  std::mutex mutex_;
  std::vector<Diag> diags_;

  static void Emit(const fbx_host*, const fbx_diag*) noexcept;
  static const void* GetExtension(const fbx_host*, fbx_str id) noexcept;
  static int32_t Cancelled(const fbx_host*) noexcept;
};

}  // namespace fusebox
