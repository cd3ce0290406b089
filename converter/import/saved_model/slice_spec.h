// SPDX-License-Identifier: Apache-2.0
// The slice of a stored tensor that a partitioned TensorFlow 1 variable holds: "5 3 2,2:-" is rows 2 and 3 of
// a [5,3], all columns.
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

  // Errors: another format, or a slice outside of the shape.
  static Result<SliceSpec> Parse(std::string_view text);
  // whole: elements of the stored tensor, row-major. Slices of whole rows are not copied.
  Buffer Cut(const Buffer& whole, size_t element_size) const;
};

}  // namespace fusebox::saved_model
