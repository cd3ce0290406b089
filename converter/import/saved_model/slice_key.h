// SPDX-License-Identifier: Apache-2.0
// The key of one part of a partitioned tensor, in TensorFlow's order-preserving
// encoding.
#pragma once

#include <string>
#include <string_view>

#include "converter/import/saved_model/checkpoint.pb.h"

namespace fusebox::saved_model {

// Begins with a zero byte, which no tensor's own key does.
std::string SliceKey(std::string_view tensor, const tf::TensorSlice& slice);

}  // namespace fusebox::saved_model
