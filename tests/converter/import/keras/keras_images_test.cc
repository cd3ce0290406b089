// SPDX-License-Identifier: Apache-2.0
// Functions of images, updates, segments, sizes and spectra, against their definition.
#include <gmock/gmock.h>

#include <algorithm>
#include <complex>
#include <numbers>

#include "tests/converter/import/keras/keras_functions.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Ref() { return Graph3::Tensor("x"); }
const Tensor kPixels =
    Floats({1, 1, 4, 3}, {0.5F, 0.25F, 0, 0.1F, 0.9F, 0.3F, 0.2F, 0.2F, 0.8F, 0.4F, 0.4F, 0.4F});

TEST(KerasImages, Grayscale) {
  std::vector<float> want;
  for (size_t i = 0; i < 4; ++i) {
    const auto at = [&](size_t k) { return static_cast<double>(Values(kPixels)[i * 3 + k]); };
    want.push_back(static_cast<float>(0.2989 * at(0) + 0.587 * at(1) + 0.114 * at(2)));
  }
  ExpectNear(Of3("RGBToGrayscale", {{"data_format", "channels_last"}}, {}, kPixels), want);
  ExpectNear(Of2("image.rgb_to_grayscale", kNone, kPixels), want);
  ExpectNear(Of2("image.grayscale_to_rgb", kNone, Floats({1, 1, 2, 1}, {3, 4})), {3, 3, 3, 4, 4, 4});
}

TEST(KerasImages, HueSaturationAndValue) {
  // Hue: the place between the two largest colors in sixths.
  const std::vector<float> want = {
      0.5F / 6, 1, 0.5F, (2 + 0.2F / 0.8F) / 6, 8 / 9.0F, 0.9F, 4 / 6.0F, 0.75F, 0.8F, 0, 0, 0.4F};
  ExpectNear(Of3("RGBToHSV", {{"data_format", nullptr}}, {}, kPixels), want);
  ExpectNear(Of2("image.hsv_to_rgb", kNone, Floats({1, 1, 4, 3}, want)), Values(kPixels));
}

TEST(KerasImages, MarginsOfBothForms) {
  const Tensor x = Floats({1, 2, 2, 1}, {1, 2, 3, 4});
  const json none = {{"data_format", nullptr}};
  const auto with = [&](json more) {
    more.update(none);
    return more;
  };
  ExpectNear(Of3("PadImages",
                 with({{"top_padding", 1}, {"left_padding", 0}, {"bottom_padding", 0}, {"right_padding", 1}}),
                 {}, x),
             {0, 0, 0, 1, 2, 0, 3, 4, 0});
  ExpectNear(
      Of3("PadImages",
          with({{"top_padding", 0}, {"left_padding", 1}, {"target_height", 3}, {"target_width", 3}}), {}, x),
      {0, 1, 2, 0, 3, 4, 0, 0, 0});
  ExpectNear(
      Of3("CropImages",
          with({{"top_cropping", 1}, {"left_cropping", 0}, {"bottom_cropping", 0}, {"right_cropping", 1}}),
          {}, x),
      {3});
  ExpectNear(Of2("image.crop_to_bounding_box",
                 {{"offset_height", 0}, {"offset_width", 1}, {"target_height", 2}, {"target_width", 1}}, x),
             {2, 4});
  ExpectNear(Of2("image.central_crop", {{"central_fraction", 0.5}},
                 Floats({1, 4, 4, 1}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})),
             {5, 6, 9, 10});
  EXPECT_THAT(Of3("CropImages", with({{"top_cropping", 2}, {"left_cropping", 0}}), {}, x).error().message,
              HasSubstr("its margins do not fit"));
}

TEST(KerasImages, Patches) {
  const Tensor x = Floats({1, 2, 3, 1}, {1, 2, 3, 4, 5, 6});
  ExpectNear(Of3("ExtractPatches",
                 {{"size", {2, 2}}, {"strides", {1, 1}}, {"dilation_rate", 1}, {"padding", "valid"}}, {}, x),
             {1, 2, 4, 5, 2, 3, 5, 6});
  ExpectNear(
      Of2("image.extract_patches",
          {{"sizes", {1, 2, 1, 1}}, {"strides", {1, 1, 2, 1}}, {"rates", {1, 1, 1, 1}}, {"padding", "VALID"}},
          x),
      {1, 4, 3, 6});
}

TEST(KerasImages, BrightnessAndContrast) {
  const Tensor x = Floats({1, 2, 2, 1}, {1, 2, 3, 6});
  ExpectNear(Of2("image.adjust_brightness", {{"delta", 0.5}}, x), {1.5F, 2.5F, 3.5F, 6.5F});
  ExpectNear(Of2("image.adjust_contrast", {{"contrast_factor", 2.0}}, x), {-1, 1, 3, 9});
  const float root = std::sqrt(3.5F);  // of the variance about 3
  ExpectNear(Of2("image.per_image_standardization", kNone, x), {-2 / root, -1 / root, 0, 3 / root});
  ExpectNear(Of2("image.flip_left_right", kNone, x), {2, 1, 6, 3});
  ExpectNear(Of2("image.flip_up_down", kNone, x), {3, 6, 1, 2});
  ExpectNear(Of2("image.rot90", kNone, x), {2, 6, 1, 3});
  ExpectNear(Of2("image.convert_image_dtype", {{"dtype", "float32"}}, x), {1, 2, 3, 6});
  ExpectNear(Of2("image.crop_and_resize",
                 {{"boxes", {{0.0, 0.0, 1.0, 1.0}}}, {"box_indices", {0}}, {"crop_size", {3, 3}}}, x),
             {1, 1.5F, 2, 2, 3, 4, 3, 4.5F, 6});
}

TEST(KerasUpdates, ScatterAndSlice) {
  const Tensor x = Floats({4}, {1, 2, 3, 4});
  const json at = {{1}, {3}};
  ExpectNear(Of3("ScatterUpdate", {{"reduction", nullptr}}, {Ref(), at, {8.0, 9.0}}, x), {1, 8, 3, 9});
  ExpectNear(Of3("ScatterUpdate", {{"reduction", "add"}}, {Ref(), at, {8.0, 9.0}}, x), {1, 10, 3, 13});
  ExpectNear(Of2("tensor_scatter_nd_update", {{"indices", at}, {"updates", {8.0, 9.0}}}, x), {1, 8, 3, 9});
  ExpectNear(Of3("ScatterUpdate", {{"reduction", "max"}}, {Ref(), at, {0.0, 9.0}}, x), {1, 2, 3, 9});
  const std::string file = TestDir() + "/scatter.keras";
  const json places = {{0}, {5}, {0}, {2}};
  WriteKeras(file,
             Graph3().Input("x", {4}).Operation("Scatter", {{"shape", {6}}}, "y", {places, Ref()}).Config(),
             {});
  ExpectNear(RunFile(file, {x}), {4, 0, 4, 0, 0, 2});
  ExpectNear(Of3("SliceUpdate", kNone, {Ref(), {1}, {8.0, 9.0}}, x), {1, 8, 9, 4});
  EXPECT_THAT(Of3("ScatterUpdate", {{"reduction", "mul"}}, {Ref(), at, {8.0, 9.0}}, x).error().message,
              HasSubstr("its reduction mul"));
}

TEST(KerasUpdates, Segments) {
  const Tensor x = Floats({4}, {1, 2, 3, 5});
  const json owners = {1, 0, 1, 0};
  const auto three = [&](const char* function, const json& count, bool sorted) {
    return Of3(function, {{"num_segments", count}, {"sorted", sorted}}, {Ref(), owners}, x);
  };
  ExpectNear(three("SegmentSum", 3, false), {7, 4, 0});
  ExpectNear(three("SegmentMax", 2, false), {5, 3});
  ExpectNear(Of2("math.unsorted_segment_prod", {{"segment_ids", owners}, {"num_segments", 2}}, x), {10, 3});
  ExpectNear(Of2("math.segment_sum", {{"segment_ids", {0, 0, 1, 1}}}, x), {3, 8});
  EXPECT_THAT(three("SegmentSum", nullptr, false).error().message,
              HasSubstr("an unknown number of segments"));
}

// Sizes that come from tf.shape of the input.
TEST(KerasUpdates, TensorsOfComputedSizes) {
  const auto run = [](const char* function, const json& keywords) {
    const Tensor x = Floats({1, 3}, {1, 2, 3});
    const json config = Graph2()
                            .Input("x", {nullptr, 3})
                            .Layer("TFOpLambda", {{"function", "compat.v1.shape"}}, "s", {"x"})
                            .Layer("SlicingOpLambda", {{"function", "__operators__.getitem"}}, "n", {"s"},
                                   {{"slice_spec", 1}})
                            .Layer("TFOpLambda", {{"function", function}}, "y", {"n"}, keywords)
                            .Config();
    return RunModel({config, {}}, {x});
  };
  ExpectExactly<int32_t>(run("range", kNone), {0, 1, 2});
  ExpectExactly<int32_t>(run("range", {{"limit", 9}, {"delta", 2}}), {3, 5, 7});
  ExpectExactly<uint8_t>(run("sequence_mask", {{"maxlen", 5}}), {1, 1, 1, 0, 0});
  const auto three = [](const char* function, const json& config, const json& args) {
    const Tensor start{{DType::kI32, Shape(std::vector<int64_t>{})},
                       Buffer::Of<int32_t>(std::vector<int32_t>{2})};
    return Of3(function, config, args, start);
  };
  ExpectExactly<int32_t>(three("Arange", {{"dtype", nullptr}}, {Ref(), 7, 2}), {2, 4, 6});
  ExpectExactly<int32_t>(three("Full", {{"shape", {2, 1}}, {"dtype", nullptr}}, json::array({Ref()})),
                         {2, 2});
}

using Complex = std::complex<double>;

std::vector<Complex> Transform(const std::vector<double>& x, size_t length) {
  std::vector<Complex> out;
  for (size_t k = 0; k <= length / 2; ++k) {
    Complex sum = 0;
    for (size_t n = 0; n < std::min(length, x.size()); ++n)
      sum += x[n] * std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k * n) /
                                        static_cast<double>(length));
    out.push_back(sum);
  }
  return out;
}

TEST(KerasSpectra, TransformsOfRealNumbersAndBack) {
  const std::vector<double> x = {1, -2, 0.5, 4, 3, 0};
  const Tensor input = Floats({1, 6}, {1, -2, 0.5F, 4, 3, 0});
  std::vector<float> real;
  std::vector<float> imaginary;
  for (const Complex& v : Transform(x, 8)) {
    real.push_back(static_cast<float>(v.real()));
    imaginary.push_back(static_cast<float>(v.imag()));
  }
  ExpectNear(Of3("RFFT", {{"fft_length", 8}}, {}, input), real);
  const std::string file = TestDir() + "/spectrum.keras";
  const auto part = [](int i) {
    json tensor = Graph3::Tensor("f");
    tensor["config"]["keras_history"] = {"f", 0, i};
    return tensor;
  };
  const Graph3 graph = Graph3().Input("x", {1, 6}).Operation("RFFT", {{"fft_length", 8}}, "f", {Ref()});
  WriteKeras(file, Graph3(graph).Operation("Negative", kNone, "y", {part(1)}).Config(), {});
  std::ranges::transform(imaginary, imaginary.begin(), std::negate());
  ExpectNear(RunFile(file, {input}), imaginary);
  WriteKeras(
      file,
      Graph3(graph).Operation("IRFFT", {{"fft_length", 8}}, "y", {json::array({part(0), part(1)})}).Config(),
      {});
  ExpectNear(RunFile(file, {input}), {1, -2, 0.5F, 4, 3, 0, 0, 0});
}

std::vector<float> Spectrogram(const std::vector<double>& x, size_t length, size_t step, size_t fft,
                               bool centered) {
  const size_t size = centered ? fft : length;
  const size_t before = (size - length) / 2;
  std::vector<float> out;
  for (size_t begin = 0; begin + size <= x.size(); begin += step) {
    std::vector<double> frame(size, 0);
    for (size_t i = 0; i < length; ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length);
      frame[before + i] = x[begin + before + i] * (0.5 - 0.5 * std::cos(angle));
    }
    for (const Complex& v : Transform(frame, fft)) out.push_back(static_cast<float>(std::abs(v)));
  }
  return out;
}

TEST(KerasSpectra, OfShortFrames) {
  const std::vector<double> x = {1, -2, 0.5, 4, 3, 0, -1, 2, 2, 5};
  const Tensor input = Floats({1, 10}, std::vector<float>(x.begin(), x.end()));
  const json config = Graph2()
                          .Input("x", {nullptr, 10})
                          .Layer("TFOpLambda", {{"function", "signal.stft"}}, "s", {"x"},
                                 {{"frame_length", 6}, {"frame_step", 2}})
                          .Layer("TFOpLambda", {{"function", "math.abs"}}, "y", {"s"})
                          .Config();
  ExpectNear(RunModel({config, {}}, {input}), Spectrogram(x, 6, 2, 8, false));
  // Mirrored at both ends by half the length of the transform.
  const std::vector<double> mirrored = {3, 4, 0.5, -2, 1, -2, 0.5, 4, 3, 0, -1, 2, 2, 5, 2, 2, -1, 0};
  const std::string file = TestDir() + "/stft.keras";
  const auto part = [](int i) {
    json tensor = Graph3::Tensor("s");
    tensor["config"]["keras_history"] = {"s", 0, i};
    return tensor;
  };
  WriteKeras(file,
             Graph3()
                 .Input("x", {1, 10})
                 .Operation("STFT",
                            {{"sequence_length", 6},
                             {"sequence_stride", 2},
                             {"fft_length", 8},
                             {"window", "hann"},
                             {"center", true}},
                            "s", {Ref()})
                 .Operation("Hypot", kNone, "y", {part(0), part(1)})
                 .Config(),
             {});
  ExpectNear(RunFile(file, {input}), Spectrogram(mirrored, 6, 2, 8, true));
  ExpectNear(Of3("ExtractSequences", {{"sequence_length", 4}, {"sequence_stride", 5}}, {}, input),
             {1, -2, 0.5F, 4, 0, -1, 2, 2});
}

}  // namespace
}  // namespace fusebox::testing
