// SPDX-License-Identifier: Apache-2.0
// Composites for images and boxes, as functions whose bodies compute the same with plain ops. Each model has
// a weight, which is added to its first input.
#pragma once

#include <cstdint>
#include <string>

#include "host/base/status.h"

namespace fusebox::test_models {

// boxes [8,4], scores [8] -> non_max_suppression_padded_v2 (at most 5, overlap 0.4, score 0.05) -> "indices"
// [5], "count".
Status WriteNonMaxSuppression(const std::string& dir, uint64_t seed);
// box_encodings [1,6,4], class_predictions [1,6,4] -> TFLite_Detection_PostProcess (3 classes and the
// background, at most 4, fast suppression) -> "boxes" [1,4,4], "classes" [1,4], "scores" [1,4], "count" [1].
Status WriteDetectionPostProcess(const std::string& dir, uint64_t seed);
// image [1,4,5,2], flow [1,4,5,2] -> addons:DenseImageWarp -> "warped".
Status WriteDenseImageWarp(const std::string& dir, uint64_t seed);
// updates [2,2,2,3], indices i32 of the same shape -> addons:MaxUnpooling2D (2 by 2) -> "unpooled" [2,4,4,3].
Status WriteMaxUnpooling(const std::string& dir, uint64_t seed);

}  // namespace fusebox::test_models
