// SPDX-License-Identifier: Apache-2.0
// Vocabularies of lookup layers, from the configuration or from the assets of a .keras file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "converter/import/keras/layer_call.h"

namespace fusebox::keras {

// The tokens by number. The first `oov_end` numbers are the mask (if there is one) and the tokens for unknown
// words.
struct Vocabulary {
  std::vector<std::string> tokens;  // numbers oov_end and above
  bool integers = false;            // tokens, mask and oov are integers in decimal
  std::vector<float> weights;       // of all numbers, mode tf_idf only
  int64_t oov_begin = 0;
  int64_t oov_end = 0;
  bool masked = false;  // the mask token has the number 0 with mode int, else none
  std::string mask, oov;

  int64_t size() const { return oov_end + static_cast<int64_t>(tokens.size()); }
};

// Errors are kept by the emitter.
Vocabulary ReadVocabulary(LayerCall&, const std::string& mode, int64_t oov_count,
                          const std::optional<std::string>& mask, bool integers = false);

// Hash buckets (i64) of strings or numbers of any shape; under the layer's salt if it has one.
ValueId HashedBuckets(LayerCall&, ValueId values, int64_t buckets);
// Numbers of words (or integers) of any shape.
ValueId NumbersOf(LayerCall&, const Vocabulary&, ValueId words);
// Words (or integers) of numbers.
ValueId WordsOf(LayerCall&, const Vocabulary&, ValueId numbers);

}  // namespace fusebox::keras
