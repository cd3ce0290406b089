// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files: how tensors enter and leave the command line.
//
// Versions 1 to 3, little-endian, any simple element type; big-endian and structured arrays are refused,
// Fortran order is converted. Kinds S and U become STRING tensors (U as UTF-8, trailing zeros cut, as NumPy
// does). float16 is F16; types that NumPy lacks are written as the raw integers that hold them.
#pragma once

#include <string>

#include "host/graph/types.h"

namespace fusebox {

Result<Tensor> ReadNpy(const std::string& path);
// `name` is for messages.
Result<Tensor> ParseNpy(std::string_view bytes, const std::string& name);
// STRING tensors are written as kind S, padded to the longest.
Result<std::string> FormatNpy(const Tensor&);
Status WriteNpy(const std::string& path, const Tensor&);

// STRING tensors: the payload of a list of strings, and back. Unpack checks every offset.
Buffer PackStrings(const std::vector<std::string>&);
Result<std::vector<std::string>> UnpackStrings(const Buffer&);

}  // namespace fusebox
