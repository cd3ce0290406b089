// SPDX-License-Identifier: Apache-2.0
// The types that a delegate is told: those that the kernels confirm. A file may declare others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/eval/eval.h"

namespace fusebox {

struct Settled {
  std::unique_ptr<Function> function;  // with the kernels' shapes where the file's differ; null: none differs
  std::vector<std::string> refused;    // by node: why its kernel rejects its operands; empty: it does not
};
// Infers the nodes in order. Nodes without a kernel keep their types.
Settled Settle(Registry&, HostCalls&, const Function&);

}  // namespace fusebox
