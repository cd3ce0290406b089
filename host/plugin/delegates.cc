// SPDX-License-Identifier: Apache-2.0
// Selects the delegates of a model and their options.
#include <algorithm>

#include "host/base/json.h"
#include "host/graph/view.h"
#include "host/plugin/impl.h"

namespace fusebox {
namespace {

using nlohmann::json;

Result<Attrs> OptionsOf(const json& value, std::string_view name) {
  if (!value.is_object()) return Invalid(std::string(name) + ": options must be a JSON object");
  auto attrs = AttrsFromJson(value);
  if (!attrs) return Invalid(std::string(name) + ": " + attrs.error().pointer + ": " + attrs.error().what);
  return *std::move(attrs);
}

const ManifestDelegate& Stated(const Manifest& manifest, std::string_view name) {
  return *std::find_if(manifest.delegates.begin(), manifest.delegates.end(),
                       [&](const ManifestDelegate& d) { return d.name == name; });
}

// Resolves paths in the configuration file against its folder. Checked reports invalid options and schemas.
Attrs FromFolder(const PluginInfo& info, const Config::Delegate& delegate, const std::string& folder) {
  if (delegate.options.empty()) return delegate.options;
  const auto schema = JsonSchema::Parse(Stated(info.manifest, delegate.name).options_schema);
  if (!schema) return delegate.options;
  json value = JsonFromAttrs(delegate.options);
  schema->ResolvePaths(value, folder);
  return AttrsFromJson(value).value_or(delegate.options);
}

// A linked-in plugin has no manifest, so no schema to validate with.
Result<Attrs> Checked(const PluginInfo& info, const Config::Delegate& wanted,
                      std::unordered_map<std::string, JsonSchema>& schemas) {
  const ManifestDelegate& stated = Stated(info.manifest, wanted.name);
  if (wanted.options.empty() && stated.defaults) return *stated.defaults;
  const std::string& schema_text = stated.options_schema;
  const auto fail = [&](const std::string& pointer, const std::string& what) {
    return Invalid("options of delegate " + wanted.name + ": " +
                   (pointer.empty() ? "" : pointer.substr(1) + ": ") + what);
  };
  if (info.built_in && schema_text.empty()) return wanted.options;
  if (schema_text.empty()) {
    if (wanted.options.empty()) return Attrs();
    return fail("", "it has no options");
  }
  if (!schemas.contains(wanted.name)) {
    auto parsed = JsonSchema::Parse(schema_text);
    if (!parsed)
      return Invalid(info.manifest.path + ": delegate " + wanted.name +
                     ": options_schema: " + parsed.error().message);
    schemas.emplace(wanted.name, *std::move(parsed));
  }
  const JsonSchema& schema = schemas.at(wanted.name);
  json value = JsonFromAttrs(wanted.options);
  schema.FillDefaults(value);
  if (const auto violation = schema.Check(value)) return fail(violation->pointer, violation->what);
  auto attrs = AttrsFromJson(value);
  if (!attrs) return fail(attrs.error().pointer, attrs.error().what);
  return *std::move(attrs);
}

Config::Delegate* Named(std::vector<Config::Delegate>& list, std::string_view name) {
  const auto at = std::find_if(list.begin(), list.end(), [&](const auto& d) { return d.name == name; });
  return at == list.end() ? nullptr : &*at;
}

const fbx_delegate* FindIn(const LoadedPlugin& plugin, std::string_view name) {
  for (uint32_t i = 0; i < plugin.abi()->delegate_count; ++i) {
    if (FromAbi(plugin.abi()->delegates[i]->name) == name) return plugin.abi()->delegates[i];
  }
  return nullptr;
}

}  // namespace

Result<Config::Delegate> ParseDelegate(std::string_view text) {
  const size_t colon = text.find(':');
  Config::Delegate delegate{std::string(text.substr(0, colon))};
  if (delegate.name.empty()) return Invalid("a delegate must be NAME or NAME:{JSON options}");
  if (colon == std::string_view::npos) return delegate;
  FUSEBOX_ASSIGN(const json value, ParseJson(text.substr(colon + 1), "options of delegate " + delegate.name));
  FUSEBOX_ASSIGN(delegate.options, OptionsOf(value, "options of delegate " + delegate.name));
  return delegate;
}

Result<std::map<std::string, Attrs>> ParseDelegateOptions(std::string_view text) {
  std::map<std::string, Attrs> options;
  if (text.empty()) return options;
  FUSEBOX_ASSIGN(const json value, ParseJson(text, "delegate options"));
  if (!value.is_object()) return Invalid("delegate options: expected an object of options by delegate");
  for (const auto& [name, object] : value.items()) {
    FUSEBOX_ASSIGN(options[name], OptionsOf(object, "options of delegate " + name));
  }
  return options;
}

Registry::Impl::Plugin* Registry::Impl::FindDelegate(std::string_view name) {
  for (Plugin& plugin : plugins) {
    if (plugin.info.state != PluginInfo::State::kOk) continue;
    const auto& delegates = plugin.info.manifest.delegates;
    if (std::ranges::find(delegates, name, &ManifestDelegate::name) != delegates.end()) {
      Whole(plugin);
      return &plugin;
    }
  }
  return nullptr;
}

std::vector<std::string> Registry::Impl::DelegateNames() const {
  std::vector<std::string> names;
  for (const Plugin& plugin : plugins) {
    for (const ManifestDelegate& delegate : plugin.info.manifest.delegates) names.push_back(delegate.name);
  }
  return names;
}

std::vector<Config::Delegate> Registry::Impl::DefaultDelegates() const {
  std::vector<const Plugin*> order;
  for (const Plugin& plugin : plugins) {
    if (plugin.info.state == PluginInfo::State::kOk) order.push_back(&plugin);
  }
  std::stable_sort(order.begin(), order.end(), [](const Plugin* a, const Plugin* b) {
    const Manifest& first = a->info.manifest;
    const Manifest& second = b->info.manifest;
    return first.priority != second.priority ? first.priority > second.priority : first.id < second.id;
  });
  std::vector<Config::Delegate> delegates;
  for (const Plugin* plugin : order) {
    for (const ManifestDelegate& delegate : plugin->info.manifest.delegates) {
      const auto same = [&](const Config::Delegate& other) { return other.name == delegate.name; };
      if (delegate.is_default && std::none_of(delegates.begin(), delegates.end(), same))
        delegates.push_back({delegate.name});
    }
  }
  return delegates;
}

std::vector<Config::Delegate> Registry::Impl::StatedDelegates() const {
  std::vector<Config::Delegate> list = config.delegates.value_or(std::vector<Config::Delegate>());
  for (Config::Delegate& delegate : list) {
    const Plugin* plugin = FindDelegate(delegate.name);
    if (!config.path.empty() && plugin != nullptr)
      delegate.options = FromFolder(plugin->info, delegate, FolderOf(config));
  }
  return list;
}

Result<Delegation> Registry::Delegates(const std::optional<std::vector<Config::Delegate>>& wanted,
                                       const std::map<std::string, Attrs>& options,
                                       std::vector<std::string>& notices) {
  const std::lock_guard lock(impl_->mutex);
  const std::vector<Config::Delegate> stated = impl_->StatedDelegates();
  std::vector<Config::Delegate> list = wanted              ? *wanted
                                       : config_.delegates ? stated
                                                           : impl_->DefaultDelegates();
  std::vector<Config::Delegate> off;  // unused, but with options
  for (const Config::Delegate& delegate : stated) {
    if (Named(list, delegate.name) == nullptr) off.push_back(delegate);
  }
  for (const auto& [name, over] : options) {
    Config::Delegate* named = Named(list, name);
    if (named == nullptr) named = Named(off, name);
    if (named == nullptr) named = &off.emplace_back(Config::Delegate{name});
    for (const auto& [key, value] : over) named->options.Set(key, value);
  }
  Delegation delegation;
  for (const Config::Delegate& delegate : list)
    FUSEBOX_TRY(impl_->Use(delegate, wanted.has_value(), delegation, notices));
  for (const Config::Delegate& delegate : off) {
    const Impl::Plugin* plugin = impl_->FindDelegate(delegate.name);
    if (plugin != nullptr && !plugin->info.manifest.provides_extensions.empty()) {
      FUSEBOX_ASSIGN(Attrs checked, Checked(plugin->info, delegate, impl_->delegate_schemas));
      delegation.options[delegate.name] = std::make_shared<const Attrs>(std::move(checked));
    } else if (options.contains(delegate.name)) {
      notices.push_back("delegate " + delegate.name + " has options, but is not used");
    }
  }
  return delegation;
}

Status Registry::Impl::Use(const Config::Delegate& delegate, bool must_be_there, Delegation& delegation,
                           std::vector<std::string>& notices) {
  Plugin* plugin = FindDelegate(delegate.name);
  if (plugin == nullptr) {
    const std::string why =
        "no usable plugin here has a delegate " + delegate.name + DidYouMean(delegate.name, DelegateNames());
    if (must_be_there) return NotFound(why);
    notices.push_back(why);
    return {};
  }
  FUSEBOX_ASSIGN(Attrs checked, Checked(plugin->info, delegate, delegate_schemas));
  const LoadedPlugin* loaded = Load(*plugin);
  const fbx_delegate* found = loaded == nullptr ? nullptr : FindIn(*loaded, delegate.name);
  if (found == nullptr) {
    notices.push_back("delegate " + delegate.name + ": plugin " + plugin->info.manifest.id +
                      " cannot be used: " + plugin->info.why);
    return {};
  }
  const auto options = std::make_shared<const Attrs>(std::move(checked));
  delegation.used.push_back({found, loaded, options});
  delegation.options[delegate.name] = options;
  return {};
}

}  // namespace fusebox
