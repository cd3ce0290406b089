// SPDX-License-Identifier: Apache-2.0
// Maps datasets of the file to weights of layers.
#pragma once

#include "converter/import/keras/archive.h"
#include "converter/import/keras/topology.h"

namespace fusebox::keras {

// Fills in Layer::weights of all layers. Errors: missing weights, too few or too many, or names that show
// another order.
Status AssignWeights(Model&, const Archive&);

}  // namespace fusebox::keras
