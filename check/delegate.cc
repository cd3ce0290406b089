// SPDX-License-Identifier: Apache-2.0
// Group "delegate": partitions compute what kernels compute, however the graph is cut, and whatever fails.
#include <array>

#include "check/workload.h"
#include "host/tflite/tflite.h"

namespace fusebox::check {
namespace {

using Delegates = Conditions::Delegates;

constexpr double kDelegateError = 1e-3;  // relative to the largest value of an output
constexpr double kDelegateSteps = 3;     // of quantized outputs

// Runs the model on kernels and on the delegates, then `check`.
template <class Check>
Finding AfterKernels(const Subject& subject, const Check& check) {
  const auto kernels = RunUnder(subject, {}, {.seed = subject.options.seed});
  if (!kernels) return DoesNotRun(kernels.error());
  size_t partitions = 0;
  std::string failure;
  const auto ran =
      RunUnder(subject, {}, {.delegates = true, .seed = subject.options.seed}, &partitions, &failure);
  if (!ran) return Failed(ran.error().message);
  if (partitions > 0) return check(*kernels);
  if (!failure.empty()) return Failed("the delegate runs nothing of this model: " + failure);
  return NotTested("no delegate of the plugin runs a node of this model");
}

// Runs on the delegates under the conditions. `partitions`: how often one was invoked.
std::string DelegateFault(const Subject& subject, const Conditions& conditions,
                          const std::vector<Tensor>& kernels, double rtol, double steps, size_t& partitions) {
  const auto outputs =
      RunUnder(subject, conditions, {.delegates = true, .seed = subject.options.seed}, &partitions);
  if (!outputs) return outputs.error().message;
  return DifferenceOf(kernels, *outputs, rtol, steps);
}

Finding Agrees(const Subject& subject) {
  return AfterKernels(subject, [&](const auto& kernels) {
    size_t partitions = 0;
    const std::string why = DelegateFault(subject, {}, kernels, kDelegateError, kDelegateSteps, partitions);
    return why.empty() ? Passed() : Failed("kernels and delegate compute different results: " + why);
  });
}

Finding Refusal(const Subject& subject) {
  return AfterKernels(subject, [&](const auto& kernels) {
    size_t partitions = 0;
    for (const Delegates how : {Delegates::kNoCompile, Delegates::kNoInvoke})
      if (const std::string why = DelegateFault(subject, {.delegates = how}, kernels, 0, 0, partitions);
          !why.empty())
        return Failed(
            std::string(how == Delegates::kNoCompile ? "after a refused compile" : "after a failed invoke") +
            ", kernels compute other results than without the delegate: " + why);
    return Passed();
  });
}

Finding Partitions(const Subject& subject) {
  return AfterKernels(subject, [&](const auto& kernels) {
    size_t partitions = 0;
    for (uint64_t i = 0; i < 3; ++i) {
      const Conditions conditions{.seed = subject.options.seed + i, .delegates = Delegates::kFewerNodes};
      if (const std::string why =
              DelegateFault(subject, conditions, kernels, kDelegateError, kDelegateSteps, partitions);
          !why.empty())
        return Failed("with half of the nodes on kernels: " + why);
    }
    return Passed();
  });
}

// The outputs for each size of the outermost dim of all inputs, in one session.
Result<std::vector<Tensor>> RunSizes(const Subject& subject, bool delegates, size_t& partitions) {
  FUSEBOX_ASSIGN(const auto rig, Rig::Create(subject.manifest, subject.options.config, {}));
  FUSEBOX_ASSIGN(const auto model, OpenModel(*rig, subject.model, delegates));
  FUSEBOX_ASSIGN(const auto session, Session::Create(model));
  std::vector<Shape> declared;
  for (const Session::Slot& slot : session->inputs()) declared.push_back(slot.type.shape);
  std::vector<Tensor> outputs;
  for (const int64_t size : {1, 4, 1, 2, 65, 129}) {
    std::vector<Shape> shapes = declared;
    for (Shape& shape : shapes) {
      for (int64_t& dim : shape.dims()) dim = dim < 0 ? 5 : dim;
      if (shape.rank() > 0) shape.dims()[0] = size;
    }
    FUSEBOX_ASSIGN(const auto of_size, RunShapes(*session, shapes, subject.options.seed));
    outputs.insert(outputs.end(), of_size.begin(), of_size.end());
  }
  partitions = rig->partitions();
  return outputs;
}

Finding Resize(const Subject& subject) {
  return AfterKernels(subject, [&](const auto&) {
    size_t partitions = 0;
    const auto kernels = RunSizes(subject, false, partitions);
    if (!kernels) return NotTested("kernels do not take other outermost dims: " + kernels.error().message);
    const auto outputs = RunSizes(subject, true, partitions);
    if (!outputs) return Failed("after a resize that kernels take: " + outputs.error().message);
    const std::string where = DifferenceOf(*kernels, *outputs, kDelegateError, kDelegateSteps);
    return where.empty() ? Passed()
                         : Failed("after a resize, kernels and delegate compute different results: " + where);
  });
}

constexpr std::array kDelegateTests = {
    Test{"delegate.agrees", "computes what kernels compute", Test::Of::kModel, Agrees},
    Test{"delegate.refusal", "kernels take over if compile or invoke fails", Test::Of::kModel, Refusal},
    Test{"delegate.partitions", "works with any part of the nodes that it accepts", Test::Of::kModel,
         Partitions},
    Test{"delegate.resize", "takes other outermost dims, or leaves them to kernels", Test::Of::kModel,
         Resize},
};

}  // namespace

std::span<const Test> DelegateTests() { return kDelegateTests; }

}  // namespace fusebox::check
