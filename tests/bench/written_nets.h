// SPDX-License-Identifier: Apache-2.0
// Nets with the structure of public f32 models and random weights.
//
// deeplabv3: MobileNetV2 with half the channels, 257x257, dilated depthwise convolutions, an image-wide pool
// and RESIZE_BILINEAR. face_detection_full_range: an encoder of 192x192 with a decoder, whose sizes grow
// again. pose_detection: 5x5 depthwise convolutions and sums whose channels are padded. unet: 3x3
// convolutions of few channels, down to one. mobilebert: two layers of bottlenecks over 128 tokens.
// average_word_vector: the mean of the embeddings of 256 words. wavenet: gated causal convolutions of a
// waveform. denoiser: an encoder and a decoder of transposed convolutions. letters: a small classifier.
// mobile: MobileNetV1 with a quarter of the channels.
#pragma once

#include <span>

#include "host/graph/graph.h"

namespace fusebox::bench {

struct WrittenNet {
  const char* name;
  Module (*make)();
};
std::span<const WrittenNet> WrittenNets();

}  // namespace fusebox::bench
