// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "host/plan/plan.h"

namespace fusebox::plan {
namespace {

size_t Padded(size_t bytes) { return (bytes + kOverread + kAlignment - 1) / kAlignment * kAlignment; }

// The start of the tightest gap for `request` between the placed requests (sorted by offset) with overlapping
// lifetimes.
size_t FindGap(const std::vector<const Request*>& placed, const Request& request) {
  const size_t bytes = Padded(request.bytes);
  size_t best = SIZE_MAX, best_gap = SIZE_MAX, end = 0;
  for (const Request* other : placed) {
    if (other->first > request.last || request.first > other->last) continue;
    if (other->offset >= end) {
      const size_t gap = other->offset - end;
      if (gap >= bytes && gap < best_gap) best = end, best_gap = gap;
    }
    end = std::max(end, other->offset + Padded(other->bytes));
  }
  return best == SIZE_MAX ? end : best;
}

}  // namespace

size_t Arrange(std::span<Request> requests) {
  if (requests.empty()) return 0;
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return requests[a].bytes != requests[b].bytes ? requests[a].bytes > requests[b].bytes : a < b;
  });
  std::vector<const Request*> by_offset;
  by_offset.reserve(requests.size());
  size_t total = 0;
  for (const size_t index : order) {
    Request& request = requests[index];
    request.offset = FindGap(by_offset, request);
    total = std::max(total, request.offset + Padded(request.bytes));
    const auto at =
        std::upper_bound(by_offset.begin(), by_offset.end(), &request,
                         [](const Request* a, const Request* b) { return a->offset < b->offset; });
    by_offset.insert(at, &request);
  }
  return total;
}

}  // namespace fusebox::plan
