// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "plugins/math/gemm/f32.h"
#include "plugins/rnn/simd/cells.h"

namespace fusebox::testing {

// Calls f with the f32 code of every instruction set that this machine has.
template <class F>
void OnEveryInstructionSet(const F& f) {
  const auto cells = rnn::CellCodes();
  const auto products = math::F32Codes();
  for (size_t i = 0; i < cells.size(); ++i) {
    rnn::CellChoice::for_test = cells[i];
    math::F32Choice::for_test = products[i];
    SCOPED_TRACE(std::to_string(cells[i]->lanes) + " lanes");
    f();
  }
  rnn::CellChoice::for_test = nullptr;
  math::F32Choice::for_test = nullptr;
}

}  // namespace fusebox::testing
