// SPDX-License-Identifier: Apache-2.0
// Which dataset of the file is which weight of which layer.
#pragma once

#include "converter/import/keras/archive.h"
#include "converter/import/keras/topology.h"

namespace fusebox::keras {

// Fills in Layer::weights everywhere. Errors: weights are missing, there are too few or too many, or their
// names say that they stand in another order.
Status AssignWeights(Model&, const Archive&);

}  // namespace fusebox::keras
