// SPDX-License-Identifier: Apache-2.0
// The key of one slice of a partitioned tensor, in TensorFlow's order-preserving encoding.
#pragma once

#include <string>
#include <string_view>

#include "converter/import/saved_model/checkpoint.pb.h"

namespace fusebox::saved_model {

// Starts with a zero byte, unlike all tensor keys.
std::string SliceKey(std::string_view tensor, const tf::TensorSlice& slice);

}  // namespace fusebox::saved_model
