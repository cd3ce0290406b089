// SPDX-License-Identifier: Apache-2.0
// How this build of XNNPACK packs on this CPU: what it makes of a small op of each family, and which build it is.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "plugins/xnnpack/cache/recipes.h"

namespace fusebox::xnnpack {

class Fingerprints {
 public:
  // Packs the canaries. XNNPACK is initialised. Costs some 100 us; once per process.
  static const Fingerprints& Measured();
  // Of the library's build and of the bytes and sizes that the family's canaries were packed into.
  uint64_t of(Family family) const { return digests_[static_cast<size_t>(family)]; }
  // The CPU, as far as it decides layouts: what must live side by side in a store that several machines use.
  const std::string& cpu() const { return cpu_; }

  // For tests: as on a machine where this family is packed otherwise, or with another build of the library.
  void Change(Family family) { digests_[static_cast<size_t>(family)] ^= 1; }
  void SetCpu(std::string cpu) { cpu_ = std::move(cpu); }

 private:
  std::array<uint64_t, kFamilies> digests_{};
  std::string cpu_;
};

// What identifies the XNNPACK library that is loaded: the linker's build id, else its own identifier of its microkernels.
const std::string& LibraryBuild();

}  // namespace fusebox::xnnpack
