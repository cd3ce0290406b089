// SPDX-License-Identifier: Apache-2.0
// ReadTable: walks a sorted table file (leveldb's format, used by TensorFlow for bundle indexes).
//
// The leveldb library is not used: it trusts block sizes and entry lengths once a checksum matches, and the
// checksum does not cover the footer, so a damaged or crafted file can make it allocate or read out of
// bounds. Blocks may be uncompressed or Snappy-compressed.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

#include "host/base/status.h"

namespace fusebox::saved_model {

// Calls `visit` for every record in ascending key order; an error of `visit` ends the walk. The views are
// valid during the call. Lengths, block checksums and the key order are checked.
Status ReadTable(std::span<const std::byte> file,
                 const std::function<Status(std::string_view key, std::string_view value)>& visit);

}  // namespace fusebox::saved_model
