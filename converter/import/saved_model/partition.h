// SPDX-License-Identifier: Apache-2.0
// Partition: the position of each slice of a partitioned tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "converter/import/saved_model/checkpoint.pb.h"
#include "host/base/buffer.h"
#include "host/base/status.h"

namespace fusebox::saved_model {

class Partition {
 public:
  // Errors: a slice is outside of the shape, or the slices do not cover each element exactly once.
  static Result<Partition> Plan(std::span<const int64_t> shape, const tf::BundleEntry& entry);

  const std::vector<int64_t>& part_shape(int part) const { return parts_[part].size; }
  // parts: the elements of each part, row-major; out: the whole tensor.
  void Join(std::span<const Buffer> parts, size_t element_size, std::span<std::byte> out) const;

 private:
  struct Part {
    std::vector<int64_t> start, size;
  };
  Status CheckCover() const;
  void JoinPart(const Part& part, const Buffer& bytes, size_t element_size, std::span<std::byte> out) const;

  std::vector<int64_t> shape_;
  std::vector<Part> parts_;
};

}  // namespace fusebox::saved_model
