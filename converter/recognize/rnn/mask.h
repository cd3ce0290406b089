// SPDX-License-Identifier: Apache-2.0
// Selections of masked layers, which keep an old value in a step that their mask leaves out: SELECT(counts,
// fresh, old), with one element of `counts` per row of the batch.
#pragma once

#include <optional>

#include "converter/recognize/rnn/affine.h"

namespace fusebox::converter::recognize {

struct MaskedValue {
  ValueId counts = kNoValue;  // bool [batch, 1], an element of a list or a row of a tensor
  ValueId fresh = kNoValue;
  ValueId old = kNoValue;
};

// Returns nothing if v is no such selection.
std::optional<MaskedValue> ReadMasked(const View&, ValueId v);

// Zeros, whether constant or made for a shape that is not known yet.
bool IsZeros(const View&, ValueId v);

}  // namespace fusebox::converter::recognize
