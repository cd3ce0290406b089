// SPDX-License-Identifier: Apache-2.0
// Memory for the values between the ops of a partition. XNNPACK plans it only where it was built to, and
// Debian's was not: there every value has a place of its own, so that a net walks through memory instead of
// staying in the cache. So the delegate plans, and XNNPACK sees such values as coming from the outside.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plugins/xnnpack/network.h"

namespace fusebox::xnnpack {

class Intermediates {
 public:
  // All values that the network makes and does not give away, but for those that XNNPACK may do without by
  // joining two ops.
  explicit Intermediates(const Network& network);
  // In the order in which they are made.
  std::span<const fbx_value> values() const { return ids_; }
  // Plans places for values of these sizes in bytes, by their number in values(); 0: it is not needed. Values
  // that are not alive at the same time share memory. Returns the bytes of all.
  size_t Place(std::span<const size_t> sizes);
  // From the start of that memory; a multiple of 64.
  size_t offset(size_t number) const { return offsets_[number]; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Life {
    uint32_t first, last;   // the nodes that make it and that read it last
    uint32_t readers = 0;   // operands that it is
    uint32_t onto = kNone;  // the value whose memory it may take over
    bool kept = true;       // false: XNNPACK's own matter
  };
  void Follow(const Network& network, std::vector<uint32_t>& number);
  void Choose(const Network& network, const std::vector<uint32_t>& number);

  std::vector<fbx_value> ids_;
  std::vector<Life> lives_;
  std::vector<size_t> offsets_;
};

}  // namespace fusebox::xnnpack
