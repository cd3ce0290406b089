// SPDX-License-Identifier: Apache-2.0
#include "host/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "host/base/cancel.h"
#include "host/base/trace.h"
#include "host/fusion/lower.h"
#include "host/run/run.h"
#include "host/tflite/tflite.h"

namespace fusebox {

struct Model::Impl {
  std::shared_ptr<Registry> registry;
  std::unique_ptr<Module> module;
  std::vector<SiteReport> fusions;
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

bool HasComposites(const Module& module) {
  for (const auto& function : module.functions) {
    for (const auto& node : function->nodes) {
      if (node->is(Op::kStablehloComposite)) return true;
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

// An opening that another thread, or its time limit, may end.
class Opening {
 public:
  explicit Opening(const ModelOptions& options) : cancel_(options.cancel), limit_(options.time_limit_ms) {
    if (limit_.count() <= 0) return;
    if (cancel_ == nullptr) cancel_ = std::make_shared<std::atomic<bool>>(false);
    timer_ = std::jthread([this](const std::stop_token& stop) { Wait(stop); });
  }
  // Names the limit if it ended the opening.
  template <class T>
  Result<T> Explain(Result<T> result) const {
    if (result || result.error().code != Code::kCancelled || !expired_) return result;
    result.error().message += fmt::format(": it took longer than its time limit of {} ms", limit_.count());
    return result;
  }
  const std::atomic<bool>* flag() const { return cancel_.get(); }

 private:
  void Wait(const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any wake;
    const auto limit = std::min<std::chrono::milliseconds>(limit_, std::chrono::hours(1 << 16));
    if (wake.wait_for(lock, stop, limit, [&] { return stop.stop_requested(); })) return;
    expired_ = true;
    *cancel_ = true;
  }

  std::shared_ptr<std::atomic<bool>> cancel_;
  const std::chrono::milliseconds limit_;
  std::atomic<bool> expired_ = false;
  std::jthread timer_;
};

}  // namespace

// Both stages verify their result.
Result<std::unique_ptr<Module>> Model::Read(const std::string& path) {
  const TraceSpan span("read");
  FUSEBOX_ASSIGN(std::unique_ptr<Module> module, tflite::ReadFile(path));
  FUSEBOX_TRY(AttachFused(*module).At(path));
  return module;
}

Result<std::unique_ptr<Module>> Model::Read(Buffer bytes, const std::string& name) {
  FUSEBOX_ASSIGN(std::unique_ptr<Module> module, tflite::Read(std::move(bytes), name));
  FUSEBOX_TRY(AttachFused(*module).At(name));
  return module;
}

Result<std::shared_ptr<const Model>> Model::Open(const std::string& path, const ModelOptions& options) {
  TraceSpan span("open");
  span.Arg("file", path);
  const auto open = [&]() -> Result<std::shared_ptr<const Model>> {
    FUSEBOX_ASSIGN(std::unique_ptr<Module> module, Read(path));
    return Create(std::move(module), options);
  };
  return CatchNoMemory([&] { return path; }, open);
}

Result<std::shared_ptr<const Model>> Model::FromMemory(Buffer bytes, const ModelOptions& options) {
  FUSEBOX_ASSIGN(std::unique_ptr<Module> module, Read(std::move(bytes), options.name));
  return Create(std::move(module), options);
}

Result<std::shared_ptr<const Model>> Model::FromModule(std::unique_ptr<Module> module,
                                                       const ModelOptions& options) {
  FUSEBOX_TRY(Verify(*module).At(module->source));
  return Create(std::move(module), options);
}

// Does all of Create except the program. Returns the delegates of the model.
Result<Delegation> Model::Load(std::unique_ptr<Module> module, const ModelOptions& options) {
  Impl& impl = *impl_;
  impl.registry = options.registry;
  if (impl.registry == nullptr) {
    FUSEBOX_ASSIGN(impl.registry, DefaultRegistry());
  }
  impl.module = std::move(module);
  impl.registry->FillOptions(*impl.module);
  const bool composites = HasComposites(*impl.module);
  if (options.fuse && composites) {
    const FusionOptions keep{.approve = {}, .keep_bodies = FusionOptions::KeepBodies::kAll};
    TraceSpan span("fuse");
    FUSEBOX_ASSIGN(impl.fusions, Fuse(*impl.module, *impl.registry, keep).At(name()));
    span.Arg("composites", impl.fusions.size());
    span.Arg("fused", static_cast<uint64_t>(std::ranges::count(impl.fusions, true, &SiteReport::fused)));
    if (options.missing == Missing::kError) FUSEBOX_TRY(CheckPlugins(impl.fusions).At(name()));
  }
  if (composites) InlineBodies(*impl.module);
  std::ranges::move(LowerBodies(*impl.module), std::back_inserter(impl.notices));
  FUSEBOX_ASSIGN(const auto delegate_options, ParseDelegateOptions(options.delegate_options));
  return impl.registry->Delegates(options.delegates, delegate_options, impl.notices);
}

Result<std::shared_ptr<const Model>> Model::Create(std::unique_ptr<Module> module,
                                                   const ModelOptions& options) {
  const Opening opening(options);
  const CancelScope scope(opening.flag());
  return opening.Explain(Build(std::move(module), options));
}

Result<std::shared_ptr<const Model>> Model::Build(std::unique_ptr<Module> module,
                                                  const ModelOptions& options) {
  std::shared_ptr<Model> model(new Model());
  Impl& impl = *model->impl_;
  FUSEBOX_ASSIGN(const Delegation delegates, model->Load(std::move(module), options));
  const TraceSpan span("choose and initialize kernels");
  FUSEBOX_ASSIGN(
      impl.program,
      run::Program::Create(*impl.module, impl.registry, delegates, options.missing).At(model->name()));
  const auto& more = impl.program->notices();
  impl.notices.insert(impl.notices.end(), more.begin(), more.end());
  return model;
}

Result<std::vector<Model::Entry>> Model::Survey(const std::string& path, const ModelOptions& options) {
  const CancelScope scope(options.cancel.get());
  FUSEBOX_ASSIGN(std::unique_ptr<Module> module, Read(path));
  Model model;
  FUSEBOX_ASSIGN(const Delegation delegates, model.Load(std::move(module), options));
  Impl& impl = *model.impl_;
  impl.program = run::Program::Survey(*impl.module, impl.registry, delegates);
  return model.entries();
}

Model::Model() : impl_(std::make_unique<Impl>()) {}
Model::~Model() = default;

const Module& Model::module() const { return *impl_->module; }
const std::string& Model::name() const { return impl_->module->source; }
const std::shared_ptr<Registry>& Model::registry() const { return impl_->registry; }
const std::vector<SiteReport>& Model::fusions() const { return impl_->fusions; }
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
