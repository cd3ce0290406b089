// SPDX-License-Identifier: Apache-2.0
// Times a fused model beside the same model with the bodies, each with the default delegates on one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/model.h"

namespace fusebox {

// Medians of runs by turns, in microseconds.
struct Speed {
  double fused = 0;
  double body = 0;
  // Times are noisy: true from a ratio of 1.3 and a difference of 5 us.
  bool slower() const { return fused > 1.3 * body && fused - body > 5; }
  std::string Text() const;  // "the fused op takes 176 us, its body with the default delegates 25 us"
};

// `shapes`: of the inputs of both. Error: a model does not run.
Result<Speed> CompareSpeed(std::unique_ptr<Module> fused, std::unique_ptr<Module> body,
                           const std::vector<Shape>& shapes, const std::shared_ptr<Registry>&);

}  // namespace fusebox
