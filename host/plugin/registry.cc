// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <algorithm>

#include "host/base/json.h"
#include "host/base/log.h"
#include "host/plugin/call.h"
#include "host/plugin/impl.h"

// The cpu plugin, where it is linked in.
extern "C" [[gnu::weak]] const fbx_entry fusebox_cpu_entry_v1;

namespace fusebox {
namespace {

// An error in the user's options, at their position in the config file, if any.
std::unexpected<Error> OptionsFail(const Config& config, const std::string& id, const std::string& pointer,
                                   const std::string& what) {
  const std::string subject =
      "options of " + id + (pointer.empty() ? "" : ": " + pointer.substr(1)) + ": " + what;
  if (config.path.empty()) return Invalid(subject);
  const auto text = ReadShortFile(config.path);
  if (!text) return Invalid(subject);
  const Position position = PositionOf(*text, "/options/" + EscapePointer(id) + pointer);
  return Invalid(Place(config.path, position) + ": " + subject);
}

// Returns why this host cannot use the plugin, from its manifest, or an empty string if it can.
std::string Unusable(const Manifest& manifest) {
  if (manifest.abi_major != FBX_ABI_MAJOR || manifest.abi_min_minor > FBX_ABI_MINOR)
    return "it needs plugin ABI " + std::to_string(manifest.abi_major) + "." +
           std::to_string(manifest.abi_min_minor) + ", this host has " + std::to_string(FBX_ABI_MAJOR) + "." +
           std::to_string(FBX_ABI_MINOR) + "; use " +
           (manifest.abi_major < FBX_ABI_MAJOR ? "a newer build of it" : "a newer Fusebox");
  return manifest.no_library;
}

void Mark(PluginInfo& info, PluginInfo::State state, std::string why) {
  info.state = state;
  info.why = std::move(why);
}

}  // namespace

std::string_view Name(PluginInfo::State state) {
  switch (state) {
    case PluginInfo::State::kOk: return "ok";
    case PluginInfo::State::kShadowed: return "shadowed";
    case PluginInfo::State::kDenied: return "denied";
    case PluginInfo::State::kBroken: return "broken";
  }
  return "unknown";
}

Registry::Impl::~Impl() {
  for (auto plugin = load_order.rbegin(); plugin != load_order.rend(); ++plugin) Unload(**plugin);
}

Status Registry::Impl::AddFound(const Found& found, ManifestReader& reader) {
  Plugin& plugin = plugins.emplace_back();
  PluginInfo& info = plugin.info;
  plugin.named = found.named;
  const auto refuse = [&](std::string why) {
    if (found.named) Mark(info, PluginInfo::State::kBroken, std::move(why));  // LoadNamed reports it
    else Break(plugin, std::move(why));
    return Status();
  };
  if (const Status owned = reader.owners.Check(found.manifest); !owned) {
    info.manifest = UnreadManifest(found.manifest);
    return refuse(owned.error().message);
  }
  auto manifest = reader.Read(found.manifest, &plugin.rest);
  if (!manifest) {
    if (found.named) return std::unexpected(std::move(manifest).error());
    info.manifest = Salvage(found.manifest);
  } else {
    info.manifest = *std::move(manifest);
  }
  if (std::string why = policy.Denies(info.manifest.id, false); !why.empty()) {
    Mark(info, PluginInfo::State::kDenied, std::move(why));
    return {};
  }
  for (const Plugin& other : plugins) {
    if (&other == &plugin || other.info.manifest.id != info.manifest.id) continue;
    if (other.info.state == PluginInfo::State::kBroken) continue;
    Mark(info, PluginInfo::State::kShadowed, "by " + other.info.manifest.path);
    return {};
  }
  if (!manifest) {
    Break(plugin, manifest.error().message);
    return {};
  }
  if (info.manifest.libraries.empty()) Whole(plugin);  // its text may be pinned
  if (const Status trusted = CheckManifest(info.manifest, policy, reader.owners); !trusted)
    return refuse(trusted.error().message);
  if (std::string why = Unusable(info.manifest); !why.empty()) {
    // One search path may serve several machines: a plugin for another one is no cause for a warning.
    const bool foreign = why == info.manifest.no_library;
    if (foreign) Mark(info, PluginInfo::State::kBroken, std::move(why));
    else Break(plugin, std::move(why));
    return {};
  }
  if (info.manifest.defaults && !config.options.contains(info.manifest.id)) return {};
  const auto options = OptionsFor(Whole(plugin));
  if (!options && config.options.contains(info.manifest.id)) return std::unexpected(options.error());
  if (!options) Break(plugin, options.error().message);
  return {};
}

Result<Registry::Impl::Plugin*> Registry::Impl::PlaceBuiltIn(const fbx_static_plugin& added) {
  Manifest stated{.path = "built in"};
  if (added.manifest.len > 0) {
    FUSEBOX_ASSIGN(stated, ParseManifest(FromAbi(added.manifest)).At("built-in plugin"));
  }
  Plugin& plugin = plugins.emplace_back();
  PluginInfo& info = plugin.info;
  plugin.entry = added.entry;
  info.built_in = true;
  info.manifest = std::move(stated);
  return &plugin;
}

Status Registry::Impl::OpenBuiltIn(Plugin& plugin) {
  PluginInfo& info = plugin.info;
  if (Status opened = Open(plugin).At("built-in plugin"); !opened) {
    Mark(info, PluginInfo::State::kBroken, opened.error().message);
    return opened;
  }
  if (std::string why = policy.Denies(info.manifest.id, true); !why.empty())
    Mark(info, PluginInfo::State::kDenied, std::move(why));
  for (Plugin& other : plugins) {
    if (&other == &plugin || other.info.manifest.id != info.manifest.id) continue;
    if (other.info.built_in && other.loaded == nullptr) continue;  // opened later
    if (other.info.state != PluginInfo::State::kOk) continue;
    if (other.named) {
      Mark(info, PluginInfo::State::kShadowed, "by " + other.info.manifest.path);
    } else if (other.loaded != nullptr) {
      Mark(info, PluginInfo::State::kShadowed, "by " + other.info.manifest.path + ", which is in use");
      plugin.loaded.reset();
      return Invalid("built-in plugin " + info.manifest.id + ": a plugin with this id is already loaded (" +
                     other.info.manifest.path + ")");
    } else if (info.state == PluginInfo::State::kOk) {
      Mark(other.info, PluginInfo::State::kShadowed, "by the built-in copy");
    }
  }
  if (info.state != PluginInfo::State::kOk) plugin.loaded.reset();
  return {};
}

Result<Attrs> Registry::Impl::OptionsFor(const Manifest& manifest) const {
  const auto given = config.options.find(manifest.id);
  const bool none = given == config.options.end() || given->second.empty();
  if (none && manifest.defaults) return *manifest.defaults;
  if (manifest.options_schema.empty()) {
    if (none) return Attrs();
    return OptionsFail(config, manifest.id, "", "the plugin has no options");
  }
  const auto schema = JsonSchema::Parse(manifest.options_schema);
  if (!schema) return Invalid(manifest.path + ": options_schema: " + schema.error().message);
  nlohmann::json value =
      given == config.options.end() ? nlohmann::json::object() : JsonFromAttrs(given->second);
  if (!config.path.empty()) schema->ResolvePaths(value, FolderOf(config));
  schema->FillDefaults(value);
  if (const auto violation = schema->Check(value))
    return OptionsFail(config, manifest.id, violation->pointer, violation->what);
  auto attrs = AttrsFromJson(value);
  if (!attrs) return OptionsFail(config, manifest.id, attrs.error().pointer, attrs.error().what);
  return *std::move(attrs);
}

const LoadedPlugin* Registry::Impl::Load(Plugin& plugin, bool quiet) {
  if (plugin.loaded) return plugin.loaded.get();
  // Being loaded: two plugins require each other's extensions.
  if (plugin.info.state != PluginInfo::State::kOk || plugin.loading) return nullptr;
  plugin.loading = true;
  const Status opened = Open(plugin);
  plugin.loading = false;
  if (opened) return plugin.loaded.get();
  if (quiet || plugin.named) {
    Mark(plugin.info, PluginInfo::State::kBroken, opened.error().message);  // LoadNamed reports it
  } else {
    Break(plugin, opened.error().message);
    WarnOfBroken();
  }
  return nullptr;
}

Status Registry::Impl::Open(Plugin& plugin) {
  PluginInfo& info = plugin.info;
  Whole(plugin);
  auto loaded = std::make_unique<LoadedPlugin>();
  loaded->info_ = &info;
  loaded->broker_ = this;
  if (!info.built_in && info.manifest.library.empty()) {
    static constexpr fbx_plugin kNoCode{.head = FBX_HEAD(fbx_plugin)};
    loaded->plugin_ = &kNoCode;
    FUSEBOX_ASSIGN(loaded->options_, OptionsFor(info.manifest));
    plugin.loaded = std::move(loaded);
    return {};
  }
  const InCall in({AsAbi(info.manifest.id), "library", AsAbi(info.manifest.library), {}});
  const bool derived = info.built_in && info.manifest.id.empty();  // the manifest, from the plugin's tables
  if (!info.built_in) {
    FUSEBOX_ASSIGN(const auto bundled, BundledIn(info.manifest));
    FUSEBOX_ASSIGN(plugin.entry,
                   OpenLibrary(info.manifest.library, DemandsOf(info.manifest, policy), bundled));
    info.loaded = true;
  }
  FUSEBOX_TRY(CheckEntry(*plugin.entry));
  if (!derived) {
    FUSEBOX_ASSIGN(loaded->options_, OptionsFor(info.manifest));
    FUSEBOX_TRY(Require(*loaded));
  }
  HostCall host(*loaded, nullptr);
  FUSEBOX_ASSIGN(loaded->plugin_, CallLoad(*plugin.entry, host).At("load failed"));
  load_order.push_back(&plugin);
  FUSEBOX_TRY(CheckPlugin(*loaded->plugin_));
  info.loaded = true;
  if (derived) {
    const std::string path = info.manifest.path;
    info.manifest = ManifestOf(*loaded->plugin_);
    plugin.unlisted = loaded->plugin_;
    info.manifest.path = path;
    FUSEBOX_ASSIGN(loaded->options_, OptionsFor(info.manifest));
  } else {
    FUSEBOX_TRY(CompareWithManifest(*loaded->plugin_, info.manifest));
  }
  plugin.loaded = std::move(loaded);
  return {};
}

void Registry::Impl::Break(Plugin& plugin, std::string why) {
  Mark(plugin.info, PluginInfo::State::kBroken, std::move(why));
  broken.push_back(&plugin.info);
}

// A folder that every user can write to breaks all plugins in it for one reason.
void Registry::Impl::WarnOfBroken() {
  for (auto& infos = broken; !infos.empty();) {
    const PluginInfo& first = *infos.front();
    std::vector<std::string> ids;
    std::erase_if(infos, [&](const PluginInfo* info) {
      if (info->why != first.why) return false;
      ids.push_back(info->manifest.id);
      return true;
    });
    const std::string at = first.why.starts_with(first.manifest.path) ? "" : " (" + first.manifest.path + ")";
    if (ids.size() > 1)
      Log("loader").warn("each of the plugins {} is broken: {}", fmt::join(ids, ", "), first.why);
    else Log("loader").warn("plugin {}{} is broken: {}", first.manifest.id, at, first.why);
  }
}

// Unknown ids are not errors: one file may serve several machines. But they may be typos.
void Registry::Impl::WarnOfUnknownIds() {
  std::vector<std::string> known;
  for (const Plugin& plugin : plugins) known.push_back(plugin.info.manifest.id);
  const std::string file = config.path.empty() ? "configuration" : config.path;
  const auto check = [&](const std::string& id, const std::string& where) {  // or a glob over ids
    if (std::ranges::none_of(known, [&](const std::string& k) { return Matches(id, k); }))
      Log("config").warn("{}: {}: no plugin {} here{}", file, where, id, DidYouMean(id, known));
  };
  for (const auto& [id, options] : config.options) check(id, "options");
  for (const std::string& glob : config.allow) check(glob, "allow");
  for (const std::string& glob : config.deny) check(glob, "deny");
  for (const auto& [name, ids] : config.prefer) {
    for (const std::string& id : ids) check(id, "prefer: " + name);
  }
  for (const Config::Delegate& delegate : config.delegates.value_or(std::vector<Config::Delegate>())) {
    if (FindDelegate(delegate.name) == nullptr)
      Log("config").warn("{}: delegates: no plugin here has a delegate {}{}", file, delegate.name,
                         DidYouMean(delegate.name, DelegateNames()));
  }
}

Result<std::shared_ptr<Registry>> Registry::Create(const Config& config,
                                                   std::span<const fbx_entry* const> built_in) {
  std::vector<fbx_static_plugin> plugins;
  for (const fbx_entry* entry : built_in) plugins.push_back({FBX_HEAD(fbx_static_plugin), entry, {}});
  std::vector<const fbx_static_plugin*> pointers;
  for (const fbx_static_plugin& plugin : plugins) pointers.push_back(&plugin);
  return Create(config, pointers);
}

Result<std::shared_ptr<Registry>> Registry::Create(const Config& config,
                                                   std::span<const fbx_static_plugin* const> built_in) {
  FUSEBOX_ASSIGN(Policy policy, Policy::Create(config, PolicyFiles()));
  FUSEBOX_ASSIGN(SearchResult search, Search(config));
  std::shared_ptr<Registry> registry(new Registry());
  registry->config_ = config;
  registry->impl_ = std::make_unique<Impl>(config, std::move(policy));
  Impl& impl = *registry->impl_;
  impl.searched = std::move(search.searched);
  Status added;
  ManifestReader reader(!impl.policy.RequiresSignatures());
  for (const Found& found : search.found)
    if (added) added = impl.AddFound(found, reader);
  impl.WarnOfBroken();
  FUSEBOX_TRY(added);
  std::vector<Impl::Plugin*> placed;
  for (const fbx_static_plugin* plugin : built_in) {
    FUSEBOX_ASSIGN(placed.emplace_back(), impl.PlaceBuiltIn(*plugin));
    impl.linked.emplace_back(plugin->entry, FromAbi(plugin->manifest));
  }
  // Its tables are all that its manifest states, and reading that would take longer than opening a model.
  const fbx_static_plugin cpu{FBX_HEAD(fbx_static_plugin), &fusebox_cpu_entry_v1, {}};
  if (cpu.entry != nullptr) {  // last in the search order, but others may require its services
    FUSEBOX_ASSIGN(Impl::Plugin* const plugin, impl.PlaceBuiltIn(cpu));
    FUSEBOX_TRY(impl.OpenBuiltIn(*plugin));
  }
  for (Impl::Plugin* plugin : placed) FUSEBOX_TRY(impl.OpenBuiltIn(*plugin));
  impl.WarnOfUnknownIds();
  return registry;
}

Status Registry::Add(const fbx_entry& entry, std::string_view manifest) {
  return Add({FBX_HEAD(fbx_static_plugin), &entry, AsAbi(manifest)});
}

Status Registry::Add(const fbx_static_plugin& added) {
  const std::lock_guard lock(impl_->mutex);
  FUSEBOX_ASSIGN(Impl::Plugin* const plugin, impl_->PlaceBuiltIn(added));
  plugin->info.added = true;
  FUSEBOX_TRY(impl_->OpenBuiltIn(*plugin));
  impl_->linked.emplace_back(added.entry, FromAbi(added.manifest));
  impl_->retired.push_back(std::exchange(impl_->kernels, {}));
  impl_->op_schemas.clear();
  number_ = NextNumber();
  return {};
}

std::vector<fbx_static_plugin> Registry::linked() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<fbx_static_plugin> out;
  for (const auto& [entry, manifest] : impl_->linked)
    out.push_back({FBX_HEAD(fbx_static_plugin), entry, AsAbi(manifest)});
  return out;
}

uint64_t Registry::NextNumber() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

Registry::~Registry() = default;

}  // namespace fusebox
