// SPDX-License-Identifier: Apache-2.0
// 8-bit weights of f32 activations: FULLY_CONNECTED has the ops of ONNX Runtime's own dynamic quantization
// (DynamicQuantizeLinear, MatMulInteger). Convolutions have f32 weights, because ConvInteger is slower.
#include <algorithm>

#include "host/graph/constants.h"
#include "tests/bench/net_onnx_ops.h"

namespace fusebox::bench {
namespace {

using Ints = std::vector<int64_t>;

template <class T>
std::vector<float> RealNumbers(const Buffer& data, const Quant& q, int64_t channels, int64_t inner) {
  const auto bytes = data.As<T>();
  std::vector<float> values(bytes.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto channel = static_cast<size_t>(static_cast<int64_t>(i) / inner % channels);
    const float scale = q.scales[q.scales.size() > 1 ? channel : 0];
    const int64_t zero =
        q.zero_points.size() == 0 ? 0 : q.zero_points[q.zero_points.size() > 1 ? channel : 0];
    values[i] = scale * static_cast<float>(bytes[i] - zero);
  }
  return values;
}

// 8-bit constants as f32 ones.
std::string InFloats(OnnxValues& v, ValueId w) {
  const Value& value = v.function().value(w);
  const Ints dims = v.dims(w);
  const auto axis = static_cast<size_t>(value.quant->axis);
  int64_t inner = 1;
  for (size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
  const int64_t channels = dims.empty() ? 1 : dims[axis];
  if (v.dtype(w) == DType::kI8)
    return v.Constant(RealNumbers<int8_t>(value.data, *value.quant, channels, inner), dims);
  return v.Constant(RealNumbers<uint8_t>(value.data, *value.quant, channels, inner), dims);
}

// Scales and zero points: a scalar, or one for each channel.
template <class T>
std::vector<std::string> ScaleAndZeros(OnnxValues& v, const Quant& q) {
  const auto count = static_cast<int64_t>(q.scales.size());
  std::vector<T> zeros(q.scales.size());
  for (size_t i = 0; i < zeros.size() && i < q.zero_points.size(); ++i)
    zeros[i] = static_cast<T>(q.zero_points[i]);
  const Ints dims = count == 1 ? Ints{} : Ints{count};
  return {v.Constant(std::vector<float>(q.scales.begin(), q.scales.end()), dims), v.Constant(zeros, dims)};
}

void CheckWeights(const OnnxValues& v, ValueId w) {
  const Value& value = v.function().value(w);
  if (value.is_const() && value.quant && value.quant->block_size != 0)
    throw Untranslated("blockwise weights");
  if (value.is_const() && value.quant && !v.quant(w) && value.quant->scales.size() > 0)
    throw Untranslated("weights of type " + std::string(Name(v.dtype(w))));
}

// Weights as real numbers, their dims in `order`.
std::string Filter(OnnxValues& v, ValueId w, const Ints& order, bool byte_input) {
  CheckWeights(v, w);
  const Quant* const q = v.quant(w);
  if (!v.is_const(w) || !q) return v.Transposed(v.Real(w, Order::kLast), order);
  if (!byte_input) return v.Transposed(InFloats(v, w), order);
  std::vector<std::string> inputs = {v.Transposed(v.Raw(w), order)};
  const auto parts = v.dtype(w) == DType::kI8 ? ScaleAndZeros<int8_t>(v, *q) : ScaleAndZeros<uint8_t>(v, *q);
  inputs.insert(inputs.end(), parts.begin(), parts.end());
  const int64_t axis = std::ranges::find(order, q->axis) - order.begin();
  return v.Add("DequantizeLinear", inputs, q->scales.size() > 1 ? onnx::IntAttribute("axis", axis) : "");
}

// The bias as real numbers; 32-bit ones have the product of both scales.
std::string Bias(OnnxValues& v, ValueId bias, ValueId x, ValueId w) {
  if (v.dtype(bias) != DType::kI32) return v.Real(bias, Order::kLast);
  if (!v.quant(x) || !v.quant(w)) throw Untranslated("an integer bias of a float product");
  std::vector<float> scales;
  for (const float scale : v.quant(w)->scales) scales.push_back(scale * v.quant(x)->scales[0]);
  const auto count = static_cast<int64_t>(scales.size());
  const Ints dims = count == 1 ? Ints{} : Ints{count};
  const std::string zeros = v.Constant(std::vector<int32_t>(scales.size()), dims);
  return v.Add("DequantizeLinear", {v.Raw(bias), v.Constant(scales, dims), zeros},
               count == 1 ? "" : onnx::IntAttribute("axis", 0));
}

ValueId Operand(const Node& n, size_t index) {
  return index < n.operands.size() ? n.operands[index] : kNoValue;
}

void SetResult(OnnxValues& v, const Node& n, Order order, const std::string& name) {
  SetActivated(v, n.results[0], order, n.attrs.str("fused_activation_function", "NONE"), name);
}

// Sizes, strides and padding of a window. SAME puts the odd element at the end.
std::string Window(const Node& n, const Ints& in, const Ints& window) {
  const Ints strides = {n.attrs.i64("stride_h", 1), n.attrs.i64("stride_w", 1)};
  const Ints dilations = {n.attrs.i64("dilation_h_factor", 1), n.attrs.i64("dilation_w_factor", 1)};
  Ints pads(4);
  for (size_t i = 0; i < 2 && n.attrs.str("padding", "SAME") == "SAME"; ++i) {
    const int64_t out = (in[i + 1] + strides[i] - 1) / strides[i];
    const int64_t seen = (out - 1) * strides[i] + (window[i] - 1) * dilations[i] + 1;
    const int64_t total = std::max<int64_t>(0, seen - in[i + 1]);
    pads[i] = total / 2;
    pads[i + 2] = total - total / 2;
  }
  std::string attributes = onnx::IntsAttribute("kernel_shape", window) +
                           onnx::IntsAttribute("strides", strides) + onnx::IntsAttribute("pads", pads);
  if (dilations != Ints{1, 1}) attributes += onnx::IntsAttribute("dilations", dilations);
  return attributes;
}

void AddConv(OnnxValues& v, const Node& n) {
  const ValueId x = n.operands[0], w = n.operands[1], bias = Operand(n, 2);
  const Ints in = v.dims(x), filter = v.dims(w);
  const bool depthwise = n.is(Op::kDepthwiseConv2D), bytes = v.quant(x) != nullptr;
  const Ints order = depthwise ? Ints{3, 0, 1, 2} : Ints{0, 3, 1, 2};
  const int64_t groups = depthwise ? in[3] : in[3] / filter[3];
  std::vector<std::string> inputs = {v.Real(x, Order::kFirst), Filter(v, w, order, bytes)};
  if (bias != kNoValue) inputs.push_back(Bias(v, bias, x, w));
  std::string attributes = Window(n, in, {filter[1], filter[2]});
  if (groups != 1) attributes += onnx::IntAttribute("group", groups);
  SetResult(v, n, Order::kFirst, v.Add("Conv", inputs, attributes));
}

void AddTransposeConv(OnnxValues& v, const Node& n) {
  const ValueId w = n.operands[1], x = n.operands[2], bias = Operand(n, 3);
  const Ints in = v.dims(x), filter = v.dims(w), out = v.dims(n.results[0]);
  const Ints strides = {n.attrs.i64("stride_h", 1), n.attrs.i64("stride_w", 1)};
  Ints pads(4), more(2);
  for (size_t i = 0; i < 2; ++i) {
    const int64_t all = (in[i + 1] - 1) * strides[i] + filter[i + 1],
                  total = std::max<int64_t>(0, all - out[i + 1]);
    pads[i] = total / 2;
    pads[i + 2] = total - total / 2;
    more[i] = std::max<int64_t>(0, out[i + 1] - all);
  }
  std::vector<std::string> inputs = {v.Real(x, Order::kFirst),
                                     Filter(v, w, {3, 0, 1, 2}, v.quant(x) != nullptr)};
  if (bias != kNoValue) inputs.push_back(Bias(v, bias, x, w));
  SetResult(v, n, Order::kFirst,
            v.Add("ConvTranspose", inputs,
                  onnx::IntsAttribute("kernel_shape", {filter[1], filter[2]}) +
                      onnx::IntsAttribute("strides", strides) + onnx::IntsAttribute("pads", pads) +
                      onnx::IntsAttribute("output_padding", more)));
}

void AddPool(OnnxValues& v, const Node& n) {
  const ValueId x = n.operands[0];
  const Ints in = v.dims(x), window = {n.attrs.i64("filter_height", 1), n.attrs.i64("filter_width", 1)};
  const Ints out = v.dims(n.results[0]);
  const bool whole = out[1] == 1 && out[2] == 1 && window == Ints{in[1], in[2]};
  const char* const op = n.is(Op::kMaxPool2D) ? "MaxPool" : whole ? "GlobalAveragePool" : "AveragePool";
  const bool sized = n.is(Op::kMaxPool2D) || !whole;
  SetResult(v, n, Order::kFirst, v.Add(op, {v.Real(x, Order::kFirst)}, sized ? Window(n, in, window) : ""));
}

// Quantizes the input of each run. Returns the product without bias.
std::string DynamicProduct(OnnxValues& v, const std::string& x, ValueId w) {
  const auto quantized = v.AddMany("DynamicQuantizeLinear", {x}, 3);
  const auto parts = ScaleAndZeros<int8_t>(v, *v.quant(w));
  const std::string product =
      v.Add("MatMulInteger", {quantized[0], v.Transposed(v.Raw(w), {1, 0}), quantized[2]});
  return v.Add("Mul", {v.Cast(product, DType::kF32), v.Add("Mul", {quantized[1], parts[0]})});
}

void AddFullyConnected(OnnxValues& v, const Node& n) {
  const ValueId x = n.operands[0], w = n.operands[1], bias = Operand(n, 2), result = n.results[0];
  const Ints out = v.dims(result), filter = v.dims(w);
  if (n.attrs.str("weights_format", "DEFAULT") != "DEFAULT") throw Untranslated("shuffled weights");
  CheckWeights(v, w);
  std::string rows = v.Stored(x, Order::kLast);
  if (v.dims(x).size() != 2 || v.dims(x)[1] != filter[1])
    rows = v.Add("Reshape", {rows, v.List({-1, filter[1]})});
  rows = v.Dequantized(x, rows);
  std::string y;
  if (!v.quant(x) && v.is_const(w) && v.quant(w) && v.dtype(w) == DType::kI8) {
    y = DynamicProduct(v, rows, w);
    if (bias != kNoValue) y = v.Add("Add", {y, v.Real(bias, Order::kLast)});
  } else {
    std::vector<std::string> inputs = {rows, Filter(v, w, {0, 1}, v.quant(x) != nullptr)};
    if (bias != kNoValue) inputs.push_back(Bias(v, bias, x, w));
    y = v.Add("Gemm", inputs, onnx::IntAttribute("transB", 1));
  }
  SetResult(v, n, Order::kLast, y);
  if (out.size() != 2)
    v.SetStored(result, Order::kLast, v.Add("Reshape", {v.Stored(result, Order::kLast), v.List(out)}));
}

void AddBatchMatmul(OnnxValues& v, const Node& n) {
  const auto side = [&](size_t index, const char* transposes) {
    const ValueId x = n.operands[index];
    CheckWeights(v, x);
    const bool weights = v.is_const(x) && v.quant(x) && !v.quant(n.operands[1 - index]);
    const std::string name = weights ? InFloats(v, x) : v.Real(x, Order::kLast);
    if (!n.attrs.b(transposes, false)) return name;
    Ints order(v.dims(x).size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    return v.Transposed(name, order);
  };
  v.SetReal(n.results[0], Order::kLast, v.Add("MatMul", {side(0, "adj_x"), side(1, "adj_y")}));
}

}  // namespace

bool AddProduct(OnnxValues& v, const Node& n) {
  switch (n.op) {
    case Op::kConv2D:
    case Op::kDepthwiseConv2D: AddConv(v, n); return true;
    case Op::kTransposeConv: AddTransposeConv(v, n); return true;
    case Op::kMaxPool2D:
    case Op::kAveragePool2D: AddPool(v, n); return true;
    case Op::kFullyConnected: AddFullyConnected(v, n); return true;
    case Op::kBatchMatmul: AddBatchMatmul(v, n); return true;
    default: return false;
  }
}

}  // namespace fusebox::bench
