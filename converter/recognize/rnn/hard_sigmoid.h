// SPDX-License-Identifier: Apache-2.0
// The sigmoid of straight lines, in the forms that TensorFlow, Keras 2 and Keras 3 write it in.
#pragma once

#include <optional>

#include "converter/recognize/rnn/affine.h"

namespace fusebox::converter::recognize {

// Recognizes x / 5 + 1 / 2 ("hard_sigmoid") or x / 6 + 1 / 2 ("hard_sigmoid_of_keras_3"), clipped to 0 and 1;
// the latter also as relu6(x + 3) / 6. Returns nullopt if `v` is something else.
std::optional<Activated> ReadHardSigmoid(const View&, ValueId v);

}  // namespace fusebox::converter::recognize
