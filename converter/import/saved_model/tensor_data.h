// SPDX-License-Identifier: Apache-2.0
// Elements and shapes of stored tensors: sizes, counts and packed strings. Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "converter/import/saved_model/graph.pb.h"
#include "host/base/status.h"

namespace fusebox::saved_model {

// Returns the bytes per element in a bundle or in tensor_content, or 0 for types of no fixed size (strings,
// resources) and unknown types. 4-bit types occupy a byte.
size_t ElementSize(tf::DataType dtype);

// "float32" for DT_FLOAT; "type 99" for an unknown type.
std::string DataTypeName(tf::DataType dtype);

// "[1,?,3]" with ? for -1.
std::string ShapeText(std::span<const int64_t> shape);

// Errors: a negative dimension, or the count overflows.
Result<int64_t> ElementCount(std::span<const int64_t> shape);

// Format: count lengths, a checksum of the lengths, the concatenated strings. masked_crc covers everything,
// with each length as a fixed number of bytes.
Result<std::vector<std::string>> DecodeStrings(std::span<const std::byte> bytes, int64_t count,
                                               uint32_t masked_crc);

}  // namespace fusebox::saved_model
