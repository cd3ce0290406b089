// SPDX-License-Identifier: Apache-2.0
// Registry of plugins. Steps: config -> search -> manifest -> policy -> load -> registry.
//
// A Registry reads the manifest of every plugin found. It opens a library when one of its rules or kernels is
// needed, or on request. A failure disables only that plugin; plugins() reports state and reason. Models and
// the converter share a Registry; all functions are thread-safe. Libraries are never closed.
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

// Roles of a custom op's operands in post-training quantization, by index. All other f32 operands and results
// are activations.
struct OpQuantization {
  struct Weights {
    size_t operand = 0;
    int axis = -1;  // of the scales; -1: one scale
  };
  struct Bias {
    size_t operand = 0;  // its scale is the product of input and weight scales
    size_t input = 0;
    size_t weights = 0;
  };
  struct SameScale {
    std::vector<size_t> operands, results;
  };
  std::vector<Weights> weights;
  std::vector<Bias> biases;
  std::vector<SameScale> same_scale;
  bool asymmetric_inputs = false;  // the op has the option asymmetric_quantize_inputs
};

// An op, rule or delegate listed in a manifest.
struct ManifestOp {
  fbx_op_kind kind = FBX_OP_CUSTOM;
  std::string name;
  int version = 0;             // 0: unspecified
  std::string options_schema;  // JSON Schema text; empty: none
  std::optional<OpQuantization> quantization;
};
// A rewrite without code: the composite becomes the op in `emits` of its rule.
struct DeclaredRewrite {
  struct Operand {
    int from = -1;                     // operand of the composite; -1: absent operand of the op
    std::vector<int64_t> permutation;  // transpose; empty: none
    std::optional<DType> dtype;        // required type
    std::optional<int> rank;
    bool constant = false;
  };
  struct Attribute {
    std::string name, from;          // of the op, and of the composite; empty: none
    std::optional<AttrValue> value;  // replaces a missing attribute of the composite
  };
  std::optional<std::vector<Operand>> operands;  // nothing: the composite's operands
  std::optional<std::vector<int>> results;       // per result of the composite, the op's; nothing: the same
  std::vector<Attribute> attributes;
  fbx_tolerance tolerance = {};
};
struct ManifestRule {
  std::string id;
  std::vector<std::string> implements;  // names, or prefixes ending in '*'
  int min_version = 0;
  int max_version = 0;  // 0: unbounded
  std::string when;     // JSON object: attribute name -> JSON Schema of its value; empty: always
  std::vector<ManifestOp> emits;
  std::optional<DeclaredRewrite> rewrite;  // set: a rule without library code
};
struct ManifestDelegate {
  std::string name, options_schema;
  bool is_default = false;  // models use it by default
};
struct ManifestLibrary {
  std::string platform;  // "linux-x86_64"
  std::string path;      // absolute
  std::string sha256;    // of the file, in hexadecimal; empty: not sealed
};
struct Manifest {
  std::string path;        // of the JSON file
  std::string text;        // its content
  std::string library;     // absolute path of the library for this machine; need not exist. Empty: none,
  std::string no_library;  // for this reason; both empty: the plugin has no code
  std::vector<ManifestLibrary> libraries;  // for all machines
  const ManifestLibrary* Chosen() const;   // the entry of `library`; null: none
  std::string id, version, name_space, description, license;
  int abi_major = 1;
  int abi_min_minor = 0;
  std::vector<std::string> requires_cpu, requires_extensions, provides_extensions;
  std::vector<ManifestRule> rules;
  std::vector<ManifestOp> ops;
  std::vector<ManifestDelegate> delegates;
  std::string options_schema;  // empty: no options
  int priority = 0;
};
// Validated by sdk/schema/plugin-manifest-1.json (embedded). Errors: "file:line:column: problem; did you
// mean".
Result<Manifest> ReadManifest(const std::string& path);

// fusebox.json plus command line options.
struct Config {
  std::string path = {};                      // of the file; empty: none
  std::vector<std::string> plugins = {};      // --plugin: a manifest, a library, or a folder; searched first
  std::vector<std::string> plugin_path = {};  // folders; relative to the file
  std::vector<std::string> allow = {};        // globs over plugin ids; empty: all
  std::vector<std::string> deny = {};         // globs over plugin ids; wins over allow
  // plugin id -> SHA-256 of the files that may run under it: its libraries; without any, its manifest
  std::map<std::string, std::vector<std::string>> pins = {};
  // Ed25519 keys, each as the Base64 line of its PEM file. A manifest needs a signature by one of them, and
  // its library a SHA-256 in it. Empty: no signature is needed.
  std::vector<std::string> require_signed = {};
  std::map<std::string, Attrs> options = {};  // by plugin id
  // op or composite name -> plugin ids, best first
  std::map<std::string, std::vector<std::string>> prefer = {};
  struct Delegate {
    std::string name;
    Attrs options = {};
  };
  std::optional<std::vector<Delegate>> delegates = {};  // in this order; nothing: the default delegates
  bool search_default_path = true;                      // environment, user and system folders
};
Result<Config> ReadConfig(const std::string& path);
// Parses the same from text: its keys replace keys of `config`. `name` stands in messages.
Result<Config> ParseConfig(const std::string& name, std::string json, Config config = {});
// "xnnpack" or "xnnpack:{JSON object}", as on the command line; or "{JSON object}", options by delegate, as
// in the API.
Result<Config::Delegate> ParseDelegate(std::string_view text);
Result<std::map<std::string, Attrs>> ParseDelegateOptions(std::string_view json);

struct PluginInfo {
  enum class State { kOk, kShadowed, kDenied, kBroken };
  Manifest manifest;
  State state = State::kOk;
  std::string why;        // for states other than kOk; for shadowed, the path of the other
  bool loaded = false;    // the library is open
  bool built_in = false;  // linked in
};
std::string_view Name(PluginInfo::State);

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
  bool cancelled() const { return cancelled_->load(std::memory_order_relaxed); }
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
  const std::atomic<bool>* cancelled_;  // never null
  Table table_;
  std::atomic<bool> emitted_ = false;  // avoids the lock for calls without diagnostics
  std::mutex mutex_;
  std::vector<Diag> diags_;

  static void Emit(const fbx_host*, const fbx_diag*) noexcept;
  static const void* GetExtension(const fbx_host*, fbx_str id) noexcept;
  static int32_t Cancelled(const fbx_host*) noexcept;
};

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
  // Kernels for an op, best first: `prefer`, manifest priority, search order; built-in last. version 0: any.
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
  Config config_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fusebox
