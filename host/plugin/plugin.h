// SPDX-License-Identifier: Apache-2.0
// Plugins, in the order things happen to them: config -> search -> manifest -> policy -> load -> registry.
//
// A Registry knows every plugin found by its manifest and opens a library only when one of its rules or
// kernels is asked for (or when it is told to). Whatever goes wrong with a plugin drops that plugin alone;
// the state and the reason stay visible in plugins(). A Registry is shared by models and the converter; its
// functions may be called from any thread. Libraries are never closed.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fusebox/abi/plugin.h"
#include "host/base/status.h"
#include "host/graph/graph.h"

namespace fusebox {

// One op, rule or delegate that a manifest promises.
struct ManifestOp {
  fbx_op_kind kind = FBX_OP_CUSTOM;
  std::string name;
  int version = 0;             // 0: not stated
  std::string options_schema;  // JSON Schema text; empty: none
};
// A rewrite without code: the composite becomes the one op that its rule emits.
struct DeclaredRewrite {
  struct Operand {
    int from = -1;                     // the composite's operand; -1: the op's is absent
    std::vector<int64_t> permutation;  // it is transposed so; empty: it is taken as it is
    std::optional<DType> dtype;        // what it has to be
    std::optional<int> rank;
    bool constant = false;
  };
  struct Attribute {
    std::string name, from;          // the op's, and the composite's; empty: none
    std::optional<AttrValue> value;  // instead of the composite's, or where it has none
  };
  std::optional<std::vector<Operand>> operands;  // nothing: the composite's, as they stand
  std::optional<std::vector<int>> results;  // per result of the composite the op's; nothing: as they stand
  std::vector<Attribute> attributes;
  fbx_tolerance tolerance = {};
};
struct ManifestRule {
  std::string id;
  std::vector<std::string> implements;   // names, or prefixes ending in '*'
  int min_version = 0, max_version = 0;  // 0: no bound
  std::string when;  // JSON object: attribute name -> JSON Schema its value must meet; empty: always
  std::vector<ManifestOp> emits;
  std::optional<DeclaredRewrite> rewrite;  // there: the library has no part in the rule
};
struct ManifestDelegate {
  std::string name, options_schema;
  bool is_default = false;  // models get it without being told to
};
struct Manifest {
  std::string path;  // of the JSON file
  std::string
      library;  // absolute path of the library for this machine; it need not exist. Empty: there is none,
  std::string no_library;  // because ...; empty too: the plugin is its manifest and has no code
  std::string id, version, name_space, description, license;
  int abi_major = 1, abi_min_minor = 0;
  std::vector<std::string> requires_cpu, requires_extensions, provides_extensions;
  std::vector<ManifestRule> rules;
  std::vector<ManifestOp> ops;
  std::vector<ManifestDelegate> delegates;
  std::string options_schema;  // empty: it takes none
  int priority = 0;
};
// Checked against sdk/schema/plugin-manifest-1.json (built into the library). Errors: "file:line:column:
// what, did you mean".
Result<Manifest> ReadManifest(const std::string& path);

// fusebox.json, and what the command line adds to it.
struct Config {
  std::string path = {};                  // of the file; empty: none
  std::vector<std::string> plugins = {};  // --plugin: a manifest, a library, or a folder; these come first
  std::vector<std::string> plugin_path = {};       // folders; those of the file are relative to it
  std::vector<std::string> allow = {}, deny = {};  // globs over plugin ids; deny wins; no allow list: all
  std::map<std::string, Attrs> options = {};       // by plugin id
  // op or composite name -> plugin ids, best first
  std::map<std::string, std::vector<std::string>> prefer = {};
  struct Delegate {
    std::string name;
    Attrs options = {};
  };
  std::optional<std::vector<Delegate>> delegates = {};  // these, in this order; nothing: the default ones
  bool search_default_path = true;                      // environment, user and system folders
};
Result<Config> ReadConfig(const std::string& path);
// "xnnpack" or "xnnpack:{JSON object}", as on the command line; "{JSON object}" of options by delegate, as a
// program says it.
Result<Config::Delegate> ParseDelegate(std::string_view text);
Result<std::map<std::string, Attrs>> ParseDelegateOptions(std::string_view json);

struct PluginInfo {
  enum class State { kOk, kShadowed, kDenied, kBroken };
  Manifest manifest;
  State state = State::kOk;
  std::string why;        // for every state but kOk, and where it is shadowed by
  bool loaded = false;    // its library is open
  bool built_in = false;  // linked in; its manifest says what its entry says
};
std::string_view Name(PluginInfo::State);

struct Diag {
  int32_t severity = FBX_NOTE;
  std::string code, message, subject;
};
std::string ToString(const Diag&);  // "NONCONST: kernel is not constant (operand 3)"

// Extensions that the host offers where a call is made (a session's threads, ...). The plugin layer knows
// none itself.
class Services {
 public:
  virtual ~Services() = default;
  virtual const void* Find(std::string_view id) const = 0;  // null: not here
  // Whether a plugin that is not loaded yet may be loaded for a service of its own that somebody asks for
  // here.
  virtual bool MayLoad(const Manifest&) const { return true; }
};

class LoadedPlugin;  // an open library

// Who finds the services that plugins have for each other.
class Broker {
 public:
  struct Answer {
    const void* table = nullptr;  // null: nobody here has it
    bool settled = true;          // and that will not change any more
    std::string notice = {};      // about a plugin that should have it
  };
  virtual Answer Find(const LoadedPlugin& asking, std::string_view id, const Services*) = 0;

 protected:
  ~Broker() = default;
};

// The fbx_host that one plugin sees during calls of one session, prepare or conversion. Reusable: TakeDiags()
// between calls. emit() may come from several threads at once; everything else belongs to the calling thread.
class HostCall {
 public:
  HostCall(const LoadedPlugin& plugin, const Services* services);
  HostCall(const HostCall&) = delete;
  const fbx_host* abi() const { return &table_.host; }
  const LoadedPlugin& plugin() const { return plugin_; }
  const Services* services() const { return services_; }
  std::vector<Diag> TakeDiags();
  // OK, or an error with the diagnostics as its message ("plugin acme: ..."). NOT_APPLICABLE is an error here
  // too. Takes the diagnostics either way; warnings of a call that went well are logged.
  Status Check(fbx_status status);
  // The HostCall behind a table that a plugin handed back (for extension functions).
  static const HostCall& From(const fbx_host*);

 private:
  struct Table {
    fbx_host host;
    HostCall* self;
  };
  const LoadedPlugin& plugin_;
  const Services* services_;
  Table table_;
  std::atomic<bool> emitted_ = false;  // spares calls that have nothing to say the lock
  std::mutex mutex_;
  std::vector<Diag> diags_;

  static void Emit(const fbx_host*, const fbx_diag*) noexcept;
  static const void* GetExtension(const fbx_host*, fbx_str id) noexcept;
};

struct KernelRef {
  const fbx_kernel* kernel = nullptr;
  const LoadedPlugin* plugin = nullptr;
  explicit operator bool() const { return kernel != nullptr; }
  bool Supports(int version) const;  // 0: any
};
// A rule of a library (rule, plugin), or one that its manifest declares (declared).
struct RuleRef {
  const fbx_rule* rule = nullptr;
  const LoadedPlugin* plugin = nullptr;
  const ManifestRule* declared = nullptr;
  const Manifest* manifest = nullptr;  // of its plugin
};

// A rule that a manifest has for a composite and that is not asked.
struct SkippedRule {
  std::string rule, plugin, plugin_version, why;
  bool broken = false;  // its plugin is
};

struct DelegateRef {
  const fbx_delegate* delegate = nullptr;
  const LoadedPlugin* plugin = nullptr;
  std::shared_ptr<const Attrs> options;  // over the defaults of the manifest's schema, checked against it
};

using DelegateOptions = std::map<std::string, std::shared_ptr<const Attrs>, std::less<>>;  // by name

// The delegates of a model.
struct Delegation {
  std::vector<DelegateRef> used;  // in the order in which they are offered nodes
  // Of these, and of those that are turned off and were given options, where their plugins have services for
  // others.
  DelegateOptions options;
};

class LoadedPlugin {
 public:
  const PluginInfo& info() const { return *info_; }
  const fbx_plugin* abi() const { return plugin_; }
  const Attrs& options() const { return options_; }  // config over manifest defaults, validated
  std::string_view id() const { return info_->manifest.id; }
  // A service of another plugin that this one's manifest requires; null: not here. Its provider is loaded
  // when it is first asked for; afterwards that takes no lock. A built-in plugin, which has no manifest, may
  // ask for any. Any thread.
  const void* FindExtension(std::string_view id, const Services*) const;

 private:
  friend class Registry;
  struct Required {
    std::string id;
    mutable std::atomic<const void*> table = nullptr;
    mutable std::atomic<bool> settled = false;  // table will not change any more
  };
  const PluginInfo* info_ = nullptr;
  const fbx_plugin* plugin_ = nullptr;  // null while load() runs
  Broker* broker_ = nullptr;
  Attrs options_;
  std::deque<Required> required_;
};

class Registry {
 public:
  // Finds plugins, reads manifests, applies policy. Fails only on a bad config (unknown key, `--plugin` that
  // is not there or broken, options that break their schema); a broken plugin on the search path is kept with
  // its reason. `built_in`: entries of plugins that are linked into the program. The cpu plugin is always one
  // of them where it is linked (target fusebox_cpu_static).
  static Result<std::shared_ptr<Registry>> Create(const Config& config,
                                                  std::span<const fbx_entry* const> built_in = {});
  ~Registry();  // calls unload of the plugins it loaded, last one first

  const Config& config() const { return config_; }
  std::vector<PluginInfo> plugins() const;  // search order, built-in last
  std::vector<PluginInfo> PluginsFor(
      std::string_view op) const;             // in the order in which their kernels are asked
  std::vector<std::string> searched() const;  // folders that were looked into, in order
  Status LoadAll();                           // opens every kOk plugin now; failures only mark the plugin
  Status
  LoadNamed();  // opens what `--plugin` named on its own (no folder of plugins); fails if one cannot be used

  // Rules for a composite, best first: `prefer`, then benefit, then rule id. version 0: not stated, fits
  // every rule. Two plugins that claim the same name without a preference: an error naming both manifests and
  // the config line to add. `skipped`, if given, receives why manifest conditions (versions, `when`) or
  // broken plugins kept rules out.
  Result<std::vector<RuleRef>> RulesFor(std::string_view composite, int version, const Attrs& attrs,
                                        std::vector<SkippedRule>* skipped = nullptr);
  // Kernels for an op, best first: `prefer`, manifest priority, search order; built-in last. version 0: any.
  std::vector<KernelRef> KernelsFor(fbx_op_kind kind, std::string_view op, int version);
  // The same of any version, each of which may know other versions. As long as the registry.
  const std::vector<KernelRef>& KernelsOf(fbx_op_kind kind, std::string_view op);
  // Which plugins promise that op (loadable or not), for messages: "com.acme.x 1.0.0 (denied: ...)".
  std::vector<std::string> WhoProvides(fbx_op_kind kind, std::string_view op) const;
  // Delegates in the order in which they are offered nodes: `wanted`, else the config's list, else every one
  // that is a default by its manifest (priority, then plugin id). `options` by name come over those of the
  // list. Error: a wanted one that no plugin here has, options that break their schema. What else cannot be
  // used is left out, with a line in `notices`.
  Result<Delegation> Delegates(const std::optional<std::vector<Config::Delegate>>& wanted,
                               const std::map<std::string, Attrs>& options,
                               std::vector<std::string>& notices);
  // A service that a plugin offers to others, for the program itself: of the first one that has it, which is
  // loaded. Its table is null when no usable plugin here has it.
  struct ServiceRef {
    const void* table = nullptr;
    const LoadedPlugin* plugin = nullptr;
  };
  ServiceRef FindService(std::string_view id);
  // Checks an op's attributes against the options_schema of the plugin that provides it; OK when there is
  // none.
  Status CheckOptions(fbx_op_kind kind, std::string_view op, const Attrs& attrs);

 private:
  Registry() = default;
  struct Impl;
  Config config_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fusebox
