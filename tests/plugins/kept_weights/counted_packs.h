// SPDX-License-Identifier: Apache-2.0
// Counts weight packing by the linked rnn plugin. A separate file, because host and SDK names collide.
#pragma once

#include <cstddef>

namespace fusebox::kept_weights {

// Number of instruction sets of this machine, best first; selects the one to use and count from now on.
size_t InstructionSets();
void UseInstructionSet(size_t number);
void UseTheBestInstructionSet();  // without counting

// Number of packed gate blocks since the last call.
int PacksSince();

}  // namespace fusebox::kept_weights
