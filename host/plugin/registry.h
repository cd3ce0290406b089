// SPDX-License-Identifier: Apache-2.0
// Registry of plugins. Steps: config -> search -> manifest -> policy -> load -> registry.
//
// A Registry reads the manifest of every plugin found. It opens a library when one of its rules or kernels is
// needed, or on request. A failure disables only that plugin; plugins() reports state and reason. Models and
// the converter share a Registry; all functions are thread-safe. Libraries are never closed.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fusebox/abi/plugin.h"
#include "host/plugin/config.h"
#include "host/plugin/host_call.h"
#include "host/plugin/manifest.h"

namespace fusebox {

struct PluginInfo {
  enum class State { kOk, kShadowed, kDenied, kBroken };
  Manifest manifest;
  State state = State::kOk;
  std::string why;        // for states other than kOk; for shadowed, the path of the other
  bool loaded = false;    // the library is open
  bool built_in = false;  // linked in
  bool added = false;     // by Registry::Add
};
std::string_view Name(PluginInfo::State);

struct KernelRef {
  const fbx_kernel* kernel = nullptr;
  const LoadedPlugin* plugin = nullptr;
  explicit operator bool() const { return kernel != nullptr; }
  bool Supports(int version) const;  // 0: any
};
// A rule of a library (rule, plugin), or a rule without code (declared).
struct RuleRef {
  const fbx_rule* rule = nullptr;
  const LoadedPlugin* plugin = nullptr;
  const ManifestRule* declared = nullptr;
  const Manifest* manifest = nullptr;  // of its plugin
};

// A rule of a manifest that is not tried for a composite.
struct SkippedRule {
  std::string rule, plugin, plugin_version, why;
  bool broken = false;  // the plugin is broken
};

struct DelegateRef {
  const fbx_delegate* delegate = nullptr;
  const LoadedPlugin* plugin = nullptr;
  std::shared_ptr<const Attrs> options;  // over the schema defaults of the manifest, validated
};

using DelegateOptions = std::map<std::string, std::shared_ptr<const Attrs>, std::less<>>;  // by name

// The delegates of a model.
struct Delegation {
  std::vector<DelegateRef> used;  // nodes are offered in this order
  // Options of these delegates, and of unused delegates that were given options and whose plugins provide
  // services.
  DelegateOptions options;
};

class LoadedPlugin {
 public:
  const PluginInfo& info() const { return *info_; }
  const fbx_plugin* abi() const { return plugin_; }
  const Attrs& options() const { return options_; }  // config over manifest defaults, validated
  std::string_view id() const { return info_->manifest.id; }
  // Returns a required service of another plugin, or null if there is none. Loads the provider on first use;
  // later calls do not lock. Built-in plugins have no manifest and may use any service. Any thread.
  const void* FindExtension(std::string_view id, const Services*) const;
  // Returns the table of an extension that this plugin provides itself, or null.
  const void* OwnExtension(std::string_view id) const;

 private:
  friend class Registry;
  struct Required {
    std::string id;
    mutable std::atomic<const void*> table = nullptr;
    mutable std::atomic<bool> settled = false;  // table is final
  };
  const PluginInfo* info_ = nullptr;
  const fbx_plugin* plugin_ = nullptr;  // null while load() runs
  Broker* broker_ = nullptr;
  Attrs options_;
  std::deque<Required> required_;
};

class Registry {
 public:
  // Finds plugins, reads manifests, applies policy. Errors: only invalid configuration (unknown key, a
  // missing or broken `--plugin`, options that violate their schema); a broken plugin on the search path is
  // kept with its reason. `built_in`: linked-in plugins, which outlive the registry. The cpu plugin is always
  // included if it is linked (target fusebox_cpu_static).
  static Result<std::shared_ptr<Registry>> Create(const Config& config,
                                                  std::span<const fbx_static_plugin* const> built_in = {});
  // The same with plugins without manifests.
  static Result<std::shared_ptr<Registry>> Create(const Config& config,
                                                  std::span<const fbx_entry* const> built_in);
  ~Registry();  // calls unload of loaded plugins, in reverse order

  // Adds a plugin of the program itself, and loads it. Models opened from now on use it; it counts as
  // built-in, and policy applies. `manifest`: the text of its fusebox-plugin.json, whose libraries are not
  // read; empty: derived from its tables. `entry` outlives the registry. Error: an invalid manifest, a failed
  // load, or a plugin with this id is already here.
  Status Add(const fbx_entry& entry, std::string_view manifest = {});
  Status Add(const fbx_static_plugin& plugin);

  const Config& config() const { return config_; }
  // Returns a number that no other registry of this process has, and that Add changes.
  uint64_t number() const { return number_; }
  // Plugins that are linked into the program, in the order in which they were added, without the cpu plugin.
  std::vector<fbx_static_plugin> linked() const;
  std::vector<PluginInfo> plugins() const;                        // search order, built-in last
  std::vector<PluginInfo> PluginsFor(std::string_view op) const;  // in order of preference
  std::vector<std::string> searched() const;                      // searched folders, in order
  Status LoadAll();    // opens every kOk plugin now; a failure only marks the plugin
  Status LoadNamed();  // opens plugins that `--plugin` named directly (not by a folder of plugins); fails if
                       // one is unusable

  // Rules for a composite, best first: `prefer`, then benefit, then rule id. version 0: unspecified, matches
  // every rule. Error: two plugins have a rule and there is no preference; names both manifests and the
  // config line to add. `skipped`, if given, receives rules excluded by conditions (versions, `when`) or
  // broken plugins.
  Result<std::vector<RuleRef>> RulesFor(std::string_view composite, int version, const Attrs& attrs,
                                        std::vector<SkippedRule>* skipped = nullptr);
  // Kernels for an op, best first: `prefer`, those that the program added, manifest priority, search order;
  // built-in last. version 0: any.
  std::vector<KernelRef> KernelsFor(fbx_op_kind kind, std::string_view op, int version);
  // Same, for all versions; a kernel may support only some. Lives as long as the registry.
  const std::vector<KernelRef>& KernelsOf(fbx_op_kind kind, std::string_view op);
  // Plugins whose manifest lists the op (loadable or not), for messages: "com.acme.x 1.0.0 (denied: ...)".
  std::vector<std::string> WhoProvides(fbx_op_kind kind, std::string_view op) const;
  // Returns delegates in the order in which nodes are offered: `wanted`, else the config's list, else the
  // manifests' default delegates (by priority, then plugin id). `options`, by name, override options of the
  // list. Error: a missing `wanted` delegate, or options that violate their schema. Other unusable delegates
  // are skipped, with a line in `notices`.
  Result<Delegation> Delegates(const std::optional<std::vector<Config::Delegate>>& wanted,
                               const std::map<std::string, Attrs>& options,
                               std::vector<std::string>& notices);
  // A service of a plugin for the program itself, from the first usable provider, which is loaded. Null
  // table: no provider.
  struct ServiceRef {
    const void* table = nullptr;
    const LoadedPlugin* plugin = nullptr;
  };
  ServiceRef FindService(std::string_view id);
  // Validates the options of a custom op with the options_schema of the first usable plugin in the order of
  // KernelsFor; OK if there is none. Error: "option alpha: ...".
  Status CheckOptions(const Node&);
  // Sets absent options of a custom op, or of all of a module, to the defaults of the options_schema. Invalid
  // options are left to CheckOptions, and so are maps with values that attributes cannot hold.
  void FillOptions(Node&);
  void FillOptions(Module&);

 private:
  Registry() = default;
  struct Impl;
  static uint64_t NextNumber();
  Config config_;
  std::atomic<uint64_t> number_ = NextNumber();
  std::unique_ptr<Impl> impl_;
};

}  // namespace fusebox
