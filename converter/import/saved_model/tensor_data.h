// SPDX-License-Identifier: Apache-2.0
// Elements and shapes of stored tensors: how large, how many, how strings are
// packed. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "converter/import/saved_model/graph.pb.h"
#include "host/base/status.h"

namespace fusebox::saved_model {

// Bytes of one element in a bundle or in tensor_content; 0 when elements have
// no fixed size (strings, resources) or the type is unknown. Four-bit types
// take a byte each.
size_t ElementSize(tf::DataType dtype);

// "float32" for DT_FLOAT; "type 99" for an unknown one.
std::string DataTypeName(tf::DataType dtype);

// "[1,?,3]" with ? for -1.
std::string ShapeText(std::span<const int64_t> shape);

// Fails on a negative dimension and when the count overflows.
Result<int64_t> ElementCount(std::span<const int64_t> shape);

// count lengths, a checksum of these, the strings one after the other.
// masked_crc covers all of it, with each length as a fixed number of bytes.
Result<std::vector<std::string>> DecodeStrings(std::span<const std::byte> bytes, int64_t count,
                                               uint32_t masked_crc);

}  // namespace fusebox::saved_model
