// SPDX-License-Identifier: Apache-2.0
#include "converter/recognize/rnn/affine.h"

#include <algorithm>

#include "converter/recognize/rnn/hard_sigmoid.h"
#include "host/base/status.h"

namespace fusebox::converter::recognize {
namespace {

int64_t LastDim(const Value& v) {
  const int rank = v.type.shape.rank();
  return rank < 1 ? -1 : v.type.shape[static_cast<size_t>(rank - 1)];
}

// Returns whether DEQUANTIZE reads the weights of a product that quantizes its f32 source row by row.
bool AreBytes(const Value& weights) {
  return weights.type.dtype == DType::kI8 && weights.quant && !weights.quant->scales.empty() &&
         weights.quant->block_size == 0;
}

// The v of v * ones of its shape, which a step of TensorFlow 2.0 with dropout computes outside of training.
ValueId WithoutOnes(const View& in, ValueId v) {
  ValueId shaped = kNoValue;
  const ValueId other = in.Other(v, Op::kMul, [&](ValueId factor) {
    const Node* const fill = in.Producer(factor, Op::kFill);
    const Node* const shape =
        fill && in.IsFull(fill->operands[1], 1) ? in.Producer(fill->operands[0]) : nullptr;
    if (shape && shape->is(Op::kShape)) shaped = shape->operands[0];
    return shaped != kNoValue;
  });
  return other != kNoValue && other == shaped ? other : v;
}

class AffineReader {
 public:
  AffineReader(const View& in, int64_t columns) : in_(in), f_(in.function()) {
    out_.bias.resize(static_cast<size_t>(columns));
  }

  Status Read(ValueId v, Range range, bool ignore_activation) {
    constexpr int kMostParts = 64;  // sums of sums, as deep as a file makes them
    if (++parts_ > kMostParts)
      return Unsupported("a sum of more than " + std::to_string(kMostParts) + " parts");
    const Value& value = f_.value(v);
    if (value.type.dtype != DType::kF32) return Unsupported("a value of " + ToString(value.type));
    if (value.is_const()) return AddBias(value, range, out_.bias);
    const Node* node = in_.Producer(v);
    if (!node || value.type.shape.rank() != 2) return Refuse(v);
    if (LastDim(value) < range.begin + range.count) return Refuse(v);  // a column that an ADD repeats
    if (!ignore_activation && FusedActivation(*node) != "NONE") return Refuse(v);
    switch (node->op) {
      case Op::kAdd:
        FUSEBOX_TRY(Read(node->operands[0], range, false));
        return Read(node->operands[1], range, false);
      case Op::kSplit: return Split(*node, in_.result_index(v), range, ignore_activation);
      case Op::kSlice:
      case Op::kStridedSlice: return Slice(*node, v, range);
      case Op::kReshape: return Reshape(*node, v, range);
      case Op::kFullyConnected: return FullyConnected(*node, range);
      case Op::kBatchMatmul: return MatMul(*node, v, range);
      case Op::kLogistic:
      case Op::kTanh:
        if (ignore_activation) return Read(node->operands[0], range, false);
        return Refuse(v);
      default: return Refuse(v);
    }
  }

  AffineSum Take() { return std::move(out_); }

 private:
  Status Refuse(ValueId v) const { return Unsupported(in_.Text(v) + " is no product with constant weights"); }

  Status Split(const Node& node, int result, Range range, bool ignore_activation) {
    const auto axis = in_.Ints(node.operands[0]);
    const Value& whole = f_.value(node.operands[1]);
    const auto parts = static_cast<int64_t>(node.results.size());
    const int64_t width = LastDim(whole);
    if (!axis || axis->size() != 1 || whole.type.shape.rank() != 2 || ((*axis)[0] != 1 && (*axis)[0] != -1) ||
        width < 0 || width % parts != 0)
      return Unsupported("SPLIT over another axis than the last");
    return Read(node.operands[1], {range.begin + result * (width / parts), range.count}, ignore_activation);
  }

  Status Slice(const Node& node, ValueId v, Range range) {
    const ValueId whole = node.operands[0];
    const auto begin = in_.Ints(node.operands[1]);
    const bool strided = node.is(Op::kStridedSlice);
    const int64_t rows = f_.value(whole).type.shape.rank() == 2 ? f_.value(whole).type.shape[0] : 0;
    bool all_rows = begin && begin->size() == 2;
    bool step_one = true;
    const int64_t begin_mask = node.attrs.i64("begin_mask", 0);
    if (all_rows) {
      const auto end = in_.Ints(node.operands[2]);
      const int64_t to = end && end->size() == 2 ? (*end)[0] : 0;
      all_rows = strided ? (begin_mask & 1 || (*begin)[0] == 0) &&
                               (node.attrs.i64("end_mask", 0) & 1 || (rows > 0 && to >= rows))
                         : (*begin)[0] == 0 && (to == -1 || (rows > 0 && to == rows));
    }
    if (strided) {
      const auto steps = in_.Ints(node.operands[3]);
      step_one = steps == std::vector<int64_t>{1, 1} && !node.attrs.i64("shrink_axis_mask", 0) &&
                 !node.attrs.i64("new_axis_mask", 0) && !node.attrs.i64("ellipsis_mask", 0);
    }
    if (!all_rows || !step_one || LastDim(f_.value(whole)) < 0) return Refuse(v);
    int64_t from = strided && begin_mask & 2 ? 0 : (*begin)[1];
    if (from < 0) from += LastDim(f_.value(whole));
    if (from < 0 || from + LastDim(f_.value(v)) > LastDim(f_.value(whole))) return Refuse(v);
    return Read(whole, {from + range.begin, range.count}, false);
  }

  // One that leaves a matrix as it is.
  Status Reshape(const Node& node, ValueId v, Range range) {
    const Value& from = f_.value(node.operands[0]);
    if (from.type.shape.rank() != 2 || LastDim(from) < 1 || LastDim(from) != LastDim(f_.value(v)))
      return Refuse(v);
    return Read(node.operands[0], range, false);
  }

  Status FullyConnected(const Node& node, Range range) {
    if (node.operands.size() > 2 && node.operands[2] != kNoValue) {
      if (!f_.value(node.operands[2]).is_const()) return Refuse(node.results[0]);
      FUSEBOX_TRY(AddBias(f_.value(node.operands[2]), range, out_.bias));
    }
    if (node.attrs.str("weights_format", "DEFAULT") != "DEFAULT") return Refuse(node.results[0]);
    return Times(node.operands[0], node.operands[1], true, range,
                 node.attrs.b("asymmetric_quantize_inputs", false));
  }

  Status MatMul(const Node& node, ValueId v, Range range) {
    if (node.attrs.b("adj_x", false)) return Refuse(v);
    return Times(node.operands[0], node.operands[1], node.attrs.b("adj_y", false), range, false);
  }

  Status Times(ValueId source, ValueId matrix, bool transposed, Range range, bool asymmetric) {
    const Value& weights = f_.value(matrix);
    source = WithoutOnes(in_, source);
    const Shape& shape = weights.type.shape;
    const bool bytes = AreBytes(weights);
    if (weights.type.dtype != DType::kF32 && !bytes)
      return Unsupported("weights of " + ToString(weights.type));
    if (!weights.is_const()) return Unsupported("its weights are computed (" + in_.Text(matrix) + ")");
    if (shape.rank() != 2 || f_.value(source).type.shape.rank() != 2) return Refuse(source);
    Block block{matrix, transposed, 0, shape[transposed ? 1 : 0], range.begin, range.count};
    block.asymmetric = bytes && asymmetric;
    if (block.column + block.columns > shape[transposed ? 0 : 1]) return Refuse(source);
    const Node* parts = in_.Producer(source, Op::kConcatenation);
    const int64_t axis = parts ? parts->attrs.i64("axis", 0) : 0;
    if (!parts || (axis != 1 && axis != -1)) {
      if (LastDim(f_.value(source)) != block.rows) return Refuse(source);
      out_.products.push_back({source, block});
      return {};
    }
    block.joined = true;
    for (const ValueId part : parts->operands) {  // [x, h] @ W: each part has separate rows
      block.rows = LastDim(f_.value(part));
      if (block.rows < 0 || block.row + block.rows > shape[transposed ? 1 : 0]) return Refuse(source);
      out_.products.push_back({part, block});
      block.row += block.rows;
    }
    return {};
  }

  const View& in_;
  const Function& f_;
  AffineSum out_;
  int parts_ = 0;
};

}  // namespace

namespace {

// Returns Keras' name of an activation that is an op or a fused activation of TFLite, or an empty string if
// it has none.
std::string_view KerasName(std::string_view tflite) {
  if (tflite == "LOGISTIC") return "sigmoid";
  if (tflite == "TANH") return "tanh";
  if (tflite == "RELU") return "relu";
  return tflite == "RELU6" ? "relu6" : "";
}

}  // namespace

Status AddBias(const Value& value, Range range, std::vector<float>& bias) {
  const auto values = value.data.As<float>();
  if (std::all_of(values.begin(), values.end(), [](float x) { return x == 0; })) return {};
  const bool one = values.size() == 1;
  const size_t row = one ? 1 : LastDim(value) < 1 ? 0 : static_cast<size_t>(LastDim(value));
  const auto begin = static_cast<size_t>(range.begin);
  bool rows_agree = row > 0 && values.size() % row == 0 && (one || begin + bias.size() <= row);
  for (size_t i = row; rows_agree && i < values.size(); ++i) rows_agree = values[i] == values[i - row];
  if (!rows_agree)
    return Unsupported("a constant " + ToString(value.type) + " is added that differs from row to row");
  for (size_t i = 0; i < bias.size(); ++i) bias[i] += values[one ? 0 : begin + i];
  return {};
}

Activated ReadActivation(const View& in, ValueId v) {
  const Node* node = in.Producer(v);
  if (!node) return {"linear", v, false};
  if (const std::string_view own = KerasName(Name(node->op)); !own.empty())
    return {std::string(own), node->operands[0], false};
  const std::string_view fused = KerasName(FusedActivation(*node));
  if (fused.starts_with("relu")) return {std::string(fused), v, true};
  if (auto hard = ReadHardSigmoid(in, v)) return *std::move(hard);
  if (const Node* whole = node->is(Op::kSplit) ? in.Producer(node->operands[1]) : nullptr;
      whole && (whole->is(Op::kLogistic) || whole->is(Op::kTanh)))
    return {std::string(KerasName(Name(whole->op))), v, true};  // one activation for several gates
  return {"linear", v, false};
}

Result<AffineSum> ReadAffine(const View& in, const Activated& of) {
  const Shape& shape = in.shape(of.inner);
  const int64_t columns = shape.rank() == 2 ? shape[1] : -1;
  if (columns < 1)
    return Unsupported(in.Text(of.inner) + " has a shape of " + ToString(shape) +
                       ", expected [batch, units]");
  AffineReader reader(in, columns);
  FUSEBOX_TRY(reader.Read(of.inner, {0, columns}, of.fused));
  return reader.Take();
}

}  // namespace fusebox::converter::recognize
