// SPDX-License-Identifier: Apache-2.0
// Memory planner for values between the ops of a partition. XNNPACK has one, but Debian's build disables it:
// each value then has its own memory and the net does not fit into the CPU cache. So the delegate plans, and
// XNNPACK sees these values as external.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plugins/xnnpack/partition/network.h"

namespace fusebox::xnnpack {

class Intermediates {
 public:
  // Plans all values between ops, except those that XNNPACK may eliminate by joining two ops.
  explicit Intermediates(const Network& network);
  // In the order of definition.
  std::span<const fbx_value> values() const { return ids_; }
  // Plans memory for values of these sizes in bytes, by index in values(); 0: not needed. Values with
  // disjoint lifetimes share memory. Returns the total bytes.
  size_t Place(std::span<const size_t> sizes);
  // From the start of that memory; a multiple of 64.
  size_t offset(size_t number) const { return offsets_[number]; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Life {
    uint32_t first, last;   // the defining node and the last reader
    uint32_t readers = 0;   // operands with this value
    uint32_t onto = kNone;  // the value whose memory it may reuse
    bool kept = true;       // false: internal to XNNPACK
  };
  void Follow(const Network& network, std::vector<uint32_t>& number);
  void Choose(const Network& network, const std::vector<uint32_t>& number);

  std::vector<fbx_value> ids_;
  std::vector<Life> lives_;
  std::vector<size_t> offsets_;
};

}  // namespace fusebox::xnnpack
