// SPDX-License-Identifier: Apache-2.0
// The definition of fusebox.gru (gru/spec.h) as plain code, f32 and f64, weights as they stand in the file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/rnn/gru/spec.h"

namespace fusebox::rnn {

// Where one call reads and writes. All sizes are those of `spec`, which is fully known.
template <class T>
struct GruBuffers {
  const T* operands[kGruOperands] = {};  // null: absent; the state is not read
  T* output = nullptr;                   // as the input, last dimension `cells`
  T* state = nullptr;                    // [batch, cells]: initial on entry, final on return
};

// Elements of scratch that a call of RunGruReference needs.
inline size_t GruReferenceScratch(const GruSpec& spec) { return 7 * static_cast<size_t>(spec.cells); }

// Runs all steps of the batch rows [begin, end). Rows are independent: calls for different rows may run at
// once, each with its own scratch.
template <class T>
void RunGruReference(const GruSpec& spec, const GruBuffers<T>& buffers, int64_t begin, int64_t end,
                     T* scratch);

extern template void RunGruReference<float>(const GruSpec&, const GruBuffers<float>&, int64_t, int64_t,
                                            float*);
extern template void RunGruReference<double>(const GruSpec&, const GruBuffers<double>&, int64_t, int64_t,
                                             double*);

}  // namespace fusebox::rnn
