// SPDX-License-Identifier: Apache-2.0
// Internals of Registry, shared by registry.cc (creation) and lookup.cc (queries). All functions require the
// mutex to be held.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "host/plugin/steps.h"

namespace fusebox {

// Allows look-up by string_view in a map of strings.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

// The options_schema of a custom op in one manifest.
struct OpSchema {
  int version = 0;     // of the op; 0: any
  std::string plugin;  // id and version
  JsonSchema schema;
};

struct Registry::Impl final : Broker {
  struct Plugin {
    PluginInfo info;
    IndexedRest rest;                      // that the manifest lacks
    const fbx_plugin* unlisted = nullptr;  // its ops are not in the manifest
    std::unique_ptr<LoadedPlugin> loaded;  // set: usable
    const fbx_entry* entry = nullptr;      // of a built-in plugin, or set when its library is opened
    bool named = false;                    // by --plugin
    bool loading = false;
    bool unloaded = false;
    bool passed_over = false;  // as a provider of a service; already reported
  };

  Impl(const Config& c, Policy p) : config(c), policy(std::move(p)) {}
  ~Impl();

  // The plugin's manifest, with everything that an index has. It does not change once the plugin is loaded.
  static const Manifest& Whole(Plugin& plugin) {
    plugin.rest.Complete(plugin.info.manifest);
    return plugin.info.manifest;
  }
  static PluginInfo WholeInfo(Plugin& plugin);
  static bool Lists(Plugin& plugin, fbx_op_kind kind, std::string_view op);
  Status AddFound(const Found& found, ManifestReader& reader);
  // A linked-in plugin gets its place in the search order, and is opened afterwards.
  Result<Plugin*> PlaceBuiltIn(const fbx_static_plugin&);
  Status OpenBuiltIn(Plugin& plugin);
  // The user's options over the schema defaults of the manifest.
  Result<Attrs> OptionsFor(const Manifest& manifest) const;
  // The loaded plugin; null if it is unusable (its info has the reason). A failure is logged, once, unless
  // the caller reports it (`quiet`).
  const LoadedPlugin* Load(Plugin& plugin, bool quiet = false);
  Status Open(Plugin& plugin);
  void Unload(Plugin& plugin);  // after the users of its services
  // Resolves the required extensions of the manifest: mandatory ones now, optional ones on first use.
  Status Require(LoadedPlugin& plugin);
  // Broker. Locks the mutex, recursively: a plugin may call it during load.
  Answer Find(const LoadedPlugin& asking, std::string_view id, const Services*) override;
  // Plugins whose manifest lists the service, in order of preference.
  std::vector<Plugin*> Providers(std::string_view id);
  std::string WhyNot(std::string_view id);
  void WarnOfUnknownIds();
  void Break(Plugin& plugin, std::string why);  // WarnOfBroken reports it
  void WarnOfBroken();
  // Returns the options_schema of a custom op, or null if it has none.
  const OpSchema* SchemaOf(const Node& node);
  // Returns the first usable plugin whose manifest lists the delegate, or null if there is none.
  Plugin* FindDelegate(std::string_view name);
  const Plugin* FindDelegate(std::string_view name) const {
    return const_cast<Impl*>(this)->FindDelegate(name);
  }
  std::vector<Config::Delegate> StatedDelegates() const;  // from the configuration
  // Adds a delegate of a model. Error: it is required and missing, or its options violate their schema.
  Status Use(const Config::Delegate& delegate, bool must_be_there, Delegation& delegation,
             std::vector<std::string>& notices);
  std::vector<std::string> DelegateNames() const;
  std::vector<Config::Delegate> DefaultDelegates() const;
  std::vector<Plugin*> InOrderFor(std::string_view name);  // of preference for an op
  const std::vector<KernelRef>& AllKernels(fbx_op_kind kind, std::string_view op);
  // Returns the config.prefer list for an op or composite name, or for its longest prefix*, or null if there
  // is none.
  const std::vector<std::string>* Preferred(std::string_view name) const;

  Config config;
  Policy policy;
  mutable std::recursive_mutex mutex;
  std::deque<Plugin> plugins;                                   // in search order, built-in last
  std::vector<const PluginInfo*> broken;                        // not reported yet
  std::deque<std::pair<const fbx_entry*, std::string>> linked;  // entry, text of the manifest
  std::vector<std::string> searched;
  std::vector<Plugin*> load_order;
  std::vector<std::pair<const PluginInfo*, const Plugin*>> uses;  // of services: user, provider
  using KernelsByOp = std::unordered_map<std::string, std::vector<KernelRef>, TextHash, std::equal_to<>>;
  std::map<fbx_op_kind, KernelsByOp> kernels;
  std::deque<std::map<fbx_op_kind, KernelsByOp>> retired;  // lists from before Add; callers may have them
  // Schemas of custom ops, by name, best first.
  std::unordered_map<std::string, std::vector<OpSchema>, TextHash, std::equal_to<>> op_schemas;
  std::unordered_map<std::string, JsonSchema> delegate_schemas;
};

// Position of a plugin in a preference list; the list's size if absent.
size_t Rank(const std::vector<std::string>* preferred, std::string_view id);

}  // namespace fusebox
