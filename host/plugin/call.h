// SPDX-License-Identifier: Apache-2.0
// The call of a plugin that a thread is in: for programs that report crashes of plugins.
#pragma once

#include "host/graph/view.h"
#include "host/plugin/registry.h"

namespace fusebox {

// Views of texts that outlive the call. Async-signal-safe to read.
struct PluginCall {
  fbx_str plugin;    // id
  const char* what;  // "rule", "kernel", "delegate", "library"
  fbx_str subject;   // id of the rule, op, name of the delegate, path of the library
  fbx_str node;      // name in the model; may be empty
};

// Null: this thread is in no plugin. Initial-exec: in a shared library, each call would otherwise cost 2.7 ns
// instead of 0.5 ns.
[[gnu::tls_model("initial-exec")]] inline constinit thread_local const PluginCall* current_call = nullptr;

inline PluginCall KernelCall(const HostCall& call, const fbx_node& node) {
  return {AsAbi(call.plugin().id()), "kernel", node.op, node.location};
}

// Records a call, which outlives it, while it lives. Calls nest.
class Recorded {
 public:
  explicit Recorded(const PluginCall& call) { current_call = &call; }
  Recorded(const Recorded&) = delete;
  ~Recorded() { current_call = outer_; }

 private:
  const PluginCall* const outer_ = current_call;
};

// Records a call of which it keeps the record.
class InCall {
 public:
  explicit InCall(const PluginCall& call) : call_(call) {}
  InCall(const HostCall& call, const char* what, fbx_str subject, fbx_str node = {})
      : InCall({AsAbi(call.plugin().id()), what, subject, node}) {}
  InCall(const HostCall& call, const fbx_node& node) : InCall(KernelCall(call, node)) {}

 private:
  const PluginCall call_;
  const Recorded recorded_{call_};
};

}  // namespace fusebox
