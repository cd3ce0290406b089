// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/cell/integer_matrix.h"

#include <algorithm>

namespace fusebox::rnn {
namespace {

std::vector<ByteTile> Parts(const std::vector<IntegerPart>& parts, int64_t zero) {
  const auto times = -static_cast<int32_t>(zero + BestByteKernels().signs.Offset(false));
  std::vector<ByteTile> out;
  for (const IntegerPart& part : parts)
    out.push_back({part.operand, part.first, part.rows, part.bias, times});
  return out;
}

}  // namespace

IntegerMatrix::IntegerMatrix(const Node& node, const std::vector<IntegerPart>& parts, int64_t zero)
    : ByteMatrix(node, Parts(parts, zero)) {
  for (const IntegerPart& part : parts) {
    scales_.values.insert(scales_.values.end(), part_outputs(), part.by.value);
    scales_.left.insert(scales_.left.end(), part_outputs(), std::max(part.by.shift, 0));
    scales_.right.insert(scales_.right.end(), part_outputs(), std::max(-part.by.shift, 0));
    scales_.any_left = scales_.any_left || part.by.shift > 0;
  }
}

WordTask IntegerMatrix::TaskOf(const int8_t* rows, size_t count, size_t stride, int16_t* out,
                               size_t out_stride) const {
  WordTask task{Product(rows, count, stride), &scales_, nullptr, 0, out, out_stride};
  task.product.start = addends();
  return task;
}

}  // namespace fusebox::rnn
