// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "fusebox/abi/tensor.h"
#include "host/graph/graph.h"

namespace fusebox::run {

// Sees the calls of kernels for nodes that have a body. Called by the thread of the run, which it delays.
class Observer {
 public:
  virtual ~Observer() = default;
  // Operands are null if absent. Returns true to have After called if the kernel succeeds.
  virtual bool Before(const Function&, const Node&, std::span<const fbx_tensor* const> operands) = 0;
  virtual void After(std::span<const fbx_tensor* const> results) = 0;
};

}  // namespace fusebox::run
