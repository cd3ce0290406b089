// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/cell/byte_matrix.h"

#include <algorithm>

namespace fusebox::rnn {

ByteMatrix::ByteMatrix(const Node& node, std::vector<ByteTile> parts, bool interleaved)
    : code_(&BestByteKernels()),
      parts_(std::move(parts)),
      interleaved_(interleaved),
      packed_(std::make_unique<LatePackedWeights>()) {
  layout_ = {.lanes = code_->lanes,
             .n = static_cast<size_t>(parts_[0].rows),
             .k = static_cast<size_t>(node.in(parts_[0].operand).dim(1)),
             .unit = code_->unit};
  if (parts_.size() > 1) layout_.n = parts_.size() * layout_.padded();
  if (keeps_weights(node.host())) PackOnce(node);
}

void ByteMatrix::PackOnce(const Node& node) const {
  packed_->make_once([&] {
    PackedWeights::Recipe recipe{.what = "bytes",
                                 .size = layout_.bytes() + layout_.padded() * sizeof(int32_t)};
    recipe.numbers = {static_cast<int64_t>(code_->lanes), static_cast<int64_t>(code_->unit),
                      interleaved_ ? 1 : 0};
    for (const ByteTile& part : parts_) {
      recipe.numbers.insert(recipe.numbers.end(), {part.first, part.rows, part.times});
      recipe.sources.push_back(node.in(part.operand));
      if (part.bias != ByteTile::kNoBias) recipe.sources.push_back(node.in(part.bias));
    }
    return PackedWeights(node, recipe, [&](void* to) { Pack(node, static_cast<std::byte*>(to)); });
  });
}

size_t ByteMatrix::OutputOf(size_t part, size_t row) const {
  const size_t lanes = layout_.lanes;
  return interleaved_ ? (row / lanes * parts_.size() + part) * lanes + row % lanes
                      : part * part_outputs() + row;
}

const int32_t* ByteMatrix::addends() const {
  return reinterpret_cast<const int32_t*>((*packed_)->data<int8_t>() + layout_.bytes());
}

void ByteMatrix::Pack(const Node& node, std::byte* to) const {
  std::fill_n(to, layout_.bytes() + layout_.padded() * sizeof(int32_t), std::byte{0});
  auto* const values = reinterpret_cast<int8_t*>(to);
  auto* const addends = reinterpret_cast<uint32_t*>(values + layout_.bytes());
  const size_t columns = layout_.k;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const ByteTile& part = parts_[i];
    const auto* row = node.in(part.operand).data<const int8_t>() + static_cast<size_t>(part.first) * columns;
    const auto* const bias =
        part.bias == ByteTile::kNoBias ? nullptr : node.in(part.bias).data<const int32_t>() + part.first;
    for (size_t r = 0; r < static_cast<size_t>(part.rows); ++r, row += columns) {
      const size_t output = OutputOf(i, r);
      math::PackByteRow(layout_, output, row, values);
      addends[output] =
          static_cast<uint32_t>(part.times) * static_cast<uint32_t>(math::SumOfBytes(row, columns)) +
          (bias ? static_cast<uint32_t>(bias[r]) : 0);
    }
  }
}

ByteTask ByteMatrix::Product(const int8_t* rows, size_t count, size_t stride) const {
  return {.rows = rows,
          .count = count,
          .stride = stride,
          .flipped = code_->signs.Flips(false),
          .layout = layout_,
          .weights = (*packed_)->data<int8_t>()};
}

}  // namespace fusebox::rnn
