// SPDX-License-Identifier: Apache-2.0
#include "host/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "host/base/cancel.h"
#include "host/base/trace.h"
#include "host/fusion/fusion.h"
#include "host/fusion/lower.h"
#include "host/fusion/site_json.h"
#include "host/opening.h"
#include "host/run/run.h"

namespace fusebox {

struct Model::Impl {
  std::shared_ptr<Registry> registry;
  std::unique_ptr<Module> module;
  std::vector<SiteReport> fusions;
  std::string imported;  // report, which most programs do not read
  std::once_flag import_is_read;
  std::vector<std::string> notices;
  std::unique_ptr<run::Program> program;
};

namespace {

// Shared by all models without a registry: plugins are searched once per process.
Result<std::shared_ptr<Registry>> DefaultRegistry() {
  static std::mutex mutex;
  static std::shared_ptr<Registry> registry;
  const std::lock_guard lock(mutex);
  if (registry == nullptr) {
    FUSEBOX_ASSIGN(registry, Registry::Create(Config()));
  }
  return registry;
}

bool HasSites(const Module& module, Registry& registry) {
  for (const auto& function : module.functions) {
    for (const auto& node : function->nodes) {
      if (IsSite(*node, registry)) return true;
    }
  }
  return false;
}

// Returns whether no plugin here could even try a rule for the composite.
bool IsMissing(const SiteReport& site) {
  return !site.fused && std::ranges::all_of(site.rules, [](const RuleReport& rule) {
    return rule.outcome == RuleReport::Outcome::kError;
  });
}

// Error: a composite's plugin is missing. Otherwise fusion has logged it.
Status CheckPlugins(const std::vector<SiteReport>& sites) {
  const auto missing = std::ranges::find_if(sites, IsMissing);
  if (missing == sites.end()) return {};
  return Unsupported("composite " + missing->composite + ": " + missing->why +
                     "; install its plugin, or let the body run instead");
}

// Calls `work` with options that have a registry, in bounded time.
template <class F>
Result<std::shared_ptr<const Model>> InTime(ModelOptions options, const F& work) {
  const Opening opening(options.cancel.get(), options.time_limit_ms);
  if (options.registry == nullptr) {
    FUSEBOX_ASSIGN(options.registry, DefaultRegistry());
  }
  return opening.Explain(work(options));
}

}  // namespace

Result<std::shared_ptr<const Model>> Model::Open(const std::string& path, const ModelOptions& options) {
  TraceSpan span("open");
  span.Arg("file", path);
  const auto open = [&](const ModelOptions& with) -> Result<std::shared_ptr<const Model>> {
    FUSEBOX_ASSIGN(Source source, ReadSource(path, with));
    return Create(std::move(source), with);
  };
  return CatchNoMemory([&] { return path; }, [&] { return InTime(options, open); });
}

Result<std::shared_ptr<const Model>> Model::FromMemory(Buffer bytes, const ModelOptions& options) {
  return InTime(options, [&](const ModelOptions& with) -> Result<std::shared_ptr<const Model>> {
    FUSEBOX_ASSIGN(Source source, ReadSource(std::move(bytes), with.name, with));
    return Create(std::move(source), with);
  });
}

Result<std::shared_ptr<const Model>> Model::FromModule(std::unique_ptr<Module> module,
                                                       const ModelOptions& options) {
  FUSEBOX_TRY(Verify(*module).At(module->source));
  return InTime(options,
                [&](const ModelOptions& with) { return Create({.module = std::move(module)}, with); });
}

// Does all of Create except the program. Returns the delegates of the model.
Result<Delegation> Model::Load(Source source, const ModelOptions& options) {
  Impl& impl = *impl_;
  impl.registry = options.registry;
  impl.module = std::move(source.module);
  impl.imported = std::move(source.report);
  impl.notices = std::move(source.notices);
  impl.registry->FillOptions(*impl.module);
  const bool composites = HasSites(*impl.module, *impl.registry);
  if (options.fuse && composites) {
    const FusionOptions keep{.approve = {}, .keep_bodies = FusionOptions::KeepBodies::kAll};
    TraceSpan span("fuse");
    FUSEBOX_ASSIGN(std::vector<SiteReport> sites, Fuse(*impl.module, *impl.registry, keep).At(name()));
    span.Arg("composites", sites.size());
    span.Arg("fused", static_cast<uint64_t>(std::ranges::count(sites, true, &SiteReport::fused)));
    if (options.missing == Missing::kError) FUSEBOX_TRY(CheckPlugins(sites).At(name()));
    std::ranges::move(sites, std::back_inserter(impl.fusions));
  }
  if (composites) InlineBodies(*impl.module);
  std::ranges::move(LowerBodies(*impl.module), std::back_inserter(impl.notices));
  FUSEBOX_ASSIGN(const auto delegate_options, ParseDelegateOptions(options.delegate_options));
  return impl.registry->Delegates(options.delegates, delegate_options, impl.notices);
}

Result<std::shared_ptr<const Model>> Model::Create(Source source, const ModelOptions& options) {
  std::shared_ptr<Model> model(new Model());
  Impl& impl = *model->impl_;
  FUSEBOX_ASSIGN(const Delegation delegates, model->Load(std::move(source), options));
  const TraceSpan span("choose and initialize kernels");
  FUSEBOX_ASSIGN(
      impl.program,
      run::Program::Create(*impl.module, impl.registry, delegates, options.missing).At(model->name()));
  const auto& more = impl.program->notices();
  impl.notices.insert(impl.notices.end(), more.begin(), more.end());
  return model;
}

Result<std::vector<Model::Entry>> Model::Survey(std::unique_ptr<Module> module, const ModelOptions& given) {
  ModelOptions options = given;
  if (options.registry == nullptr) {
    FUSEBOX_ASSIGN(options.registry, DefaultRegistry());
  }
  const CancelScope scope({.flag = options.cancel.get()});
  Model model;
  FUSEBOX_ASSIGN(const Delegation delegates, model.Load({.module = std::move(module)}, options));
  Impl& impl = *model.impl_;
  impl.program = run::Program::Survey(*impl.module, impl.registry, delegates);
  return model.entries();
}

Model::Model() : impl_(std::make_unique<Impl>()) {}
Model::~Model() = default;

const Module& Model::module() const { return *impl_->module; }
const std::string& Model::name() const { return impl_->module->source; }
const std::shared_ptr<Registry>& Model::registry() const { return impl_->registry; }
const std::vector<SiteReport>& Model::fusions() const {
  std::call_once(impl_->import_is_read, [&] {
    std::vector<SiteReport> sites = SitesOf(impl_->imported);
    std::ranges::move(impl_->fusions, std::back_inserter(sites));
    impl_->fusions = std::move(sites);
  });
  return impl_->fusions;
}
const std::vector<std::string>& Model::notices() const { return impl_->notices; }
const run::Program& Model::program() const { return *impl_->program; }

std::vector<Model::Entry> Model::entries() const {
  std::vector<Entry> rows;
  const Module& module = *impl_->module;
  for (const Signature& s : module.signatures)
    rows.push_back({s.key, s.function, impl_->program->StatusOf(s.function)});
  if (module.functions.empty()) return rows;
  const std::string& main = module.functions[0]->name;
  if (std::ranges::find(module.signatures, main, &Signature::function) == module.signatures.end())
    rows.push_back({"", main, impl_->program->StatusOf(main)});
  return rows;
}

std::vector<Placement> Model::placements() const { return impl_->program->placements(); }

}  // namespace fusebox
