// SPDX-License-Identifier: Apache-2.0
// Cutting and resizing, against loops over the pixels.
#include <algorithm>
#include <cmath>

#include "tests/converter/import/tables/translate_cases.h"

namespace fusebox::converter {
namespace {

using Ints = std::vector<int64_t>;

struct Image {
  int64_t height, width, channels;
  std::vector<float> pixels;  // of one or more images
  double At(int64_t image, int64_t y, int64_t x, int64_t c) const {
    return pixels[static_cast<size_t>(((image * height + y) * width + x) * channels + c)];
  }
};

Image Of(int64_t count, int64_t height, int64_t width, int64_t channels) {
  Image made{height, width, channels, {}};
  for (int64_t i = 0; i < count * height * width * channels; ++i)
    made.pixels.push_back(static_cast<float>(std::sin(1.3 * static_cast<double>(i)) * 5));
  return made;
}

SourceOp Crop(const Image& image, int64_t images, const std::vector<float>& boxes,
              const std::vector<int32_t>& which, int32_t h, int32_t w, const std::string& method) {
  std::vector<double> out;
  const auto place = [](double first, double last, int64_t size, int i, int count) {
    const auto limit = static_cast<double>(size - 1);
    return count > 1 ? first * limit + i * (last - first) * limit / (count - 1)
                     : 0.5 * (first + last) * limit;
  };
  for (size_t b = 0; b < which.size(); ++b) {
    for (int i = 0; i < h; ++i) {
      for (int j = 0; j < w; ++j) {
        const double y = place(double{boxes[b * 4]}, double{boxes[b * 4 + 2]}, image.height, i, h);
        const double x = place(double{boxes[b * 4 + 1]}, double{boxes[b * 4 + 3]}, image.width, j, w);
        for (int64_t c = 0; c < image.channels; ++c) {
          const auto limit_y = static_cast<double>(image.height - 1),
                     limit_x = static_cast<double>(image.width - 1);
          if (y < 0 || y > limit_y || x < 0 || x > limit_x) {
            out.push_back(-7);
            continue;
          }
          const auto at = [&](double row, double column) {
            return image.At(which[b], static_cast<int64_t>(row), static_cast<int64_t>(column), c);
          };
          if (method == "nearest") {
            out.push_back(at(std::round(y), std::round(x)));
            continue;
          }
          const double top = std::floor(y), bottom = std::ceil(y), left = std::floor(x), right = std::ceil(x);
          const double above = at(top, left) + (at(top, right) - at(top, left)) * (x - left);
          const double below = at(bottom, left) + (at(bottom, right) - at(bottom, left)) * (x - left);
          out.push_back(above + (below - above) * (y - top));
        }
      }
    }
  }
  const auto count = static_cast<int64_t>(which.size());
  return {"CropAndResize",
          {F({images, image.height, image.width, image.channels}, image.pixels), F({count, 4}, boxes),
           I({count}, which), I({2}, {h, w})},
          out,
          A("method", method, "extrapolation_value", -7.0),
          1,
          3};
}

// How much of the pixels base - 1 to base + 2 a place is that lies `beyond` base.
std::vector<double> CubicParts(double a, double beyond) {
  const auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [&](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(1 + beyond), near(beyond), near(1 - beyond), far(2 - beyond)};
}

SourceOp Bicubic(const Image& image, int32_t h, int32_t w, bool half, bool corners) {
  struct Parts {
    int64_t base;
    std::vector<double> share;
  };
  const auto parts = [&](int64_t i, int64_t from, int64_t to) {
    const double scale = corners ? static_cast<double>(from - 1) / static_cast<double>(to - 1)
                                 : static_cast<double>(from) / static_cast<double>(to);
    const double at = half ? (static_cast<double>(i) + 0.5) * scale - 0.5 : static_cast<double>(i) * scale;
    Parts made{static_cast<int64_t>(std::floor(at)), {}};
    made.share = CubicParts(half ? -0.5 : -0.75, std::nearbyint((at - std::floor(at)) * 1024) / 1024);
    if (!half) return made;
    double sum = 0;
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t source = made.base - 1 + k;
      if (source < 0 || source >= from) made.share[static_cast<size_t>(k)] = 0;
      sum += made.share[static_cast<size_t>(k)];
    }
    for (double& share : made.share) share /= sum;
    return made;
  };
  std::vector<double> out;
  for (int64_t i = 0; i < h; ++i) {
    for (int64_t j = 0; j < w; ++j) {
      for (int64_t c = 0; c < image.channels; ++c) {
        const Parts y = parts(i, image.height, h), x = parts(j, image.width, w);
        double sum = 0;
        for (int64_t k = 0; k < 16; ++k) {
          const int64_t row = std::clamp<int64_t>(y.base - 1 + k / 4, 0, image.height - 1);
          const int64_t column = std::clamp<int64_t>(x.base - 1 + k % 4, 0, image.width - 1);
          sum += y.share[static_cast<size_t>(k / 4)] * x.share[static_cast<size_t>(k % 4)] *
                 image.At(0, row, column, c);
        }
        out.push_back(sum);
      }
    }
  }
  return {"ResizeBicubic",
          {F({1, image.height, image.width, image.channels}, image.pixels), I({2}, {h, w})},
          out,
          A("half_pixel_centers", half, "align_corners", corners)};
}

}  // namespace

std::vector<SourceOp> ImageCases() {
  const Image two = Of(2, 4, 5, 3), one = Of(1, 3, 5, 2);
  const std::vector<float> boxes = {0, 0, 1, 1, 0.12f, 0.7f, 0.9f, 0.2f, -0.5f, 0.3f, 0.6f, 1.4f};
  return {
      Crop(two, 2, boxes, {0, 1, 1}, 3, 4, "bilinear"),
      Crop(two, 2, boxes, {1, 0, 1}, 1, 2, "bilinear"),
      Crop(two, 2, boxes, {0, 1, 0}, 3, 4, "nearest"),
      Bicubic(one, 6, 10, true, false),
      Bicubic(one, 2, 7, true, false),
      Bicubic(one, 6, 4, false, false),
      Bicubic(one, 5, 9, false, true),
  };
}

}  // namespace fusebox::converter
