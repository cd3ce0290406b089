// SPDX-License-Identifier: Apache-2.0
// Post-training quantization of a float graph: 16- or 8-bit weights, or 8-bit integers throughout.
//
//   float16  large f32 constants as f16, each with a DEQUANTIZE
//   dynamic  weights as symmetric i8, activations f32 (hybrid kernels); other large constants as i8 with a
//            DEQUANTIZE
//   int8     activations as asymmetric i8 with ranges from calibration data, weights as symmetric i8, biases
//            as i32; inputs and outputs stay f32, unless the options say i8 or u8; ops that stay f32 get
//            weights as in dynamic
//   int16x8  the same with symmetric i16 activations and i64 biases
//
// Calibration data is a folder with NAME.npy, or in0.npy, in1.npy.. in input order, or NAME.0.npy,
// NAME.1.npy.. An extra first dimension, or the first dimension, counts samples. With several signatures,
// each one reads the subfolder with its key, if it exists.
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
#include "host/graph/rewriter.h"
#include "host/run/run.h"

namespace fusebox::converter::quantize {

// ---- weights.cc: constants in fewer bits

struct QuantizedConstant {
  Buffer data;
  std::shared_ptr<const Quant> quant;
};
// Returns symmetric i8 in [-127, 127], one scale per index of `axis`, or a single scale (axis -1), or nullopt
// if a value is not finite. `at_least`, if not empty: the smallest scale per channel.
std::optional<QuantizedConstant> SymmetricBytes(const Value& weights, int axis,
                                                std::span<const double> at_least = {});
// Returns nullopt if a value is not finite or too large for f16; with `each_counts` also if f16 changes an
// element by more than 1%.
std::optional<Buffer> Float16Of(const Value& constant, bool each_counts = false);
// Returns whether the op's constants are weights or a table, so that elements small relative to the others
// may lose precision. Constants of other ops may be divisors, factors or bounds.
bool HasWeights(const Node&);
// Returns why no available kernel runs the node as it stands or computes its types, or an empty string if one
// does.
std::string Refusal(Context&, Function&, const Node&);
// "place (OP)", for messages.
std::string Place(const Node&);

// ---- float16.cc, dynamic.cc, int8.cc

// `exact`: only constants that f16 represents exactly.
void ToFloat16(Context&, Function&, bool exact = false);
// `rest`: after ToInt8, for the nodes it left; index tables and similar constants stay.
void ToDynamic(Context&, Function&, bool rest = false);

// Observed values of an activation.
struct Range {
  // The range always includes zero.
  float min = 0;
  float max = 0;
  float largest = 0;  // largest absolute value, including values excluded from min and max
  bool seen = false;
  bool finite = true;         // all values were finite
  void Widen(const Tensor&);  // f32; ignores non-finite values
};
using Ranges = std::map<ValueId, Range>;
// Observed internal values of an LSTM over all steps.
struct LstmRanges {
  Range cell;
  // By intermediate of the integer form: sums of each gate before layer normalization, with their partial
  // sums; the projection's input. Not seen: the op has no such intermediate.
  std::array<Range, 5> within;
};
// Counts of an activation's values by magnitude. magnitudes.cc
class Magnitudes {
 public:
  void Add(const Tensor&);  // f32
  // Share of values below `bound` among the finite ones that are not zero, rounded down: it counts values by
  // powers of two.
  double ShareBelow(double bound) const;

 private:
  std::array<uint64_t, 256> counts_ = {};  // by exponent
};
struct Measured {
  Ranges values;
  std::map<ValueId, Magnitudes> magnitudes;
  std::map<ValueId, LstmRanges> lstms;  // by output
};
// How integers stand for floats.
struct Scheme {
  DType activations = DType::kI8;  // or kI16: symmetric, with i64 biases
  bool rows = false;               // FULLY_CONNECTED: a scale per row of the weights, instead of one
};
// The integer form of each quantized value.
using QuantizedValues = std::map<ValueId, ValueId>;
QuantizedValues ToInt8(Context&, Function&, const Measured&, Scheme = {});

// ---- bidirectional.cc: before calibration for int8

// Replaces each BIDIRECTIONAL_SEQUENCE_LSTM whose cells may become integers by two
// UNIDIRECTIONAL_SEQUENCE_LSTM, with a REVERSE_V2 before and behind the backward one and a CONCATENATION of
// merged outputs. Results keep their values. Notes why others stay.
void SplitBidirectional(Context&, Function&);

// ---- ends.cc: types of inputs and outputs

// Gives the f32 inputs and outputs of a function after ToInt8 these types: kF32, kI8 or kU8, or with i16
// activations kF32 or kI16. Error: a float
// op reads the input or computes the output.
Status SetEnds(Function&, DType inputs, DType outputs);

// ---- bodies.cc: types of the bodies that custom ops keep

// The bodies stay f32; DEQUANTIZE and QUANTIZE at their ends give them the types of the quantized ops.
void AdaptBodies(Module&);

// ---- calibrate.cc: running on data

using Sample = std::vector<Tensor>;  // by input
// `read` receives the paths of the files read.
Result<std::vector<Sample>> ReadCalibration(const Module&, const Signature&, const std::string& dir,
                                            std::set<std::string>* read = nullptr);
// Files that no signature read, one line per folder.
std::vector<std::string> UnreadCalibration(const Module&, const std::string& dir,
                                           const std::set<std::string>& read);
// A copy of the module that returns values from inside a function (of a state that an op updates: the initial
// one). Samples are calls of one session, in order, so the session's state carries over.
class Observer {
 public:
  // `threads` 0: one per processor.
  static Result<Observer> Create(Context&, const Module&, const std::string& function,
                                 std::vector<ValueId> values, int threads = 0);
  // These values for the next sample, in the same order.
  Result<std::vector<Tensor>> Run(const Sample&);
  // Branches and bodies of loops that no sample has entered, outermost ones only, with their places.
  std::vector<std::string> Untaken() const;

 private:
  Observer() = default;
  std::string function_;
  std::shared_ptr<Module> module_;
  std::shared_ptr<run::Program> program_;
  std::shared_ptr<run::Runner> runner_;
};
// The f32 results of nodes, in order.
std::vector<ValueId> Activations(const Function&);

// Ranges over all samples: of every f32 input and node result (without values that cannot affect the
// readers), and of the internal values of LSTMs with constant weights.
Result<Measured> Measure(Context&, const Module&, const std::string& function, const std::vector<Sample>&);

// ---- saturation.cc: SOFTMAX, LOGISTIC and TANH return a constant beyond some bound, so the range of an
// operand without other readers ends there. This gives LOGISTIC and TANH finer steps. SOFTMAX gains headroom
// above by the amount cut below, up to twice the range: two classes that both exceed all observed values must
// stay distinct.

class Saturation {
 public:
  explicit Saturation(const Function&);
  // Widens `range` by the relevant part of the value's tensor.
  void Widen(ValueId, const Tensor& seen, Range&);
  // Call after the last sample.
  void Finish(Ranges&) const;

 private:
  struct Limit {
    float reach;  // distance from zero; with rows, below the row's maximum
    int64_t row;  // 0: no rows
  };
  std::map<ValueId, Limit> limits_;
  Ranges whole_;  // operands' ranges before the cut
};

// ---- padding.cc: a max ignores values below all of its results, such as padding with -65504. An operand
// that only MAX_POOL_2D reads, also behind ops that move data, has a range without them if this makes its
// steps much finer: they saturate to the lowest value. A window that contains nothing else keeps them in the
// range.

// Call after the last sample.
void CutPadding(const Function&, Ranges&);

// ---- lstm_steps.cc: runs an f32 LSTM op step by step to observe its internal values

class LstmSteps {
 public:
  // For an input and states of these types and constant weights. The function and node must outlive it.
  static Result<LstmSteps> Create(Context&, const Function&, const Node&, const Sample& values);
  // Widens by all internal values. `values`: the input and two initial states. Returns the final states.
  Result<Sample> Widen(const Sample& values, LstmRanges&);

 private:
  explicit LstmSteps(const Node& node) : node_(&node) {}
  const Node* node_;
  Type step_, output_, cell_;          // input of one step; states
  std::vector<size_t> intermediates_;  // observed after the states
  std::optional<Observer> observer_;
};

// ---- errors.cc: quantization errors

// Runs both functions on the same samples and reports the error of `after` against `before`, node by node. A
// value of `before` with a twin is compared with the twin.
Status CompareLayers(Context&, const Module& before, const Module& after, const std::string& function,
                     const QuantizedValues&, const std::vector<Sample>&);

}  // namespace fusebox::converter::quantize
