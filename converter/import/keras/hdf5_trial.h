// SPDX-License-Identifier: Apache-2.0
// A first reading of an HDF5 file in a process of its own. The library believes a broken file: it may read outside of its memory,
// follow a list that has no end, ask for gigabytes (fuzzing 1.10 showed each). What it does not survive there is not read here.
#pragma once

#include <hdf5.h>

#include <functional>

#include "host/base/buffer.h"
#include "host/base/status.h"

namespace fusebox::keras {

// `open` opens the file whose bytes are `file`; it is called in a child of this process, which reads all that the file holds and
// ends. The caller holds the library's turn. Where no process can be had, nothing is tried.
Status TryReading(const std::function<hid_t()>& open, const Buffer& file);

}  // namespace fusebox::keras
