// SPDX-License-Identifier: Apache-2.0
// BlockLSTM and BlockLSTMV2 (LSTMBlockFusedCell of TensorFlow 1) become the composite of an LSTM layer. Its
// body is a loop over the steps, made here.
#include <algorithm>
#include <array>

#include "converter/recognize/rnn/layer.h"
#include "converter/recognize/rnn/scan.h"
#include "host/graph/rewriter.h"

namespace fusebox::converter::recognize {
namespace {

class BlockLstm {
 public:
  BlockLstm(const View& view, const Node& node) : in_(view), node_(node), made_(view) {}

  Result<Region> Replace() {
    FUSEBOX_TRY(Check());
    FUSEBOX_TRY(CheckWeights());
    FUSEBOX_ASSIGN(const std::vector<ValueId> last_c, LastCells());
    Layer layer;
    layer.location = node_.location;
    layer.in = LayoutOf(in_, node_.operands[kX]);
    layer.in.inputs = made_.Input(layer.in.inputs);
    layer.weights = &made_.f();
    layer.cell = ReadCell();
    layer.initial = {made_.Input(node_.operands[kH]), made_.Input(node_.operands[kC])};
    const std::vector<ValueId> results = AddLayer(made_, layer, AddLoopBody(made_, layer));
    SetSequence(made_, node_.results[kAllH], layer, results);
    for (const ValueId v : last_c) made_.SetResult(v, results[3]);
    return made_.Take();
  }

 private:
  // Operands: length, x [steps, batch, inputs], c, h, weights [inputs + units, 4 * units], peepholes, bias.
  enum Operand : size_t { kLength, kX, kC, kH, kWeights, kBias = 8 };
  // Results: i, c, f, o, tanh(candidate), tanh(c), h, each [steps, batch, units].
  enum Output : size_t { kAllC = 1, kAllH = 6, kResults };

  bool second() const { return node_.name == "BlockLSTMV2"; }

  Status Check() {
    if (node_.operands.size() != kBias + 1 || node_.results.size() != kResults)
      return Invalid("it has another number of operands");
    if (node_.attrs.b("use_peephole", false)) return Unsupported("its peepholes");
    if (node_.attrs.f64("cell_clip", second() ? 0 : 3) > 0)
      return Unsupported("it clips its cell (cell_clip)");
    const Shape& x = in_.shape(node_.operands[kX]);
    if (x.rank() != 3 || x[2] < 1) return Unsupported("the sizes of its input are not known");
    inputs_ = x[2];
    ValueId length = node_.operands[kLength];
    if (const Node* cast = in_.Producer(length, Op::kCast)) length = cast->operands[0];
    if (ExtentOf(in_, length) != ExtentOf(in_, node_.operands[kX], 0))
      return Unsupported("it does not run over the whole length of its input");
    for (const size_t state : {kC, kH})
      if (in_.shape(node_.operands[state]).rank() != 2)
        return Unsupported("the sizes of its states are not known");
    for (size_t i = 0; i < kResults; ++i)
      if (i != kAllC && i != kAllH && !in_.readers(node_.results[i]).empty())
        return Unsupported("its gates are read");
    return {};
  }

  Status CheckWeights() {
    const Value& weights = in_.function().value(node_.operands[kWeights]);
    const Value& bias = in_.function().value(node_.operands[kBias]);
    if (!weights.is_const() || !bias.is_const()) return Unsupported("its weights are computed");
    if (weights.type.dtype != DType::kF32 || bias.type.dtype != DType::kF32)
      return Unsupported("weights of " + ToString(weights.type));
    units_ = static_cast<int64_t>(bias.data.As<float>().size()) / 4;
    if (units_ < 1 || weights.type.shape != Shape{inputs_ + units_, 4 * units_} ||
        bias.type.shape != Shape{4 * units_})
      return Invalid("weights " + ToString(weights.type) + " and bias " + ToString(bias.type) + " for " +
                     std::to_string(inputs_) + " inputs");
    return {};
  }

  // Returns the values that read the last step of the cell's state. Other steps must not be read.
  Result<std::vector<ValueId>> LastCells() const {
    std::vector<ValueId> out;
    for (const auto& reader : in_.readers(node_.results[kAllC])) {
      if (!reader.node || reader.index != 0 || !MatchesLast(in_, *reader.node, 0, false))
        return Unsupported("the state of its cell is read at other steps than the last");
      out.push_back(reader.node->results[0]);
    }
    return out;
  }

  Cell ReadCell() {
    // In the order i, f, candidate, o.
    constexpr std::array<int64_t, 4> kFirst = {0, 2, 1, 3};
    constexpr std::array<int64_t, 4> kSecond = {0, 1, 2, 3};
    Cell cell = {.kind = Cell::Kind::kLstm,
                 .x = kNoValue,
                 .units = units_,
                 .reset_after = false,
                 .activation = "tanh",
                 .recurrent_activation = "sigmoid"};
    const auto biases = in_.function().value(node_.operands[kBias]).data.As<float>();
    for (const int64_t gate : second() ? kSecond : kFirst) {
      GateWeights weights;
      weights.input = Part(0, inputs_, gate * units_);
      weights.recurrent = Part(inputs_, units_, gate * units_);
      const auto own = biases.subspan(static_cast<size_t>(gate * units_), static_cast<size_t>(units_));
      weights.bias.assign(own.begin(), own.end());
      cell.gates.push_back(std::move(weights));
    }
    if (!second())
      for (float& bias : cell.gates[1].bias) bias += static_cast<float>(node_.attrs.f64("forget_bias", 1));
    return cell;
  }

  // Rows and columns of one gate, transposed.
  Block Part(int64_t row, int64_t rows, int64_t column) {
    const auto values = in_.function().value(node_.operands[kWeights]).data.As<float>();
    std::vector<float> part;
    for (int64_t c = column; c < column + units_; ++c)
      for (int64_t r = row; r < row + rows; ++r)
        part.push_back(values[static_cast<size_t>(r * 4 * units_ + c)]);
    const ValueId matrix =
        made_.f().AddConst(DType::kF32, Shape{units_, rows}, std::move(part), node_.location.name);
    return {.matrix = matrix, .transposed = true, .row = 0, .rows = rows, .column = 0, .columns = units_};
  }

  const View& in_;
  const Node& node_;
  Replacement made_;
  int64_t inputs_ = 0;
  int64_t units_ = 0;
};

}  // namespace

Result<std::optional<Region>> FindBlockLstm(const View& view, const Node& node) {
  if (node.name != "BlockLSTM" && node.name != "BlockLSTMV2") return std::nullopt;
  auto region = BlockLstm(view, node).Replace();
  if (!region) return Unsupported("it is no LSTM layer: " + region.error().message);
  return std::optional(*std::move(region));
}

}  // namespace fusebox::converter::recognize
