// SPDX-License-Identifier: Apache-2.0
#include "tests/peers/lstm_net.h"

#include <algorithm>

#include "tests/plugins/xnnpack/net.h"

namespace fusebox::testing {
namespace {

using xnnpack_test::Net, xnnpack_test::Noise, xnnpack_test::Options;
using Dims = std::vector<int64_t>;

// The op's 24 operands, but for the input and the states.
class FloatOperands {
 public:
  FloatOperands(Net& net, const LstmNet& of, uint32_t first_seed = 0)
      : net_(net), of_(of), first_seed_(first_seed), operands_(24, kNoValue) {}

  std::vector<ValueId> Add() {
    for (size_t k = of_.cifg ? 1 : 0; k < 4; ++k) {
      Put(1 + k, {of_.cells, of_.inputs});
      Put(5 + k, {of_.cells, of_.width()});
      Put(12 + k, {of_.cells});
      if (of_.layer_norm) Put(20 + k, {of_.cells}, 0.5);
      if (of_.peephole && k < 3) Put(9 + k, {of_.cells});
    }
    if (of_.outputs) Put(16, {of_.outputs, of_.cells});
    if (of_.projection_bias) Put(17, {of_.outputs});
    return operands_;
  }

 private:
  void Put(size_t operand, Dims dims, double least = -0.6) {
    size_t count = 1;
    for (const int64_t d : dims) count *= static_cast<size_t>(d);
    const auto seed = first_seed_ + static_cast<uint32_t>(operand);
    const bool stored = of_.weights != LstmNet::Weights::kF32 && (operand < 12 || operand == 16);
    operands_[operand] =
        stored ? net_.Const(DType::kI8, std::move(dims), Noise<int8_t>(count, seed, -127, 128),
                            {{0.004F + 0.0002F * static_cast<float>(operand), 0}})
               : net_.Const(DType::kF32, std::move(dims), Noise<float>(count, seed, least, least + 1.2));
  }

  Net& net_;
  const LstmNet& of_;
  uint32_t first_seed_;
  std::vector<ValueId> operands_;
};

ValueId State(Net& net, Dims dims) {
  const ValueId in = net.Input(DType::kF32, dims);
  const ValueId one = net.Const(DType::kF32, {}, std::vector<float>{1});
  return net.Add(Op::kMul, {in, one}, DType::kF32, std::move(dims));
}

}  // namespace

std::unique_ptr<Module> LstmNet::Module() const {
  Net net;
  Dims in = {batch, steps, inputs};
  if (one_step) in = {batch, inputs};
  if (time_major) in = {steps, batch, inputs};
  const ValueId x = net.Input(DType::kF32, in);
  std::vector<ValueId> operands = FloatOperands(net, *this).Add();
  operands[0] = x;
  operands[18] = State(net, {batch, width()});
  operands[19] = State(net, {batch, cells});
  Attrs attrs = Options("fused_activation_function", activation, "cell_clip", static_cast<double>(cell_clip),
                        "proj_clip", static_cast<double>(projection_clip));
  if (time_major) attrs.Set("time_major", true);
  if (weights == Weights::kI8Asymmetric) attrs.Set("asymmetric_quantize_inputs", true);
  in.back() = width();
  const Node& node = net.function().AddNode(
      one_step ? Op::kLstm : Op::kUnidirectionalSequenceLstm, operands,
      {net.Of(DType::kF32, in), net.Of(DType::kF32, {batch, width()}), net.Of(DType::kF32, {batch, cells})},
      attrs);
  return net.Take(node.results);
}

std::unique_ptr<Module> BidirectionalLstmNet::Module() const {
  Net net;
  Dims in = {half.batch, half.steps, half.inputs};
  if (half.time_major) std::swap(in[0], in[1]);
  std::vector<ValueId> operands(48, kNoValue);
  operands[0] = net.Input(DType::kF32, in);
  const std::vector<ValueId> forward = FloatOperands(net, half).Add();
  const std::vector<ValueId> backward = FloatOperands(net, half, 100).Add();
  std::copy_n(forward.begin() + 1, 17, operands.begin() + 1);
  std::copy_n(backward.begin() + 1, 17, operands.begin() + 18);
  const Dims states[] = {{half.batch, half.width()}, {half.batch, half.cells}};
  Dims out = in;
  out.back() = half.width() * (merge ? 2 : 1);
  std::vector<Type> types(merge ? 1 : 2, net.Of(DType::kF32, out));
  for (size_t i = 0; i < 4; ++i) {
    operands[35 + i] = State(net, states[i % 2]);
    types.push_back(net.Of(DType::kF32, states[i % 2]));
  }
  const Attrs attrs =
      Options("fused_activation_function", half.activation, "cell_clip", static_cast<double>(half.cell_clip),
              "proj_clip", static_cast<double>(half.projection_clip), "merge_outputs", merge, "time_major",
              half.time_major);
  return net.Take(net.function().AddNode(Op::kBidirectionalSequenceLstm, operands, types, attrs).results);
}

namespace {

// Constants of an op in integers; scales as a calibration would give them for gates in [-8, 8).
class IntegerOperands {
 public:
  IntegerOperands(Net& net, const IntegerLstmNet& of) : net_(net), of_(of), operands_(24, kNoValue) {}

  std::vector<ValueId> Add(float input_scale, float hidden_scale) {
    for (size_t k = of_.cifg ? 1 : 0; k < 4; ++k) {
      Put<int8_t>(1 + k, DType::kI8, {of_.cells, of_.inputs}, 127, kWeights);
      Put<int8_t>(5 + k, DType::kI8, {of_.cells, of_.width()}, 127, kWeights);
      const float bias_scale = of_.layer_norm ? kNorm / 1024 : input_scale * kWeights;
      Put<int32_t>(12 + k, DType::kI32, {of_.cells}, 0.3F / bias_scale, bias_scale);
      if (of_.layer_norm) Put<int16_t>(20 + k, DType::kI16, {of_.cells}, 32000, kNorm);
      if (of_.peephole && k < 3) Peephole(9 + k);
    }
    if (!of_.outputs) return operands_;
    Put<int8_t>(16, DType::kI8, {of_.outputs, of_.cells}, 127, kWeights);
    Put<int32_t>(17, DType::kI32, {of_.outputs}, 0.2F / (kWeights * hidden_scale), kWeights * hidden_scale);
    return operands_;
  }

 private:
  static constexpr float kWeights = 0.005F, kNorm = 4e-5F;

  // Zero behind the first `width` cells: TFLite 2.9 adds what comes through to as many cells as there are
  // outputs.
  void Peephole(size_t operand) {
    auto weights =
        Noise<int16_t>(static_cast<size_t>(of_.cells), static_cast<uint32_t>(operand), -32000, 32000);
    std::fill(weights.begin() + of_.width(), weights.end(), int16_t{0});
    operands_[operand] = net_.Const(DType::kI16, {of_.cells}, weights, {{2e-5F, 0}});
  }

  template <class T>
  void Put(size_t operand, DType dtype, Dims dims, float most, float scale) {
    size_t count = 1;
    for (const int64_t d : dims) count *= static_cast<size_t>(d);
    std::vector<T> values = Noise<T>(count, static_cast<uint32_t>(operand), -most, most);
    for (T& v : values)
      if (sizeof(T) == 1 && of_.ends) v = static_cast<T>(v < 0 ? -128 : 127);
    operands_[operand] = net_.Const(dtype, std::move(dims), values, {{scale, 0}});
  }

  Net& net_;
  const IntegerLstmNet& of_;
  std::vector<ValueId> operands_;
};

void SetQuant(Net& net, ValueId id, float scale, int64_t zero_point = 0) {
  auto quant = std::make_shared<Quant>();
  quant->scales = {scale};
  quant->zero_points = {zero_point};
  net.function().value(id).quant = std::move(quant);
}

}  // namespace

std::unique_ptr<Module> IntegerLstmNet::Module() const {
  constexpr float kInput = 1.0F / 128, kOutput = 1.0F / 128, kHidden = 0.9F / 128;
  Net net;
  Function& f = net.function();
  Dims in = {batch, steps, inputs}, out = {batch, steps, width()};
  if (one_step) in = {batch, inputs}, out = {batch, width()};
  const ValueId x = net.Input(DType::kI8, in, {kInput, 3});
  std::vector<ValueId> operands = IntegerOperands(net, *this).Add(kInput, kHidden);
  operands[0] = x;
  operands[18] = f.AddValue(net.Of(DType::kI8, {batch, width()}), "h");
  operands[19] = f.AddValue(net.Of(DType::kI16, {batch, cells}), "c");
  for (const size_t state : {18, 19}) f.value(operands[state]).is_variable = true;
  Node& node = f.AddNode(
      one_step ? Op::kLstm : Op::kUnidirectionalSequenceLstm, operands,
      {net.Of(DType::kI8, out), net.Of(DType::kI8, {batch, width()}), net.Of(DType::kI16, {batch, cells})},
      Options("fused_activation_function", "TANH", "cell_clip", static_cast<double>(cell_clip), "proj_clip",
              static_cast<double>(projection_clip)));
  for (const ValueId id : {operands[18], node.results[0], node.results[1]})
    SetQuant(net, id, kOutput, output_zero);
  for (const ValueId id : {operands[19], node.results[2]}) SetQuant(net, id, 1.0F / 2048);
  for (size_t i = 0; i < 5; ++i) {
    const bool hidden = i == 4;
    node.intermediates.push_back(
        f.AddValue(net.Of(hidden ? DType::kI8 : DType::kI16, {}), "between" + std::to_string(i)));
    if (!hidden) SetQuant(net, node.intermediates.back(), 1.0F / 4096);
    else if (outputs) SetQuant(net, node.intermediates.back(), kHidden, -4);
    else SetQuant(net, node.intermediates.back(), kOutput, output_zero);
  }
  return net.Take({node.results[0]});
}

std::unique_ptr<Module> BasicLstmNet(int64_t batch, int64_t inputs, int64_t units) {
  Net net;
  const ValueId x = net.Input(DType::kF32, {batch, inputs});
  const ValueId h = net.Input(DType::kF32, {batch, units}), c = net.Input(DType::kF32, {batch, units});
  const int64_t width = inputs + units;
  const ValueId weights = net.Const(DType::kF32, {4 * units, width},
                                    Noise<float>(static_cast<size_t>(4 * units * width), 1, -0.6, 0.6));
  const ValueId bias =
      net.Const(DType::kF32, {4 * units}, Noise<float>(static_cast<size_t>(4 * units), 2, -0.6, 0.6));
  const Node& node =
      net.function().AddNode(Op::kLstm, {x, h, weights, bias, c},
                             {net.Of(DType::kF32, {batch, units}), net.Of(DType::kF32, {batch, units}),
                              net.Of(DType::kF32, {batch, width}), net.Of(DType::kF32, {batch, 4 * units})},
                             Options("fused_activation_function", "TANH", "kernel_type", "BASIC"));
  return net.Take(node.results);
}

}  // namespace fusebox::testing
