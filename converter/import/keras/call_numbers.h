// SPDX-License-Identifier: Apache-2.0
// Numbers of calls, which versions of Keras count differently for models as layers.
#pragma once

#include "converter/import/keras/topology.h"

namespace fusebox::keras {

// Changes the references of `model`, as its file stores them, into indices of Layer::uses. `keras3`: the
// calls are stored as objects with args and kwargs. A reference to a call that is not stored keeps an index
// that Layer::uses does not have.
Status CountCalls(Model& model, bool keras3);

}  // namespace fusebox::keras
