// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "host/graph/view.h"
#include "host/plugin/impl.h"

namespace fusebox {
namespace {

// Returns the element of `implements` that matches the composite, or null if none does.
const std::string* TakenBy(const ManifestRule& rule, std::string_view composite) {
  for (const std::string& name : rule.implements) {
    const bool prefix =
        name.ends_with('*') && composite.starts_with(std::string_view(name).substr(0, name.size() - 1));
    if (prefix || name == composite) return &name;
  }
  return nullptr;
}

bool InRange(int version, int min, int max) {
  return version == 0 || (version >= min && (max == 0 || version <= max));
}

// Returns why the manifest's conditions exclude the rule, or an empty string if they do not.
std::string Unmet(const ManifestRule& rule, int version, const Attrs& attrs) {
  if (!InRange(version, rule.min_version, rule.max_version)) {
    const std::string max = rule.max_version == 0 ? "" : std::to_string(rule.max_version);
    return "it is for versions " + std::to_string(rule.min_version) + "-" + max + ", this is version " +
           std::to_string(version);
  }
  if (rule.when.empty()) return {};
  const auto parsed = ParseWhen(rule.when);
  if (!parsed) return "its condition \"when\" is invalid: " + parsed.error().message;
  nlohmann::json values = JsonFromAttrs(attrs);
  parsed->FillDefaults(values);
  const auto violation = parsed->Check(values);
  if (!violation) return {};
  return "attribute " + (violation->pointer.empty() ? "" : violation->pointer.substr(1) + ": ") +
         violation->what;
}

struct Claim {
  RuleRef ref;
  const PluginInfo* plugin;
  const std::string* name;  // the element of `implements`
};

const fbx_rule* FindRule(const LoadedPlugin& plugin, std::string_view id) {
  for (uint32_t i = 0; i < plugin.abi()->rule_count; ++i) {
    if (FromAbi(plugin.abi()->rules[i]->id) == id) return plugin.abi()->rules[i];
  }
  return nullptr;
}

// Sort key of kernels for an op; ties keep the search order.
std::tuple<size_t, int, int> PlaceOf(const PluginInfo& info, const std::vector<std::string>* preferred) {
  const int origin = info.added ? 0 : info.built_in ? 2 : 1;
  return {Rank(preferred, info.manifest.id), origin, -info.manifest.priority};
}

std::unexpected<Error> Conflict(std::string_view composite, const Claim& a, const Claim& b) {
  const Manifest& first = a.plugin->manifest;
  const Manifest& second = b.plugin->manifest;
  const std::string name = *a.name == *b.name ? *a.name : std::string(composite);
  return Invalid("composite " + std::string(composite) + ": both " + first.id + " (" + first.path + ") and " +
                 second.id + " (" + second.path +
                 ") have a rule for it; set the preferred one in fusebox.json: \"prefer\": {\"" + name +
                 "\": [\"" + first.id + "\", \"" + second.id + "\"]}");
}

}  // namespace

size_t Rank(const std::vector<std::string>* preferred, std::string_view id) {
  if (preferred == nullptr) return 0;
  return static_cast<size_t>(std::find(preferred->begin(), preferred->end(), id) - preferred->begin());
}

const std::vector<std::string>* Registry::Impl::Preferred(std::string_view name) const {
  const std::vector<std::string>* best = nullptr;
  size_t longest = 0;
  for (const auto& [key, ids] : config.prefer) {
    if (key == name) return &ids;
    if (!key.ends_with('*') || !name.starts_with(std::string_view(key).substr(0, key.size() - 1)) ||
        key.size() <= longest)
      continue;
    best = &ids;
    longest = key.size();
  }
  return best;
}

std::vector<PluginInfo> Registry::plugins() const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<PluginInfo> infos;
  for (Impl::Plugin& plugin : impl_->plugins) infos.push_back(Impl::WholeInfo(plugin));
  return infos;
}

std::vector<std::string> Registry::searched() const { return impl_->searched; }

Status Registry::LoadAll() {
  const std::lock_guard lock(impl_->mutex);
  for (Impl::Plugin& plugin : impl_->plugins) impl_->Load(plugin);
  return {};
}

Status Registry::LoadNamed() {
  const std::lock_guard lock(impl_->mutex);
  for (Impl::Plugin& plugin : impl_->plugins) {
    if (!plugin.named || plugin.info.state == PluginInfo::State::kDenied ||
        plugin.info.state == PluginInfo::State::kShadowed)
      continue;
    if (impl_->Load(plugin) == nullptr)
      return NotFound("plugin " + plugin.info.manifest.id + " (" + plugin.info.manifest.path +
                      "): " + plugin.info.why);
  }
  return {};
}

Result<std::vector<RuleRef>> Registry::RulesFor(std::string_view composite, int version, const Attrs& attrs,
                                                std::vector<SkippedRule>* skipped) {
  const std::lock_guard lock(impl_->mutex);
  std::vector<Claim> claims;
  for (Impl::Plugin& plugin : impl_->plugins) {
    if (plugin.info.state == PluginInfo::State::kShadowed) continue;
    for (const ManifestRule& stated : Impl::Whole(plugin).rules) {
      const std::string* name = TakenBy(stated, composite);
      if (name == nullptr) continue;
      const auto skip = [&](const std::string& why) {
        const Manifest& of = plugin.info.manifest;
        const bool broken = plugin.info.state == PluginInfo::State::kBroken;
        if (skipped)
          skipped->push_back({.rule = stated.id,
                              .plugin = of.id,
                              .plugin_version = of.version,
                              .why = why,
                              .broken = broken});
      };
      if (std::string why = Unmet(stated, version, attrs); !why.empty()) {
        skip(why);
        continue;
      }
      const bool declared = stated.rewrite.has_value();
      const LoadedPlugin* loaded = declared ? nullptr : impl_->Load(plugin);
      if (declared ? plugin.info.state != PluginInfo::State::kOk : loaded == nullptr) {
        skip("the plugin is " + std::string(Name(plugin.info.state)) + ": " + plugin.info.why);
        continue;
      }
      if (declared) {
        claims.push_back({{.declared = &stated, .manifest = &plugin.info.manifest}, &plugin.info, name});
        continue;
      }
      const fbx_rule* rule = FindRule(*loaded, stated.id);
      if (!InRange(version, rule->min_version, rule->max_version)) {
        skip("it does not support version " + std::to_string(version));
        continue;
      }
      claims.push_back({{rule, loaded, nullptr, &plugin.info.manifest}, &plugin.info, name});
    }
  }
  const std::vector<std::string>* preferred = impl_->Preferred(composite);
  const auto listed = [&](const Claim& claim) {
    return preferred && Rank(preferred, claim.plugin->manifest.id) < preferred->size();
  };
  const auto other = std::find_if(claims.begin(), claims.end(),
                                  [&](const Claim& c) { return c.plugin != claims[0].plugin; });
  if (other != claims.end() && std::none_of(claims.begin(), claims.end(), listed))
    return Conflict(composite, claims[0], *other);
  std::sort(claims.begin(), claims.end(), [&](const Claim& a, const Claim& b) {
    const auto key = [&](const Claim& c) {
      const fbx_rule* const coded = c.ref.rule;
      return std::tuple(Rank(preferred, c.plugin->manifest.id), std::string_view(c.plugin->manifest.id),
                        coded ? -int64_t{coded->benefit} : 0,
                        coded ? FromAbi(coded->id) : std::string_view(c.ref.declared->id));
    };
    return key(a) < key(b);
  });
  std::vector<RuleRef> rules;
  for (const Claim& claim : claims) rules.push_back(claim.ref);
  return rules;
}

PluginInfo Registry::Impl::WholeInfo(Plugin& plugin) {
  Whole(plugin);
  PluginInfo info = plugin.info;
  if (plugin.unlisted != nullptr) AddOps(*plugin.unlisted, info.manifest);
  return info;
}

bool Registry::Impl::Lists(Plugin& plugin, fbx_op_kind kind, std::string_view op) {
  if (plugin.unlisted != nullptr) {
    const std::span kernels(plugin.unlisted->kernels, plugin.unlisted->kernel_count);
    return std::ranges::any_of(kernels,
                               [&](const fbx_kernel* k) { return k->kind == kind && FromAbi(k->op) == op; });
  }
  if (plugin.rest.file && !plugin.rest.MayHave(kind, op)) return false;
  return std::ranges::any_of(Whole(plugin).ops,
                             [&](const ManifestOp& o) { return o.kind == kind && o.name == op; });
}

const std::vector<KernelRef>& Registry::Impl::AllKernels(fbx_op_kind kind, std::string_view op) {
  KernelsByOp& by_op = kernels[kind];
  if (const auto found = by_op.find(op); found != by_op.end()) return found->second;
  std::vector<KernelRef>& list = by_op[std::string(op)];
  for (Plugin& plugin : plugins) {
    if (!Lists(plugin, kind, op)) continue;
    const LoadedPlugin* loaded = Load(plugin);
    if (loaded == nullptr) continue;
    for (uint32_t i = 0; i < loaded->abi()->kernel_count; ++i) {
      const fbx_kernel* kernel = loaded->abi()->kernels[i];
      if (kernel->kind == kind && FromAbi(kernel->op) == op) list.push_back({kernel, loaded});
    }
  }
  const std::vector<std::string>* preferred = Preferred(op);
  std::ranges::stable_sort(list, {},
                           [&](const KernelRef& k) { return PlaceOf(k.plugin->info(), preferred); });
  return list;
}

std::vector<Registry::Impl::Plugin*> Registry::Impl::InOrderFor(std::string_view name) {
  std::vector<Plugin*> order;
  for (Plugin& plugin : plugins) order.push_back(&plugin);
  const std::vector<std::string>* preferred = Preferred(name);
  std::ranges::stable_sort(order, {}, [&](const Plugin* p) { return PlaceOf(p->info, preferred); });
  return order;
}

std::vector<PluginInfo> Registry::PluginsFor(std::string_view name) const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<PluginInfo> infos;
  for (Impl::Plugin* const plugin : impl_->InOrderFor(name)) infos.push_back(Impl::WholeInfo(*plugin));
  return infos;
}

std::vector<KernelRef> Registry::KernelsFor(fbx_op_kind kind, std::string_view op, int version) {
  std::vector<KernelRef> kernels;
  for (const KernelRef& ref : KernelsOf(kind, op)) {
    if (ref.Supports(version)) kernels.push_back(ref);
  }
  return kernels;
}

// A list is never changed after its creation.
const std::vector<KernelRef>& Registry::KernelsOf(fbx_op_kind kind, std::string_view op) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->AllKernels(kind, op);
}

bool KernelRef::Supports(int version) const {
  return InRange(version, kernel->min_version, kernel->max_version);
}

std::vector<std::string> Registry::WhoProvides(fbx_op_kind kind, std::string_view op) const {
  const std::lock_guard lock(impl_->mutex);
  std::vector<std::string> who;
  for (Impl::Plugin& plugin : impl_->plugins) {
    if (!Impl::Lists(plugin, kind, op)) continue;
    const PluginInfo& info = plugin.info;
    const std::string state = info.state == PluginInfo::State::kOk
                                  ? ""
                                  : " (" + std::string(Name(info.state)) + ": " + info.why + ")";
    who.push_back(info.manifest.id + " " + info.manifest.version + state);
  }
  return who;
}

}  // namespace fusebox
