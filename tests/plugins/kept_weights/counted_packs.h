// SPDX-License-Identifier: Apache-2.0
// How often the rnn plugin, which is linked in, packs weights. Apart from the rest, since the host's names
// are not the SDK's.
#pragma once

#include <cstddef>

namespace fusebox::kept_weights {

// Instruction sets that this machine has, best first, and the one that is used from now on; its packing is
// counted.
size_t InstructionSets();
void UseInstructionSet(size_t number);
void UseTheBestInstructionSet();  // and count nothing

// Gates of blocks that were packed since the last call of this.
int PacksSince();

}  // namespace fusebox::kept_weights
