// SPDX-License-Identifier: Apache-2.0
// Writes to a list that TensorFlow's converter turned into a tensor: a copy of the tensor in which one row is
// new.
#pragma once

#include <optional>

#include "converter/recognize/view.h"

namespace fusebox::converter::recognize {

struct RowWrite {
  ValueId tensor = kNoValue;  // kNoValue: the row takes the place of a tensor of one row
  size_t readers = 0;         // ops of the form that read the tensor
  ValueId index = kNoValue;   // a scalar; kNoValue: 0
  ValueId row = kNoValue;     // without the dimension of the rows
};

// Returns what `v` is a copy of, in these forms:
//   CONCATENATION(SLICE(tensor, 0, index), EXPAND_DIMS(row), SLICE(tensor, index + 1, the rest))
//   DYNAMIC_UPDATE_SLICE(tensor, EXPAND_DIMS(row), index)
//   RESHAPE or EXPAND_DIMS of the row to [1, ...]
std::optional<RowWrite> ReadRowWrite(const View&, ValueId v);

}  // namespace fusebox::converter::recognize
