// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/net_onnx.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "host/graph/constants.h"
#include "tests/bench/net_onnx_ops.h"

namespace fusebox::bench {
namespace {

using Ints = std::vector<int64_t>;

struct Named {
  Op op;
  const char* onnx;
};
constexpr Named kUnary[] = {{Op::kLogistic, "Sigmoid"},
                            {Op::kTanh, "Tanh"},
                            {Op::kExp, "Exp"},
                            {Op::kSqrt, "Sqrt"},
                            {Op::kAbs, "Abs"},
                            {Op::kNeg, "Neg"},
                            {Op::kLog, "Log"},
                            {Op::kSin, "Sin"},
                            {Op::kCos, "Cos"},
                            {Op::kFloor, "Floor"},
                            {Op::kCeil, "Ceil"},
                            {Op::kElu, "Elu"},
                            {Op::kHardSwish, "HardSwish"}};
constexpr Named kBinary[] = {{Op::kAdd, "Add"},      {Op::kSub, "Sub"},        {Op::kMul, "Mul"},
                             {Op::kDiv, "Div"},      {Op::kMaximum, "Max"},    {Op::kMinimum, "Min"},
                             {Op::kPow, "Pow"},      {Op::kLess, "Less"},      {Op::kGreater, "Greater"},
                             {Op::kSelect, "Where"}, {Op::kSelectV2, "Where"}, {Op::kPrelu, "PRelu"}};

const char* Find(std::span<const Named> table, Op op) {
  const auto found = std::ranges::find(table, op, &Named::op);
  return found == table.end() ? nullptr : found->onnx;
}

int64_t Axis(const OnnxValues& v, ValueId x, int64_t axis) {
  return axis < 0 ? axis + static_cast<int64_t>(v.dims(x).size()) : axis;
}

// The order of an op on elements: channels first if an operand has it.
Order OrderOf(const OnnxValues& v, const Node& n) {
  if (v.dims(n.results[0]).size() != 4) return Order::kLast;
  const bool first = std::ranges::any_of(
      n.operands, [&](ValueId x) { return x != kNoValue && v.order(x) == Order::kFirst; });
  return first ? Order::kFirst : Order::kLast;
}

bool HaveOneQuant(const OnnxValues& v, const Node& n) {
  const Quant* const of = v.quant(n.results[0]);
  return std::ranges::all_of(n.operands, [&](ValueId x) {
    const Quant* const q = v.quant(x);
    return !q ? !of : of && q->scales[0] == of->scales[0] && v.zero(x) == v.zero(n.results[0]);
  });
}

void AddElementwise(OnnxValues& v, const Node& n, const char* op) {
  const Order order = OrderOf(v, n);
  std::vector<std::string> inputs;
  for (const ValueId x : n.operands) {
    const bool scalar = v.dims(x).empty() && !v.quant(x);
    inputs.push_back(v.Real(x, scalar ? Order::kLast : order));
  }
  const std::string activation = n.attrs.str("fused_activation_function", "NONE");
  SetActivated(v, n.results[0], order, activation, v.Add(op, inputs));
}

void AddComposed(OnnxValues& v, const Node& n) {
  const Order order = OrderOf(v, n);
  const std::string x = v.Real(n.operands[0], order);
  std::string y;
  if (n.is(Op::kRsqrt)) {
    y = v.Add("Reciprocal", {v.Add("Sqrt", {x})});
  } else if (n.is(Op::kSquare)) {
    y = v.Add("Mul", {x, x});
  } else if (n.is(Op::kSquaredDifference)) {
    const std::string difference = v.Add("Sub", {x, v.Real(n.operands[1], order)});
    y = v.Add("Mul", {difference, difference});
  } else {
    y = v.Add("LeakyRelu", {x}, onnx::FloatAttribute("alpha", static_cast<float>(n.attrs.f64("alpha", 0))));
  }
  v.SetReal(n.results[0], order, y);
}

void AddActivation(OnnxValues& v, const Node& n, const char* activation) {
  const Order order = OrderOf(v, n);
  SetActivated(v, n.results[0], order, activation, v.Real(n.operands[0], order));
}

// Between 8 bits and real numbers, or between two scales.
void AddScaling(OnnxValues& v, const Node& n) {
  const ValueId x = n.operands[0], y = n.results[0];
  const Order order = OrderOf(v, n);
  if (v.quant(x) && HaveOneQuant(v, n)) return v.SetStored(y, order, v.Stored(x, order));
  std::string real = v.Real(x, order);
  if (v.dtype(x) == DType::kF16) real = v.Cast(real, DType::kF32);
  v.SetReal(y, order, real);
}

void AddConcatenation(OnnxValues& v, const Node& n) {
  const Order order = OrderOf(v, n);
  const bool moves = HaveOneQuant(v, n);
  std::vector<std::string> parts;
  for (const ValueId x : n.operands) parts.push_back(moves ? v.Stored(x, order) : v.Real(x, order));
  const int64_t axis = AxisIn(order, Axis(v, n.results[0], n.attrs.i64("axis", 0)));
  const std::string joined = v.Add("Concat", parts, onnx::IntAttribute("axis", axis));
  if (moves) return v.SetStored(n.results[0], order, joined);
  v.SetReal(n.results[0], order, joined);
}

void AddPad(OnnxValues& v, const Node& n) {
  const ValueId x = n.operands[0];
  const Order order = OrderOf(v, n);
  const Ints pairs = ConstantInts(v, n.operands[1]);
  const size_t rank = v.dims(x).size();
  Ints pads(2 * rank);
  for (size_t i = 0; i < rank; ++i) {
    const auto at = static_cast<size_t>(AxisIn(order, static_cast<int64_t>(i)));
    pads[at] = pairs[2 * i];
    pads[at + rank] = pairs[2 * i + 1];
  }
  const bool mirrors = n.is(Op::kMirrorPad);
  if (mirrors && n.attrs.str("mode", "REFLECT") != "REFLECT") throw Untranslated("symmetric MIRROR_PAD");
  std::vector<std::string> inputs = {v.Stored(x, order), v.List(pads)};
  if (v.quant(x)) inputs.push_back(v.Constant(std::vector<uint8_t>{v.zero(x)}, {}));
  const std::string padded = v.Add("Pad", inputs, mirrors ? onnx::TextAttribute("mode", "reflect") : "");
  v.SetStored(n.results[0], order, padded);
}

void AddReshape(OnnxValues& v, const Node& n) {
  const Ints to = v.dims(n.results[0]);
  v.SetStored(n.results[0], Order::kLast,
              v.Add("Reshape", {v.Stored(n.operands[0], Order::kLast), v.List(to)}));
}

void AddTranspose(OnnxValues& v, const Node& n) {
  v.SetStored(n.results[0], Order::kLast,
              v.Transposed(v.Stored(n.operands[0], Order::kLast), ConstantInts(v, n.operands[1])));
}

void AddSoftmax(OnnxValues& v, const Node& n) {
  std::string x = v.Real(n.operands[0], Order::kLast);
  const double beta = n.is(Op::kSoftmax) ? n.attrs.f64("beta", 1) : 1;
  if (beta != 1) x = v.Add("Mul", {x, v.Scalar(static_cast<float>(beta))});
  v.SetReal(n.results[0], Order::kLast,
            v.Add(n.is(Op::kSoftmax) ? "Softmax" : "LogSoftmax", {x}, onnx::IntAttribute("axis", -1)));
}

void AddGather(OnnxValues& v, const Node& n) {
  if (n.attrs.i64("batch_dims", 0) != 0) throw Untranslated("GATHER with batch dims");
  v.SetStored(n.results[0], Order::kLast,
              v.Add("Gather", {v.Stored(n.operands[0], Order::kLast), v.Stored(n.operands[1], Order::kLast)},
                    onnx::IntAttribute("axis", Axis(v, n.operands[0], n.attrs.i64("axis", 0)))));
}

void AddGatherNd(OnnxValues& v, const Node& n) {
  const std::string indices = v.Cast(v.Stored(n.operands[1], Order::kLast), DType::kI64);
  v.SetStored(n.results[0], Order::kLast,
              v.Add("GatherND", {v.Stored(n.operands[0], Order::kLast), indices}));
}

// The mean of whole images is a pool, which ONNX Runtime runs faster.
void AddReduction(OnnxValues& v, const Node& n) {
  const ValueId x = n.operands[0], y = n.results[0];
  const bool keeps = n.attrs.b("keep_dims", false);
  Ints axes = ConstantInts(v, n.operands[1]);
  for (int64_t& axis : axes) axis = Axis(v, x, axis);
  std::ranges::sort(axes);
  if (n.is(Op::kMean) && v.dims(x).size() == 4 && axes == Ints{1, 2}) {
    const std::string mean = v.Add("GlobalAveragePool", {v.Real(x, Order::kFirst)});
    if (keeps) return v.SetReal(y, Order::kFirst, mean);
    return v.SetReal(y, Order::kLast, v.Add("Reshape", {mean, v.List(v.dims(y))}));
  }
  const Order order = keeps ? OrderOf(v, n) : Order::kLast;
  for (int64_t& axis : axes) axis = AxisIn(order, axis);
  const std::string keep = onnx::IntAttribute("keepdims", keeps ? 1 : 0), in = v.Real(x, order);
  if (n.is(Op::kSum)) return v.SetReal(y, order, v.Add("ReduceSum", {in, v.List(axes)}, keep));
  const char* const op = n.is(Op::kMean) ? "ReduceMean" : "ReduceMax";
  v.SetReal(y, order, v.Add(op, {in}, keep + onnx::IntsAttribute("axes", axes)));
}

void AddResize(OnnxValues& v, const Node& n) {
  const Ints to = v.dims(n.results[0]);
  const bool corners = n.attrs.b("align_corners", false), centers = n.attrs.b("half_pixel_centers", false);
  std::string attributes = onnx::TextAttribute("coordinate_transformation_mode", corners   ? "align_corners"
                                                                                 : centers ? "half_pixel"
                                                                                           : "asymmetric");
  if (n.is(Op::kResizeBilinear)) attributes += onnx::TextAttribute("mode", "linear");
  else attributes += onnx::TextAttribute("nearest_mode", corners || centers ? "round_prefer_ceil" : "floor");
  v.SetStored(
      n.results[0], Order::kFirst,
      v.Add("Resize", {v.Stored(n.operands[0], Order::kFirst), "", "", v.List({to[0], to[3], to[1], to[2]})},
            attributes));
}

void AddSlice(OnnxValues& v, const Node& n) {
  const ValueId x = n.operands[0], y = n.results[0];
  const Ints dims = v.dims(x);
  Ints begin = ConstantInts(v, n.operands[1]), end = ConstantInts(v, n.operands[2]), steps(dims.size(), 1),
       axes;
  for (size_t i = 0; i < dims.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (n.is(Op::kSlice)) {
    for (size_t i = 0; i < end.size(); ++i) end[i] = end[i] < 0 ? dims[i] : begin[i] + end[i];
  } else {
    steps = ConstantInts(v, n.operands[3]);
    if (n.attrs.i64("ellipsis_mask", 0) != 0 || n.attrs.i64("new_axis_mask", 0) != 0 ||
        begin.size() != dims.size())
      throw Untranslated("STRIDED_SLICE with new dims");
    constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < begin.size(); ++i) {
      const auto in = [&](const char* mask) { return (n.attrs.i64(mask, 0) >> i & 1) != 0; };
      if (in("begin_mask")) begin[i] = steps[i] > 0 ? 0 : kLast;
      if (in("end_mask")) end[i] = steps[i] > 0 ? kLast : -kLast;
      if (in("shrink_axis_mask")) end[i] = begin[i] == -1 ? kLast : begin[i] + 1;
    }
  }
  const std::string sliced =
      v.Add("Slice", {v.Stored(x, Order::kLast), v.List(begin), v.List(end), v.List(axes), v.List(steps)});
  v.SetStored(y, Order::kLast, v.Add("Reshape", {sliced, v.List(v.dims(y))}));
}

void AddSplit(OnnxValues& v, const Node& n) {
  const bool unpacks = n.is(Op::kUnpack);
  const ValueId x = n.operands[n.is(Op::kSplit) ? 1 : 0];
  const Order order = unpacks ? Order::kLast : OrderOf(v, n);
  const int64_t axis = Axis(v, x, unpacks ? n.attrs.i64("axis", 0) : ConstantInts(v, n.operands[0])[0]);
  const auto parts = v.AddMany("Split", {v.Stored(x, order)}, n.results.size(),
                               onnx::IntAttribute("axis", AxisIn(order, axis)));
  for (size_t i = 0; i < parts.size(); ++i) {
    const ValueId y = n.results[i];
    v.SetStored(y, order, unpacks ? v.Add("Reshape", {parts[i], v.List(v.dims(y))}) : parts[i]);
  }
}

void AddPack(OnnxValues& v, const Node& n) {
  const int64_t axis = Axis(v, n.results[0], n.attrs.i64("axis", 0));
  if (!HaveOneQuant(v, n)) throw Untranslated("PACK of several scales");
  Ints part = v.dims(n.results[0]);
  part[static_cast<size_t>(axis)] = 1;
  std::vector<std::string> parts;
  for (const ValueId x : n.operands)
    parts.push_back(v.Add("Reshape", {v.Stored(x, Order::kLast), v.List(part)}));
  v.SetStored(n.results[0], Order::kLast, v.Add("Concat", parts, onnx::IntAttribute("axis", axis)));
}

void AddArgMax(OnnxValues& v, const Node& n) {
  const ValueId x = n.operands[0], y = n.results[0];
  const int64_t axis = AxisIn(v.order(x), Axis(v, x, ConstantInts(v, n.operands[1])[0]));
  const std::string found = v.Add("ArgMax", {v.Stored(x, v.order(x))},
                                  onnx::IntAttribute("axis", axis) + onnx::IntAttribute("keepdims", 0));
  v.SetStored(y, Order::kLast, v.Cast(found, v.dtype(y)));
}

void AddFloorDiv(OnnxValues& v, const Node& n) {
  const auto real = [&](ValueId x) { return v.Cast(v.Real(x, Order::kLast), DType::kF32); };
  const std::string quotient = v.Add("Floor", {v.Add("Div", {real(n.operands[0]), real(n.operands[1])})});
  v.SetStored(n.results[0], Order::kLast, v.Cast(quotient, v.dtype(n.results[0])));
}

// Between types without scales, or from 8 bits as they are.
void AddCast(OnnxValues& v, const Node& n) {
  const ValueId x = n.operands[0], y = n.results[0];
  const Order order = OrderOf(v, n);
  if (v.quant(x) || v.quant(y)) throw Untranslated("CAST of values with a scale");
  v.SetStored(y, order, v.Cast(v.Stored(x, order), v.dtype(y)));
}

void AddNode(OnnxValues& v, const Node& n) {
  if (AddProduct(v, n)) return;
  if (const char* const op = Find(kUnary, n.op)) return AddElementwise(v, n, op);
  if (const char* const op = Find(kBinary, n.op)) return AddElementwise(v, n, op);
  switch (n.op) {
    case Op::kRelu: return AddActivation(v, n, "RELU");
    case Op::kRelu6: return AddActivation(v, n, "RELU6");
    case Op::kReluN1To1: return AddActivation(v, n, "RELU_N1_TO_1");
    case Op::kRsqrt:
    case Op::kSquare:
    case Op::kSquaredDifference:
    case Op::kLeakyRelu: return AddComposed(v, n);
    case Op::kQuantize:
    case Op::kDequantize: return AddScaling(v, n);
    case Op::kConcatenation: return AddConcatenation(v, n);
    case Op::kPad:
    case Op::kMirrorPad: return AddPad(v, n);
    case Op::kReshape:
    case Op::kSqueeze:
    case Op::kExpandDims: return AddReshape(v, n);
    case Op::kTranspose: return AddTranspose(v, n);
    case Op::kSoftmax:
    case Op::kLogSoftmax: return AddSoftmax(v, n);
    case Op::kGather: return AddGather(v, n);
    case Op::kMean:
    case Op::kSum:
    case Op::kReduceMax: return AddReduction(v, n);
    case Op::kResizeBilinear:
    case Op::kResizeNearestNeighbor: return AddResize(v, n);
    case Op::kSlice:
    case Op::kStridedSlice: return AddSlice(v, n);
    case Op::kSplit:
    case Op::kUnpack: return AddSplit(v, n);
    case Op::kPack: return AddPack(v, n);
    case Op::kArgMax: return AddArgMax(v, n);
    case Op::kFloorDiv: return AddFloorDiv(v, n);
    case Op::kCast: return AddCast(v, n);
    case Op::kGatherNd: return AddGatherNd(v, n);
    default: throw Untranslated(n.is(Op::kCustom) ? n.name : std::string(Name(n.op)));
  }
}

}  // namespace

std::vector<int64_t> ConstantInts(const OnnxValues& v, ValueId x) {
  auto values = ConstInts(v.function(), x);
  if (!values) throw Untranslated("an operand that is not constant");
  return std::move(*values);
}

void SetActivated(OnnxValues& v, ValueId result, Order order, const std::string& activation,
                  const std::string& name) {
  if (activation == "NONE") return v.SetReal(result, order, name);
  if (activation == "TANH") return v.SetReal(result, order, v.Add("Tanh", {name}));
  const bool bounded = activation == "RELU6" || activation == "RELU_N1_TO_1";
  if (!bounded && activation != "RELU") throw Untranslated("activation " + activation);
  const float least = activation == "RELU_N1_TO_1" ? -1 : 0;
  const float most = activation == "RELU6" ? 6 : 1;
  const Quant* const q = v.quant(result);
  if (!q) {
    const auto limits = [&] { return std::vector<std::string>{name, v.Scalar(least), v.Scalar(most)}; };
    return v.SetReal(result, order, bounded ? v.Add("Clip", limits()) : v.Add("Relu", {name}));
  }
  const auto step = [&](float limit) { return std::round(limit / q->scales[0]) + v.zero(result); };
  const float low = std::max(step(least), 0.0F);
  const float high = bounded ? std::min(step(most), 255.0F) : 255;
  v.SetReal(result, order, name);
  if (low == 0 && high == 255) return;
  const auto limit = [&](float value) {
    return v.Constant(std::vector<uint8_t>{static_cast<uint8_t>(value)}, {});
  };
  v.SetStored(result, order, v.Add("Clip", {v.Stored(result, order), limit(low), limit(high)}));
}

Result<OnnxNet> ToOnnx(const Function& f) {
  try {
    OnnxValues values(f);
    for (const auto& node : f.nodes) AddNode(values, *node);
    return values.Finish();
  } catch (const Untranslated& what) {
    return Unsupported(std::string("not translated: ") + what.what());
  }
}

}  // namespace fusebox::bench
