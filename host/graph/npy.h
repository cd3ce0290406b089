// SPDX-License-Identifier: Apache-2.0
// NumPy .npy files: tensors as input and output of the command line.
//
// Versions 1 to 3, little-endian, any simple element type. Big-endian and structured arrays are rejected;
// Fortran order is converted. Kinds S and U become STRING tensors (U as UTF-8; trailing zeros are cut, as in
// NumPy). float16 is F16. Types that NumPy lacks are written as raw integers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/graph/types.h"

namespace fusebox {

Result<Tensor> ReadNpy(const std::string& path);
// `name` is for messages.
Result<Tensor> ParseNpy(std::string_view bytes, const std::string& name);
// Writes STRING tensors as kind S, padded to the longest.
Result<std::string> FormatNpy(const Tensor&);
Status WriteNpy(const std::string& path, const Tensor&);

// Packs a list of strings into the payload of a STRING tensor, and back. Every offset is checked.
Buffer PackStrings(const std::vector<std::string>&);
Result<std::vector<std::string>> UnpackStrings(const Buffer&);
Result<std::vector<std::string_view>> StringsIn(const Buffer&);  // valid as long as the buffer

}  // namespace fusebox
