// SPDX-License-Identifier: Apache-2.0
// The inside of Registry, shared by registry.cc (how it comes to be) and lookup.cc (what it is asked). Every
// function expects the mutex to be held.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "host/plugin/steps.h"

namespace fusebox {

// Lets a map of strings be asked with a part of one.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

struct Registry::Impl final : Broker {
  struct Plugin {
    PluginInfo info;
    std::unique_ptr<LoadedPlugin> loaded;  // set: usable
    const fbx_entry* entry = nullptr;      // of a built-in plugin, or once its library is open
    bool named = false;                    // by --plugin
    bool loading = false;
    bool unloaded = false;
    bool passed_over = false;  // for a service, and that was said
  };

  explicit Impl(const Config& c) : config(c) {}
  ~Impl();

  Status AddFound(const Found& found, const Policy& policy);
  Status AddBuiltIn(const fbx_entry& entry, const Policy& policy);
  // The user's options over the defaults of the manifest's schema.
  Result<Attrs> OptionsFor(const Manifest& manifest) const;
  // The plugin, open; null when it cannot be used (its info says why).
  const LoadedPlugin* Load(Plugin& plugin);
  Status Open(Plugin& plugin);
  void Unload(Plugin& plugin);  // after those that use its services
  // What the plugin's manifest requires of others: found now where it must be there, else when it is asked
  // for.
  Status Require(LoadedPlugin& plugin);
  // Broker. Takes the mutex, which the thread may hold: a plugin may ask while it is loaded.
  Answer Find(const LoadedPlugin& asking, std::string_view id, const Services*) override;
  // Plugins that promise the service, in the order in which they are asked.
  std::vector<Plugin*> Providers(std::string_view id);
  std::string WhyNot(std::string_view id);
  void WarnOfUnknownIds();
  // The options_schema of the first plugin that states one for the op; else one that accepts everything.
  Result<JsonSchema> OpSchema(fbx_op_kind kind, std::string_view op) const;
  // The first usable plugin whose manifest has the delegate; null: none.
  Plugin* FindDelegate(std::string_view name);
  const Plugin* FindDelegate(std::string_view name) const {
    return const_cast<Impl*>(this)->FindDelegate(name);
  }
  std::vector<Config::Delegate> StatedDelegates() const;  // by the configuration
  // Adds a delegate that a model is to have. Error: it has to be there and is not, or its options break their
  // schema.
  Status Use(const Config::Delegate& delegate, bool must_be_there, Delegation& delegation,
             std::vector<std::string>& notices);
  // Reads the options_schemas of a plugin's delegates, so that the first model need not.
  void ReadDelegateSchemas(const Plugin& plugin);
  std::vector<std::string> DelegateNames() const;
  std::vector<Config::Delegate> DefaultDelegates() const;
  const std::vector<KernelRef>& AllKernels(fbx_op_kind kind, std::string_view op);
  // The list of config.prefer for an op or composite name, its own or that of its longest prefix*; null:
  // none.
  const std::vector<std::string>* Preferred(std::string_view name) const;

  Config config;
  mutable std::recursive_mutex mutex;
  std::deque<Plugin> plugins;  // in search order, built-in last
  std::vector<std::string> searched;
  std::vector<Plugin*> load_order;
  std::vector<std::pair<const PluginInfo*, const Plugin*>> uses;  // of services: by whom, and whose
  using KernelsByOp = std::unordered_map<std::string, std::vector<KernelRef>, TextHash, std::equal_to<>>;
  std::map<fbx_op_kind, KernelsByOp> kernels;
  std::unordered_map<std::string, JsonSchema> schemas;  // of ops, by kind and op
  std::unordered_map<std::string, JsonSchema> delegate_schemas;
};

// Position of a plugin in a preference list; the list's size when it is not there.
size_t Rank(const std::vector<std::string>* preferred, std::string_view id);

}  // namespace fusebox
