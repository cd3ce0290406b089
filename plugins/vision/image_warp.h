// SPDX-License-Identifier: Apache-2.0
// DenseImageWarp: every pixel is taken from elsewhere in its image.
//
// Operands, all f32 or all f64: images [B,H,W,C] with H and W of 2 at least, flow [B,H,W,2] (down, right).
// Result: as the images; pixel (y, x) is the image at (y - flow[0], x - flow[1]), between the four pixels
// around that place. Outside of the image the nearest place inside counts.
#pragma once

#include <fusebox/kernel.hpp>

namespace fusebox::vision {

struct DenseImageWarp {
  static constexpr std::string_view custom = "DenseImageWarp";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  void invoke(const Node& n) const;
};

}  // namespace fusebox::vision
