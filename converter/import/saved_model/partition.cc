// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/partition.h"

#include <algorithm>
#include <cstring>

#include "converter/import/saved_model/tensor_data.h"

namespace fusebox::saved_model {
namespace {

constexpr size_t kMaxParts = 10000;  // every pair is compared

bool IsEmpty(std::span<const int64_t> size) { return std::ranges::find(size, 0) != size.end(); }

}  // namespace

Result<Partition> Partition::Plan(std::span<const int64_t> shape, const tf::BundleEntry& entry) {
  Partition plan;
  plan.shape_.assign(shape.begin(), shape.end());
  for (const tf::TensorSlice& slice : entry.slices()) {
    std::string place = "part " + std::to_string(plan.parts_.size());
    if (static_cast<size_t>(slice.extent_size()) != shape.size())
      return Invalid(place + " has a different rank");
    Part part;
    for (size_t d = 0; d < shape.size(); ++d) {
      const tf::TensorSlice::Extent& extent = slice.extent(static_cast<int>(d));
      bool whole = extent.has_length_case() != tf::TensorSlice::Extent::kLength || extent.length() == -1;
      int64_t start = whole ? 0 : extent.start();
      int64_t size = whole ? shape[d] : extent.length();
      if (start < 0 || size < 0 || start > shape[d] || size > shape[d] - start)
        return Invalid(place + " is outside of the tensor");
      part.start.push_back(start);
      part.size.push_back(size);
    }
    plan.parts_.push_back(std::move(part));
  }
  FUSEBOX_TRY(plan.CheckCover());
  return plan;
}

// Overlapping slices leave a gap elsewhere if the counts add up, so equal counts without overlap are a full
// cover.
Status Partition::CheckCover() const {
  if (parts_.size() > kMaxParts)
    return Unsupported("it is stored in " + std::to_string(parts_.size()) + " parts");
  FUSEBOX_ASSIGN(int64_t total, ElementCount(shape_));
  int64_t sum = 0;
  for (const Part& part : parts_) {
    FUSEBOX_ASSIGN(int64_t count, ElementCount(part.size));
    if (count > total - sum) return Invalid("its parts overlap");
    sum += count;
  }
  if (sum != total)
    return Invalid("its parts hold " + std::to_string(sum) + " of " + std::to_string(total) + " elements");
  for (size_t a = 0; a < parts_.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      bool apart = IsEmpty(parts_[a].size) || IsEmpty(parts_[b].size);
      for (size_t d = 0; d < shape_.size(); ++d) {
        apart |= parts_[a].start[d] + parts_[a].size[d] <= parts_[b].start[d];
        apart |= parts_[b].start[d] + parts_[b].size[d] <= parts_[a].start[d];
      }
      if (!apart) return Invalid("its parts overlap");
    }
  }
  return {};
}

void Partition::JoinPart(const Part& part, const Buffer& bytes, size_t element_size,
                         std::span<std::byte> out) const {
  if (bytes.size() == 0) return;
  size_t rank = shape_.size();
  size_t run = element_size * (rank == 0 ? 1 : part.size.back());
  std::vector<int64_t> index(rank, 0);  // first element of a run, within the part
  for (size_t done = 0; done < bytes.size(); done += run) {
    int64_t at = 0;
    for (size_t d = 0; d < rank; ++d) at = at * shape_[d] + part.start[d] + index[d];
    std::memcpy(out.data() + at * element_size, bytes.data() + done, run);
    for (size_t d = rank; d-- > 1 && ++index[d - 1] == part.size[d - 1];) index[d - 1] = 0;
  }
}

void Partition::Join(std::span<const Buffer> parts, size_t element_size, std::span<std::byte> out) const {
  for (size_t i = 0; i < parts_.size(); ++i) JoinPart(parts_[i], parts[i], element_size, out);
}

}  // namespace fusebox::saved_model
