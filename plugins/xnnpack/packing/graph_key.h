// SPDX-License-Identifier: Apache-2.0
// Graphs and constants as parts of keys: content only, no names. Throw Error if they cannot be a key.
#pragma once

#include <fusebox/delegate.hpp>

#include "plugins/xnnpack/cache/digest.h"
#include "plugins/xnnpack/packing/model_weights.h"

namespace fusebox::xnnpack {

// A constant, or an ABSENT operand.
void AddSource(cache::KeyBuilder& builder, const fbx_tensor& source, ModelWeights& weights);

// Ops, attributes, values and their connections. Graphs that differ only in names have equal parts.
void AddGraph(cache::KeyBuilder& builder, const Graph& graph, ModelWeights& weights);

}  // namespace fusebox::xnnpack
