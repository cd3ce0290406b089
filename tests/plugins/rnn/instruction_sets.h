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
  for (const rnn::CellCode* cells : rnn::CellCodes()) {
    for (const math::F32Kernels* products : math::AllF32Kernels()) {
      if (products->lanes != cells->lanes) continue;
      rnn::CellChoice::for_test = cells;
      math::F32Choice::for_test = products;
      SCOPED_TRACE(std::to_string(cells->lanes) + " lanes");
      f();
    }
  }
  rnn::CellChoice::for_test = nullptr;
  math::F32Choice::for_test = nullptr;
}

}  // namespace fusebox::testing
