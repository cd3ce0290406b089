// SPDX-License-Identifier: Apache-2.0
// Nodes and composites that a plugin was not made for.
#pragma once

#include <memory>
#include <vector>

#include "check/tests.h"
#include "host/graph/graph.h"

namespace fusebox::check {

// Modules with one node in their only function: ops of the plugin as in its models, and with two f32
// operands; each with a few changes to operands, types, constness, dims, attributes and number of results.
std::vector<std::unique_ptr<Module>> NodesLikeThoseOf(const Subject& subject);
// The same for the composites that its rules implement; without body.
std::vector<std::unique_ptr<Module>> CompositesLikeThoseOf(const Subject& subject);

}  // namespace fusebox::check
