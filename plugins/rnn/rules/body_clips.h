// SPDX-License-Identifier: Apache-2.0
// The bounds that a cell's body clips by.
#pragma once

#include <fusebox/rule.hpp>

namespace fusebox::rnn {

struct BodyClips {
  double output = 0;  // of the composite's first result; 0: none
  double inner = 0;   // of what is inside: the cell state
};

// Looks for a minimum and a maximum with constants around one value. Throws Reject where they are not
// symmetric, stand alone, or clip anything else than the output and the new cell state (before both its tanh
// and the second result).
BodyClips ClipsOf(const Site& site);

}  // namespace fusebox::rnn
