// SPDX-License-Identifier: Apache-2.0
// How this build of XNNPACK packs on this CPU: what it makes of a small op of each family, and which build it is.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "plugins/xnnpack/recipes.h"

namespace fusebox::xnnpack {

class Fingerprints {
 public:
  Fingerprints() = default;  // of a store that does not outlive the process: all are 0
  // Of this process's library and CPU. XNNPACK is initialised. A canary is packed when it is first asked for.
  static const Fingerprints& Measured();
  // Of the library's build and of what the canaries of this family and form are packed into. Any thread.
  uint64_t of(Family family, Form form) const;
  // The CPU, as far as it decides layouts: what must live side by side in a store that several machines use.
  const std::string& cpu() const { return cpu_; }

 private:
  struct Measurements {
    struct One {
      std::once_flag once;
      uint64_t digest = 0;
    };
    std::array<std::array<One, kForms>, kFamilies> of;
  };
  std::unique_ptr<Measurements> measured_;
  std::string cpu_;
};

// What identifies the XNNPACK library that is loaded: the linker's build id, else its own identifier of its microkernels.
const std::string& LibraryBuild();
std::string LibraryBuildText();  // in hexadecimal

}  // namespace fusebox::xnnpack
