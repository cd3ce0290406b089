// SPDX-License-Identifier: Apache-2.0
// Single quantized ops through the kernels of plugins/cpu, beside stock TFLite's: how many steps of the
// result they may be apart is said with each. 0 where both round the same way.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "host/tflite/tflite.h"
#include "tests/plugins/xnnpack/net.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

using xnnpack_test::Build, xnnpack_test::Net, xnnpack_test::Noise, xnnpack_test::Options, xnnpack_test::Q;
using Dims = std::vector<int64_t>;

constexpr Q kIn16{0.0003f, 0}, kOther16{0.0007f, 0}, kOut16{0.0009f, 0};
constexpr Q kIn8{0.05f, 3}, kOut8{0.08f, -5};

struct Single {
  std::string name;
  Build build;
  double steps = 0;  // apart at most
};

// Operands of the dims given, a result of the dims of the first.
Build Map(Op op, DType dtype, std::vector<std::pair<Dims, Q>> operands, Q out, Attrs attrs = {},
          std::optional<DType> result = {}) {
  return [=] {
    Net net;
    std::vector<ValueId> inputs;
    for (const auto& [dims, q] : operands) inputs.push_back(net.Input(dtype, dims, q));
    return net.Take({net.Add(op, inputs, result.value_or(dtype), operands[0].first, attrs, out)});
  };
}

int64_t Count(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  return count;
}

ValueId Weights(Net& net, Dims dims, int axis, bool per_channel) {
  std::vector<Q> q(per_channel ? static_cast<size_t>(dims[static_cast<size_t>(axis)]) : 1, {0.004f, 0});
  for (size_t i = 0; i < q.size(); ++i) q[i].scale += 0.0003f * static_cast<float>(i % 7);
  return net.Const<int8_t>(DType::kI8, dims, Noise<int8_t>(static_cast<size_t>(Count(dims)), 5, -127, 128), q,
                           axis);
}

// A product of i16 by i8 weights. The bias is i64, i32 or none (NONE).
Build Product(Op op, Dims in, Dims weights, int axis, bool per_channel, DType bias, Dims out,
              Attrs attrs = {}) {
  return [=] {
    Net net;
    const ValueId x = net.Input(DType::kI16, in, kIn16), w = Weights(net, weights, axis, per_channel);
    std::vector<ValueId> operands = {x, w};
    if (op == Op::kTransposeConv)
      operands = {net.Const<int32_t>(DType::kI32, {4}, std::vector<int32_t>(out.begin(), out.end())), w, x};
    const auto channels = static_cast<size_t>(weights[static_cast<size_t>(axis)]);
    std::vector<Q> q(per_channel ? channels : 1);
    for (size_t i = 0; i < q.size(); ++i)
      q[i].scale = kIn16.scale * (0.004f + 0.0003f * static_cast<float>(per_channel ? i % 7 : 0));
    const Dims list = {static_cast<int64_t>(channels)};
    if (bias == DType::kI64)
      operands.push_back(net.Const<int64_t>(bias, list, Noise<int64_t>(channels, 6, -9e5, 9e5), q));
    if (bias == DType::kI32)
      operands.push_back(net.Const<int32_t>(bias, list, Noise<int32_t>(channels, 6, -9e5, 9e5), q));
    return net.Take({net.Add(op, operands, DType::kI16, out, attrs, kOut16)});
  };
}

void AddProducts(std::vector<Single>& all) {
  const Attrs same = Options("padding", "SAME", "stride_h", 1, "stride_w", 1);
  Attrs deep = same;
  deep.Set("depth_multiplier", 2);
  const Attrs two = Options("padding", "VALID", "stride_h", 2, "stride_w", 2, "dilation_h_factor", 2,
                            "fused_activation_function", "RELU6");
  for (const bool c : {false, true}) {
    const std::string by = c ? "PerChannel" : "";
    for (const DType bias : {DType::kI64, DType::kI32}) {
      const std::string name = by + (bias == DType::kI64 ? "" : "Bias32");
      const double fast = bias == DType::kI32 ? 1 : 0;  // where stock's optimized product rounds once
      all.push_back({"Conv" + name,
                     Product(Op::kConv2D, {2, 9, 7, 13}, {5, 3, 3, 13}, 0, c, bias, {2, 9, 7, 5}, same),
                     fast});
      all.push_back({"ConvStrided" + name,
                     Product(Op::kConv2D, {1, 9, 7, 3}, {5, 3, 2, 3}, 0, c, bias, {1, 3, 3, 5}, two), fast});
    }
    all.push_back({"ConvDeep" + by, Product(Op::kConv2D, {1, 2, 3, 700}, {5, 1, 1, 700}, 0, c, DType::kI64,
                                            {1, 2, 3, 5}, same)});
    all.push_back({"Depthwise" + by, Product(Op::kDepthwiseConv2D, {2, 9, 7, 4}, {1, 3, 3, 8}, 3, c,
                                             DType::kI64, {2, 9, 7, 8}, deep)});
    all.push_back({"DepthwiseNoBias" + by, Product(Op::kDepthwiseConv2D, {2, 9, 7, 4}, {1, 3, 3, 8}, 3, c,
                                                   DType::kNone, {2, 9, 7, 8}, deep)});
    all.push_back({"Transposed" + by,
                   Product(Op::kTransposeConv, {2, 5, 4, 6}, {7, 3, 4, 6}, 0, c, DType::kI64, {2, 10, 8, 7},
                           Options("padding", "SAME", "stride_h", 2, "stride_w", 2))});
    all.push_back({"TransposedNoBias" + by,
                   Product(Op::kTransposeConv, {1, 5, 4, 6}, {7, 3, 4, 6}, 0, c, DType::kNone, {1, 7, 10, 7},
                           Options("padding", "VALID", "stride_h", 1, "stride_w", 2))});
  }
  all.push_back({"Dense", Product(Op::kFullyConnected, {3, 600}, {5, 600}, 0, false, DType::kI64, {3, 5})});
  all.push_back(
      {"DenseNoBias", Product(Op::kFullyConnected, {3, 600}, {5, 600}, 0, false, DType::kNone, {3, 5})});
  for (const bool adj_y : {false, true}) {
    all.push_back({std::string("MatMul") + (adj_y ? "Adjoint" : ""), [=] {
                     Net net;
                     const ValueId x = net.Input(DType::kI16, {2, 1, 5, 300}, kIn16),
                                   y = net.Input(DType::kI16, adj_y ? Dims{3, 7, 300} : Dims{3, 300, 7},
                                                 kOther16);
                     return net.Take({net.Add(Op::kBatchMatmul, {x, y}, DType::kI16, {2, 3, 5, 7},
                                              Options("adj_y", adj_y), Q{0.004f, 0})});
                   }});
  }
}

// Functions of a byte at many scales: some results lie halfway between two steps.
void AddTables(std::vector<Single>& all) {
  const auto tables = [](Op op, std::optional<Q> out) {
    return [=] {
      Net net;
      std::vector<ValueId> results;
      for (int i = 0; i < 100; ++i) {
        const Q in{i == 0 ? 0.095308006f : 0.0061f + 0.00137f * static_cast<float>(i), i == 0 ? 34 : i - 50};
        const ValueId x = net.Input(DType::kI8, {64, 64}, in);
        results.push_back(net.Add(op, {x}, DType::kI8, {64, 64}, {}, out.value_or(in)));
      }
      return net.Take(results);
    };
  };
  all.push_back({"LogisticI8", tables(Op::kLogistic, Q{1.0f / 256, -128})});
  all.push_back({"TanhI8", tables(Op::kTanh, Q{1.0f / 128, 0})});
  all.push_back({"EluI8", tables(Op::kElu, {})});
}

void AddElementwise(std::vector<Single>& all) {
  const Dims dims = {2, 5, 7, 3};
  const auto i16 = DType::kI16;
  const Attrs relu = Options("fused_activation_function", "RELU");
  for (const auto& [name, op] : {std::pair("Add", Op::kAdd), {"Sub", Op::kSub}, {"Mul", Op::kMul}}) {
    const Q out = op == Op::kMul ? Q{0.003f, 0} : kOut16;
    all.push_back({name, Map(op, i16, {{dims, kIn16}, {dims, kOther16}}, out)});
    all.push_back({std::string(name) + "Relu", Map(op, i16, {{dims, kIn16}, {dims, kOther16}}, out, relu)});
    all.push_back({std::string(name) + "Broadcast", Map(op, i16, {{dims, kIn16}, {{7, 1}, kOther16}}, out)});
  }
  // Scales that are powers of two: stock rounds each operand, we the sum.
  all.push_back({"AddPowers",
                 Map(Op::kAdd, i16, {{dims, {1.0f / 8192, 0}}, {dims, {1.0f / 2048, 0}}}, {1.0f / 2048, 0}),
                 1});
  all.push_back({"SubPowers",
                 Map(Op::kSub, i16, {{dims, {1.0f / 8192, 0}}, {dims, {1.0f / 2048, 0}}}, {1.0f / 2048, 0}),
                 1});
  all.push_back({"Maximum", Map(Op::kMaximum, i16, {{dims, kIn16}, {dims, kIn16}}, kIn16)});
  all.push_back({"Minimum", Map(Op::kMinimum, i16, {{dims, kIn16}, {dims, kIn16}}, kIn16)});
  for (const DType dtype : {DType::kI8, i16}) {
    const bool wide = dtype == i16;
    const std::string t = wide ? "" : "I8";
    const Q in = wide ? kIn16 : kIn8, out = wide ? kOut16 : kOut8;
    all.push_back({"LeakyRelu" + t, Map(Op::kLeakyRelu, dtype, {{dims, in}}, out, Options("alpha", 0.3))});
    all.push_back(
        {"LeakyReluSteep" + t, Map(Op::kLeakyRelu, dtype, {{dims, in}}, out, Options("alpha", 2.5))});
    all.push_back({"Relu" + t, Map(Op::kRelu, dtype, {{dims, in}}, out), 1});
    all.push_back({"Abs" + t, Map(Op::kAbs, dtype, {{dims, in}}, out), 1});
  }
  for (const auto& [name, op] :
       {std::pair("Equal", Op::kEqual), {"Less", Op::kLess}, {"GreaterEqual", Op::kGreaterEqual}}) {
    all.push_back({name, Map(op, DType::kI8, {{dims, kIn8}, {dims, kIn8}}, {}, {}, DType::kBool)});
    all.push_back({std::string(name) + "TwoScales",
                   Map(op, DType::kI8, {{dims, kIn8}, {dims, kOut8}}, {}, {}, DType::kBool)});
  }
  AddTables(all);
  all.push_back({"Logistic", Map(Op::kLogistic, i16, {{dims, kIn16}}, {1.0f / 32768, 0}), 3});
  all.push_back({"Tanh", Map(Op::kTanh, i16, {{dims, kIn16}}, {1.0f / 32768, 0}), 3});
  all.push_back(
      {"Softmax", Map(Op::kSoftmax, i16, {{{4, 9}, kIn16}}, {1.0f / 32768, 0}, Options("beta", 1.0)), 8});
  const std::pair<DType, Q> forms[] = {{DType::kI8, kIn8}, {DType::kU8, {0.05f, 131}}, {i16, kIn16}};
  for (const auto& [from, q] : forms) {
    for (const auto& [to, r] : {std::pair(DType::kI8, kOut8),
                                {DType::kU8, {0.08f, 123}},
                                {i16, kOut16},
                                {DType::kI32, {0.00001f, 0}}}) {
      if (from == i16 ? to == DType::kU8 : to != DType::kI8 && to != DType::kU8) continue;  // not in stock
      all.push_back({"Quantize_" + std::string(Name(from)) + "_" + std::string(Name(to)),
                     Map(Op::kQuantize, from, {{dims, q}}, r, {}, to)});
    }
  }
}

void AddRest(std::vector<Single>& all) {
  const auto i16 = DType::kI16;
  const Dims image = {2, 9, 11, 5};
  const Attrs pool =
      Options("padding", "SAME", "stride_h", 2, "stride_w", 2, "filter_height", 3, "filter_width", 3);
  for (const auto& [name, op] : {std::pair("AveragePool", Op::kAveragePool2D), {"MaxPool", Op::kMaxPool2D}})
    all.push_back({name, [=] {
                     Net net;
                     const ValueId x = net.Input(i16, image, kIn16);
                     return net.Take({net.Add(op, {x}, i16, {2, 5, 6, 5}, pool, kIn16)});
                   }});
  all.push_back({"Mean",
                 [=] {
                   Net net;
                   const ValueId x = net.Input(i16, image, kIn16),
                                 axes = net.Const<int32_t>(DType::kI32, {2}, std::vector<int32_t>{1, 2});
                   return net.Take({net.Add(Op::kMean, {x, axes}, i16, {2, 5}, {}, kOther16)});
                 },
                 0});
  for (const DType dtype : {DType::kI8, DType::kU8, i16}) {
    for (const char* grid : {"align_corners", "half_pixel_centers", "neither"}) {
      const Q q = dtype == i16 ? kIn16 : Q{0.05f, dtype == DType::kU8 ? 131 : 3};
      const Attrs attrs = grid[0] == 'n' ? Attrs{} : Options(grid, true);
      all.push_back({"Resize_" + std::string(Name(dtype)) + "_" + grid,
                     [=] {
                       Net net;
                       const ValueId x = net.Input(dtype, image, q),
                                     size = net.Const<int32_t>(DType::kI32, {2}, std::vector<int32_t>{5, 17});
                       return net.Take(
                           {net.Add(Op::kResizeBilinear, {x, size}, dtype, {2, 5, 17, 5}, attrs, q)});
                     },
                     dtype == DType::kU8 ? 1.0 : 0.0});
    }
  }
}

std::vector<Single> Singles() {
  std::vector<Single> all;
  AddProducts(all);
  AddElementwise(all);
  AddRest(all);
  return all;
}

// Values of a class over the whole range of the type, near zero, zero, and both ends in turn.
template <class T>
Tensor ValuesOf(const Type& type, const std::string& kind, uint32_t seed) {
  constexpr double kLow = std::numeric_limits<T>::lowest(), kHigh = std::numeric_limits<T>::max();
  const auto count = static_cast<size_t>(Count({type.shape.dims().begin(), type.shape.dims().end()}));
  const double middle = (kLow + kHigh + 1) / 2;
  std::vector<T> values(count, static_cast<T>(middle));
  if (kind == "normal") values = Noise<T>(count, seed, kLow, kHigh);
  if (kind == "tiny") values = Noise<T>(count, seed, middle < 3 ? -3 : middle - 3, middle + 4);
  if (kind == "extremes") {
    const auto bits = Noise<uint8_t>(count, seed, 0, 2);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(bits[i] ? kLow : kHigh);
  }
  return {type, Buffer::Of<T>(values)};
}

class CpuOps : public ::testing::TestWithParam<Single> {};

TEST_P(CpuOps, AreAsFarFromStockAsIsSaid) {
  FUSEBOX_NEEDS_STOCK();
  const Single& s = GetParam();
  const auto module = s.build();
  const std::string path = TestDir() + "/op.tflite";
  ASSERT_TRUE(tflite::WriteFile(*module, path));
  auto stock = Stock::Open(path);
  ASSERT_TRUE(stock) << stock.error().message;
  const auto ours = Open(path, *Plugins());
  ASSERT_TRUE(ours) << ours.error().message;
  for (const std::string kind : {"normal", "tiny", "zero", "extremes"}) {
    std::vector<Tensor> inputs;
    for (const ValueId id : module->functions[0]->inputs) {
      const Type& type = module->functions[0]->value(id).type;
      const uint32_t seed = 7 + static_cast<uint32_t>(inputs.size());
      inputs.push_back(type.dtype == DType::kI16  ? ValuesOf<int16_t>(type, kind, seed)
                       : type.dtype == DType::kU8 ? ValuesOf<uint8_t>(type, kind, seed)
                                                  : ValuesOf<int8_t>(type, kind, seed));
    }
    const auto expected = (*stock)->Invoke(inputs);
    ASSERT_TRUE(expected) << expected.error().message;
    const auto got = Invoke(**ours, inputs);
    ASSERT_TRUE(got) << got.error().message;
    for (size_t k = 0; k < got->size(); ++k) {
      const auto compare = [&]<class T>(T) {
        const auto x = (*got)[k].data.As<T>(), y = (*expected)[k].data.As<T>();
        ASSERT_EQ(x.size(), y.size());
        double far = 0;
        for (size_t i = 0; i < x.size(); ++i)
          far = std::max(far, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
        EXPECT_LE(far, s.steps) << kind << ", output " << k;
      };
      switch ((*got)[k].type.dtype) {
        case DType::kI16: compare(int16_t{}); break;
        case DType::kI32: compare(int32_t{}); break;
        case DType::kU8: compare(uint8_t{}); break;
        default: compare(int8_t{});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Quantized, CpuOps, ::testing::ValuesIn(Singles()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusebox::testing
