// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "host/plan/plan.h"

namespace fusebox::plan {
namespace {

size_t Padded(size_t bytes) { return (bytes + kOverread + kAlignment - 1) / kAlignment * kAlignment; }

// The placed requests: those that live shortly, as most do, by node.
class Lifetimes {
 public:
  explicit Lifetimes(std::span<const Request> requests) {
    if (requests.empty()) return;
    int end = std::numeric_limits<int>::min();
    for (const Request& request : requests) {
      begin_ = std::min(begin_, request.first);
      end = std::max(end, request.last + 1);
    }
    latest_.resize(static_cast<size_t>(end - begin_), kNone);
    entries_.reserve(2 * requests.size());
  }

  static bool IsShort(const Request& request) { return request.last - request.first < 32; }

  void Add(const Request& request) {
    if (!IsShort(request)) return long_.push_back(&request);
    for (int node = request.first; node <= request.last; ++node) {
      uint32_t& latest = latest_[static_cast<size_t>(node - begin_)];
      entries_.push_back({&request, std::exchange(latest, static_cast<uint32_t>(entries_.size()))});
    }
  }

  // Finds the requests that live together with `request`, which is short.
  void Find(const Request& request, std::vector<const Request*>& met) const {
    for (const Request* other : long_) {
      if (other->first <= request.last && request.first <= other->last) met.push_back(other);
    }
    for (int node = request.first; node <= request.last; ++node) {
      for (uint32_t at = latest_[static_cast<size_t>(node - begin_)]; at != kNone; at = entries_[at].before) {
        const Request* const other = entries_[at].request;
        if (node == request.first || node == other->first) met.push_back(other);
      }
    }
  }

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  struct Entry {
    const Request* request;
    uint32_t before;  // the entry of the same node before this one
  };
  int begin_ = std::numeric_limits<int>::max();
  std::vector<uint32_t> latest_;  // by node: its last entry
  std::vector<Entry> entries_;
  std::vector<const Request*> long_;
};

bool IsBefore(const Request* a, const Request* b) { return a->offset < b->offset; }

// The start of the tightest gap for `request` between the placed requests (sorted by offset) with overlapping
// lifetimes.
size_t FindGap(const std::vector<const Request*>& placed, const Request& request) {
  const size_t bytes = Padded(request.bytes);
  size_t best = SIZE_MAX;
  size_t best_gap = SIZE_MAX;
  size_t end = 0;
  for (const Request* other : placed) {
    if (other->first > request.last || request.first > other->last) continue;
    if (other->offset >= end) {
      const size_t gap = other->offset - end;
      if (gap >= bytes && gap < best_gap) {
        best = end;
        best_gap = gap;
      }
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
  const bool many = requests.size() > 64;  // fewer are looked through in less time
  Lifetimes lifetimes(many ? requests : std::span<Request>());
  std::vector<const Request*> by_offset;
  std::vector<const Request*> met;
  by_offset.reserve(requests.size());
  size_t total = 0;
  for (const size_t index : order) {
    Request& request = requests[index];
    met.clear();
    const bool is_short = many && Lifetimes::IsShort(request);
    if (is_short) lifetimes.Find(request, met);
    const bool few = is_short && met.size() < by_offset.size() / 4;
    if (few) std::ranges::sort(met, IsBefore);
    request.offset = FindGap(few ? met : by_offset, request);
    total = std::max(total, request.offset + Padded(request.bytes));
    if (many) lifetimes.Add(request);
    by_offset.insert(std::upper_bound(by_offset.begin(), by_offset.end(), &request, IsBefore), &request);
  }
  return total;
}

}  // namespace fusebox::plan
