// SPDX-License-Identifier: Apache-2.0
// Which ops become 8-bit integers, which stay f32 for it would not pay, and what scales they get.
#include "tests/converter/quantize/eight.h"

namespace fusebox::converter {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Choice8, LeavesIslandsBetweenFloatOps) {
  Eight m;
  const ValueId a = m.Op1(Op::kExp, {m.Dense(m.In({1, 16}), 16)});
  const ValueId moved = m.Op1(Op::kTranspose, {m.Reshape(a, {4, 4}), m.Ints({1, 0})});
  const ValueId sum = m.Op1(Op::kAdd, {moved, m.C(1)});
  ASSERT_EQ(m.Quantize({m.Op1(Op::kSqrt, {sum})}), "");
  EXPECT_EQ(m.Ops(), "QUANTIZE FULLY_CONNECTED DEQUANTIZE EXP RESHAPE TRANSPOSE ADD SQRT");
  EXPECT_THAT(m.Notes(), HasSubstr("TRANSPOSE: stays f32: 8 bits between f32 ops only add conversions"));
}

TEST(Choice8, KeepsNetsOfBytesWhole) {
  Eight m;
  const ValueId x = m.In({1, 16});
  const ValueId a = m.Dense(m.Op1(Op::kMul, {m.Reshape(x, {1, 16}), m.C(2)}), 16);
  const ValueId b = m.Op1(Op::kAdd, {m.Op1(Op::kRelu, {m.Dense(a, 16)}), a});
  const ValueId alone = m.Op1(Op::kRelu, {m.In({1, 4})});
  ASSERT_EQ(m.Quantize({m.Reshape(b, {4, 4}), m.Op1(Op::kMul, {b, b}), alone}), "");
  EXPECT_EQ(m.Ops(),
            "QUANTIZE RESHAPE MUL FULLY_CONNECTED FULLY_CONNECTED RELU ADD QUANTIZE RELU RESHAPE MUL "
            "DEQUANTIZE DEQUANTIZE DEQUANTIZE");
  EXPECT_EQ(m.Notes(), "");
}

// In 8 bits a token of small values would have no variance.
TEST(Choice8, NormalizesLayersInFloat) {
  Eight m;
  m.fill[0] = [](std::mt19937& random, size_t count) {
    std::vector<float> values(count);
    std::uniform_real_distribution<float> noise(-1, 1);
    for (size_t i = 0; i < count; i += 16) {
      const float size = std::pow(10.0f, 0.5f * noise(random));
      for (size_t k = 0; k < 16; ++k) values[i + k] = size * noise(random);
    }
    return values;
  };
  const ValueId h = m.Dense(m.In({1, 12, 16}), 16), last = m.Ints({2});
  const auto mean = [&](ValueId v) { return m.Op1(Op::kMean, {v, last}, m.With({{"keep_dims", true}})); };
  const ValueId middle = mean(h), variance = mean(m.Op1(Op::kSquaredDifference, {h, middle}));
  const ValueId scale = m.Op1(Op::kRsqrt, {m.Op1(Op::kAdd, {variance, m.C(1e-3f)})});
  const ValueId y = m.Op1(Op::kMul, {m.Op1(Op::kSub, {h, middle}), scale});
  ASSERT_EQ(m.Quantize({m.Dense(y, 8)}), "");
  EXPECT_EQ(m.Ops(),
            "QUANTIZE FULLY_CONNECTED DEQUANTIZE MEAN SQUARED_DIFFERENCE MEAN ADD RSQRT SUB MUL QUANTIZE "
            "FULLY_CONNECTED DEQUANTIZE");
  EXPECT_GT(m.Snr(), 22);
}

TEST(Choice8, KeepsIdsExact) {
  Eight m;
  m.fill[0] = [](std::mt19937& random, size_t count) {
    std::vector<float> values(count);
    for (float& v : values) v = std::uniform_real_distribution<float>(-1, 1)(random);
    for (size_t i = 0; i < 2; ++i)
      values[i] = static_cast<float>(std::uniform_int_distribution<int>(0, 999)(random));
    return values;
  };
  const ValueId x = m.In({1, 6});
  const ValueId ids = m.Op1(Op::kSlice, {x, m.Ints({0, 0}), m.Ints({1, 2})});
  const ValueId rest = m.Op1(Op::kSlice, {x, m.Ints({0, 2}), m.Ints({1, 4})});
  Node& cast = m.f.AddNode(Op::kCast, {ids}, {I32({1, 2})});
  cast.attrs.Set("out_data_type", DType::kI32);
  const ValueId rows =
      m.Op1(Op::kGather, {m.Weights({1000, 4}), cast.results[0]}, m.With({{"axis", int64_t{0}}}));
  const ValueId all =
      m.Op1(Op::kConcatenation, {m.Reshape(rows, {1, 8}), rest}, m.With({{"axis", int64_t{1}}}));
  ASSERT_EQ(m.Quantize({m.Dense(all, 5), m.Op1(Op::kMul, {ids, m.C(0.001f)})}), "");
  EXPECT_THAT(m.Notes(), HasSubstr("SLICE: stays f32: a comparison, rounding or conversion to integers"));
  EXPECT_THAT(m.Ops(), HasSubstr("SLICE CAST GATHER RESHAPE QUANTIZE CONCATENATION FULLY_CONNECTED"));
  EXPECT_GT(m.Snr(), 28);
}

TEST(Choice8, SoftmaxBetweenFloatOpsStays) {
  Eight m;
  const ValueId x = m.In({1, 8, 8});
  const auto product = [&](ValueId a, ValueId b) { return m.Op1(Op::kBatchMatmul, {a, b}); };
  const ValueId y = product(m.Softmax(m.Op1(Op::kMul, {product(x, x), m.C(0.3f)})), x);
  ASSERT_EQ(m.Quantize({m.Dense(y, 4)}), "");
  EXPECT_EQ(m.Ops(), "BATCH_MATMUL MUL SOFTMAX BATCH_MATMUL QUANTIZE FULLY_CONNECTED DEQUANTIZE");
}

// ---- scales

TEST(Choice8, ReadersOfAJoinedValueSeeItsOwnScale) {
  Eight m;
  const ValueId f = m.Dense(m.In({1, 16}), 16), y = m.Op1(Op::kMul, {m.In({1, 16}), m.C(1000)});
  const ValueId all = m.Op1(Op::kConcatenation, {f, y}, m.With({{"axis", int64_t{1}}}));
  ASSERT_EQ(m.Quantize({all, m.Softmax(m.Dense(f, 4))}), "");
  EXPECT_THAT(m.Notes(), Not(HasSubstr("stays f32")));
  EXPECT_GT(m.Snr(1), 28);
  EXPECT_GT(m.Snr(0), 35);
}

TEST(Choice8, WhatOnlyAJoinReadsSharesItsScale) {
  Eight m;
  const ValueId f = m.Dense(m.In({1, 16}), 16), y = m.Op1(Op::kMul, {m.In({1, 16}), m.C(1000)});
  ASSERT_EQ(
      m.Quantize({m.Op1(Op::kConcatenation, {m.Reshape(f, {1, 16}), y}, m.With({{"axis", int64_t{1}}}))}),
      "");
  EXPECT_EQ(m.Ops(), "QUANTIZE FULLY_CONNECTED QUANTIZE MUL RESHAPE CONCATENATION DEQUANTIZE");
}

TEST(Choice8, BoundsEndTheRange) {
  Eight m;
  const ValueId x = m.Op1(Op::kMul, {m.In({1, 16}), m.C(1000)});
  const ValueId y = m.Op1(Op::kMaximum, {m.Op1(Op::kMinimum, {x, m.C(1)}), m.C(-1)});
  ASSERT_EQ(m.Quantize({y}), "");
  const Node& last = *m.f.nodes[m.f.nodes.size() - 2];
  ASSERT_TRUE(last.is(Op::kMaximum)) << m.Ops();
  EXPECT_FLOAT_EQ(m.QuantOf(last.results[0]).scales[0], 2.0f / 255);
}

// Calibration reads the first ten rows; the values of the others are as well known.
TEST(Choice8, TablesKeepTheirWholeRange) {
  Eight m;
  std::vector<float> table(400);
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = std::sin(1.0f + static_cast<float>(i)) * (i < 40 ? 1 : 50);
  m.fill[0] = [](std::mt19937& random, size_t) {
    return std::vector{static_cast<float>(std::uniform_int_distribution<int>(0, 9)(random))};
  };
  Node& id = m.f.AddNode(Op::kCast, {m.In({1})}, {I32({1})});
  id.attrs.Set("out_data_type", DType::kI32);
  const ValueId row =
      m.Op1(Op::kGather, {m.C({100, 4}, table), id.results[0]}, m.With({{"axis", int64_t{0}}}));
  ASSERT_EQ(m.Quantize({row, m.Dense(row, 4)}), "");
  const Node& gather = *m.f.nodes[1];
  ASSERT_TRUE(gather.is(Op::kGather)) << m.Ops();
  const Value& stored = m.f.value(gather.operands[0]);
  ASSERT_EQ(stored.type.dtype, DType::kI8) << m.Ops();
  for (size_t i = 0; i < table.size(); ++i)
    EXPECT_NEAR(static_cast<float>(stored.data.As<int8_t>()[i] - stored.quant->zero_points[0]) *
                    stored.quant->scales[0],
                table[i], stored.quant->scales[0])
        << i;
}

TEST(Choice8, SumsFarSmallerThanTheirTermsStay) {
  for (const float far : {1e-3f, 1e-6f}) {
    Eight m;
    const ValueId x = m.Op1(Op::kMul, {m.In({1, 32}), m.C(10)}),
                  d = m.Op1(Op::kMul, {m.In({1, 32}), m.C(far)});
    const ValueId y = m.Op1(Op::kAdd, {x, d});
    ASSERT_EQ(m.Quantize({m.Dense(m.Op1(Op::kSub, {y, x}), 4)}), "");
    EXPECT_THAT(m.Notes(),
                HasSubstr("SUB: stays f32: its values are smaller than an operand's quantization step"));
    EXPECT_GT(m.Snr(), 15) << far;
  }
}

// Positions, say, which are counted in integers.
TEST(Choice8, IntegersAreLeftAlone) {
  Eight m;
  const ValueId x = m.In({1, 8}), ids = m.f.AddConst<int32_t>(DType::kI32, {1}, {3});
  const ValueId rank = m.f.AddNode(Op::kRank, {x}, {I32({})}).results[0];
  const ValueId next = m.Op1(Op::kMaximum, {m.Op1(Op::kMul, {m.Op1(Op::kAdd, {rank, ids}), ids}), ids});
  const ValueId y = m.Dense(x, 4);
  ASSERT_EQ(m.Quantize({y, m.Op1(Op::kReshape, {y, m.Ints({2, 2})}), m.Op1(Op::kSub, {next, ids})}), "");
  EXPECT_EQ(m.Ops(), "RANK ADD MUL MAXIMUM QUANTIZE FULLY_CONNECTED RESHAPE SUB DEQUANTIZE DEQUANTIZE");
}

TEST(Choice8, PreluOfFiveDimensionsStays) {
  Eight m;
  const ValueId x = m.Op1(Op::kMul, {m.In({2, 3, 2, 3, 2}), m.C(2)});
  ASSERT_EQ(m.Quantize({m.Op1(Op::kPrelu, {x, m.Weights({1, 3, 2, 3, 2})})}), "");
  EXPECT_THAT(m.Notes(), HasSubstr("PRELU: stays f32: integer kernels broadcast up to 4 dimensions only"));
}

TEST(Choice8, QuantizedWeightsAreSaidToBeQuantized) {
  Eight m;
  const ValueId y = m.Dense(m.In({1, 32}), 16);
  m.options.quantization = Quantization::kDynamic;
  m.f.outputs = {y};
  m.Sign(m.f);
  ASSERT_EQ(m.Run(QuantizeWeights), "");
  m.module.signatures.clear();
  ASSERT_EQ(m.Quantize({y}), "");
  EXPECT_THAT(m.Notes(), HasSubstr("its weights are i8 already"));
}

TEST(Choice8, TheReportTellsF32FromBytes) {
  Eight m;
  ASSERT_EQ(m.Quantize({m.Dense(m.Op1(Op::kSin, {m.In({1, 8})}), 16)}), "");
  ASSERT_EQ(m.Ops(), "SIN QUANTIZE FULLY_CONNECTED DEQUANTIZE");
  ASSERT_EQ(m.report.layers.size(), 2u);
  EXPECT_FALSE(m.report.layers[0].quantized);
  EXPECT_EQ(m.report.layers[0].largest, 0);
  EXPECT_TRUE(m.report.layers[1].quantized);
}

TEST(Choice8, IntegerModelsStayAsTheyAre) {
  Eight m;
  const ValueId y = m.Dense(m.In({1, 32}), 16);
  ASSERT_EQ(m.Quantize({y}), "");
  const std::string ops = m.Ops();
  const auto again = [&](Quantization as) {
    m.options.quantization = as;
    m.report.notes.clear();
    EXPECT_EQ(m.Run(QuantizeWeights), "");
    EXPECT_EQ(m.Ops(), ops);
    return m.Notes();
  };
  EXPECT_EQ(again(Quantization::kInt8), "");
  EXPECT_EQ(again(Quantization::kDynamic), "FULLY_CONNECTED: its weights are i8 already\n");
}

// What computes in f32 has its weights in bytes all the same.
TEST(Choice8, WeightsOfFloatOpsAreBytes) {
  Eight m;
  const ValueId x = m.Op1(Op::kSin, {m.In({1, 8, 40})});
  const ValueId y = m.Op1(Op::kSin, {m.Op1(Op::kBatchMatmul, {x, m.Weights({1, 40, 40})})});
  ASSERT_EQ(m.Quantize({y}), "");
  EXPECT_EQ(m.Ops(), "SIN DEQUANTIZE BATCH_MATMUL SIN");
  EXPECT_EQ(m.f.value(m.f.nodes[1]->operands[0]).type.dtype, DType::kI8);
}

}  // namespace
}  // namespace fusebox::converter
