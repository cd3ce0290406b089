// SPDX-License-Identifier: Apache-2.0
// A first reading of an HDF5 file by a program of its own, fusebox-hdf5-check. The library trusts a broken
// file: it may read outside of its memory, follow a list that has no end, or allocate gigabytes (fuzzing
// HDF5 1.10 showed each).
#pragma once

#include <cstddef>
#include <string>

#include "host/base/buffer.h"
#include "host/base/status.h"

namespace fusebox::keras {

// Runs the program on the bytes of `file`, which stand in the file `path` unless that is empty, and ends it
// after a deadline. INVALID when the program does not survive the reading; NOT_FOUND when the program is not
// installed. Any thread.
Status CheckHdf5(const Buffer& file, const std::string& path);

// Processor time that a whole reading may take.
constexpr size_t SecondsToRead(size_t bytes) { return 20 + bytes / (size_t{1} << 26); }

}  // namespace fusebox::keras
