// SPDX-License-Identifier: Apache-2.0
// LSTM cells of Lingvo, with seeded weights.
#pragma once

#include <cstdint>
#include <string>

#include "host/base/status.h"

namespace fusebox::test_models {

// A cell of Lingvo as a function with `_implements`: signature "serving_default" (x [batch, inputs] (, m0,
// c0)) -> "m1" (, "c1").
struct LingvoOptions {
  int batch = -1;  // -1: dynamic
  int inputs = 3;
  int cells = 8;
  int outputs = 0;  // 0: no projection, as many as cells
  bool layer_norm = false;
  bool coupled = false;         // input gate = 1 - forget gate
  bool states = false;          // m0 and c0 are arguments, c1 is a result; else the cell starts from zeros
  float cell_clip = 0;          // 0: none
  float projection_clip = 0;    // 0: none
  bool clip_attribute = false;  // the annotation contains the clip bounds too
  // kPerGate: one matrix product per gate, as in another library. kSwappedGates: a wrong body.
  enum class Body { kLingvo, kPerGate, kSwappedGates } body = Body::kLingvo;
  bool bare_name = false;  // without the prefix "lingvo."
};
Status WriteLingvo(const std::string& dir, uint64_t seed, const LingvoOptions& options);

}  // namespace fusebox::test_models
