// SPDX-License-Identifier: Apache-2.0
// Single ops on floats and indices through the kernels of plugins/cpu, beside stock TFLite's.
#include <gtest/gtest.h>

#include "host/tflite/tflite.h"
#include "tests/plugins/xnnpack/net.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

using xnnpack_test::Build, xnnpack_test::Net, xnnpack_test::Noise, xnnpack_test::Options;
using Dims = std::vector<int64_t>;
constexpr DType kF32 = DType::kF32, kI32 = DType::kI32;

struct Single {
  std::string name;
  Build build;
  double least = 0;  // difference that is none, whatever the values' size
};

ValueId Weights(Net& net, const Dims& dims) {
  size_t count = 1;
  for (const int64_t d : dims) count *= static_cast<size_t>(d);
  return net.Const<float>(kF32, dims, Noise<float>(count, 5, -1, 1));
}

Attrs Strides(const char* padding, int d, int h, int w) {
  return Options("padding", padding, "stride_d", d, "stride_h", h, "stride_w", w);
}

Build Conv3D(const Dims& in, const Dims& filter, const Dims& out, const Attrs& attrs) {
  return [=] {
    Net net;
    const ValueId x = net.Input(kF32, in), f = Weights(net, filter), b = Weights(net, {filter[4]});
    return net.Take({net.Add(Op::kConv3D, {x, f, b}, kF32, out, attrs)});
  };
}

// Stock 2.9 holds the bias to the number of input channels: both are alike here.
Build Conv3DTranspose(const Dims& in, const Dims& filter, const Dims& out, const Attrs& attrs) {
  return [=] {
    Net net;
    const ValueId shape = net.Const<int32_t>(kI32, {5}, std::vector<int32_t>(out.begin(), out.end()));
    const ValueId f = Weights(net, filter), x = net.Input(kF32, in), b = Weights(net, {filter[3]});
    return net.Take({net.Add(Op::kConv3DTranspose, {shape, f, x, b}, kF32, out, attrs)});
  };
}

Build Map(Op op, const Dims& in, const Dims& out, const Attrs& attrs, DType result = kF32) {
  return [=] {
    Net net;
    const ValueId x = net.Input(kF32, in);
    return net.Take({net.Add(op, {x}, result, out, attrs)});
  };
}

// An op of constants, whose values an addition takes over.
Build AddedTo(Op op, const std::vector<std::pair<Dims, std::vector<float>>>& constants, int64_t count) {
  return [=] {
    Net net;
    std::vector<ValueId> operands;
    for (const auto& [dims, values] : constants) operands.push_back(net.Const<float>(kF32, dims, values));
    const ValueId x = net.Input(kF32, {1}), y = net.Add(op, operands, kF32, {count});
    return net.Take({net.Add(Op::kAdd, {y, x}, kF32, {count})});
  };
}

std::vector<Single> Singles() {
  const Attrs pool =
      Options("padding", "SAME", "stride_h", 2, "stride_w", 1, "filter_height", 3, "filter_width", 2);
  Attrs dilated = Strides("VALID", 1, 1, 1);
  dilated.Set("dilation_d_factor", 2);
  dilated.Set("dilation_w_factor", 2);
  dilated.Set("fused_activation_function", "RELU");
  return {
      {"Conv3DSame", Conv3D({2, 4, 5, 6, 3}, {3, 2, 3, 3, 4}, {2, 2, 5, 2, 4}, Strides("SAME", 2, 1, 3))},
      {"Conv3DValid", Conv3D({1, 4, 5, 6, 3}, {2, 2, 3, 3, 4}, {1, 3, 4, 4, 4}, Strides("VALID", 1, 1, 1))},
      {"Conv3DDilated", Conv3D({1, 5, 5, 6, 2}, {2, 2, 3, 2, 3}, {1, 3, 4, 2, 3}, dilated)},
      {"Conv3DTransposeSame",
       Conv3DTranspose({1, 2, 3, 4, 3}, {3, 3, 2, 3, 3}, {1, 4, 3, 8, 3}, Strides("SAME", 2, 1, 2))},
      {"Conv3DTransposeValid",
       Conv3DTranspose({2, 2, 3, 2, 3}, {2, 3, 2, 3, 3}, {2, 4, 5, 4, 3}, Strides("VALID", 2, 1, 2))},
      {"LocalResponse", Map(Op::kLocalResponseNormalization, {2, 3, 4, 11}, {2, 3, 4, 11},
                            Options("radius", 3, "bias", 1.5, "alpha", 0.2, "beta", 0.75))},
      {"L2Pool", Map(Op::kL2Pool2D, {2, 5, 6, 3}, {2, 3, 6, 3}, pool)},
      {"FakeQuantTie", Map(Op::kFakeQuant, {2, 50}, {2, 50}, Options("min", -1.0, "max", 1.0, "num_bits", 8)),
       1e-6},
      {"FakeQuant", Map(Op::kFakeQuant, {2, 50}, {2, 50}, Options("min", -1.1, "max", 1.7, "num_bits", 8)),
       1e-6},
      {"Bucketize", Map(Op::kBucketize, {5, 7}, {5, 7},
                        Options("boundaries", std::vector<double>{-1, -0.25, 0, 0.5, 1.5}), kI32)},
      {"MatrixSetDiag",
       [] {
         Net net;
         const ValueId x = net.Input(kF32, {2, 3, 5}), d = net.Input(kF32, {2, 3});
         return net.Take({net.Add(Op::kMatrixSetDiag, {x, d}, kF32, {2, 3, 5})});
       }},
      {"NearestCornersAndHalfPixels",
       [] {
         Net net;
         const ValueId x = net.Input(kF32, {1, 5, 7, 2}), size = net.Const<int32_t>(kI32, {2}, {8, 3});
         return net.Take({net.Add(Op::kResizeNearestNeighbor, {x, size}, kF32, {1, 8, 3, 2},
                                  Options("align_corners", true, "half_pixel_centers", true))});
       }},
      {"StridedSliceMasked",
       [] {
         Net net;
         const auto list = [&](int32_t a, int32_t b) {
           return net.Const<int32_t>(kI32, {2}, std::vector<int32_t>{a, b});
         };
         const ValueId x = net.Input(kF32, {4, 3}), zero = net.Const<float>(kF32, {1}, {0});
         const ValueId y = net.Add(Op::kStridedSlice, {x, list(2, 1), list(3, 3), list(1, 1)}, kF32, {2},
                                   Options("begin_mask", 1, "shrink_axis_mask", 1));
         return net.Take({net.Add(Op::kAdd, {y, zero}, kF32, {2})});
       }},
      {"GatherScaledIndices",
       [] {
         Net net;
         const ValueId x = net.Input(kF32, {5, 3}),
                       at = net.Const<int32_t>(kI32, {3}, std::vector<int32_t>{4, 0, 2}, {{0.5f, 0}});
         return net.Take({net.Add(Op::kGather, {x, at}, kF32, {3, 3}, Options("axis", 0))});
       }},
      {"Range", AddedTo(Op::kRange, {{{}, {0}}, {{}, {1}}, {{}, {0.01f}}}, 100)},
      {"FloorDiv", AddedTo(Op::kFloorDiv, {{{4}, {1, -1, 7, 3}}, {{4}, {0.1f, 0.1f, 0.7f, -0.3f}}}, 4)},
      {"SegmentSum",
       [] {
         Net net;
         const ValueId x = net.Input(kF32, {5, 3}), ids = net.Const<int32_t>(kI32, {5}, {0, 0, 1, 2, 2});
         return net.Take({net.Add(Op::kSegmentSum, {x, ids}, kF32, {3, 3})});
       }},
  };
}

class CpuFloatOps : public ::testing::TestWithParam<Single> {};

TEST_P(CpuFloatOps, AreStocks) {
  FUSEBOX_NEEDS_STOCK();
  const auto module = GetParam().build();
  const std::string path = TestDir() + "/op.tflite";
  ASSERT_TRUE(tflite::WriteFile(*module, path));
  const auto stock = Stock::Open(path);
  ASSERT_TRUE(stock) << stock.error().message;
  const auto ours = Open(path, *Plugins());
  ASSERT_TRUE(ours) << ours.error().message;
  for (const double size : {1.0, 1e-6, 0.0, 1e6}) {
    Tensors inputs = RandomInputs(**ours, 3);
    for (Tensor& input : inputs) {
      std::vector<float> values;
      for (const float v : input.data.As<float>()) values.push_back(static_cast<float>(2 * size * v));
      input.data = Buffer::Of<float>(values);
    }
    const auto got = Invoke(**ours, inputs), expected = (*stock)->Invoke(inputs);
    ASSERT_TRUE(got) << got.error().message;
    ASSERT_TRUE(expected) << expected.error().message;
    EXPECT_EQ(Difference(*got, *expected, std::max(1e-5 * size, GetParam().least), 1e-5), "")
        << "values of size " << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, CpuFloatOps, ::testing::ValuesIn(Singles()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusebox::testing
