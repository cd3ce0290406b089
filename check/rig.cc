// SPDX-License-Identifier: Apache-2.0
#include "check/rig.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "check/child.h"
#include "check/shown.h"
#include "host/graph/view.h"
#include "host/plugin/steps.h"

namespace fusebox::check {
namespace {

constexpr std::string_view kBuiltIn = "built-in plugin: ";

// The registry calls load and unload without `user`.
Rig* loading = nullptr;
const fbx_entry* library = nullptr;

// Prefers the plugin under test for its ops and composites.
void Prefer(const Manifest& manifest, Config& config) {
  const auto prefer = [&](const std::string& name) { config.prefer[name] = {manifest.id}; };
  for (const ManifestOp& op : manifest.ops) prefer(op.name);
  for (const ManifestRule& rule : manifest.rules) std::ranges::for_each(rule.implements, prefer);
}

}  // namespace

struct Rig::Tables {
  fbx_plugin plugin{};
  std::deque<KernelProxy> kernels;
  std::deque<RuleProxy> rules;
  std::deque<DelegateProxy> delegates;
  std::vector<const fbx_kernel*> kernel_pointers;
  std::vector<const fbx_rule*> rule_pointers;
  std::vector<const fbx_delegate*> delegate_pointers;
};

Rig::Rig(const Manifest& manifest, const Conditions& conditions)
    : manifest_(manifest), conditions_(conditions), tables_(std::make_unique<Tables>()) {}

Rig::~Rig() { registry_.reset(); }

std::string Rig::fault() const {
  const std::lock_guard lock(mutex_);
  return fault_;
}

void Rig::Report(std::string fault) {
  const std::lock_guard lock(mutex_);
  if (fault_.empty()) fault_ = std::move(fault);
}

std::string Rig::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Rig::ReportFailure(std::string failure) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = std::move(failure);
}

bool Rig::Hides(std::string_view extension) const {
  if (conditions_.optional_extensions) return false;
  return std::ranges::any_of(manifest_.requires_extensions, [&](const std::string& text) {
    return text.ends_with('?') && std::string_view(text).substr(0, text.size() - 1) == extension;
  });
}

fbx_status Rig::Load(const fbx_host* host, const fbx_plugin** out) noexcept {
  Rig& rig = *loading;
  SetPlace("load", rig.manifest_.id);
  ViewPages pages;
  const fbx_plugin* real = nullptr;
  const fbx_status status = rig.real_->load(Show(host, rig, pages), &real);
  if (status != FBX_OK) return status;
  *out = real;
  if (real == nullptr || !fusebox::CheckPlugin(*real)) return FBX_OK;  // the registry reports it
  Tables& tables = *rig.tables_;
  for (uint32_t i = 0; i < real->rule_count; ++i) {
    Wrap(tables.rules.emplace_back(fbx_rule{}, real->rules[i], &rig));
    tables.rule_pointers.push_back(&tables.rules.back().abi);
  }
  for (uint32_t i = 0; i < real->kernel_count; ++i) {
    Wrap(tables.kernels.emplace_back(fbx_kernel{}, real->kernels[i], &rig));
    tables.kernel_pointers.push_back(&tables.kernels.back().abi);
  }
  for (uint32_t i = 0; i < real->delegate_count; ++i) {
    Wrap(tables.delegates.emplace_back(fbx_delegate{}, real->delegates[i], &rig));
    tables.delegate_pointers.push_back(&tables.delegates.back().abi);
  }
  tables.plugin = *real;
  tables.plugin.rules = tables.rule_pointers.data();
  tables.plugin.kernels = tables.kernel_pointers.data();
  tables.plugin.delegates = tables.delegate_pointers.data();
  *out = &tables.plugin;
  return FBX_OK;
}

void Rig::Unload() noexcept {
  SetPlace("unload", "the library");
  if (library->unload != nullptr) library->unload();
}

Status Rig::Open(const Config& given) {
  Config config = given;
  Prefer(manifest_, config);
  if (manifest_.library.empty()) {  // rules without code
    config.plugins.insert(config.plugins.begin(), manifest_.path);
    FUSEBOX_ASSIGN(registry_, Registry::Create(config));
    return {};
  }
  FUSEBOX_ASSIGN(real_, OpenLibrary(manifest_.library));
  FUSEBOX_TRY(CheckEntry(*real_));
  loading = this;
  library = real_;
  entry_ = *real_;
  entry_.load = Load;
  entry_.unload = Unload;
  const fbx_static_plugin plugin = {FBX_HEAD(fbx_static_plugin), &entry_, AsAbi(manifest_.text)};
  const fbx_static_plugin* const plugins[] = {&plugin};
  auto registry = Registry::Create(config, plugins);
  if (!registry) {  // it is built in only here
    Error& error = registry.error();
    if (error.message.starts_with(kBuiltIn)) error.message.erase(0, kBuiltIn.size());
    return std::unexpected(std::move(error));
  }
  registry_ = *std::move(registry);
  for (const PluginInfo& info : registry_->plugins()) {
    if (info.manifest.id == manifest_.id && info.built_in && info.state != PluginInfo::State::kOk)
      return Invalid("plugin " + manifest_.id + " is " + std::string(Name(info.state)) + ": " + info.why);
  }
  return {};
}

Result<std::unique_ptr<Rig>> Rig::Create(const Manifest& manifest, const Config& config,
                                         const Conditions& conditions) {
  std::unique_ptr<Rig> rig(new Rig(manifest, conditions));
  FUSEBOX_TRY(rig->Open(config));
  return rig;
}

}  // namespace fusebox::check
