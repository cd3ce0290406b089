// SPDX-License-Identifier: Apache-2.0
#include "host/verify/runnable.h"

#include <algorithm>

#include "host/fusion/lower.h"

namespace fusebox::verify {

size_t MemoryLimit() { return MemoryBudget::DefaultLimit() / 8; }

Result<Runnable> Runnable::Make(std::unique_ptr<Module> module, const std::shared_ptr<Registry>& registry) {
  Runnable out;
  out.module = std::move(module);
  LowerBodies(*out.module);
  FUSEBOX_ASSIGN(out.program, run::Program::Create(*out.module, registry));
  FUSEBOX_ASSIGN(out.runner, run::Runner::Create(*out.program, {.memory_limit = MemoryLimit()}));
  return out;
}

Result<std::vector<Tensor>> Runnable::Run(std::span<const Tensor> inputs) {
  runner->Reset();
  return RunAgain(inputs);
}

Result<std::vector<Tensor>> Runnable::RunAgain(std::span<const Tensor> inputs) {
  return runner->Run(module->functions[0]->name, inputs);
}

std::unique_ptr<Module> CopyOf(const Module& from, const Function& function,
                               const std::vector<Tensor>& constants, const std::vector<bool>& absent) {
  auto copy = std::make_unique<Module>();
  Function& f = *copy->Find(CopyInto(from, function, *copy));
  std::stable_partition(copy->functions.begin(), copy->functions.end(),
                        [&](const auto& p) { return p.get() == &f; });
  for (size_t i = 0; i < constants.size() && i < f.inputs.size(); ++i)
    if (constants[i].data) {
      const ValueId constant = f.AddConst(constants[i]);
      f.value(constant).quant = f.value(f.inputs[i]).quant;
      f.ReplaceUses(f.inputs[i], constant);
    }
  for (size_t i = std::min(absent.size(), f.inputs.size()); i-- > 0;)
    if (absent[i]) f.inputs.erase(f.inputs.begin() + static_cast<std::ptrdiff_t>(i));
  f.input_names.clear();
  copy->signatures.clear();
  return copy;
}

bool IsRandom(const Module& module) {
  const auto random = [](const auto& node) { return Info(node->op).effects == Effects::kRandom; };
  return std::ranges::any_of(module.functions,
                             [&](const auto& f) { return std::ranges::any_of(f->nodes, random); });
}

bool IsStateful(const Module& module, bool custom_ops) {
  for (const auto& f : module.functions) {
    for (const auto& node : f->nodes)
      if (Info(node->op).effects == Effects::kStateful && (custom_ops || !node->is(Op::kCustom))) return true;
    const Uses uses(*f);
    for (ValueId v = 0; v < f->value_count(); ++v)
      if (f->value(v).is_variable && !uses.producer(v)) return true;
  }
  return false;
}

}  // namespace fusebox::verify
