// SPDX-License-Identifier: Apache-2.0
// Sessions whose inputs change their size from run to run.
#include <cmath>

#include "tests/plugins/xnnpack/net.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

namespace fusebox::xnnpack_test {
namespace {

// f32 images by weights of 8 bits.
std::unique_ptr<Module> HybridConvolution(int64_t batch, int64_t height) {
  Net net;
  const std::vector<Q> scales(4, Q{0.02f, 0});
  const ValueId filter =
      net.Const<int8_t>(DType::kI8, {4, 3, 3, 3}, Noise<int8_t>(108, 3, -127, 127), scales);
  const ValueId x = net.Input(DType::kF32, {batch, height, 6, 3});
  return net.Take({net.Add(Op::kConv2D, {x, filter, kNoValue}, DType::kF32, {batch, height, 6, 4},
                           Options("padding", "SAME", "stride_h", 1, "stride_w", 1))});
}

struct Both {
  std::unique_ptr<Session> by_xnnpack, by_kernels;
};
Both Open(const std::function<std::unique_ptr<Module>()>& build) {
  const auto session = [&](std::vector<Config::Delegate> delegates) {
    const auto model = Model::FromModule(build(), {.registry = XnnpackRegistry(), .delegates = delegates});
    EXPECT_TRUE(model) << model.error().message;
    return *Session::Create(*model);
  };
  return {session({AllOnXnnpack()}), session({})};
}

// Runs both on the same noise: how far they are apart, as a part of the largest value.
double Apart(const Both& both, std::vector<int64_t> dims) {
  const Tensor noise = NoiseFor({DType::kF32, Shape(std::move(dims))}, 5);
  for (Session* session : {both.by_xnnpack.get(), both.by_kernels.get()}) {
    EXPECT_TRUE(session->SetInput(0, noise));
    const Status ran = session->Run();
    EXPECT_TRUE(ran) << ran.error().message;
  }
  const auto got = both.by_xnnpack->output(0), want = both.by_kernels->output(0);
  EXPECT_EQ(ToString(got->type), ToString(want->type));
  double most = 0, apart = 0;
  for (size_t i = 0; i < want->data.As<float>().size(); ++i) {
    most = std::max<double>(most, std::fabs(want->data.As<float>()[i]));
    apart = std::max<double>(apart, std::fabs(got->data.As<float>()[i] - want->data.As<float>()[i]));
  }
  return apart / most;
}

std::string Who(const Session& session) { return session.placements().at(0).runner; }

Status ResizeBoth(const Both& both, const Shape& shape) {
  FUSEBOX_TRY(both.by_kernels->Resize(0, shape));
  return both.by_xnnpack->Resize(0, shape);
}

// A convolution, a pool, and a product of all that is left of an image.
std::unique_ptr<Module> Classifier() {
  Net net;
  const ValueId x = net.Input(DType::kF32, {1, 8, 8, 3});
  const ValueId filter = net.Const<float>(DType::kF32, {4, 3, 3, 3}, Noise<float>(108, 3, -1, 1));
  const ValueId image = net.Add(Op::kConv2D, {x, filter, kNoValue}, DType::kF32, {1, 8, 8, 4},
                                Options("padding", "SAME", "stride_h", 1, "stride_w", 1));
  const ValueId axes = net.Const<int32_t>(DType::kI32, {2}, {1, 2});
  const ValueId mean = net.Add(Op::kMean, {image, axes}, DType::kF32, {1, 4}, Options("keep_dims", false));
  const ValueId weights = net.Const<float>(DType::kF32, {5, 4}, Noise<float>(20, 4, -1, 1));
  return net.Take({net.Add(Op::kFullyConnected, {mean, weights, kNoValue}, DType::kF32, {1, 5})});
}

// The mean over what a filter of 3 x 3 leaves of an image.
std::unique_ptr<Module> MeanOfWindows(int64_t height, int64_t inner) {
  Net net;
  const ValueId x = net.Input(DType::kF32, {1, height, 6, 3});
  const ValueId filter = net.Const<float>(DType::kF32, {4, 3, 3, 3}, Noise<float>(108, 3, -1, 1));
  const ValueId image = net.Add(Op::kConv2D, {x, filter, kNoValue}, DType::kF32, {1, inner, 4, 4},
                                Options("padding", "VALID", "stride_h", 1, "stride_w", 1));
  const ValueId axes = net.Const<int32_t>(DType::kI32, {2}, {1, 2});
  return net.Take({net.Add(Op::kMean, {image, axes}, DType::kF32, {1, 4}, Options("keep_dims", false))});
}

// XNNPACK computes a row where the image has fewer rows than the filter, from memory behind the image.
TEST(Resized, ImagesBelowTheSizeOfAFilterRunOnKernels) {
  for (const bool open : {true, false}) {
    const Both both = Open([&] { return open ? MeanOfWindows(-1, -1) : MeanOfWindows(8, 6); });
    for (const int64_t height : {8, 2, 9, 2, 8}) {
      SCOPED_TRACE(height);
      const std::vector<int64_t> dims = {1, height, 6, 3};
      ASSERT_TRUE(ResizeBoth(both, Shape(dims)));
      const double apart = Apart(both, dims);
      if (height > 2) {
        EXPECT_LT(apart, 1e-5);
        EXPECT_TRUE(Who(*both.by_xnnpack).starts_with("xnnpack"));
      } else {
        for (const Session* session : {both.by_xnnpack.get(), both.by_kernels.get()})
          EXPECT_TRUE(std::isnan(session->output(0)->data.As<float>()[0]));
      }
    }
  }
}

// A file may declare sizes that its ops do not give.
TEST(Resized, ADeclaredSizeDoesNotHideAnEmptyValue) {
  const Both both = Open([] { return MeanOfWindows(2, 6); });
  const std::vector<int64_t> dims = {1, 2, 6, 3};
  Apart(both, dims);
  EXPECT_TRUE(std::isnan(both.by_xnnpack->output(0)->data.As<float>()[0]));
}

TEST(Resized, InputsThatTheModelFixesStayWithXnnpack) {
  const Both both = Open(Classifier);
  for (const auto& dims : std::vector<std::vector<int64_t>>{
           {1, 8, 8, 3}, {3, 8, 8, 3}, {2, 8, 8, 3}, {1, 11, 5, 3}, {4, 9, 13, 3}, {1, 8, 8, 3}}) {
    ASSERT_TRUE(ResizeBoth(both, Shape(dims)));
    EXPECT_LT(Apart(both, dims), 1e-5) << ToString(Shape(dims));
    EXPECT_EQ(Who(*both.by_xnnpack), "xnnpack (partition 0)");
  }
  EXPECT_TRUE(both.by_xnnpack->notices().empty());
}

// Where XNNPACK cannot run a batch that grows, kernels run these sizes, and it keeps the declared ones.
TEST(Resized, SizesThatXnnpackDeclinesLeaveItTheOthers) {
#ifdef __SANITIZE_ADDRESS__
  const __lsan::ScopedDisabler forgets;
#endif
  const Both both = Open([] { return HybridConvolution(1, 6); });
  for (const int64_t batch : {3, 2, 3, 3, 7, 1}) {  // XNNPACK ran the first 3, and declines the second
    ASSERT_TRUE(ResizeBoth(both, {batch, 6, 6, 3}));
    for (int run = 0; run < 2; ++run) EXPECT_LT(Apart(both, {batch, 6, 6, 3}), 0.02) << batch;
    EXPECT_EQ(Who(*both.by_xnnpack), "xnnpack (partition 0)");
  }
  ASSERT_EQ(both.by_xnnpack->notices().size(), 1u);
  EXPECT_NE(both.by_xnnpack->notices()[0].find("declined other sizes"), std::string::npos);
}

// XNNPACK frees, for each image of the new batch but one, memory that it has for the old one.
TEST(HybridConvolution, WhoseBatchGrowsGoesToTheKernels) {
#ifdef __SANITIZE_ADDRESS__
  const __lsan::ScopedDisabler forgets;  // a pointer for each image of a batch that shrinks
#endif
  const Both both = Open([] { return HybridConvolution(-1, 6); });
  for (const int64_t batch : {3, 3, 2}) {
    EXPECT_LT(Apart(both, {batch, 6, 6, 3}), 0.02) << batch;
    EXPECT_EQ(Who(*both.by_xnnpack), "xnnpack (partition 0)");
  }
  for (const int64_t batch : {7, 1, 40}) {
    EXPECT_LT(Apart(both, {batch, 6, 6, 3}), 0.02) << batch;
    EXPECT_NE(Who(*both.by_xnnpack), "xnnpack (partition 0)");
  }
}

TEST(HybridConvolution, WhoseImagesGrowStays) {
  const Both both = Open([] { return HybridConvolution(2, -1); });
  for (const int64_t height : {4, 9, 1, 30}) {
    EXPECT_LT(Apart(both, {2, height, 6, 3}), 0.02) << height;
    EXPECT_EQ(Who(*both.by_xnnpack), "xnnpack (partition 0)");
  }
}

TEST(Session, OfAnEmptyBatchIsXnnpacksAgainAfterwards) {
  const auto build = [] {
    Net net;
    const ValueId x = net.Input(DType::kF32, {-1, 6});
    return net.Take({net.Add(Op::kTanh, {x}, DType::kF32, {-1, 6})});
  };
  const Both both = Open(build);
  EXPECT_LT(Apart(both, {3, 6}), 1e-5);
  EXPECT_TRUE(both.by_xnnpack->SetInput(0, NoiseFor({DType::kF32, Shape({0, 6})}, 5)));
  const Status ran = both.by_xnnpack->Run();
  EXPECT_TRUE(ran) << ran.error().message;
  EXPECT_LT(Apart(both, {2, 6}), 1e-5);
  EXPECT_EQ(Who(*both.by_xnnpack), "xnnpack (partition 0)");
}

// Channels that are declared decide how many groups a filter is read in.
TEST(Convolution, OfOtherChannelsThanDeclaredIsCompiledForThem) {
  const auto build = [] {
    Net net;
    const ValueId filter = net.Const<float>(DType::kF32, {2, 3, 3, 4}, Noise<float>(72, 3, -1, 1));
    const ValueId x = net.Input(DType::kF32, {1, 4, 4, 4});
    const ValueId wide = net.Add(Op::kRelu, {x}, DType::kF32, {1, 4, 4, 8});
    return net.Take({net.Add(Op::kConv2D, {wide, filter, kNoValue}, DType::kF32, {1, 4, 4, 2},
                             Options("padding", "SAME", "stride_h", 1, "stride_w", 1))});
  };
  const Both both = Open(build);
  EXPECT_LT(Apart(both, {1, 4, 4, 4}), 1e-6);
  EXPECT_EQ(Who(*both.by_xnnpack), "xnnpack (partition 0)");
}

}  // namespace
}  // namespace fusebox::xnnpack_test
