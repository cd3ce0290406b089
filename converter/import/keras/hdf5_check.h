// SPDX-License-Identifier: Apache-2.0
// Reads an HDF5 file first in a separate process, fusebox-hdf5-check. The HDF5 library trusts broken files:
// it may read out of bounds, loop forever or allocate gigabytes (fuzzing HDF5 1.10 showed each).
#pragma once

#include <cstddef>
#include <string>

#include "host/base/buffer.h"
#include "host/base/status.h"

namespace fusebox::keras {

// Runs the check on the bytes of `file` (read from `path`, unless that is empty) and kills it after a
// deadline. INVALID: the check did not finish. NOT_FOUND: the check is not installed. Thread-safe.
Status CheckHdf5(const Buffer& file, const std::string& path);

// CPU seconds that reading a whole file may take.
constexpr size_t SecondsToRead(size_t bytes) { return 20 + bytes / (size_t{1} << 26); }

}  // namespace fusebox::keras
