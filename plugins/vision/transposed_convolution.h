// SPDX-License-Identifier: Apache-2.0
// MediaPipe's Convolution2DTransposeBias: a transposed convolution that computes its own output size.
//
// Operands, f32: images [B,H,W,I], filter [O,h,w,I], bias [O]. Result: [B,stride * (H - 1) + h - p,...,O],
// where p is 0 for VALID, and max(0, h - (H - 1) % stride - 1) for SAME, of which p / 2 is before the first
// row. Options: TFLite's TfLiteTransposeConvParams, native-endian i32: padding (1 SAME, 2 VALID), stride
// width and height; what follows is ignored.
#pragma once

#include <fusebox/gemm.hpp>
#include <fusebox/kernel.hpp>

namespace fusebox::vision {

using namespace sdk;

class TransposedConvolution {
 public:
  static constexpr std::string_view custom = "Convolution2DTransposeBias";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct State {
    int64_t band = 0;  // rows of an image that are multiplied at once
    uint32_t gemm = 0;
    uint32_t products = 0;
  };

  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  explicit TransposedConvolution(const Node& n);
  State prepare(const Node& n, Plan& plan) const;
  void invoke(const Node& n, const State& state) const;

 private:
  Gemm products_;  // of pixels with the filter as [O * h * w, I], if it is constant
};

}  // namespace fusebox::vision
