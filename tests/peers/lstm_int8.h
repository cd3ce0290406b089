// SPDX-License-Identifier: Apache-2.0
// What the converter makes of an LSTM net when all of it becomes integers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/graph/graph.h"
#include "host/plugin/plugin.h"

namespace fusebox::testing {

struct IntegerForm {
  std::string plain, path;         // the files: f32, and quantized
  std::unique_ptr<Module> module;  // of the latter
  std::string notes;

  const Function& function() const { return *module->functions[0]; }
  const Node& lstm() const;
  // "i8" of operand 1; "none" where it is absent.
  std::string TypeOf(size_t operand) const;
  const Quant& QuantOf(size_t operand) const { return *function().value(lstm().operands[operand]).quant; }
  const Quant& QuantWithin(size_t intermediate) const {
    return *function().value(lstm().intermediates[intermediate]).quant;
  }
};
// Writes both files, `name` in their names, to the test's folder. `samples`: by input, the first dimension
// counts them.
Result<IntegerForm> ToIntegers(const Module& plain, const std::string& name,
                               const std::vector<Tensor>& samples);
// The f32 net with the constants that the integer form stores: what rounding them costs alone.
std::unique_ptr<Module> WithStoredWeights(const Module& plain, const IntegerForm&);
// So many samples of noise from -1 to 1 for each input of the module's function.
std::vector<Tensor> NoiseSamples(const Module& module, int64_t count);

}  // namespace fusebox::testing
