// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <functional>

#include "host/tflite/file.h"

namespace fusebox::tflite {
namespace {

constexpr size_t kMostLevels = 16;
// Limit of all bytes that a file unpacks to, per byte of the file, beyond kAlways bytes; a file that exceeds
// it is no model.
constexpr size_t kMostGrowth = 1024;
constexpr size_t kAlways = size_t{1} << 20;

template <class Vector>
std::vector<int64_t> NumbersAs(const void* table) {
  const auto* const vector = static_cast<const Vector*>(table);
  if (vector == nullptr || vector->values() == nullptr) return {};
  return {vector->values()->begin(), vector->values()->end()};
}

std::vector<int64_t> Numbers(format::SparseIndexVector kind, const void* table) {
  switch (kind) {
    case format::SparseIndexVector_Int32Vector: return NumbersAs<format::Int32Vector>(table);
    case format::SparseIndexVector_Uint16Vector: return NumbersAs<format::Uint16Vector>(table);
    case format::SparseIndexVector_Uint8Vector: return NumbersAs<format::Uint8Vector>(table);
    default: return {};
  }
}

// A tensor is stored as a tree: one level per dimension, in any order, and below them one level per dimension
// of a block. A dense level has all its indices, a sparse one the indices in [segments[i], segments[i + 1])
// below index i of the level above.
struct Level {
  int64_t extent = 0;  // indices are below it
  int64_t weight = 0;  // elements from one index to the next in the dense tensor
  bool dense = true;
  std::vector<int64_t> segments, indices;
};

class Tree {
 public:
  Tree(const format::SparsityParameters& source, const Type& type)
      : source_(source), dims_(type.shape.dims()) {}

  Status Read() {
    FUSEBOX_TRY(Order());
    for (size_t l = 0; l < levels_.size(); ++l) FUSEBOX_TRY(One(l).At("level " + std::to_string(l)));
    return {};
  }

  // Calls leaf(offset) for every stored element, in the order in which they are stored.
  Status Walk(const std::function<Status(int64_t offset)>& leaf) const { return Below(0, 0, 0, leaf); }

 private:
  // Which dimension a level is of, and how large the blocks are.
  Status Order() {
    const size_t rank = dims_.size();
    const size_t blocks = SizeOf(source_.block_map());
    const size_t count = SizeOf(source_.traversal_order());
    if (count != rank + blocks || count != SizeOf(source_.dim_metadata()) || count > kMostLevels)
      return Invalid("has " + std::to_string(count) + " levels for " + std::to_string(rank) +
                     " dimensions and " + std::to_string(blocks) + " of blocks");
    levels_.resize(count);
    dimension_.resize(count);
    std::vector<bool> seen(count);
    for (size_t l = 0; l < count; ++l) {
      const int32_t at = source_.traversal_order()->Get(static_cast<unsigned>(l));
      const bool of_block = l >= rank;
      if (at < 0 || static_cast<size_t>(at) >= count || seen[static_cast<size_t>(at)] ||
          of_block != (static_cast<size_t>(at) >= rank))
        return Invalid("traversal order " + std::to_string(at) + " at level " + std::to_string(l));
      seen[static_cast<size_t>(at)] = true;
      const auto block = static_cast<unsigned>(static_cast<size_t>(at) - (of_block ? rank : 0));
      const int32_t dimension = of_block ? source_.block_map()->Get(block) : at;
      if (dimension < 0 || static_cast<size_t>(dimension) >= rank)
        return Invalid("blocks of dimension " + std::to_string(dimension));
      dimension_[l] = static_cast<size_t>(dimension);
    }
    return Extents(rank);
  }

  // The innermost level of a dimension has its elements next to each other; each one above steps over a
  // block.
  Status Extents(size_t rank) {
    std::vector<int64_t> weight(rank, 1);
    for (size_t d = rank; d-- > 1;) weight[d - 1] = weight[d] * dims_[d];
    std::vector<int64_t> left = {dims_.begin(), dims_.end()};
    for (size_t l = levels_.size(); l-- > rank;) {
      const size_t d = dimension_[l];
      const int64_t size = source_.dim_metadata()->Get(static_cast<unsigned>(l))->dense_size();
      if (size < 1 || left[d] % size != 0)
        return Invalid("blocks of " + std::to_string(size) + " in a dimension of " +
                       std::to_string(dims_[d]));
      levels_[l].extent = size;
      levels_[l].weight = weight[d];
      weight[d] *= size;
      left[d] /= size;
    }
    for (size_t l = 0; l < rank; ++l) {
      levels_[l].extent = left[dimension_[l]];
      levels_[l].weight = weight[dimension_[l]];
    }
    return {};
  }

  Status One(size_t l) {
    const format::DimensionMetadata& source = *source_.dim_metadata()->Get(static_cast<unsigned>(l));
    Level& level = levels_[l];
    level.dense = source.format() == format::DimensionType_DENSE;
    if (level.dense) {
      return source.dense_size() == level.extent
                 ? Status()
                 : Invalid("has " + std::to_string(source.dense_size()) + " indices, expected " +
                           std::to_string(level.extent));
    }
    if (source.format() != format::DimensionType_SPARSE_CSR)
      return Unsupported("is stored in a way that is not known");
    level.segments = Numbers(source.array_segments_type(), source.array_segments());
    level.indices = Numbers(source.array_indices_type(), source.array_indices());
    for (const int64_t index : level.indices) {
      if (index < 0 || index >= level.extent)
        return Invalid("index " + std::to_string(index) + " of " + std::to_string(level.extent));
    }
    return {};
  }

  Status Below(size_t l, int64_t parent, int64_t offset, const std::function<Status(int64_t)>& leaf) const {
    if (l == levels_.size()) return leaf(offset);
    const Level& level = levels_[l];
    if (level.dense) {
      for (int64_t i = 0; i < level.extent; ++i)
        FUSEBOX_TRY(Below(l + 1, parent * level.extent + i, offset + i * level.weight, leaf));
      return {};
    }
    const auto at = static_cast<size_t>(parent);
    if (at + 1 >= level.segments.size())
      return Invalid("level " + std::to_string(l) + " has no segment " + std::to_string(parent));
    const int64_t begin = level.segments[at];
    const int64_t end = level.segments[at + 1];
    if (begin < 0 || begin > end || end > static_cast<int64_t>(level.indices.size()))
      return Invalid("level " + std::to_string(l) + ": segment " + std::to_string(parent) + " goes from " +
                     std::to_string(begin) + " to " + std::to_string(end) + " of " +
                     std::to_string(level.indices.size()) + " indices");
    for (int64_t i = begin; i < end; ++i)
      FUSEBOX_TRY(Below(l + 1, i, offset + level.indices[static_cast<size_t>(i)] * level.weight, leaf));
    return {};
  }

  const format::SparsityParameters& source_;
  const fusebox::Dims& dims_;
  std::vector<Level> levels_;
  std::vector<size_t> dimension_;  // by level
};

}  // namespace

Result<Buffer> Unpack(const File& file, const format::SparsityParameters& source, const Type& type,
                      const Buffer& stored) {
  const std::optional<size_t> bytes = ByteSize(type);
  if (!bytes || BitsOf(type.dtype) < 8)
    return Unsupported("sparse constants of type " + ToString(type) + " are not done");
  if (*bytes == 0) return Buffer::Make(0, {});  // its other dimensions may be of any size, and are not walked
  file.unpacked += *bytes;
  if (file.unpacked > kAlways && file.unpacked / kMostGrowth > file.bytes.size())
    return Invalid("would unpack to " + std::to_string(file.unpacked) + " bytes from a file of " +
                   std::to_string(file.bytes.size()));
  Tree tree(source, type);
  FUSEBOX_TRY(tree.Read());
  const size_t element = BitsOf(type.dtype) / 8;
  const size_t count = stored.size() / element;
  size_t next = 0;
  Status status;
  Buffer dense = Buffer::Make(*bytes, [&](std::span<std::byte> to) {
    status = tree.Walk([&](int64_t offset) -> Status {
      if (next == count) return Invalid("has more elements than the " + std::to_string(count) + " stored");
      std::memcpy(to.data() + static_cast<size_t>(offset) * element, stored.data() + next++ * element,
                  element);
      return {};
    });
  });
  FUSEBOX_TRY(status);
  if (next != count)
    return Invalid("has " + std::to_string(next) + " elements, but " + std::to_string(count) + " are stored");
  return dense;
}

}  // namespace fusebox::tflite
