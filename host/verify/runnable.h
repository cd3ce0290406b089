// SPDX-License-Identifier: Apache-2.0
// A function of a model as a separate program: the body of a composite, or its replacement.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "host/run/run.h"

namespace fusebox::verify {

// Bytes of the tensors of one Runnable. A verification holds several, and copies of their operands and
// results as doubles.
size_t MemoryLimit();

// A function, the first of its module, with its program and runner.
struct Runnable {
  std::unique_ptr<Module> module;
  std::unique_ptr<run::Program> program;
  std::unique_ptr<run::Runner> runner;

  static Result<Runnable> Make(std::unique_ptr<Module> module, const std::shared_ptr<Registry>& registry);
  Result<std::vector<Tensor>> Run(std::span<const Tensor> inputs);       // from a reset
  Result<std::vector<Tensor>> RunAgain(std::span<const Tensor> inputs);  // with the state of the last run
};

// Copies the function into a new module, with the site's constants bound. Operands that are absent at the
// site are not inputs.
std::unique_ptr<Module> CopyOf(const Module& from, const Function& function,
                               const std::vector<Tensor>& constants, const std::vector<bool>& absent);

bool IsRandom(const Module& module);
// Returns whether it keeps state between calls. Custom ops may keep state; without `custom_ops`, they count
// as stateless.
bool IsStateful(const Module& module, bool custom_ops = true);

}  // namespace fusebox::verify
