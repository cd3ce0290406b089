// SPDX-License-Identifier: Apache-2.0
// Runs the body of a fused op beside its kernel, in a session, and compares the results.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "host/plugin/registry.h"
#include "host/run/observer.h"

namespace fusebox::verify {

// The comparisons of one fused op so far.
struct ShadowRow {
  std::string function, node, op, plugin;
  int64_t calls = 0;
  int64_t compared = 0;
  int64_t drifted = 0;
  double worst = 0;   // largest error; relative to the result's largest value if that is above 1
  std::string where;  // the first drift: "result 0 [0,2]: 0.25, expected 0.5"
  std::string why;    // set: not compared, for this reason
};

// Compares every `every`-th call, starting with the first. Both results are f32, so the tolerance is wide:
// 1e-3 of the expected value plus 1e-4 of the result's largest one; one step for results with scales; equal
// integers. A body that keeps state, draws random numbers or is a placeholder is not compared.
class Shadow final : public run::Observer {
 public:
  // `module` must outlive it.
  Shadow(const Module& module, std::shared_ptr<Registry> registry, int every);
  ~Shadow() override;

  bool Before(const Function&, const Node&, std::span<const fbx_tensor* const> operands) override;
  void After(std::span<const fbx_tensor* const> results) override;
  std::vector<ShadowRow> rows() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fusebox::verify
