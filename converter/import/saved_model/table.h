// SPDX-License-Identifier: Apache-2.0
// ReadTable: walks a sorted table file (leveldb's format, which TensorFlow uses
// for a bundle's index).
//
// The library's own reader is not used: it takes block sizes and entry lengths
// on trust once a checksum holds, and the checksum does not cover the footer,
// so that a damaged or crafted file can make it allocate or read out of bounds.
// Compressed blocks are refused, since TensorFlow never writes them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

#include "host/base/status.h"

namespace fusebox::saved_model {

// Calls visit for every record in ascending order of key; its error ends the
// walk. The views live until it returns. Every length is checked against what
// holds it, every block against its checksum, and keys must ascend.
Status ReadTable(std::span<const std::byte> file,
                 const std::function<Status(std::string_view key, std::string_view value)>& visit);

}  // namespace fusebox::saved_model
