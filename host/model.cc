// SPDX-License-Identifier: Apache-2.0
#include "host/model.h"

#include <mutex>

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

// One for all models that bring none: plugins are searched once per process.
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

}  // namespace

// Both stages verify what they make.
Result<std::shared_ptr<const Model>> Model::Open(const std::string& path, const ModelOptions& options) {
  FUSEBOX_ASSIGN(std::unique_ptr<Module> module, tflite::ReadFile(path));
  FUSEBOX_TRY(AttachFused(*module).At(path));
  return Create(std::move(module), options);
}

Result<std::shared_ptr<const Model>> Model::FromModule(std::unique_ptr<Module> module,
                                                       const ModelOptions& options) {
  FUSEBOX_TRY(Verify(*module).At(module->source));
  return Create(std::move(module), options);
}

Result<std::shared_ptr<const Model>> Model::Create(std::unique_ptr<Module> module,
                                                   const ModelOptions& options) {
  std::shared_ptr<Model> model(new Model());
  Impl& impl = *model->impl_;
  impl.registry = options.registry;
  if (impl.registry == nullptr) {
    FUSEBOX_ASSIGN(impl.registry, DefaultRegistry());
  }
  impl.module = std::move(module);
  const std::string& name = impl.module->source;
  if (options.fuse && HasComposites(*impl.module)) {
    const FusionOptions keep{.approve = {}, .keep_bodies = FusionOptions::KeepBodies::kAll};
    FUSEBOX_ASSIGN(impl.fusions, Fuse(*impl.module, *impl.registry, keep).At(name));
  }
  FUSEBOX_ASSIGN(const auto delegate_options, ParseDelegateOptions(options.delegate_options));
  FUSEBOX_ASSIGN(const Delegation delegates,
                 impl.registry->Delegates(options.delegates, delegate_options, impl.notices));
  FUSEBOX_ASSIGN(impl.program, run::Program::Create(*impl.module, impl.registry, delegates).At(name));
  const auto& more = impl.program->notices();
  impl.notices.insert(impl.notices.end(), more.begin(), more.end());
  return model;
}

Model::Model() : impl_(std::make_unique<Impl>()) {}
Model::~Model() = default;

const Module& Model::module() const { return *impl_->module; }
const std::string& Model::name() const { return impl_->module->source; }
const std::shared_ptr<Registry>& Model::registry() const { return impl_->registry; }
const std::vector<SiteReport>& Model::fusions() const { return impl_->fusions; }
const std::vector<std::string>& Model::notices() const { return impl_->notices; }
const run::Program& Model::program() const { return *impl_->program; }

std::vector<Model::Placement> Model::placements() const {
  std::vector<Model::Placement> rows;
  for (run::Placement& row : impl_->program->placements()) {
    rows.push_back({std::move(row.function), std::move(row.node), std::move(row.op), std::move(row.who),
                    std::move(row.why)});
  }
  return rows;
}

}  // namespace fusebox
