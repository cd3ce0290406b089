// SPDX-License-Identifier: Apache-2.0
// Post-training quantization: a finished float graph in, one with 16- or 8-bit weights, or wholly of 8-bit
// integers, out.
//
//   float16  large f32 constants as f16, each behind a DEQUANTIZE
//   dynamic  weights as symmetric i8, activations f32: hybrid kernels; other large constants as i8 behind a DEQUANTIZE
//   int8     activations as asymmetric i8 with ranges seen on calibration data, weights symmetric i8, biases i32; inputs and
//            outputs stay f32; ops that do too have their weights as in dynamic
//
// Calibration data is a folder: NAME.npy, or in0.npy, in1.npy.. in the order of the inputs, or NAME.0.npy,
// NAME.1.npy.. Where an array's first dimension, or one that the input does not have, counts samples, each is
// one. Several signatures: a folder of the signature's key below it, where there is one.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "converter/passes/pass.h"
#include "host/graph/graph.h"
#include "host/run/run.h"

namespace fusebox::converter::quantize {

// ---- weights.cc: constants in fewer bits

struct Stored {
  Buffer data;
  std::shared_ptr<const Quant> quant;
};
// Symmetric i8 in [-127, 127]; a scale per index of `axis`, or one for all (axis -1). `at_least`, where not
// empty: the smallest scale of each channel. Nothing where a value is not finite.
std::optional<Stored> SymmetricBytes(const Value& weights, int axis, std::span<const double> at_least = {});
// Nothing where a value is not finite or too large for f16; or, where each element counts by itself, a
// hundredth off for being too small.
std::optional<Buffer> Halves(const Value& constant, bool each_counts = false);
// Whether a constant is weights to the op, or a table: an element in it that is small beside the others may
// be rounded as they are. Elsewhere it may be a divisor, a factor or a bound of its own.
bool TakesWeights(const Node&);
// Why the kernels that are there would not run the node as it stands; empty when one does.
std::string Refusal(Context&, const Function&, const Node&);
// "place (OP)", for messages.
std::string Place(const Node&);

// ---- float16.cc, dynamic.cc, int8.cc

// `exact`: only constants that lose nothing.
void ToFloat16(Context&, Function&, bool exact = false);
// `rest`: behind ToInt8, what it left; tables of ids and the like stay.
void ToDynamic(Context&, Function&, bool rest = false);

// What an activation's values were.
struct Range {
  float min = 0, max = 0;  // zero is always in it
  float largest = 0;       // of all absolute values, those too that do not count for min and max
  bool seen = false;
  bool finite = true;         // whether all of them were
  void Widen(const Tensor&);  // f32; what is not finite does not count
};
using Ranges = std::map<ValueId, Range>;
// What an LSTM held at every step.
struct LstmRanges {
  Range cell;
  // By intermediate of its integer form: the sums of each gate before layer normalization, with the parts
  // that they are added up from; what is projected. Not seen where the op has none.
  std::array<Range, 5> within;
};
struct Measured {
  Ranges values;
  std::map<ValueId, LstmRanges> lstms;  // by output
};
// The i8 form of each value that is computed in it.
using Twins = std::map<ValueId, ValueId>;
Twins ToInt8(Context&, Function&, const Measured&);

// ---- calibrate.cc: running on data

using Sample = std::vector<Tensor>;  // by input
// `read` gets the files that the samples are from.
Result<std::vector<Sample>> ReadCalibration(const Module&, const Signature&, const std::string& dir,
                                            std::set<std::string>* read = nullptr);
// What no signature has read, a line for each folder.
std::vector<std::string> UnreadCalibration(const Module&, const std::string& dir,
                                           const std::set<std::string>& read);
// A copy of the module that hands out values from inside a function. Of a state that an op updates: the
// initial one. Samples are calls of one session, in order: what it keeps goes on from one to the next.
class Observer {
 public:
  // `threads` 0: as many as there are processors.
  static Result<Observer> Create(Context&, const Module&, const std::string& function,
                                 std::vector<ValueId> values, int threads = 0);
  // Those values for the next sample, in their order.
  Result<std::vector<Tensor>> Run(const Sample&);

 private:
  Observer() = default;
  std::string function_;
  std::shared_ptr<Module> module_;
  std::shared_ptr<run::Program> program_;
  std::shared_ptr<run::Runner> runner_;
};
// The f32 results of nodes, in order: what can be observed.
std::vector<ValueId> Activations(const Function&);

// The range of every f32 input and node result, as far as what reads it can tell, and what LSTMs of constant
// weights held, over all samples.
Result<Measured> Measure(Context&, const Module&, const std::string& function, const std::vector<Sample>&);

// ---- saturation.cc: SOFTMAX, LOGISTIC and TANH give the same byte for whatever lies beyond some bound, so
// the range of an operand that nothing else reads ends there. LOGISTIC and TANH get finer steps for it.
// SOFTMAX gets room above, by what was cut below, up to twice the range: two classes that both lead by more
// than was ever seen must stay apart.

class Saturation {
 public:
  explicit Saturation(const Function&);
  // Widens by what counts of the value's tensor.
  void Widen(ValueId, const Tensor& seen, Range&);
  // After the last sample.
  void Finish(Ranges&) const;

 private:
  struct Limit {
    float reach;  // from zero; in rows, below the largest of each
    int64_t row;  // 0: no rows
  };
  std::map<ValueId, Limit> limits_;
  Ranges whole_;  // of the operands, before the cut
};

// ---- lstm_steps.cc: an f32 LSTM op run one step at a time, where what it holds can be seen

class LstmSteps {
 public:
  // For inputs and states of these types; the weights are constant. The function and node must outlive it.
  static Result<LstmSteps> Create(Context&, const Function&, const Node&, const Sample& values);
  // Widens by all that the op held. `values`: its input and its two initial states. Returns the final ones.
  Result<Sample> Widen(const Sample& values, LstmRanges&);

 private:
  explicit LstmSteps(const Node& node) : node_(&node) {}
  const Node* node_;
  Type step_, output_, cell_;          // of the input at one step, and of the states
  std::vector<size_t> intermediates_;  // whose values are observed behind those of the states
  std::optional<Observer> observer_;
};

// ---- errors.cc: what it cost

// Both functions on the same samples: how far the values of `after` are from those of `before`, node by node.
// A value of `before` that has a twin is compared with it.
Status CompareLayers(Context&, const Module& before, const Module& after, const std::string& function,
                     const Twins&, const std::vector<Sample>&);

}  // namespace fusebox::converter::quantize
