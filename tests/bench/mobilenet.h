// SPDX-License-Identifier: Apache-2.0
// MobileNetV2 1.0 224, f32, seeded weights: as a list of layers and as a model.
#pragma once

#include <vector>

#include "tests/bench/net.h"

namespace fusebox::bench {

// A SAME convolution of the previous layer.
struct MobileLayer {
  bool depthwise = false;
  bool relu6 = true;
  bool begins_sum = false;  // its input is added to the result of the next ends_sum layer
  bool ends_sum = false;
  int stride = 1;
  Weights filter, bias;  // [out, h, w, in], depthwise [1, h, w, channels]
};

struct MobileNet {
  static constexpr int64_t kSide = 224, kClasses = 1001;
  std::vector<MobileLayer> layers;  // then the mean over the image,
  Weights classes, class_bias;      // a fully connected layer, and SOFTMAX
};

MobileNet MakeMobileNet();
Module ModuleOf(const MobileNet& net);

}  // namespace fusebox::bench
