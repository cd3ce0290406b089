// SPDX-License-Identifier: Apache-2.0
// Services between plugins: finds and loads the provider on first use.
#include <fusebox/abi/ext/caller.h>
#include <fusebox/abi/ext/forward.h>
#include <fusebox/abi/ext/profile.h>
#include <fusebox/abi/ext/progress.h>
#include <fusebox/abi/ext/pthreadpool.h>
#include <fusebox/abi/ext/resize.h>
#include <fusebox/abi/ext/resources.h>
#include <fusebox/abi/ext/threads.h>

#include <algorithm>
#include <tuple>

#include "host/base/log.h"
#include "host/graph/view.h"
#include "host/plugin/call.h"
#include "host/plugin/impl.h"

namespace fusebox {
namespace {

bool IsHostExtension(std::string_view id) {
  return id == FBX_EXT_THREADS || id == FBX_EXT_PTHREADPOOL || id == FBX_EXT_RESIZE || id == FBX_EXT_CALLER ||
         id == FBX_EXT_PROGRESS || id == FBX_EXT_PROFILE || id == FBX_EXT_RESOURCES || id == FBX_EXT_FORWARD;
}

}  // namespace

const void* LoadedPlugin::OwnExtension(std::string_view id) const {
  return plugin_->get_extension == nullptr ? nullptr : plugin_->get_extension(plugin_->user, AsAbi(id));
}

const void* LoadedPlugin::FindExtension(std::string_view id, const Services* services) const {
  if (IsHostExtension(id)) return nullptr;  // absent here; looked up for each call
  const auto mine = [&](const Required& r) { return r.id == id; };
  const auto required = std::find_if(required_.begin(), required_.end(), mine);
  if (required == required_.end() && !info_->built_in) return nullptr;
  if (required != required_.end() && required->settled.load(std::memory_order_acquire))
    return required->table.load(std::memory_order_relaxed);
  const Broker::Answer answer = broker_->Find(*this, id, services);
  if (!answer.notice.empty()) Log("plugin").warn("{}: {}", this->id(), answer.notice);
  if (required != required_.end() && answer.settled) {
    required->table.store(answer.table, std::memory_order_relaxed);
    required->settled.store(true, std::memory_order_release);
  }
  return answer.table;
}

std::vector<Registry::Impl::Plugin*> Registry::Impl::Providers(std::string_view id) {
  std::vector<Plugin*> found;
  for (Plugin& plugin : plugins) {
    // Linked-in plugins have no manifest; query them directly.
    const auto& promised = plugin.info.manifest.provides_extensions;
    const bool provides = plugin.info.built_in
                              ? plugin.loaded != nullptr && plugin.loaded->OwnExtension(id) != nullptr
                              : std::find(promised.begin(), promised.end(), id) != promised.end();
    if (provides) found.push_back(&plugin);
  }
  const std::vector<std::string>* preferred = Preferred(id);
  std::stable_sort(found.begin(), found.end(), [&](const Plugin* a, const Plugin* b) {
    const auto key = [&](const Plugin* p) {
      return std::tuple(Rank(preferred, p->info.manifest.id), -p->info.manifest.priority);
    };
    return key(a) < key(b);
  });
  return found;
}

Broker::Answer Registry::Impl::Find(const LoadedPlugin& asking, std::string_view id,
                                    const Services* services) {
  const std::lock_guard lock(mutex);
  Answer answer;
  std::string passed_over;
  for (Plugin* plugin : Providers(id)) {
    const PluginInfo& info = plugin->info;
    const bool usable = info.state == PluginInfo::State::kOk;
    const bool shadowed = info.state == PluginInfo::State::kShadowed;
    // A plugin gets no service of its users while it is being loaded, but may afterwards.
    if (plugin->loading || (usable && !plugin->loaded && services && !services->MayLoad(info.manifest))) {
      answer.settled = false;
      continue;
    }
    const LoadedPlugin* const loaded = Load(*plugin, true);
    if (loaded == nullptr && !shadowed && !std::exchange(plugin->passed_over, true))
      passed_over += ": plugin " + info.manifest.id + " cannot be used: " + info.why;
    if (loaded == nullptr || loaded == &asking) continue;
    const void* const table = loaded->OwnExtension(id);
    if (table == nullptr) continue;
    const std::pair<const PluginInfo*, const Plugin*> use(&asking.info(), plugin);
    if (std::find(uses.begin(), uses.end(), use) == uses.end()) uses.push_back(use);
    if (!passed_over.empty())
      passed_over = "it has extension " + std::string(id) + " of " + info.manifest.id + passed_over;
    return {table, true, std::move(passed_over)};
  }
  if (!passed_over.empty()) answer.notice = "it goes without extension " + std::string(id) + passed_over;
  return answer;
}

Registry::ServiceRef Registry::FindService(std::string_view id) {
  const std::lock_guard lock(impl_->mutex);
  for (Impl::Plugin* plugin : impl_->Providers(id)) {
    const LoadedPlugin* const loaded = impl_->Load(*plugin);
    if (loaded == nullptr) continue;
    if (const void* const table = loaded->OwnExtension(id)) return {table, loaded};
  }
  return {};
}

std::string Registry::Impl::WhyNot(std::string_view id) {
  std::string why;
  for (const Plugin* plugin : Providers(id)) {
    why += (why.empty() ? ": plugin " : "; plugin ") + plugin->info.manifest.id + " ";
    if (plugin->loading) {
      why += "requires this one in turn";
    } else {
      why += "is " + std::string(Name(plugin->info.state)) + ": " + plugin->info.why;
    }
  }
  if (!why.empty()) return why;
  return ", which neither the host nor a plugin here provides; install a plugin that provides it, or end the "
         "id with ? in \"requires\"";
}

Status Registry::Impl::Require(LoadedPlugin& plugin) {
  for (const std::string& text : plugin.info().manifest.requires_extensions) {
    const bool optional = text.ends_with('?');
    const std::string id = text.substr(0, text.size() - optional);
    if (IsHostExtension(id)) continue;
    plugin.required_.emplace_back().id = id;
    if (optional) continue;
    const Answer answer = Find(plugin, id, nullptr);
    if (answer.table == nullptr) return NotFound("it requires extension " + id + WhyNot(id));
    if (!answer.notice.empty()) Log("plugin").warn("{}: {}", plugin.id(), answer.notice);
  }
  return {};
}

void Registry::Impl::Unload(Plugin& plugin) {
  if (std::exchange(plugin.unloaded, true)) return;
  const auto mine = [&](const auto& use) { return use.second == &plugin; };
  for (Plugin* other : load_order) {
    const bool uses_it = std::any_of(uses.begin(), uses.end(),
                                     [&](const auto& use) { return mine(use) && use.first == &other->info; });
    if (uses_it) Unload(*other);
  }
  const Manifest& manifest = plugin.info.manifest;
  const InCall in({AsAbi(manifest.id), "library", AsAbi(manifest.library), {}});
  if (plugin.entry->unload) plugin.entry->unload();
}

}  // namespace fusebox
