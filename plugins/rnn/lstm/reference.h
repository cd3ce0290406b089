// SPDX-License-Identifier: Apache-2.0
// The definition of the op (lstm/spec.h) as plain code: every variant, f32 and f64, weights as they stand in
// the file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/rnn/lstm/spec.h"

namespace fusebox::rnn {

// Where one call reads and writes. All sizes are those of `spec`, which is fully known.
template <class T>
struct LstmBuffers {
  const T* operands[24] = {};  // null: absent; 18 and 19 are not read
  T* output = nullptr;         // as the input, last dimension `outputs`
  T* output_state = nullptr;   // [batch, outputs]: initial on entry, final on return
  T* cell_state = nullptr;     // [batch, cells]: the same
};

// Elements of scratch that a call of RunReference needs.
inline size_t ReferenceScratch(const LstmSpec& spec) { return 5 * static_cast<size_t>(spec.cells); }

// Runs all steps of the batch rows [begin, end). Rows are independent: calls for different rows may run at
// once, each with its own scratch.
template <class T>
void RunReference(const LstmSpec& spec, const LstmBuffers<T>& buffers, int64_t begin, int64_t end,
                  T* scratch);

extern template void RunReference<float>(const LstmSpec&, const LstmBuffers<float>&, int64_t, int64_t,
                                         float*);
extern template void RunReference<double>(const LstmSpec&, const LstmBuffers<double>&, int64_t, int64_t,
                                          double*);

}  // namespace fusebox::rnn
