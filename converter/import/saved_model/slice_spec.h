// SPDX-License-Identifier: Apache-2.0
// Which part of a stored tensor a partitioned variable of TensorFlow 1 is: "5 3 2,2:-" is rows 2 and 3 of a
// [5,3], each whole.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "host/base/buffer.h"
#include "host/base/status.h"

namespace fusebox::saved_model {

struct SliceSpec {
  std::vector<int64_t> shape;  // of the stored tensor
  std::vector<int64_t> start, size;

  // Fails on any other text, and on a part that is not within the shape.
  static Result<SliceSpec> Parse(std::string_view text);
  // whole: the elements of the stored tensor, row-major. Whole rows are not copied.
  Buffer Cut(const Buffer& whole, size_t element_size) const;
};

}  // namespace fusebox::saved_model
