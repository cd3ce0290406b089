// SPDX-License-Identifier: Apache-2.0
// What a Lingvo cell's name, operands and body say (rules/lingvo_lstm.h), checked.
#pragma once

#include <fusebox/rule.hpp>

namespace fusebox::rnn {

struct LingvoCell {
  // Throws Reject for what the op cannot say.
  explicit LingvoCell(const Site& site);

  static constexpr uint32_t kInput = 0, kWeight = 1, kBias = 2, kProjection = 3, kScale = 4;

  bool layer_norm = false, coupled = false, projection = false;
  bool states = false;      // the longer form
  uint32_t m0 = 0, c0 = 0;  // operands, where states
  int32_t gates = 4;        // G
  int32_t inputs = 0, cells = 0, outputs = 0;
  double cell_clip = 0, projection_clip = 0;

 private:
  void ParseName(const Site& site);
  void CheckArity(const Site& site);
  void CheckWeights(const Site& site);
  void CheckInput(const Site& site) const;
  void FindClips(const Site& site);
};

}  // namespace fusebox::rnn
