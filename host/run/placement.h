// SPDX-License-Identifier: Apache-2.0
// Which component runs a node, and the reason: a row of Model::placements and Session::placements.
#pragma once

#include <string>

namespace fusebox {

struct Placement {
  std::string function, node, op, runner,
      why;  // runner: "fusebox.cpu", "xnnpack (partition 0)", "host", "body"
};

}  // namespace fusebox
