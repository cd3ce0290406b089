// SPDX-License-Identifier: Apache-2.0
// Integer conversion of an LSTM net.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/graph/graph.h"
#include "host/plugin/registry.h"

namespace fusebox::testing {

struct IntegerForm {
  std::string plain, path;         // files: f32 and quantized
  std::unique_ptr<Module> module;  // the quantized module
  std::string notes;

  const Function& function() const { return *module->functions[0]; }
  const Node& lstm() const;
  // "i8" of operand 1; "none" if it is absent.
  std::string TypeOf(size_t operand) const;
  const Quant& QuantOf(size_t operand) const { return *function().value(lstm().operands[operand]).quant; }
  const Quant& QuantWithin(size_t intermediate) const {
    return *function().value(lstm().intermediates[intermediate]).quant;
  }
};
// Writes both files, with `name` in their names, to the test's folder. `samples`: by input; the first
// dimension counts samples.
Result<IntegerForm> ToIntegers(const Module& plain, const std::string& name,
                               const std::vector<Tensor>& samples);
// The f32 net with the integer form's rounded constants: the error of weight rounding alone.
std::unique_ptr<Module> WithStoredWeights(const Module& plain, const IntegerForm&);
// `count` samples of noise in [-1, 1] for each input of the module's function.
std::vector<Tensor> NoiseSamples(const Module& module, int64_t count);

}  // namespace fusebox::testing
