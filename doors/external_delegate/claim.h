// SPDX-License-Identifier: Apache-2.0
// Chooses the nodes of a TensorFlow Lite graph that Fusebox runs.
#pragma once

#include <map>
#include <memory>

#include "doors/external_delegate/partition.h"

namespace fusebox::external_delegate {

struct Claim {
  std::vector<int> nodes;
  // The partitions that the runtime will make of them, by their nodes.
  std::map<std::vector<int>, std::unique_ptr<Partition>> partitions;
};

// Each partition has been opened and planned for the dims that the context has now. Nodes of one that cannot
// be are left to the runtime.
Claim ChooseNodes(TfLiteContext* context, const Settings& settings);

}  // namespace fusebox::external_delegate
