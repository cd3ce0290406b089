// SPDX-License-Identifier: Apache-2.0
// FlexBuffer maps (options of custom ops) as attributes.
//
// Bools, integers, reals, strings, maps, and lists of integers, reals and strings convert both ways. Other
// values of a map (blobs, nulls, mixed lists) are read as an attribute without value. Other attributes are
// written as follows: a dtype as its name, a shape as a list, a function as its name, a tensor as a map
// {dtype, shape, data}.
#pragma once

#include <string>
#include <string_view>

#include "host/graph/types.h"

namespace fusebox {

// Error: not a FlexBuffer, or its root is not a map. The bytes are untrusted.
Result<Attrs> ReadFlexMap(std::string_view bytes);
// Typed vectors for numbers, an untyped one for strings. Keys are sorted.
std::string WriteFlexMap(const Attrs&);
// True if readers see the same in the bytes as in WriteFlexMap(attrs).
bool FlexMapEquals(std::string_view bytes, const Attrs& attrs);

}  // namespace fusebox
