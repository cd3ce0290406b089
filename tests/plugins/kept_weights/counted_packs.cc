// SPDX-License-Identifier: Apache-2.0
#include "tests/plugins/kept_weights/counted_packs.h"

#include <atomic>

#include "plugins/rnn/simd/lstm.h"

namespace fusebox::kept_weights {
namespace {

std::atomic<int> packs = 0;
const rnn::VectorCode* counted = nullptr;

void CountedPack(const rnn::PackTask& task) {
  ++packs;
  counted->pack(task);
}

}  // namespace

size_t InstructionSets() { return rnn::VectorCodes().size(); }

void UseInstructionSet(size_t number) {
  static rnn::VectorCode code;
  counted = rnn::VectorCodes()[number];
  code = *counted;
  code.pack = CountedPack;
  rnn::UseVectorCodeForTest(&code);
}

void UseTheBestInstructionSet() { rnn::UseVectorCodeForTest(nullptr); }

int PacksSince() { return packs.exchange(0); }

}  // namespace fusebox::kept_weights
