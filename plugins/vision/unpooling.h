// SPDX-License-Identifier: Apache-2.0
// MaxUnpooling2D: values go back to where a max-pooling found them; elsewhere is 0.
//
// Operands: values [B,h,w,C] f32 or f64, indices of their shape, i32: (y * width + x) * C + c within the
// result's image. Result: [B,H,W,C], where H is h * stride for SAME padding and (h - 1) * stride + window for
// VALID. The options are the bytes of a struct of TFLite: ten i32 in the machine's order: padding (1 SAME, 2
// VALID), stride over width and height, window's width and height, activation (0), and four that are 0.
#pragma once

#include <fusebox/kernel.hpp>

namespace fusebox::vision {

struct PoolOptions {
  int32_t padding, stride_width, stride_height, window_width, window_height, activation, computed[4];
};

struct MaxUnpooling2D {
  static constexpr std::string_view custom = "MaxUnpooling2D";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  void invoke(const Node& n) const;
};

}  // namespace fusebox::vision
