// SPDX-License-Identifier: Apache-2.0
// A lookup table in a text file: one entry per line, keys and values in columns.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox::saved_model {

// Column index: 0, 1, ..., or one of these two.
inline constexpr int64_t kWholeLine = -2;
inline constexpr int64_t kLineNumber = -1;

struct TextTable {
  struct Column {
    DType dtype;  // strings, i32, i64, f32
    int64_t index;
  };
  std::string path;
  Column key, value;
  std::string delimiter;
  int64_t most = -1;   // maximum number of lines; -1: all
  int64_t offset = 0;  // added to line numbers
};

// Keys and values as 1-D tensors. Errors name file and line: a column is missing or not a number.
Result<std::pair<Tensor, Tensor>> ReadTextTable(const TextTable&);

}  // namespace fusebox::saved_model
